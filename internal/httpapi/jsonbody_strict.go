package httpapi

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
)

// DecodeStrict decodes a body into a request struct whose fields carry json
// tags. Beyond what ParseObject refuses, it refuses members that the struct
// does not name exactly, wrong types, and null where the field cannot be null
// (it can when it is a pointer, an interface or raw JSON). The error is a
// VALIDATION that names every failing member, by its path, in details.fields. A
// member that was not sent leaves its field zero: the caller checks whether it
// is required. DecodeStrict panics for a struct with a field that it does not
// support.
//
// Its lists and maps may have maxElements elements together, and maxWrong members are
// named: a body of megabytes could have millions of either.
//
// It is for requests of a fixed form; package schema checks a record's fields.
func DecodeStrict[T any](body []byte) (T, error) {
	var value T
	object, err := ParseObject(body)
	if err != nil {
		return value, err
	}
	d := strictDecoder{wrong: map[string]string{}}
	d.members(object.Members, reflect.ValueOf(&value).Elem(), "")
	if len(d.wrong) > 0 {
		var zero T
		return zero, d.fault()
	}
	return value, nil
}

const (
	maxElements = 20_000
	maxWrong    = 1000
)

// strictDecoder decodes one body.
type strictDecoder struct {
	wrong    map[string]string // the reason by the path
	elements int               // of lists and maps so far
}

// full reports whether there is no use in decoding further.
func (d *strictDecoder) full() bool { return len(d.wrong) >= maxWrong || d.elements > maxElements }

// element counts an element of the list or map at a path. It returns false for one too many.
func (d *strictDecoder) element(path string) bool {
	if d.elements++; d.elements > maxElements {
		d.wrong[path] = fmt.Sprintf("expected at most %d elements in all lists of the body together", maxElements)
	}
	return !d.full()
}

func (d *strictDecoder) fault() error {
	var b strings.Builder
	for i, path := range slices.Sorted(maps.Keys(d.wrong)) {
		if i == 10 {
			b.WriteString("; …")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(shorten(path) + ": " + d.wrong[path])
	}
	return fault.Fields(b.String(), d.wrong)
}

func (d *strictDecoder) members(members []Member, into reflect.Value, path string) {
	if into.Kind() == reflect.Map {
		d.entries(members, into, path)
		return
	}
	fields := strictFields(into.Type())
	for _, m := range members {
		if d.full() {
			return
		}
		index, known := fields[m.Name]
		if !known {
			d.wrong[join(path, m.Name)] = unknownMember(fields, m.Name)
			continue
		}
		d.value(m.Value, into.FieldByIndex(index), join(path, m.Name))
	}
}

func (d *strictDecoder) entries(members []Member, into reflect.Value, path string) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, m := range members {
		if !d.element(path) {
			return
		}
		entry := reflect.New(into.Type().Elem()).Elem()
		d.value(m.Value, entry, join(path, m.Name))
		into.SetMapIndex(reflect.ValueOf(m.Name).Convert(into.Type().Key()), entry)
	}
}

func unknownMember(fields map[string][]int, name string) string {
	for known := range fields {
		if strings.EqualFold(known, name) {
			return "unknown; did you mean " + known + "?"
		}
	}
	return "unknown"
}

func (d *strictDecoder) value(v jsontext.Value, into reflect.Value, path string) {
	kind := v.Kind()
	if into.Kind() == reflect.Pointer {
		if kind == 'n' {
			return
		}
		into.Set(reflect.New(into.Type().Elem()))
		d.value(v, into.Elem(), path)
		return
	}
	if ownDecoding(into.Type()) {
		if json.Unmarshal(v, into.Addr().Interface()) != nil {
			d.wrong[path] = "not in the expected form"
		}
		return
	}
	ok, expected := false, ""
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		expected = "an object"
		if ok = kind == '{'; ok {
			members, _ := readMembers(v) // valid: v is part of a body that was parsed
			d.members(members, into, path)
		}
	case reflect.Slice:
		expected = "a list"
		if ok = kind == '['; ok {
			d.list(v, into, path)
		}
	case reflect.String:
		expected = "text"
		if ok = kind == '"'; ok {
			text, _ := jsontext.AppendUnquote(nil, v)
			into.SetString(string(text))
		}
	case reflect.Bool:
		expected = "true or false"
		if ok = kind == 't' || kind == 'f'; ok {
			into.SetBool(kind == 't')
		}
	default:
		ok, expected = setNumber(v, into)
	}
	if !ok {
		d.wrong[path] = "expected " + expected
	}
}

func (d *strictDecoder) list(v jsontext.Value, into reflect.Value, path string) {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	_ = withDecoder(v, func(dec *jsontext.Decoder) error {
		_, _ = dec.ReadToken()
		for i := 0; dec.PeekKind() != ']'; i++ {
			item, err := dec.ReadValue()
			if err != nil {
				return err // unreachable: v is part of a body that was parsed
			}
			if !d.element(path) {
				return nil
			}
			into.Set(reflect.Append(into, reflect.Zero(into.Type().Elem())))
			d.value(item, into.Index(i), join(path, strconv.Itoa(i)))
		}
		return nil
	})
}

func setNumber(v jsontext.Value, into reflect.Value) (ok bool, expected string) {
	switch {
	case into.CanInt():
		n, err := strconv.ParseInt(string(v), 10, into.Type().Bits())
		into.SetInt(n)
		return v.Kind() == '0' && err == nil, "a whole number"
	case into.CanUint():
		n, err := strconv.ParseUint(string(v), 10, into.Type().Bits())
		into.SetUint(n)
		return v.Kind() == '0' && err == nil, "a whole number of at least 0"
	case into.CanFloat():
		n, err := strconv.ParseFloat(string(v), into.Type().Bits())
		into.SetFloat(n)
		return v.Kind() == '0' && err == nil, "a number"
	}
	panic("httpapi: DecodeStrict cannot decode into " + into.Type().String())
}

// ownDecoding reports whether package json decodes a type's values as a whole:
// the type has a method for it, or takes any JSON.
func ownDecoding(t reflect.Type) bool {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return true
	}
	switch reflect.Zero(reflect.PointerTo(t)).Interface().(type) {
	case stdjson.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
		return true
	}
	return false
}

// strictTables caches, for each struct type, its fields by JSON name.
var strictTables sync.Map

func strictFields(t reflect.Type) map[string][]int {
	if known, ok := strictTables.Load(t); ok {
		return known.(map[string][]int)
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = f.Index
	}
	strictTables.Store(t, fields)
	return fields
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
