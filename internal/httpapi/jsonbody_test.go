package httpapi

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
)

func TestABodyIsOneJSONObjectInOrder(t *testing.T) {
	body := []byte(" \n{\"b\": [1, {\"c\":2}] ,\"a\":\"x\\u00e9\\ud83d\\ude00\",\"\\u0042\":null, \"\":1e308}\t\r\n")
	o, err := ParseObject(body)
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{"b", jsontext.Value(`[1, {"c":2}]`)}, {"a", jsontext.Value(`"x\u00e9\ud83d\ude00"`)}, {"B", jsontext.Value("null")}, {"", jsontext.Value("1e308")}}
	if !reflect.DeepEqual(o.Members, want) {
		t.Fatalf("%q", o.Members)
	}
	if v, ok := o.Get("B"); !ok || string(v) != "null" {
		t.Errorf("B: %s, %v", v, ok)
	}
	if _, ok := o.Get("c"); ok {
		t.Error("c is there")
	}
	for _, empty := range []string{"{}", " { } "} {
		if o, err := ParseObject([]byte(empty)); err != nil || len(o.Members) != 0 {
			t.Errorf("%q: %v", empty, err)
		}
	}
}

func TestManyMembersAreFoundByName(t *testing.T) {
	var body bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&body, ",\"field %d\":%d", i, i)
	}
	o, err := ParseObject([]byte("{" + body.String()[1:] + "}"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		if v, ok := o.Get("field " + strconv.Itoa(i)); !ok || string(v) != strconv.Itoa(i) {
			t.Fatalf("field %d: %s, %v", i, v, ok)
		}
	}
	if _, ok := o.Get("field"); ok {
		t.Error("a name that is not there is found")
	}
}

func nested(depth int, opening, closing string) string {
	return `{"a":` + strings.Repeat(opening, depth-1) + "1" + strings.Repeat(closing, depth-1) + "}"
}

func TestMalformedObjects(t *testing.T) {
	for body, want := range map[string]string{
		"":                              "The body is empty: expected a JSON object.",
		" \n\t":                         "The body is empty: expected a JSON object.",
		"\xef\xbb\xbf{}":                "byte order mark",
		"[1]":                           "expected { at byte offset 0, found '['",
		" null":                         "expected { at byte offset 1, found 'n'",
		"email=a%40b":                   "expected { at byte offset 0, found 'e'",
		"\xff":                          "expected {",
		`{"a":1,"b":2,"a":3}`:           `at byte offset 13: the name "a" occurs twice: expected each name once.`,
		`{"a":1,"\u0061":3}`:            `the name "a" occurs twice`,
		`{"x":[1,{"y":{"z":1,"z":1}}]}`: `(in /x/1/y): the name "z" occurs twice`,
		`{"a":1} x`:                     "at byte offset 8: more data follows the JSON object: expected one object alone.",
		`{"a":1}{}`:                     "at byte offset 7: more data follows",
		`{"a":1}` + "\x00":              "at byte offset 7: more data follows",
		"{\"a\":\"\xff\"}":              "at byte offset 6 (in /a): invalid UTF-8",
		"{\"\xff\":1}":                  "invalid UTF-8",
		"{\"a\":\"\xed\xa0\x80\"}":      "invalid UTF-8",
		`{"a":{"b":"\ud800"}}`:          `at byte offset 11 (in /a/b): there is a lone surrogate: expected \uD800-\uDBFF followed by`,
		`{"a":"\ud800\u0041"}`:          "surrogate",
		`{"a":"\udc00"}`:                "surrogate",
		`{"\udc00":1}`:                  "surrogate",
		`{"a":["x","y\u0000"]}`:         "at byte offset 12 (in /a/1): U+0000 is not allowed",
		`{"a":{"\u0000":1}}`:            "U+0000 is not allowed",
		`{"\u0000":1}`:                  "U+0000 is not allowed",
		"{\"a\":\"\x00\"}":              `'\x00'`,
		"{\"a\":\"\n\"}":                `'\n'`,
		`{"a":{"b":[1e400]}}`:           "at byte offset 11 (in /a/b/0): the number is out of range",
		`{"a":-1e400}`:                  "out of range",
		`{"a":1e-400}`:                  "out of range",
		`{"a":[-1e-20000]}`:             "at byte offset 6 (in /a/0): the number is out of range",
		`{"a":0.` + strings.Repeat("0", 330) + `1}`: "out of range",
		`{"a":1E+309}`:                           "out of range",
		`{"a":` + strings.Repeat("9", 310) + `}`: "out of range",
		`{"a":01}`:                               "expecting ',' or '}'",
		`{"a":.5}`:                               "at byte offset 5 (in /a): invalid character '.'",
		`{"a":NaN}`:                              "invalid character 'N'",
		`{"a":tru}`:                              "expecting 'e'",
		`{a:1}`:                                  "invalid character 'a'",
		`{'a':1}`:                                "invalid character",
		`{"a":1,}`:                               "at byte offset 6: a comma stands before '}'",
		`{"a":[1 , ] }`:                          "at byte offset 8 (in /a): a comma stands before ']'",
		`{"a":1,,"b":2}`:                         "at byte offset 7: invalid character ','",
		`{"a" 1}`:                                "expecting ':'",
		`{,}`:                                    "at byte offset 1",
		`{"a":1`:                                 "at byte offset 6: it ends too early",
		`{`:                                      "it ends too early",
		`{"a":"x`:                                "at byte offset 7 (in /a): it ends too early",
		`{1:2}`:                                  "name must be a string",
		nested(65, "[", "]"):                     "nested too deeply: expected at most 64 levels",
		nested(65, `{"b":`, "}"):                 "nested too deeply",
		nested(20000, "[", "]"):                  "nested too deeply",
		strings.Repeat("{", 20000):               "",
		`{"` + strings.Repeat("n", 1<<20) + `":[1e999]}`: "…): the number",
	} {
		_, err := ParseObject([]byte(body))
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.Validation || !strings.Contains(f.Message, want) ||
			!utf8.ValidString(f.Message) || len(f.Message) > 500 {
			t.Errorf("%.100q: %.600v, want %q", body, err, want)
		}
	}
	for _, body := range []string{
		nested(64, "[", "]"), nested(64, `{"b":`, "}"), `{"a":5e-324,"b":9007199254740993,"c":-0,"d":0e-400}`, `{"a":"\\u0000"}`, `{"a":"\\\\u0000"}`,
		`{"a":` + strings.Repeat("9", 300) + `}`, `{"a":[{"x":1},{"x":1}]}`, "{\"a\":\"\u2028\x7f\"}",
	} {
		if _, err := ParseObject([]byte(body)); err != nil {
			t.Errorf("%.100q: %v", body, err)
		}
	}
}

