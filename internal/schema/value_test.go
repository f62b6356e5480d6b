package schema_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"gatehouse/internal/schema"
)

var (
	rfc3339 = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)
	day     = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$`)
)

// near calls fn with every text that differs from a form at up to n places: by
// another character there, one less, or one more.
func near(form string, from, n int, fn func(string)) {
	fn(form)
	for at := from; at < len(form) && n > 0; at++ {
		for _, with := range []string{"0", "1", "2", "4", "6", "9", "-", "+", ":", ".", ",", "t", "z", " ", "", "00"} {
			near(form[:at]+with+form[at+1:], at+len(with), n-1, fn)
		}
	}
}

// Nothing passes for a date or an instant that is not written as one.
func TestDatesAndInstantsAreWrittenAsTheyMustBe(t *testing.T) {
	for form, written := range map[string]*regexp.Regexp{
		"2026-01-31T12:00:00Z": rfc3339, "2024-02-29T23:59:59.5-02:30": rfc3339, "2026-01-31": day, "2024-02-29": day,
	} {
		f := &schema.Field{Name: "f", Type: schema.Datetime}
		if written == day {
			f.Type = schema.Date
		}
		taken := 0
		near(form, 0, 2, func(text string) {
			v, reason := f.Canonical(jsontext.Value(`"` + text + `"`))
			if reason != "" {
				return
			}
			taken++
			if _, ok := f.Key(v); !ok || !written.MatchString(text) || schema.Unquote(v) != text {
				t.Fatalf("%s %q is taken as %s", f.Type, text, v)
			}
		})
		if taken < 100 {
			t.Errorf("%s: %d texts near %s are taken", f.Type, taken, form)
		}
	}
}

// Two texts have one key only when they are one text, however long they are and
// whatever they spell.
func TestNoTextHasAnothersKey(t *testing.T) {
	f := &schema.Field{Name: "f", Type: schema.Text}
	key := func(text string) string {
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			t.Fatal(err)
		}
		k, ok := f.Key(quoted)
		if !ok || len(k) > 500 {
			t.Fatalf("key of %d bytes: %v, %d bytes", len(text), ok, len(k))
		}
		return k
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.SampledFrom([]string{"a", "é", "🙂", "…", "0", "f"}).Draw(t, "piece"), rapid.IntRange(1, 500).Draw(t, "times")) +
			rapid.StringMatching(`[a-f0-9…]{0,70}`).Draw(t, "end")
		for range 3 { // the key of a key of a key is no other's either
			next := key(text)
			if next != text && key(next) == next {
				t.Fatalf("%q has the key of %q", next, text)
			}
			text = next
		}
	})
}
