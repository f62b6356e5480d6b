// Package number says what a number in JSON is: one that an IEEE double holds,
// in one form. Every place that takes JSON reads its numbers by this package, so
// that they all take and refuse the same on both engines.
package number

import (
	"bytes"
	"math"
	"strconv"
)

// MaxInteger is 2^53, up to which a double holds every integer.
const MaxInteger = 1 << 53

// OutOfRange is why Parse refuses a number.
const OutOfRange = "expected a number within the range of an IEEE double"

// noRisk is how long a number without an exponent may be and still be certain
// to lie within a double's range, whatever its digits are.
const noRisk = 300

// Parse returns the double that a JSON number stands for. It reports false
// where there is none: out of range, or not zero but rounded to zero.
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

// Holds reports whether Parse takes a number. It costs next to nothing where
// the number is of an everyday form.
func Holds(text []byte) bool {
	if len(text) <= noRisk && !bytes.ContainsAny(text, "eE") {
		return true
	}
	_, ok := Parse(text)
	return ok
}

// Append appends a double in the one form that is stored and shown: the fewest
// digits that read back as the same double, without an exponent, and 0 for
// minus zero. It is also the longest form of it: PostgreSQL's JSONB, which keeps
// numbers as decimals, writes them like this and gives back the same text.
func Append(dst []byte, f float64) []byte {
	if f == 0 {
		f = 0 // minus zero too
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// Altered reports whether a number beyond ±2^53 reads back as another one than
// was written. Below it a double has a neighbour for every integer, so that only
// digits behind the point can be lost, which everybody expects of a double.
// f is what Parse returned for text.
func Altered(text []byte, f float64) bool {
	switch abs := math.Abs(f); {
	case abs < MaxInteger:
		return false
	case abs == MaxInteger:
		// Either number lies between 2^53-1/2 and 2^53+1, so that the digits
		// alone order them, wherever the point is written.
		return bytes.Compare(significant(text), []byte("9007199254740992")) > 0
	default:
		return !bytes.Equal(significant(text), significant(Append(nil, f)))
	}
}

// maxDigits is up to where a number is written out as an integer, as JavaScript
// and with it most clients do; from there on it is written with an exponent.
const maxDigits = 1e21

// Integer reports whether a number is an integer beyond ±2^53, which has no place
// in JSON: clients read it as another one, whether or not a double holds it, as
// its neighbours have none. A number from 1e21 on is taken for a magnitude, and
// is such an integer only when it reads back as another one than was written.
// f is what Parse returned for text.
func Integer(text []byte, f float64) bool {
	return math.Abs(f) > MaxInteger && math.Abs(f) < maxDigits || Altered(text, f)
}

// significant is the digits of a number without its sign, point and exponent
// and without zeros at either end: nothing for zero.
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
