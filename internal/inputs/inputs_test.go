package inputs_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
)

const (
	notSent  = "" // as a value: the member is not there
	required = "required"
	noNumber = "expected number"
	noBool   = "expected boolean"
	noJSON   = "expected json"
)

// Every type × every JSON value × JSON and form bodies. A column is what a
// declared input of that type receives, or why it fails.
var table = []struct {
	sent                        string // the JSON value; of a form, the text that the field holds
	text, number, boolean, json string
	formText                    string // where a form's text differs: it is the text itself
	formBool                    string // where a form's boolean differs
}{
	{sent: notSent, text: `null`, number: `null`, boolean: `null`, json: `null`, formText: `null`},
	{sent: `null`, text: `null`, number: `null`, boolean: `null`, json: `null`, formText: `"null"`},
	{sent: `true`, text: `"true"`, number: noNumber, boolean: `true`, json: noJSON},
	{sent: `false`, text: `"false"`, number: noNumber, boolean: `false`, json: noJSON},
	{sent: `0`, text: `"0"`, number: `0`, boolean: noBool, json: noJSON, formBool: `false`},
	{sent: `-12.50`, text: `"-12.50"`, number: `-12.50`, boolean: noBool, json: noJSON},
	{sent: `1e3`, text: `"1e3"`, number: `1e3`, boolean: noBool, json: noJSON},
	{sent: `12345678901234567890`, text: `"12345678901234567890"`, number: `12345678901234567890`, boolean: noBool, json: noJSON},
	{sent: `"abc"`, text: `"abc"`, number: noNumber, boolean: noBool, json: noJSON, formText: `"\"abc\""`},
	{sent: `""`, text: `""`, number: noNumber, boolean: noBool, json: noJSON, formText: `"\"\""`},
	{sent: `"5"`, text: `"5"`, number: noNumber, boolean: noBool, json: noJSON, formText: `"\"5\""`},
	{sent: `"true"`, text: `"true"`, number: noNumber, boolean: noBool, json: noJSON, formText: `"\"true\""`},
	{sent: `"{}"`, text: `"{}"`, number: noNumber, boolean: noBool, json: noJSON, formText: `"\"{}\""`},
	{sent: `{}`, text: `"{}"`, number: noNumber, boolean: noBool, json: `{}`},
	{sent: `{"a":"b","c":[1,2]}`, text: `"{\"a\":\"b\",\"c\":[1,2]}"`, number: noNumber, boolean: noBool, json: `{"a":"b","c":[1,2]}`},
	{sent: `[ 1, 2 ]`, text: `"[1,2]"`, number: noNumber, boolean: noBool, json: `[ 1, 2 ]`, formText: `"[ 1, 2 ]"`},
	{sent: `[]`, text: `"[]"`, number: noNumber, boolean: noBool, json: `[]`},
}

func TestEveryTypeTimesEveryValueTimesEveryBody(t *testing.T) {
	for _, row := range table {
		if row.formText == "" {
			row.formText = row.text
		}
		want := map[inputs.Type]string{inputs.Text: row.text, inputs.Number: row.number, inputs.Boolean: row.boolean, inputs.JSON: row.json}
		for kind, value := range want {
			for _, must := range []bool{false, true} {
				decls := []inputs.Declaration{{Name: "x", Type: kind, Required: must}}
				for _, keep := range []bool{false, true} {
					got, err := inputs.FromJSON(decls, members(row.sent), keep)
					judge(t, "json", kind, row.sent, value, must, keep, got, err)

					form := url.Values{}
					if row.sent != notSent {
						form.Set("x", row.sent)
					}
					inForm := value
					switch {
					case kind == inputs.Text:
						inForm = row.formText
					case kind == inputs.Boolean && row.formBool != "":
						inForm = row.formBool
					case kind == inputs.JSON && value == noJSON: // one of several choices
						inForm = "[" + strconv.Quote(row.sent) + "]"
					}
					got, err = inputs.FromForm(decls, form, keep, httpapi.ParseValue)
					judge(t, "form", kind, row.sent, inForm, must, keep, got, err)
				}
			}
		}
	}
}

