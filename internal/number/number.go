// Package number defines the numbers of JSON (contract V2, V3): IEEE doubles, written
// in one form. Every package that accepts JSON reads numbers with this one, so that
// all accept the same numbers on both database engines.
package number

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// MaxInteger is 2^53, up to which a double holds every integer.
const MaxInteger = 1 << 53

// OutOfRange is the error text for a number that Parse refuses.
const OutOfRange = "expected a number within the range of an IEEE double"

// noRisk is the length in bytes up to which a number without an exponent lies within
// a double's range, whatever its digits are.
const noRisk = 300

// Parse returns the double that a JSON number stands for. It reports false when the
// number is out of range, or is not zero and rounds to zero.
func Parse(text []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	if f == 0 && len(significant(text)) > 0 {
		return 0, false
	}
	return f, true
}

// Holds reports whether Parse accepts a number. It parses only numbers with an
// exponent and very long ones.
func Holds(text []byte) bool {
	if len(text) <= noRisk && !bytes.ContainsAny(text, "eE") {
		return true
	}
	_, ok := Parse(text)
	return ok
}

// Append appends a double in the one form that is stored and sent: the fewest digits
// that read back as the same double, without an exponent, and 0 for minus zero.
// PostgreSQL's JSONB, which stores numbers as decimals, returns the same text.
func Append(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // minus zero too
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// Ordered returns a text of 16 characters for a double. The texts are in the order
// of the doubles.
func Ordered(f float64) string {
	bits := math.Float64bits(f + 0) // minus zero is zero
	if bits>>63 == 0 {
		bits |= 1 << 63
	} else {
		bits = ^bits
	}
	return fmt.Sprintf("%016x", bits)
}

// altered reports whether a number beyond ±2^53 reads back as another number. Up to
// 2^53 a double holds every integer, so that only digits after the point can be
// lost, as is expected of a double. f must be the result of Parse for text.
func altered(text []byte, f float64) bool {
	switch abs := math.Abs(f); {
	case abs < MaxInteger:
		return false
	case abs == MaxInteger:
		// The number lies between 2^53-1/2 and 2^53+1, so that its digits can be
		// compared without regard to the point.
		return bytes.Compare(significant(text), []byte("9007199254740992")) > 0
	default:
		return !bytes.Equal(significant(text), significant(Append(nil, f)))
	}
}

// exponentFrom is the number from which on JavaScript, and so most clients, write
// integers with an exponent.
const exponentFrom = 1e21

// InexactInteger reports whether a number is an integer beyond ±2^53, which is
// refused because clients cannot distinguish it from its neighbours. A number from
// 1e21 on counts as a magnitude, and is refused only if it reads back as another
// number. f must be the result of Parse for text.
func InexactInteger(text []byte, f float64) bool {
	return math.Abs(f) > MaxInteger && math.Abs(f) < exponentFrom || altered(text, f)
}

// significant returns the digits of a number without its sign, point and exponent
// and without zeros at either end; it returns none for zero.
func significant(text []byte) []byte {
	digits := make([]byte, 0, 24)
	for _, c := range text {
		if c == 'e' || c == 'E' {
			break
		}
		if '0' <= c && c <= '9' && (c != '0' || len(digits) > 0) {
			digits = append(digits, c)
		}
	}
	return bytes.TrimRight(digits, "0")
}
