package schema

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/clock"
)

// Datetime is a date and time of RFC 3339. It is kept as sent and compared by
// instant.
const Datetime Type = "datetime"

var datetimeType = fieldType{
	name:  Datetime,
	order: byBytes,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected an RFC 3339 date and time like 2026-01-31T12:00:00Z, in the years 0000 to 9999 of UTC", func(s string) bool {
			t, err := clock.ParseRFC3339(s)
			return err == nil && 0 <= t.UTC().Year() && t.UTC().Year() <= 9999 // other years have no key that is in its order
		})
	},
	// A stored text may be a little less strict than a new one.
	key: func(text string) (string, bool) {
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || strings.ContainsRune(text, ',') {
			return "", false
		}
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z"), true
	},
}