func members(value string) []inputs.Member {
	if value == notSent {
		return nil
	}
	return []inputs.Member{{Name: "x", Value: jsontext.Value(value)}}
}

func judge(t *testing.T, body string, kind inputs.Type, sent, want string, must, keep bool, got inputs.Object, err error) {
	t.Helper()
	if want == "null" && must {
		want = required
	}
	if want == required || strings.HasPrefix(want, "expected") {
		wantFailure(t, err, "Input validation failed: [x: "+want+"]", map[string]string{"x": want})
		return
	}
	whole := `{"x":` + want + `}`
	if keep && sent == notSent {
		whole = `{}`
	}
	if err != nil || string(got.JSON()) != whole {
		t.Errorf("%s %s given %s (required %t, keep %t): got %s, %v; want %s", body, kind, sent, must, keep, got.JSON(), err, whole)
	}
}

func wantFailure(t *testing.T, err error, message string, fields map[string]string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Errorf("got %v, want %s", err, message)
		return
	}
	if f.Code != fault.ExecutionError || f.HTTPStatus() != 422 || f.Message != message || !reflect.DeepEqual(f.Details["fields"], fields) {
		t.Errorf("got %s %d %q %v, want %q %v", f.Code, f.HTTPStatus(), f.Message, f.Details, message, fields)
	}
}

var lead = []inputs.Declaration{
	{Name: "email", Type: inputs.Text, Required: true},
	{Name: "score", Type: inputs.Number},
	{Name: "vip", Type: inputs.Boolean},
	{Name: "payload", Type: inputs.JSON, Required: true},
}

func TestAllFailuresAreToldInTheOrderOfDeclaration(t *testing.T) {
	sent := []inputs.Member{
		{Name: "payload", Value: jsontext.Value(`"text"`)},
		{Name: "vip", Value: jsontext.Value(`1`)},
		{Name: "score", Value: jsontext.Value(`"12"`)},
		{Name: "email", Value: jsontext.Value(`null`)},
	}
	_, err := inputs.FromJSON(lead, sent, false)
	wantFailure(t, err, "Input validation failed: [email: required, score: expected number, vip: expected boolean, payload: expected json]",
		map[string]string{"email": required, "score": noNumber, "vip": noBool, "payload": noJSON})

	_, err = inputs.FromJSON(lead[:2], []inputs.Member{{Name: "score", Value: jsontext.Value(`"x"`)}}, false)
	wantFailure(t, err, "Input validation failed: [email: required, score: expected number]",
		map[string]string{"email": required, "score": noNumber})
}

func TestUndeclaredMembersReachAComponentNotAnAutomation(t *testing.T) {
	sent := func() []inputs.Member {
		return []inputs.Member{
			{Name: "utm", Value: jsontext.Value(`{"a": 1}`)},
			{Name: "payload", Value: jsontext.Value(`[]`)},
			{Name: "email", Value: jsontext.Value(`7`)},
			{Name: "Email", Value: jsontext.Value(`"other"`)},
		}
	}
	component, err := inputs.FromJSON(lead, sent(), true)
	if want := `{"utm":{"a": 1},"payload":[],"email":"7","Email":"other"}`; err != nil || string(component.JSON()) != want {
		t.Errorf("a component gets %s, %v; want %s", component.JSON(), err, want)
	}
	flow, err := inputs.FromJSON(lead, sent(), false)
	if want := `{"email":"7","score":null,"vip":null,"payload":[]}`; err != nil || string(flow.JSON()) != want {
		t.Errorf("a flow gets %s, %v; want %s", flow.JSON(), err, want)
	}
	form, err := inputs.FromForm(lead, url.Values{"email": {"a"}, "payload": {"{}"}, "b": {"1"}, "z": {"1", "2"}}, true, httpapi.ParseValue)
	if want := `{"b":"1","email":"a","payload":{},"z":["1","2"]}`; err != nil || string(form.JSON()) != want {
		t.Errorf("a component gets %s, %v; want %s", form.JSON(), err, want)
	}
}

