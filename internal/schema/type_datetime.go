package schema

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Datetime is a date and time of RFC 3339. It is kept as sent and compared by
// instant.
const Datetime Type = "datetime"

var datetimeType = fieldType{
	name:  Datetime,
	order: byBytes,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected an RFC 3339 date and time like 2026-01-31T12:00:00Z", func(s string) bool {
			_, err := parseDatetime(s)
			return err == nil && strictDatetime(s)
		})
	},
	key: func(text string) (string, bool) {
		t, err := parseDatetime(text)
		if err != nil {
			return "", false
		}
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z"), true
	},
}

// parseDatetime reads what was stored. It takes a little more than the type does
// now (strictDatetime); a comma and a lower-case t are refused.
func parseDatetime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err == nil && strings.ContainsRune(s, ',') {
		return t, strconv.ErrSyntax
	}
	return t, err
}

// strictDatetime reports whether what parseDatetime reads is RFC 3339: time.Parse
// takes an hour of one digit and an offset of 24 hours.
func strictDatetime(s string) bool {
	const hour, offset = "2006-01-02T15", "+07:00"
	if len(s) <= len(hour) || s[len(hour)] != ':' {
		return false
	}
	if strings.HasSuffix(s, "Z") {
		return true
	}
	zone := s[len(s)-len(offset):]
	return zone[1:3] < "24" && zone[4:6] < "60"
}
