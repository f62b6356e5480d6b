package schema_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"gatehouse/internal/schema"
)

// drawValue draws a canonical value of a type; values near each other are likely.
func drawValue(r *rapid.T, f *schema.Field) jsontext.Value {
	var v any
	switch f.Type {
	case schema.Number:
		v = rapid.OneOf(rapid.SampledFrom([]float64{0, -1, 1, 0.5, -0.5, 1e-300, -1e-300, 9, 10, 1 << 53, -(1 << 53)}),
			rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) float64 { return math.Round(f*8) / 8 })).Draw(r, "number")
	case schema.Datetime:
		v = rapid.SampledFrom([]string{"2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00.5Z", "2025-12-31T23:59:59.999999999Z", "0001-01-01T00:00:00Z"}).Draw(r, "time")
	default:
		long := strings.Repeat("a", 299)
		v = rapid.OneOf(rapid.SampledFrom([]string{"", "a", "A", "b", "ä", "\x01", "\U0010FFFF", "\U0010FFFFa", "\U0010FFFE", "\uD7FF", "\uE000", long, long + "ä", long + "aa", long + "b" + long, long + "a" + long}),
			rapid.StringMatching(`[aAbäß😀]{0,4}`)).Draw(r, "text")
	}
	raw, err := json.Marshal(v)
	if err != nil {
		r.Fatal(err)
	}
	canonical, reason := f.Canonical(raw)
	if reason != "" {
		r.Fatalf("%s: %s", raw, reason)
	}
	return canonical
}

// Index keys are in the order of the values, and equal where the values are; a text's
// order may end with its first 300 bytes. A condition that has a span holds for no
// value outside of it.
func TestIndexKeysAreInTheOrderOfTheValues(t *testing.T) {
	for _, kind := range []schema.Type{schema.Number, schema.Datetime, schema.Text} {
		f := &schema.Field{Name: "f", Type: kind, Indexed: true}
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				a, b := drawValue(r, f), drawValue(r, f)
				keyA, okA := f.IndexKey(a)
				keyB, okB := f.IndexKey(b)
				if !okA || !okB || keyA >= schema.Unset || keyB >= schema.Unset {
					r.Fatalf("%q of %s, %q of %s", keyA, a, keyB, b)
				}
				plainA, _ := f.Key(a)
				plainB, _ := f.Key(b)
				if (keyA == keyB) != (plainA == plainB) {
					r.Fatalf("%s and %s: %q and %q", a, b, keyA, keyB)
				}
				for _, op := range []schema.Operator{schema.OpLt, schema.OpLte, schema.OpGt, schema.OpGte, schema.OpPrefix} {
					if op == schema.OpPrefix && kind != schema.Text {
						continue
					}
					c, reason := f.Condition(op, schema.Unquote(b))
					if reason != "" {
						r.Fatal(reason)
					}
					span, ok := c.Span()
					in := span.From <= keyA && keyA < span.To
					if !ok || c.Holds(a) && !in {
						r.Fatalf("%s %s %s holds, and %q is not in %q", a, op, b, keyA, span)
					}
					exact := len(a) < 300 && len(b) < 300 && schema.Unquote(a) < "\U0010FFFE" && schema.Unquote(b) < "\U0010FFFE"
					if in && exact && !c.Holds(a) {
						r.Fatalf("%s %s %s does not hold, and %q is in %q", a, op, b, keyA, span)
					}
				}
			})
		})
	}
}

// Numbers keep their order across signs and sizes.
func TestIndexKeysOfNumbers(t *testing.T) {
	f := &schema.Field{Name: "f", Type: schema.Number}
	last := ""
	for _, n := range []float64{-1e300, -(1 << 53), -10, -9, -1, -0.5, -5e-324, 0, 5e-324, 0.1, 1, 9, 10, 1 << 53, 1e300} {
		key, ok := f.IndexKey(jsontext.Value(fmt.Sprint(n)))
		if !ok || key <= last {
			t.Errorf("%v: %q after %q", n, key, last)
		}
		last = key
	}
	zero, _ := f.IndexKey(jsontext.Value("0"))
	if minus, _ := f.IndexKey(jsontext.Value("-0")); minus != zero {
		t.Errorf("0 is %q, -0 is %q", zero, minus)
	}
}