func TestAFormIsReadAsStrictlyAsABody(t *testing.T) {
	decl := func(kind inputs.Type) []inputs.Declaration {
		return []inputs.Declaration{{Name: "x", Type: kind}}
	}
	for _, bad := range []string{" ", "1 2", "1e999", "0x10", "NaN", "Infinity", "+5", "1,5", "5x", "١"} {
		_, err := inputs.FromForm(decl(inputs.Number), url.Values{"x": {bad}}, false, httpapi.ParseValue)
		wantFailure(t, err, "Input validation failed: [x: expected number]", map[string]string{"x": noNumber})
	}
	for _, bad := range []string{" ", "yes", "no", "True", "ON", "On", "off ", "2", "00", "1.0", "t"} {
		_, err := inputs.FromForm(decl(inputs.Boolean), url.Values{"x": {bad}}, false, httpapi.ParseValue)
		wantFailure(t, err, "Input validation failed: [x: expected boolean]", map[string]string{"x": noBool})
	}
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for _, bad := range []string{" ", "{", " [", `{"a":1,"a":2}`, `{"a":"\u0000"}`, `{"\u0000":1}`, `["\ud800"]`, `[1e999]`, `[] []`, deep, strings.Repeat("[", 1<<20)} {
		_, err := inputs.FromForm(decl(inputs.JSON), url.Values{"x": {bad}}, false, httpapi.ParseValue)
		wantFailure(t, err, "Input validation failed: [x: expected json]", map[string]string{"x": noJSON})
	}
	for _, bad := range []url.Values{{"x": {"\xff"}}, {"other": {"a\x00b"}}, {"\xff": {"a"}}} {
		if _, err := inputs.FromForm(decl(inputs.Text), bad, false, httpapi.ParseValue); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: got %v, want VALIDATION", bad, err)
		}
	}
	// Of several checkboxes one may be ticked.
	for want, texts := range map[string][]string{
		`["a","b"]`: {"a", "b"}, `["a"]`: {"a"}, `["7"]`: {"7"}, `["true"]`: {"true"}, `["\"a\""]`: {`"a"`}, `["1e999"]`: {"1e999"}, `["a [b]"]`: {"a [b]"}, `[7]`: {"[7]"}, `null`: {"null"},
	} {
		got, err := inputs.FromForm(decl(inputs.JSON), url.Values{"x": texts}, false, httpapi.ParseValue)
		if err != nil || string(got.JSON()) != `{"x":`+want+`}` {
			t.Errorf("%q: got %s, %v", texts, got.JSON(), err)
		}
	}
}

