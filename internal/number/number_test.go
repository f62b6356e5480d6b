package number

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": 0, "0.000": 0, "0e99999": 0, "0.0e-99999": 0, "1": 1, "-1.50": -1.5, "1e5": 100000, "1E+2": 100,
		"5e-324": math.SmallestNonzeroFloat64, "3e-324": math.SmallestNonzeroFloat64, "1.7976931348623157e308": math.MaxFloat64,
		"0." + strings.Repeat("0", 323) + "5": math.SmallestNonzeroFloat64,
	} {
		if f, ok := Parse([]byte(text)); !ok || f != want || !Holds([]byte(text)) {
			t.Errorf("%.40s: %v, %v", text, f, ok)
		}
	}
	for _, text := range []string{
		"1e309", "-1e309", "1.8e308", "1e16000", "1e-20000", "-1e-20000", "2e-324", "1e-99999999999999999999", "1e99999999999999999999",
		strings.Repeat("9", 310), "0." + strings.Repeat("0", 330) + "1",
	} {
		if f, ok := Parse([]byte(text)); ok || Holds([]byte(text)) {
			t.Errorf("%.40s: taken as %v", text, f)
		}
	}
}

func TestAltered(t *testing.T) {
	for text, want := range map[string]bool{
		"9007199254740992": false, "-9007199254740992": false, "9007199254740992.000": false, "9.007199254740992e15": false,
		"9007199254740993": true, "-9007199254740993": true, "9007199254740993.0": true, "9007199254740993e0": true,
		"9.007199254740993e15": true, "90071992547409930e-1": true, "0.9007199254740993E+16": true, "9007199254740992.5": true,
		"9007199254740991.6": false, "9007199254740994": false, "9007199254740995": true, "12345678901234567890": true,
		"1e300": false, "1e16": false, "9999999999999999999": true, "0.1000000000000000055511151231257827": false, "0": false,
	} {
		f, ok := Parse([]byte(text))
		if got := altered([]byte(text), f); !ok || got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]bool{
		"9007199254740992": false, "-9007199254740992": false, "9007199254740993": true, "9007199254740993.0": true, "9.007199254740993e15": true,
		"9007199254740994": true, "-9007199254740994": true, "9.007199254740994e15": true, "900719925474099400e-2": true, "1e16": true,
		"10000000000000000": true, "1152921504606846976": true, "999999999999999900000": true, "1e21": false, "1e300": false, "-1e300": false,
		"6.02214076e23": false, "1" + strings.Repeat("0", 21): false, "1" + strings.Repeat("0", 300): false, "1000000000000000000001": true, "0": false, "1e-7": false,
	} {
		f, ok := Parse([]byte(text))
		if got := InexactInteger([]byte(text), f); !ok || got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	// A stored number is accepted again; an inexact integer never is.
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return
		}
		abs := math.Abs(f)
		if got, want := InexactInteger(Append(nil, f), f), abs > MaxInteger && abs < 1e21; got != want {
			t.Fatalf("%v: %v, want %v", f, got, want)
		}
	})
}

// TestForm checks, for random doubles, that Append's text reads back as the double, is
// accepted, and is the text that Append writes for it again.
func TestForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := math.Float64frombits(rapid.Uint64().Draw(t, "bits"))
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return
		}
		form := Append(nil, f)
		back, ok := Parse(form)
		if !ok || back != f || !Holds(form) || altered(form, back) || string(Append(nil, back)) != string(form) {
			t.Fatalf("%v: form %s, back %v, %v", f, form, back, ok)
		}
		for _, verb := range []byte("eg") {
			text := []byte(strconv.FormatFloat(f, verb, -1, 64))
			if back, ok := Parse(text); !ok || back != f || altered(text, back) {
				t.Fatalf("%s: back %v, %v", text, back, ok)
			}
		}
	})
}
