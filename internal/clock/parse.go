package clock

import (
	"errors"
	"strings"
	"time"
)

// ParseRFC3339 parses a date and time of RFC 3339. It is stricter than time.Parse, which
// also takes an hour of one digit, an offset of 24 hours and a comma before a fraction.
func ParseRFC3339(s string) (time.Time, error) {
	const hour, offset = "2006-01-02T15", "+07:00"
	at, err := time.Parse(time.RFC3339Nano, s)
	switch {
	case err != nil:
		return at, err
	case s[len(hour)] != ':' || strings.ContainsRune(s, ','):
		return at, errTime
	case strings.HasSuffix(s, "Z"):
		return at, nil
	}
	if zone := s[len(s)-len(offset):]; zone[1:3] >= "24" || zone[4:6] >= "60" {
		return at, errTime
	}
	return at, nil
}

var errTime = errors.New("clock: not a time of RFC 3339")