// TestBlanksInForms: an empty field of a declared input was not sent, nor was a required text of
// blanks; what is not declared, or sent several times, stays as it is, and so does a body of JSON.
func TestBlanksInForms(t *testing.T) {
	decls := []inputs.Declaration{
		{Name: "must", Type: inputs.Text, Required: true}, {Name: "text", Type: inputs.Text}, {Name: "number", Type: inputs.Number},
		{Name: "boolean", Type: inputs.Boolean}, {Name: "json", Type: inputs.JSON},
	}
	empty := func() url.Values {
		return url.Values{"must": {"a"}, "text": {""}, "number": {""}, "boolean": {""}, "json": {""}, "other": {""}}
	}
	for keep, want := range map[bool]string{
		false: `{"must":"a","text":null,"number":null,"boolean":null,"json":null}`, true: `{"must":"a","other":""}`,
	} {
		got, err := inputs.FromForm(decls, empty(), keep, httpapi.ParseValue)
		if err != nil || string(got.JSON()) != want {
			t.Errorf("empty fields (keep %t): got %s, %v; want %s", keep, got.JSON(), err, want)
		}
	}
	for _, blank := range []string{"", " ", "\t\r\n ", "\u00a0\u2003"} {
		form := empty()
		form.Set("must", blank)
		_, err := inputs.FromForm(decls, form, true, httpapi.ParseValue)
		wantFailure(t, err, "Input validation failed: [must: required]", map[string]string{"must": required})
	}
	for i := range decls {
		decls[i].Required = true
	}
	_, err := inputs.FromForm(decls, empty(), true, httpapi.ParseValue)
	wantFailure(t, err, "Input validation failed: [text: required, number: required, boolean: required, json: required]",
		map[string]string{"text": required, "number": required, "boolean": required, "json": required})
	got, err := inputs.FromForm(decls[1:2], url.Values{"text": {" a "}}, true, httpapi.ParseValue)
	if err != nil || string(got.JSON()) != `{"text":" a "}` {
		t.Errorf("a text with blanks: got %s, %v", got.JSON(), err)
	}
	got, err = inputs.FromForm([]inputs.Declaration{{Name: "x", Type: inputs.Text}}, url.Values{"x": {" "}}, true, httpapi.ParseValue)
	if err != nil || string(got.JSON()) != `{"x":" "}` {
		t.Errorf("an optional text of blanks: got %s, %v", got.JSON(), err)
	}
	got, err = inputs.FromForm([]inputs.Declaration{{Name: "x", Type: inputs.JSON, Required: true}}, url.Values{"x": {"", "b", ""}}, true, httpapi.ParseValue)
	if err != nil || string(got.JSON()) != `{"x":["","b",""]}` {
		t.Errorf("a repeated field: got %s, %v", got.JSON(), err)
	}
	sent := []inputs.Member{{Name: "must", Value: jsontext.Value(`" "`)}, {Name: "text", Value: jsontext.Value(`""`)}}
	decls[1].Required = false
	if got, err := inputs.FromJSON(decls[:2], sent, true); err != nil || string(got.JSON()) != `{"must":" ","text":""}` {
		t.Errorf("JSON: got %s, %v", got.JSON(), err)
	}
}

// TestBooleansInForms are the words of checkboxes; they are texts where a text is declared.
func TestBooleansInForms(t *testing.T) {
	for word, want := range map[string]string{"on": "true", "true": "true", "1": "true", "off": "false", "false": "false", "0": "false", "null": "null"} {
		for _, keep := range []bool{false, true} {
			got, err := inputs.FromForm([]inputs.Declaration{{Name: "x", Type: inputs.Boolean}}, url.Values{"x": {word}}, keep, httpapi.ParseValue)
			if err != nil || string(got.JSON()) != `{"x":`+want+`}` {
				t.Errorf("%s: got %s, %v", word, got.JSON(), err)
			}
		}
		got, err := inputs.FromForm([]inputs.Declaration{{Name: "x", Type: inputs.Text}}, url.Values{"x": {word}, "y": {word}}, true, httpapi.ParseValue)
		if err != nil || string(got.JSON()) != `{"x":"`+word+`","y":"`+word+`"}` {
			t.Errorf("%s as a text: got %s, %v", word, got.JSON(), err)
		}
	}
	_, err := inputs.FromForm([]inputs.Declaration{{Name: "x", Type: inputs.Boolean}}, url.Values{"x": {"0", "1"}}, true, httpapi.ParseValue)
	wantFailure(t, err, "Input validation failed: [x: expected boolean]", map[string]string{"x": noBool})
}

func TestManyDeclarationsAreFoundByTheirExactNames(t *testing.T) {
	var decls []inputs.Declaration
	var sent []inputs.Member
	for i := range 30 {
		name := strings.Repeat("n", i+1)
		decls = append(decls, inputs.Declaration{Name: name, Type: inputs.Number})
		sent = append([]inputs.Member{{Name: name, Value: jsontext.Value("1")}}, sent...)
	}
	sent = append(sent, inputs.Member{Name: "N", Value: jsontext.Value("2")})
	got, err := inputs.FromJSON(decls, sent, false)
	if err != nil || len(got) != 30 || got[29].Name != decls[29].Name || string(got[29].Value) != "1" {
		t.Errorf("got %s, %v", got.JSON(), err)
	}
}