var surrogateEscape = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// plainCheck is a second, slow implementation of the same rules on top of
// encoding/json. It returns "" for a body that is accepted.
func plainCheck(body []byte) string {
	if !utf8.Valid(body) || !stdjson.Valid(body) {
		return "no JSON in UTF-8"
	}
	dec := stdjson.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	type level struct {
		names  map[string]bool // nil in a list
		isName bool
	}
	var stack []level
	for first := true; ; first = false {
		token, err := dec.Token()
		if err == io.EOF {
			return ""
		}
		if first && token != stdjson.Delim('{') {
			return "no object"
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		named := top != nil && top.names != nil && top.isName
		if top != nil && token != stdjson.Delim('}') {
			top.isName = !top.isName
		}
		switch v := token.(type) {
		case stdjson.Delim:
			switch v {
			case '{':
				stack = append(stack, level{map[string]bool{}, true})
			case '[':
				stack = append(stack, level{})
			default:
				stack = stack[:len(stack)-1]
			}
			if len(stack) > 64 {
				return "too deep"
			}
		case string:
			if strings.Contains(v, "\x00") {
				return "U+0000"
			}
			if named && top.names[v] {
				return "duplicate"
			}
			if named {
				top.names[v] = true
			}
		case stdjson.Number:
			if _, err := v.Float64(); err != nil {
				return "range"
			}
		}
	}
}

func FuzzParseObject(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":[true,null,{"c":"x\u00e9"}]}`, `{"a":1,"a":2}`, `{"a":"\ud800"}`, `{"a":"\ud83d\ude00"}`, `{"a":"\u0000"}`, `{"a":1e400}`, `{} x`,
		"\xef\xbb\xbf{}", `{"a":{"a":{"a":1}}}`, `[]`, ``, `{"a":-0.0e-5}`, "{\"a\":\"\xff\"}", `{"\u0061":1,"a":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		o, err := ParseObject(body)
		if !bytes.Equal(body, before) {
			t.Fatalf("%q was changed to %q", before, body)
		}
		problem := plainCheck(body)
		if err != nil {
			if fault.CodeOf(err) != fault.Validation || !utf8.ValidString(err.Error()) {
				t.Fatalf("%q: %v", body, err)
			}
			if problem == "" && !surrogateEscape.Match(body) {
				t.Fatalf("%q is sound, yet %v", body, err)
			}
			return
		}
		if problem != "" {
			t.Fatalf("%q is accepted, yet %s", body, problem)
		}
		var want map[string]any
		if err := stdjson.Unmarshal(body, &want); err != nil || len(want) != len(o.Members) {
			t.Fatalf("%q: encoding/json says %v, %v", body, want, err)
		}
		for _, m := range o.Members {
			var got any
			if err := stdjson.Unmarshal(m.Value, &got); err != nil || !reflect.DeepEqual(got, want[m.Name]) {
				t.Fatalf("%q: %s is %v, encoding/json says %v (%v)", body, m.Name, got, want[m.Name], err)
			}
			if v, ok := o.Get(m.Name); !ok || !bytes.Equal(v, m.Value) {
				t.Fatalf("%q: Get(%q) is %s, %v", body, m.Name, v, ok)
			}
		}
	})
}

func oneKilobyte() []byte {
	var b bytes.Buffer
	b.WriteString(`{"first_name":"Ana","last_name":"Żółw","email":"ana@acme.example","score":42.5,"tags":["a","b","c"],"address":{"city":"Łódź","zip":"90-001"}`)
	for i := 0; b.Len() < 1000; i++ {
		fmt.Fprintf(&b, `,"custom_field_%d":"some text of a usual length %d"`, i, i)
	}
	return append(b.Bytes(), '}')
}

func BenchmarkParseObject(b *testing.B) {
	for name, body := range map[string][]byte{"1KB": oneKilobyte(), "100B": []byte(`{"first_name":"Ana","last_name":"Turtle","email":"ana@acme.example","score":42.5,"tags":["a","b","c"]}`)} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseObject(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
