package schema

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Date is a day that exists, as YYYY-MM-DD.
const Date Type = "date"

var dateType = fieldType{
	name:  Date,
	order: byBytes,
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		return parsed(v, "expected a date like 2026-01-31", func(s string) bool {
			_, err := time.Parse(time.DateOnly, s)
			return err == nil
		})
	},
}
