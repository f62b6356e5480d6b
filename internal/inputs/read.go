package inputs

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/wtf8"
)

// FromJSON checks the members of a body that is a JSON object (contract N2, N3). Their
// names must differ and their values be valid JSON without duplicate names, as
// httpapi.ParseObject and ParseEvent ensure. The result shares their memory.
//
// Without keepUndeclared the object has every declared input, in the order of
// declaration, null where it was not sent, and nothing else, as a flow gets it.
// With keepUndeclared it has what was sent, in its order, as a component gets it.
//
// It returns a *fault.Error EXECUTION_ERROR that names every failing input.
func FromJSON[M ~struct {
	Name  string
	Value jsontext.Value
}](decls []Declaration, members []M, keepUndeclared bool) (Object, error) {
	sent := make([]Member, len(members))
	for i, m := range members {
		sent[i] = Member(m)
	}
	return read(decls, sent, keepUndeclared, func(d *Declaration, v jsontext.Value) (jsontext.Value, string) {
		return convert(d.Type, v)
	})
}

// FromForm checks the fields of a form as FromJSON does the members of a body
// (contract N5). A declared input whose field is empty was not sent, nor was a required
// text of blanks; a boolean takes the words of checkboxes, too. With keepUndeclared the object is in the order of the names. parse
// parses text that must be one JSON value, as strictly as a body is read:
// httpapi.ParseValue does.
//
// It returns a *fault.Error: VALIDATION when a name or text is not UTF-8 or has
// U+0000 in it, EXECUTION_ERROR as FromJSON does.
func FromForm(decls []Declaration, form url.Values, keepUndeclared bool, parse func(text []byte) (jsontext.Value, bool)) (Object, error) {
	sent := make([]Member, 0, len(form))
	find := finder(decls)
	for _, name := range slices.Sorted(maps.Keys(form)) {
		texts := form[name]
		if !cleanText(name) || !allClean(texts) {
			return nil, fault.New(fault.Validation, "The form cannot be read: expected UTF-8 without U+0000.")
		}
		if d := find(name); d >= 0 && !slices.ContainsFunc(texts, func(text string) bool { return !blank(&decls[d], text) }) {
			continue
		}
		if len(texts) > 0 {
			sent = append(sent, Member{Name: name, Value: FormValue(texts)})
		}
	}
	return read(decls, sent, keepUndeclared, func(d *Declaration, v jsontext.Value) (jsontext.Value, string) {
		if d.Type == Text || v.Kind() != '"' {
			return convert(d.Type, v)
		}
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return nil, expected(d.Type)
		}
		if word, ok := booleans[string(text)]; ok && d.Type == Boolean {
			return word, ""
		}
		held, ok := parse(text)
		if d.Type == JSON && isOneChoice(text, held, ok) {
			return slices.Concat(jsontext.Value{'['}, v, jsontext.Value{']'}), ""
		}
		if !ok {
			return nil, expected(d.Type)
		}
		return convert(d.Type, held)
	})
}

// isOneChoice reports whether the one text of a json input is no list or object, nor
// meant to be one: then it is the list of it, as of several checkboxes of which one is
// ticked. held is the JSON value that it is, if ok is true.
func isOneChoice(text []byte, held jsontext.Value, ok bool) bool {
	if ok {
		return strings.IndexByte(kinds[JSON], byte(held.Kind())) < 0 && held.Kind() != 'n'
	}
	start := bytes.TrimSpace(text)
	return len(start) > 0 && start[0] != '[' && start[0] != '{'
}

// blank reports whether a field of a form stands for an input that was not sent.
func blank(d *Declaration, text string) bool {
	return text == "" || d.Required && d.Type == Text && strings.TrimSpace(text) == ""
}

// booleans are what forms send for a boolean.
var booleans = map[string]jsontext.Value{
	"on": jsontext.Value("true"), "true": jsontext.Value("true"), "1": jsontext.Value("true"),
	"off": jsontext.Value("false"), "false": jsontext.Value("false"), "0": jsontext.Value("false"),
}

func cleanText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func allClean(texts []string) bool {
	return !slices.ContainsFunc(texts, func(s string) bool { return !cleanText(s) })
}

// FormValue returns the text of a field as JSON, or the list of its texts when it was
// sent several times.
func FormValue(texts []string) jsontext.Value {
	if len(texts) == 1 {
		return wtf8.AppendUTF8(nil, texts[0])
	}
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = wtf8.AppendUTF8(list, text)
	}
	return append(list, ']')
}

