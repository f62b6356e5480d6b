package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/number"
)

const (
	// maxBodyDepth is how deeply lists and objects may be nested in a body, the
	// body's own object included.
	maxBodyDepth = 64

	// maxOpenMembers is how many members an object may have together with those
	// of the objects that contain it (contract H10). All of their names are in
	// memory at once while the body is read, with some hundred bytes each: without
	// a bound a body would take thirty times its size. The objects of a list come
	// one after the other, so they do not add up.
	maxOpenMembers = 20_000

	// An object with more members than this gets an index.
	maxUnindexed = 32

	// An error message shows no more than this of a name or of a path: senders
	// can make both as long as they like.
	maxShown = 100
)

// Member is one member of a JSON object. Value refers to the bytes of the body,
// including any white space inside the value.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Object is a JSON object with distinct names, in the order of the body. It
// must not be used by several goroutines at once.
type Object struct {
	Members []Member
	index   map[string]int
}

// Get returns the value of a member, by its exact name. A member that is null
// exists.
func (o *Object) Get(name string) (jsontext.Value, bool) {
	if o.index != nil {
		i, ok := o.index[name]
		if !ok {
			return nil, false
		}
		return o.Members[i].Value, true
	}
	for i := range o.Members {
		if o.Members[i].Name == name {
			return o.Members[i].Value, true
		}
	}
	return nil, false
}

// ParseObject parses a request body that must be exactly one JSON object
// (contract H10). It returns VALIDATION, with what is wrong and where, for
// duplicate names at any depth, trailing data, invalid UTF-8, lone surrogates,
// U+0000, numbers that no IEEE double holds (out of range, or rounded to zero),
// nesting over 64, more than 20,000 members in an object together with those
// that contain it, an empty body and a byte order mark. Whether an integer is
// exact is checked by its field.
//
// The object's values are parts of body, which must not change afterwards. Each
// of them is valid input for any JSON decoder.
func ParseObject(body []byte) (*Object, error) {
	if err := checkOpening(body); err != nil {
		return nil, err
	}
	if at, problem := tooMuchOpen(body); problem != "" {
		return nil, badBody(problem, at, "")
	}
	object := &Object{}
	var err error
	if object.Members, err = readMembers(body); err != nil {
		return nil, describeSyntax(body, err)
	}
	if at, problem := scanBody(body); problem != "" {
		return nil, badBody(problem, at, pointerAt(body, at))
	}
	object.indexMembers()
	return object, nil
}

// indexMembers builds the index of an object that has many members.
func (o *Object) indexMembers() {
	if len(o.Members) <= maxUnindexed {
		return
	}
	o.index = make(map[string]int, len(o.Members))
	for i := range o.Members {
		o.index[o.Members[i].Name] = i
	}
}

// checkOpening reports the mistakes that have an error message of their own.
func checkOpening(body []byte) error {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return fault.New(fault.Validation, "The body begins with a byte order mark: expected UTF-8 without one.")
	}
	rest := bytes.TrimLeft(body, " \t\r\n")
	if len(rest) == 0 {
		return fault.New(fault.Validation, "The body is empty: expected a JSON object.")
	}
	if rest[0] != '{' {
		first, _ := utf8.DecodeRune(rest)
		return fault.New(fault.Validation, "The body is not a JSON object: expected { at byte offset %d, found %q.", len(body)-len(rest), first)
	}
	return nil
}

// jsonReader is a pooled decoder with its input.
type jsonReader struct {
	decoder *jsontext.Decoder
	input   bytes.Buffer
}

var jsonReaders = sync.Pool{New: func() any { return &jsonReader{decoder: jsontext.NewDecoder(&bytes.Buffer{})} }}

// withDecoder calls fn with a strict decoder of text. The decoder reads text in
// place, and refers to none of it afterwards.
func withDecoder(text []byte, fn func(d *jsontext.Decoder) error) error {
	r := jsonReaders.Get().(*jsonReader)
	r.input = *bytes.NewBuffer(text)
	r.decoder.Reset(&r.input)
	err := fn(r.decoder)
	r.input = bytes.Buffer{}
	r.decoder.Reset(&r.input)
	jsonReaders.Put(r)
	return err
}

// readMembers parses text as one JSON object with nothing after it. The error
// is a *jsontext.SyntacticError or a trailingData.
func readMembers(text []byte) (members []Member, err error) {
	err = withDecoder(text, func(d *jsontext.Decoder) error {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return err
			}
			member := Member{Name: name.String()} // the next read invalidates the token
			value, err := d.ReadValue()
			if err != nil {
				return err
			}
			end := d.InputOffset()
			start := end - int64(len(value))
			member.Value = text[start:end:end]
			if members == nil {
				members = make([]Member, 0, 8)
			}
			members = append(members, member)
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		end := int(d.InputOffset())
		if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
			return trailingData(len(text) - len(rest))
		}
		return nil
	})
	return members, err
}

// trailingData is the offset of what follows a complete body.
type trailingData int

func (trailingData) Error() string { return "more data follows the JSON object" }