func TestAuthorsAreToldOfEveryMistake(t *testing.T) {
	err := inputs.Check([]inputs.Declaration{
		{Name: "email", Type: "text"}, {Name: "a.b", Type: "json"}, {Name: "", Type: "text"},
		{Name: "x", Type: "string"}, {Name: "email", Type: "text"}, {Name: "ümlaut-1_", Type: "number"}, {Name: "__proto__", Type: "json"},
		{Name: "n", Type: "number", Pattern: inputs.PatternOf("^1")}, {Name: "long", Type: "text", Pattern: inputs.PatternOf(strings.Repeat("a", 257))},
	})
	want := `[1].name: expected 1 to 64 letters, digits, _ or -, found "a.b"
[2].name: expected 1 to 64 letters, digits, _ or -, found ""
[3].type: expected text, number, boolean or json, found "string"
[4].name: email is declared twice, first at [0]
[7].pattern: expected type text beside a pattern, found number
[8].pattern: the pattern is 257 bytes long: expected at most 256`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if err := inputs.Check(lead); err != nil {
		t.Error(err)
	}
}

func FuzzFormField(f *testing.F) {
	for _, row := range table {
		f.Add(row.sent)
	}
	decls := []inputs.Declaration{{Name: "x", Type: inputs.JSON}}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := inputs.FromForm(decls, url.Values{"x": {text}}, false, httpapi.ParseValue)
		if err == nil && !got.JSON().IsValid() {
			t.Errorf("%q became %s", text, got.JSON())
		}
	})
}