// read converts what was sent to the declared types.
func read(decls []Declaration, sent []Member, keep bool, convert func(*Declaration, jsontext.Value) (jsontext.Value, string)) (Object, error) {
	find := finder(decls)
	values := make([]jsontext.Value, len(decls))
	places := make([]int, len(decls))
	for i := range sent {
		if d := find(sent[i].Name); d >= 0 {
			values[d], places[d] = sent[i].Value, i
		}
	}
	var failed failures
	work := maxPatternWork
	for i := range decls {
		d := &decls[i]
		if isMissing(values[i]) {
			if d.Required {
				failed.add(d.Name, required)
			}
			continue
		}
		value, reason := convert(d, values[i])
		switch {
		case reason != "":
			failed.add(d.Name, reason)
		case value.Kind() == 'n' && d.Required: // a form's text null
			failed.add(d.Name, required)
		default:
			if reason := d.mismatch(value, &work); reason != "" {
				failed.add(d.Name, reason)
			}
		}
		values[i] = value
		sent[places[i]].Value = value
	}
	if err := failed.err(); err != nil {
		return nil, err
	}
	if keep {
		return sent, nil
	}
	whole := make(Object, len(decls))
	for i := range decls {
		whole[i] = Member{Name: decls[i].Name, Value: values[i]}
		if len(values[i]) == 0 {
			whole[i].Value = jsontext.Value("null")
		}
	}
	return whole, nil
}

// required is the reason why a missing value is refused.
const required = "required"

func isMissing(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

// Reason returns the reason why FromJSON refuses a value of an input, "" if it takes it.
// No value is a missing one.
func Reason(d Declaration, v jsontext.Value) (reason string) {
	if isMissing(v) {
		if d.Required {
			return required
		}
		return ""
	}
	value, reason := convert(d.Type, v)
	if reason == "" {
		work := maxPatternWork
		reason = d.mismatch(value, &work)
	}
	return reason
}

// mismatch returns why a value of the declared type does not match the declared pattern, or ""
// if it does. work is how much work is left to the patterns of one body.
func (d *Declaration) mismatch(v jsontext.Value, work *int) string {
	if d.Pattern.IsZero() || v.Kind() != '"' {
		return ""
	}
	text, err := wtf8.Unquote(v)
	switch {
	case err != nil:
		return expected(Text)
	case len(text)*d.Pattern.Cost() > *work:
		return fmt.Sprintf("expected at most %d bytes, which its pattern is looked for in", *work/d.Pattern.Cost())
	}
	*work -= len(text) * d.Pattern.Cost()
	if !d.Pattern.Matches(text) {
		return "expected a text that matches " + d.Pattern.String()
	}
	return ""
}

// finder returns a function that returns the place of a declaration by its name, or
// -1.
func finder(decls []Declaration) func(name string) int {
	if len(decls) <= 8 {
		return func(name string) int {
			return slices.IndexFunc(decls, func(d Declaration) bool { return d.Name == name })
		}
	}
	index := make(map[string]int, len(decls))
	for i := range decls {
		index[decls[i].Name] = i
	}
	return func(name string) int {
		if i, ok := index[name]; ok {
			return i
		}
		return -1
	}
}

// convert returns a value in the declared type, or the reason why it does not fit.
// null always fits; the caller decides whether it may stand there.
func convert(t Type, v jsontext.Value) (jsontext.Value, string) {
	kind := v.Kind()
	if kind == 'n' {
		return v, ""
	}
	switch {
	case strings.IndexByte(kinds[t], byte(kind)) >= 0:
		return v, ""
	case t == Text:
		return textOf(v), ""
	}
	return nil, expected(t)
}

func expected(t Type) string { return "expected " + string(t) }

// textOf returns the JSON string that holds the text of a value that is not a
// string: compact JSON of an object or a list, others as they were sent.
func textOf(v jsontext.Value) jsontext.Value {
	text := bytes.TrimSpace(v)
	if k := v.Kind(); k == '{' || k == '[' {
		compact := jsontext.Value(bytes.Clone(text))
		if compact.Compact() == nil {
			text = compact
		}
	}
	return wtf8.AppendUTF8(nil, string(text)) // part of a valid body or event: it is UTF-8
}