// describeSyntax turns an error of the decoder about a body into a VALIDATION.
func describeSyntax(body []byte, err error) error {
	var trailing trailingData
	if errors.As(err, &trailing) {
		return badBody(trailing.Error()+": expected one object alone", int(trailing), "")
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return badBody("it ends too early", -1, "")
	}
	at, pointer := int(syntax.ByteOffset), syntax.JSONPointer
	switch text := syntax.Err.Error(); {
	case errors.Is(syntax.Err, jsontext.ErrDuplicateName):
		return badBody("the name "+strconv.Quote(shorten(pointer.LastToken()))+" occurs twice: expected each name once", at, pointer.Parent())
	case errors.Is(syntax.Err, io.ErrUnexpectedEOF):
		return badBody("it ends too early: expected the rest of a value", at, pointer)
	case strings.Contains(text, "max depth"):
		return badBody(tooDeep, at, "")
	case strings.Contains(text, "surrogate"):
		return badBody("there is a lone surrogate: expected \\uD800-\\uDBFF followed by \\uDC00-\\uDFFF", at, pointer)
	}
	if comma, end := lastComma(body, at); end != 0 {
		return badBody(fmt.Sprintf("a comma stands before %q: expected none behind the last element", end), comma, pointer)
	}
	return badBody(syntax.Err.Error(), at, pointer)
}

// lastComma finds the comma behind the last element of a list or an object, where the
// decoder failed at it or at the bracket that follows. end is that bracket, 0 for none.
func lastComma(body []byte, at int) (comma int, end rune) {
	const space = " \t\r\n"
	before, rest := bytes.TrimRight(body[:min(at, len(body))], space), bytes.TrimLeft(body[min(at, len(body)):], space)
	if bytes.HasPrefix(rest, []byte(",")) {
		before, rest = body[:len(body)-len(rest)+1], bytes.TrimLeft(rest[1:], space)
	}
	if !bytes.HasSuffix(before, []byte(",")) || len(rest) == 0 || rest[0] != '}' && rest[0] != ']' {
		return 0, 0
	}
	return len(before) - 1, rune(rest[0])
}

const (
	tooDeep    = "lists and objects are nested too deeply: expected at most 64 levels"
	tooMany    = "objects have too many members: expected at most 20,000 in one together with those that contain it"
	hasNUL     = "U+0000 is not allowed: expected text without it"
	notADouble = "the number is out of range: expected one that an IEEE double can hold"
)

// badBody returns VALIDATION for a body that cannot be parsed.
func badBody(problem string, at int, pointer jsontext.Pointer) error {
	var where string
	if at >= 0 {
		where = fmt.Sprintf(" at byte offset %d", at)
	}
	if pointer != "" {
		where += " (in " + shorten(string(pointer)) + ")"
	}
	message := "The body cannot be read" + where + ": " + problem + "."
	return fault.New(fault.Validation, "%s", strings.ToValidUTF8(message, "\ufffd"))
}

func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// scanBody checks a body that is valid JSON for what the decoder accepts and
// the contract does not. It returns the offset of the first problem, or "".
func scanBody(body []byte) (at int, problem string) {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			end, nul := scanString(body, i+1, true)
			if nul >= 0 {
				return nul, hasNUL
			}
			i = end
		case c == '{' || c == '[':
			if depth++; depth > maxBodyDepth {
				return i, tooDeep
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end, ok := scanNumber(body, i)
			if !ok {
				return i, notADouble
			}
			i = end - 1
		}
	}
	return 0, ""
}

// tooMuchOpen returns the offset at which more than maxOpenMembers members are open in a
// body, or more than maxBodyDepth objects and lists, and the problem; "" for none. It must
// be called before anything is built. The decoder reports what is not JSON, and scanBody
// the depth of a short body.
func tooMuchOpen(body []byte) (at int, problem string) {
	if len(body) <= maxOpenMembers*len(`"":1,`)-1 {
		return 0, "" // too short for so many members
	}
	var members [maxBodyDepth + 1]int // of each open object and list
	open, depth := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for i++; i < len(body) && body[i] != '"'; i++ {
				if body[i] == '\\' {
					i++
				}
			}
		case ':':
			members[depth]++
			if open++; open > maxOpenMembers {
				return i, tooMany
			}
		case '{', '[':
			if depth++; depth > maxBodyDepth {
				return i, tooDeep
			}
			members[depth] = 0
		case '}', ']':
			open -= members[depth]
			if depth--; depth < 0 {
				return 0, ""
			}
		}
	}
	return 0, ""
}

// scanString returns the offset of the quote that ends a string. If find is
// set, it stops at an escaped U+0000 and returns its offset in nul; otherwise
// nul is -1.
func scanString(body []byte, from int, find bool) (end, nul int) {
	for i := from; i < len(body); i++ {
		switch body[i] {
		case '"':
			return i, -1
		case '\\':
			if find && bytes.HasPrefix(body[i:], []byte(`\u0000`)) {
				return 0, i
			}
			i++
		}
	}
	return len(body), -1
}

// scanNumber returns the offset after a number, and whether a double holds it.
func scanNumber(body []byte, from int) (end int, ok bool) {
	for end = from; end < len(body); end++ {
		switch c := body[end]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return end, number.Holds(body[from:end])
		}
	}
	return end, number.Holds(body[from:end])
}

// pointerAt returns the place in a valid body that contains the offset.
func pointerAt(body []byte, at int) (pointer jsontext.Pointer) {
	_ = withDecoder(body, func(d *jsontext.Decoder) error {
		for int(d.InputOffset()) <= at {
			if _, err := d.ReadToken(); err != nil {
				return err
			}
		}
		pointer = d.StackPointer()
		return nil
	})
	return pointer
}

// Elements returns the elements of a list within a body that ParseObject has read, as
// parts of it.
func Elements(list jsontext.Value) (elements []jsontext.Value) {
	_ = withDecoder(list, func(d *jsontext.Decoder) error {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != ']' {
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			end := d.InputOffset()
			elements = append(elements, list[end-int64(len(v)):end:end])
		}
		return nil
	})
	return elements
}
