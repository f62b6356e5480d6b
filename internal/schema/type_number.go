package schema

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/number"
)

// Number is an IEEE double, but for integers beyond 2^53 (contract V2).
const Number Type = "number"

var numberType = fieldType{
	name:    Number,
	order:   byNumber,
	literal: true,
	ordered: func(text string) (string, bool) {
		n, ok := number.Parse([]byte(text))
		return number.Ordered(n), ok
	},
	canonical: func(_ *Field, v jsontext.Value) (jsontext.Value, string) {
		if v.Kind() != '0' {
			return nil, "expected a number"
		}
		n, ok := number.Parse(v)
		if !ok {
			return nil, number.OutOfRange
		}
		if math.Abs(n) > number.MaxInteger || number.InexactInteger(v, n) {
			return nil, "expected an integer of at most 2^53, which a double holds exactly"
		}
		return number.Append(nil, n), ""
	},
}
