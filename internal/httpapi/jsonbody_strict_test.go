package httpapi

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
)

type strictBase struct {
	Reason string `json:"reason"`
}

type strictRequest struct {
	strictBase
	Email    string            `json:"email"`
	Note     *string           `json:"note"`
	Limit    int               `json:"limit,omitempty"`
	Small    int8              `json:"small"`
	Count    uint              `json:"count"`
	Score    float64           `json:"score"`
	Owner    bool              `json:"owner"`
	Origins  []string          `json:"origins"`
	Expires  time.Time         `json:"expires"`
	Entities map[string]strict `json:"entities"`
	One      strict            `json:"one"`
	Raw      jsontext.Value    `json:"raw"`
	Any      any               `json:"any"`
	Skipped  string            `json:"-"`
	hidden   string
}

type strict struct {
	Create bool     `json:"create"`
	Fields []strict `json:"fields"`
}

func TestDecodeStrict(t *testing.T) {
	got, err := DecodeStrict[strictRequest]([]byte(`{"email":"\u0061na@acme.example","note":"x","limit":-5,"small":127,"count":7,"score":1.5e3,"owner":true,
		"origins":["a","b"],"expires":"2026-11-21T05:38:08Z","entities":{"contact":{"create":true,"fields":[{},{"create":true}]}},"one":{},
		"raw":{"z": [1]},"any":null,"reason":"because"}`))
	note := "x"
	want := strictRequest{
		strictBase: strictBase{"because"}, Email: "ana@acme.example", Note: &note, Limit: -5, Small: 127, Count: 7, Score: 1500, Owner: true,
		Origins: []string{"a", "b"}, Expires: time.Date(2026, 11, 21, 5, 38, 8, 0, time.UTC),
		Entities: map[string]strict{"contact": {Create: true, Fields: []strict{{}, {Create: true}}}}, Raw: jsontext.Value(`{"z": [1]}`),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := DecodeStrict[strictRequest]([]byte(`{}`)); err != nil || !reflect.DeepEqual(got, strictRequest{}) {
		t.Fatalf("an empty body: %+v, %v", got, err)
	}
	if got, err := DecodeStrict[strictRequest]([]byte(`{"note":null}`)); err != nil || got.Note != nil {
		t.Fatalf("null: %+v, %v", got, err)
	}
}

func TestDecodeStrictNamesEveryWrongMember(t *testing.T) {
	_, err := DecodeStrict[strictRequest]([]byte(`{"Email":"x","email":5,"note":[],"limit":1.5,"small":128,"count":-1,"score":"1","owner":"true","origins":["a",null,3],
		"expires":"tomorrow","entities":{"contact":{"creat":true,"fields":[{"create":null}]}},"one":null,"Skipped":"x","hidden":"x","strictBase":{}}`))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Validation {
		t.Fatal(err)
	}
	want := map[string]string{
		"Email": "unknown; did you mean email?", "email": "expected text", "note": "expected text", "limit": "expected a whole number",
		"small": "expected a whole number", "count": "expected a whole number of at least 0", "score": "expected a number", "owner": "expected true or false",
		"origins.1": "expected text", "origins.2": "expected text", "expires": "not in the expected form",
		"entities.contact.creat": "unknown", "entities.contact.fields.0.create": "expected true or false", "one": "expected an object",
		"Skipped": "unknown", "hidden": "unknown", "strictBase": "unknown",
	}
	if got := f.Details["fields"]; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if !strings.Contains(f.Message, "count: expected a whole number of at least 0; email: expected text; ") {
		t.Error(f.Message)
	}
	for _, body := range []string{`{"email":"a","email":"b"}`, `{"email":"a"} 1`, `[]`, ``} {
		if _, err := DecodeStrict[strictRequest]([]byte(body)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", body, err)
		}
	}
	_ = strictRequest{}.hidden
}

// TestABodyOfMillionsIsRefusedEarly: lists and maps have a bound together, and the wrong
// members that are named. (A list of 5 MiB of wrong elements took 700 MiB and 11 s, and had
// an answer of 91 MiB.)
func TestABodyOfMillionsIsRefusedEarly(t *testing.T) {
	entries := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"e%d":%s`, i, value)
		}
		return b.String()[1:]
	}
	list := func(n int, item string) string { return strings.Repeat(item+",", n-1) + item }
	for what, c := range map[string]struct {
		body  string
		named int // 0 is no error
		says  string
	}{
		"as many as there may be":   {`{"origins":[` + list(maxElements, `"a"`) + `]}`, 0, ""},
		"one more":                  {`{"origins":[` + list(maxElements+1, `"a"`) + `]}`, 1, "origins: expected at most 20000 elements"},
		"one more, in several":      {`{"origins":[` + list(maxElements/2, `"a"`) + `],"entities":{"x":{"fields":[` + list(maxElements/2, `{}`) + `]}}}`, 1, "expected at most 20000 elements"},
		"a map of too many":         {`{"entities":{` + entries(maxElements-1, "{}") + `},"origins":["a","b"]}`, 1, "expected at most 20000 elements"},
		"a million":                 {`{"origins":[` + list(1_000_000, `"a"`) + `]}`, 1, "expected at most 20000 elements"},
		"a million wrong ones":      {`{"origins":[` + list(1_000_000, `1`) + `]}`, maxWrong, "origins.0: expected text"},
		"a million wrong lists":     {`{"entities":{"x":{"fields":[` + list(1_000_000, `[]`) + `]}}}`, maxWrong, "expected an object"},
		"thousands of wrong names":  {`{` + entries(15_000, "1") + `}`, maxWrong, "unknown"},
		"wrong ones within objects": {`{"entities":{"x":{"fields":[` + list(100_000, `{"a":1,"b":2}`) + `]}}}`, maxWrong, "unknown"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeStrict[strictRequest]([]byte(c.body))
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%s: %d KiB took %d KiB", what, len(c.body)>>10, took>>10)
		}
		var f *fault.Error
		if c.named == 0 {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if !errors.As(err, &f) || f.Code != fault.Validation || !strings.Contains(f.Message, c.says) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if named, _ := f.Details["fields"].(map[string]string); len(named) < c.named || len(named) > c.named+1 {
			t.Errorf("%s: %d members are named, want %d", what, len(named), c.named)
		}
	}
}

func FuzzDecodeStrict(f *testing.F) {
	f.Add([]byte(`{"email":"a","entities":{"x":{"fields":[{}]}},"raw":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := DecodeStrict[strictRequest](body)
		if err != nil && (fault.CodeOf(err) != fault.Validation || !reflect.DeepEqual(got, strictRequest{})) {
			t.Fatalf("%q: %+v, %v", body, got, err)
		}
	})
}

func BenchmarkDecodeStrict(b *testing.B) {
	type login struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = DecodeStrict[login]([]byte(`{"email":"ana@acme.example","password":"correct horse"}`))
	}
}
