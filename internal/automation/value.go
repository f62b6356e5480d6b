package automation

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

// A value is one of
//
//	nil, bool, float64, string
//	number          one whose text is not the shortest form of its double
//	[]any, *object
//	jsontext.Value  an object or list that is not decoded yet
//
// Values do not change once they can be read, with two exceptions that no reader
// can observe: a jsontext.Value is replaced by the decoded value, and the outputs'
// own objects (object.owned) grow.

// number is the text of a JSON number, so that 19.90 and an id beyond 2^53 are
// written as they were read.
type number string

// object is a JSON object with its members in order.
type object struct {
	members []entry
	index   map[string]int
	owned   bool // by the outputs of the run: nothing else refers to it
}

type entry struct {
	name  string
	value any
}

// maxUnindexed is how many members an object without an index may have.
const maxUnindexed = 12

// get returns the place of a member's value, or nil.
func (o *object) get(name string) *any {
	if len(o.members) <= maxUnindexed {
		for i := range o.members {
			if o.members[i].name == name {
				return &o.members[i].value
			}
		}
		return nil
	}
	if o.index == nil {
		o.index = make(map[string]int, len(o.members))
		for i := range o.members {
			o.index[o.members[i].name] = i
		}
	}
	if i, ok := o.index[name]; ok {
		return &o.members[i].value
	}
	return nil
}

// index indexes all objects of a value, so that get does not change them: many
// goroutines may then read the value.
func index(v any) {
	switch v := v.(type) {
	case *object:
		v.get("")
		for i := range v.members {
			index(v.members[i].value)
		}
	case []any:
		for i := range v {
			index(v[i])
		}
	}
}

// set sets a member's value. The object must be new or owned.
func (o *object) set(name string, value any) {
	if place := o.get(name); place != nil {
		*place = value
		return
	}
	if o.index != nil {
		o.index[name] = len(o.members)
	}
	o.members = append(o.members, entry{name, value})
}

// kindOf names a value's kind for messages.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case float64, number:
		return "a number"
	case string:
		return "text"
	case *object:
		return "an object"
	case jsontext.Value:
		if v.Kind() == '{' {
			return "an object"
		}
	}
	return "a list"
}

// double returns the value of a number, and false for anything else.
func double(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case number:
		f, err := strconv.ParseFloat(string(v), 64)
		return f, err == nil
	}
	return 0, false
}

// fromJSON returns the value of a JSON text: a scalar decoded, an object or list as
// text. It returns errMalformed for a scalar that is not JSON.
func fromJSON(text jsontext.Value) (any, error) {
	text = bytes.TrimLeft(text, " \t\r\n")
	if k := text.Kind(); k == '{' || k == '[' {
		return text, nil
	}
	v, _, err := parseJSON(text, MaxWork)
	return v, err
}

var (
	errMalformed = errors.New("automation: malformed JSON")
	errDeep      = errors.New("objects and lists are nested too deeply")
)

// parseJSON decodes a JSON text. used is about how many bytes of memory the value
// takes. It returns errLong when that is more than work, errDeep for a text that is
// nested deeper than MaxDepth, and errMalformed for what is not JSON. It does not
// check that names are distinct: texts come from a strict decoder or from the host.
func parseJSON(text []byte, work int) (v any, used int, err error) {
	p := jsonReader{text: string(text), left: work - len(text)}
	if v, err = p.value(0); err != nil {
		return nil, 0, err
	}
	if p.space(); p.at != len(p.text) {
		return nil, 0, errMalformed
	}
	return v, work - p.left, nil
}

// jsonReader reads a text. Names and texts without escapes share its memory.
type jsonReader struct {
	text string
	at   int
	left int
}

// valueSize is about how many bytes one value takes besides its text.
const valueSize = 40

func (p *jsonReader) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *jsonReader) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// next skips space, and then c. It reports whether c was there.
func (p *jsonReader) next(c byte) bool {
	p.space()
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *jsonReader) value(depth int) (any, error) {
	if p.left -= valueSize; p.left < 0 {
		return nil, errLong
	}
	p.space()
	switch p.peek() {
	case '{':
		return p.object(depth + 1)
	case '[':
		return p.list(depth + 1)
	case '"':
		return p.string()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.number()
}

func (p *jsonReader) word(word string) error {
	if len(p.text)-p.at < len(word) || p.text[p.at:p.at+len(word)] != word {
		return errMalformed
	}
	p.at += len(word)
	return nil
}

func (p *jsonReader) object(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errDeep
	}
	p.at++
	o := &object{}
	if p.next('}') {
		return o, nil
	}
	o.members = make([]entry, 0, 12)
	for {
		p.space()
		if p.peek() != '"' {
			return nil, errMalformed
		}
		name, err := p.string()
		if err != nil || !p.next(':') {
			return nil, errMalformed
		}
		value, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, entry{name, value})
		switch {
		case p.next(','):
		case p.next('}'):
			return o, nil
		default:
			return nil, errMalformed
		}
	}
}

func (p *jsonReader) list(depth int) (any, error) {
	if depth > MaxDepth {
		return nil, errDeep
	}
	p.at++
	list := []any{}
	if p.next(']') {
		return list, nil
	}
	for {
		value, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
		switch {
		case p.next(','):
		case p.next(']'):
			return list, nil
		default:
			return nil, errMalformed
		}
	}
}

func (p *jsonReader) string() (string, error) {
	start := p.at
	plain := true
	for p.at++; p.at < len(p.text); p.at++ {
		switch p.text[p.at] {
		case '\\':
			plain = false
			p.at++
		case '"':
			p.at++
			if plain {
				return p.text[start+1 : p.at-1], nil
			}
			text, err := wtf8.Unquote(jsontext.Value(p.text[start:p.at]))
			if err != nil {
				return "", errMalformed
			}
			return strings.ToValidUTF8(text, "\uFFFD"), nil // a lone surrogate
		}
	}
	return "", errMalformed
}

func (p *jsonReader) number() (any, error) {
	start := p.at
	digits := true
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case '0' <= c && c <= '9':
		case c == '-', c == '+', c == '.', c == 'e', c == 'E':
			digits = false
		default:
			return numberOf(p.text[start:p.at], digits)
		}
		p.at++
	}
	return numberOf(p.text[start:], digits)
}

// numberOf returns the float64 of a text that is its shortest form, and a number for
// any other. digits says that the text has only digits.
func numberOf(text string, digits bool) (any, error) {
	if len(text) == 0 {
		return nil, errMalformed
	}
	if digits && len(text) <= 15 {
		n := 0
		for i := range len(text) {
			n = n*10 + int(text[i]-'0')
		}
		return float64(n), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errMalformed
	}
	var short [32]byte
	if string(appendNumber(short[:0], f)) == text {
		return f, nil
	}
	return number(text), nil
}