func BenchmarkFromJSON(b *testing.B) {
	sent := []inputs.Member{
		{Name: "email", Value: jsontext.Value(`"ana@acme.example"`)}, {Name: "score", Value: jsontext.Value(`12`)},
		{Name: "payload", Value: jsontext.Value(`{"lines":[1,2,3]}`)}, {Name: "utm", Value: jsontext.Value(`"x"`)},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := inputs.FromJSON(lead, sent, false); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPatterns: a text that is sent must have its declared pattern, in JSON, a form and a
// node's input; what is converted to text, too.
func TestPatterns(t *testing.T) {
	decls := []inputs.Declaration{{Name: "x", Type: inputs.Text, Pattern: inputs.PatternOf("^[^@ ]+@[^@ ]+$")}}
	const why = "expected a text that matches ^[^@ ]+@[^@ ]+$"
	for sent, want := range map[string]string{`"a@b"`: "", `"a"`: why, `""`: why, `5`: why, `{"a":"@"}`: "", `null`: "", `"\ud800@\u0000"`: ""} {
		_, err := inputs.FromJSON(decls, members(sent), true)
		if want == "" && err != nil {
			t.Errorf("%s: %v", sent, err)
		} else if want != "" {
			wantFailure(t, err, "Input validation failed: [x: "+why+"]", map[string]string{"x": why})
		}
		if got := inputs.Reason(decls[0], jsontext.Value(sent)); got != want {
			t.Errorf("%s: reason %q, want %q", sent, got, want)
		}
	}
	for sent, ok := range map[string]bool{"a@b": true, "": true, "a": false} {
		if _, err := inputs.FromForm(decls, url.Values{"x": {sent}}, false, httpapi.ParseValue); (err == nil) != ok {
			t.Errorf("a form with %q: %v", sent, err)
		}
	}
}

// TestPatternsOfABodyHaveOneBound: however many inputs have a costly one.
func TestPatternsOfABodyHaveOneBound(t *testing.T) {
	costly := inputs.PatternOf("(a?){100}(a|a)*b")
	decls := []inputs.Declaration{{Name: "x", Type: inputs.Text, Pattern: costly}, {Name: "y", Type: inputs.Text, Pattern: costly}}
	half := jsontext.Value(strconv.Quote(strings.Repeat("a", costly.Longest()*6/10) + "b"))
	if _, err := inputs.FromJSON(decls, []inputs.Member{{Name: "x", Value: half}}, true); err != nil {
		t.Error(err)
	}
	_, err := inputs.FromJSON(decls, []inputs.Member{{Name: "x", Value: half}, {Name: "y", Value: half}}, true)
	if err == nil || !strings.Contains(err.Error(), "[y: expected at most ") {
		t.Errorf("two texts that together are over the bound: %v", err)
	}
}

// TestLargePatternsAreRefused: one by one, and together, after which no more are compiled: twenty thousand in a body would
// take the memory of a machine.
func TestLargePatternsAreRefused(t *testing.T) {
	check := func(n int, pattern string) error {
		decls := make([]inputs.Declaration, n)
		for i := range decls {
			decls[i] = inputs.Declaration{Name: "x" + strconv.Itoa(i), Type: inputs.Text, Pattern: inputs.PatternOf(pattern)}
		}
		return inputs.Check(decls)
	}
	for _, c := range []struct {
		n             int
		pattern, want string
	}{
		{1, "a{1000}a{1000}a{1000}", "[0].pattern: the pattern is compiled to 3002 instructions: expected at most 2000, which is x{1000} twice"},
		{200, "a{40}", ""},
		{200, "a{100}", "[98].pattern: the patterns are compiled to more than 10000 instructions together"},
	} {
		if err := check(c.n, c.pattern); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%d × %s: %v, want %s", c.n, c.pattern, err, c.want)
		}
	}
	if none := (inputs.Pattern{}); none.Err() != nil || !none.Matches("a") || inputs.PatternOf("").Cost() < 1 {
		t.Error("the empty pattern is in no text")
	}
}

// TestDeclarationsWithPatternsAreKept: as JSON, whether they are right or not.
func TestDeclarationsWithPatternsAreKept(t *testing.T) {
	const text = `[{"name":"x","type":"text","pattern":"^a"},{"name":"y","type":"text","pattern":"["},{"name":"z","type":"number"}]`
	var decls []inputs.Declaration
	if err := json.Unmarshal([]byte(text), &decls); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(decls); err != nil || string(again) != text {
		t.Errorf("%s, %v", again, err)
	}
	const want = "[1].pattern: expected a regular expression: missing closing ]: `[`"
	if err := inputs.Check(decls); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestMembersAreKeptWithoutLoss: names that no UTF-8 can say included. What was
// kept before reads back, too.
func TestMembersAreKeptWithoutLoss(t *testing.T) {
	o := inputs.Object{
		{Name: "plain", Value: jsontext.Value(`{"a":[1.50,"\ud800<"]}`)}, {Name: "a\x00\"é", Value: jsontext.Value(`null`)},
		{Name: "\xed\xa0\x80", Value: jsontext.Value(`1`)}, {Name: "\xed\xa0\x81", Value: jsontext.Value(`2`)},
	}
	if got, want := string(o.JSON()), `{"plain":{"a":[1.50,"\ud800<"]},"a\u0000\"é":null,"\ud800":1,"\ud801":2}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var again inputs.Object
	if err := json.Unmarshal(text, &again); err != nil || len(again) != len(o) {
		t.Fatalf("%s: %v", text, err)
	}
	for i := range o {
		if again[i].Name != o[i].Name {
			t.Errorf("%q is %q", o[i].Name, again[i].Name)
		}
	}
	var before inputs.Object
	if err := json.Unmarshal([]byte(`[{"Name":"a\u00e9","Value":{"b": 1}}]`), &before); err != nil || before[0].Name != "aé" || string(before[0].Value) != `{"b": 1}` {
		t.Errorf("%v %v", before, err)
	}
}

// Empty texts of a declared input were not sent, however many there are.
func TestRepeatedEmptyFields(t *testing.T) {
	decls := []inputs.Declaration{{Name: "t", Type: inputs.Text, Required: true}, {Name: "j", Type: inputs.JSON}}
	if _, err := inputs.FromForm(decls, url.Values{"t": {"", " "}}, true, httpapi.ParseValue); err == nil {
		t.Error("a required text may be sent as several blanks")
	}
	form, err := inputs.FromForm(decls, url.Values{"t": {"a"}, "j": {"", "x"}, "z": {"", ""}}, true, httpapi.ParseValue)
	if err != nil || string(form.JSON()) != `{"j":["","x"],"t":"a","z":["",""]}` {
		t.Errorf("%s, %v", form.JSON(), err)
	}
}
