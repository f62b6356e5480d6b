package config

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

// attr is a member of a kind of object: how it is decoded, and how Export and the
// change history show it. To add a member to a kind, add an attr to its table.
type attr[T any] struct {
	key string
	// read decodes the member; nil is for what only the change history has.
	read func(d *decoder, o *T, v *Value)
	// copy copies the member from another object; only the tenant's settings need it.
	copy func(to, from *T)
	// tell returns the member as Export writes it; Null leaves it out. email
	// returns the address of a user's e-mail key.
	tell func(o *T, email func(key string) string) *Value
	// past returns the member as the change history keeps it, where tell does not;
	// prev is the object before the change, or nil.
	past func(o, prev *T) *Value
	// secret returns what is stored of a secret, sealed or hashed, for the version of
	// the object alone: nothing shows it.
	secret func(o *T) string
	show   shown

	// What Describe says of the member. of describes the members of what is in it,
	// the default of which is in o.
	kind      MemberType
	doc       string
	required  bool
	values    []string
	low, high int
	of        func(o *T) []MemberDescription
}

// says returns a with its description.
func (a attr[T]) says(doc string) attr[T] { a.doc = doc; return a }

// among returns a with the values that it may have, where something else than its
// read checks that it has one of them.
func (a attr[T]) among(values ...string) attr[T] {
	a.kind, a.values = ChoiceMember, values
	return a
}

// needed is says for a member that must be given.
func (a attr[T]) needed(doc string) attr[T] {
	a.required = true
	return a.says(doc)
}

// shown says where a member is shown.
type shown int

const (
	always    shown = iota
	notEmpty        // by Export unless it is empty, by the change history always
	sparse          // unless it is empty
	inExport        // by Export alone: it names the object
	inHistory       // by the change history alone, unless it is empty
)

func (a attr[T]) when(s shown) attr[T] { a.show = s; return a }

// table lists the members of a kind of object, in the order in which Export writes
// and messages list them.
type table[T any] []attr[T]

// text is a member that is a text.
func text[T any, S ~string](key string, at func(*T) *S) attr[T] {
	return attr[T]{
		key: key, kind: TextMember,
		read: func(d *decoder, o *T, v *Value) {
			if s, ok := d.text(v); ok {
				*at(o) = S(s)
			}
		},
		copy: func(to, from *T) { *at(to) = *at(from) },
		tell: func(o *T, _ func(string) string) *Value { return str(string(*at(o))) },
	}
}

// choice is a text out of a few.
func choice[T any, S ~string](key string, at func(*T) *S, of ...S) attr[T] {
	names := make([]string, len(of))
	for i, s := range of {
		names[i] = string(s)
	}
	a := text(key, at)
	a.kind, a.values = ChoiceMember, names
	a.read = func(d *decoder, o *T, v *Value) {
		if s, ok := d.oneOf(v, names...); ok {
			*at(o) = S(s)
		}
	}
	return a
}

// flag is a member that is true or false.
func flag[T any](key string, at func(*T) *bool) attr[T] {
	return attr[T]{
		key: key, kind: BooleanMember,
		read: func(d *decoder, o *T, v *Value) { d.flag(at(o))(v) },
		copy: func(to, from *T) { *at(to) = *at(from) },
		tell: func(o *T, _ func(string) string) *Value { return yes(*at(o)) },
	}
}

// count is a whole number of at least 1.
func count[T any](key string, at func(*T) *int) attr[T] {
	return attr[T]{
		key: key, kind: NumberMember, low: 1, high: maxLimit,
		read: func(d *decoder, o *T, v *Value) { d.count(at(o))(v) },
		copy: func(to, from *T) { *at(to) = *at(from) },
		tell: func(o *T, _ func(string) string) *Value { return num(*at(o)) },
	}
}

// between is a whole number within bounds.
func between[T any](key string, at func(*T) *int, low, high int) attr[T] {
	a := count(key, at)
	a.low, a.high = low, high
	a.read = func(d *decoder, o *T, v *Value) { d.between(at(o), low, high)(v) }
	return a
}

// within is an object inside of another; defaults says what it is made of when
// it is given.
func within[T, U any](key string, at func(*T) *U, members table[U], defaults func() U, inline bool) attr[T] {
	return attr[T]{
		key: key, kind: ObjectMember, of: func(o *T) []MemberDescription { return members.describe(at(o)) },
		read: func(d *decoder, o *T, v *Value) {
			if defaults != nil {
				*at(o) = defaults()
			}
			members.read(d, v, key, at(o))
		},
		copy: func(to, from *T) { *at(to) = *at(from) },
		tell: func(o *T, email func(string) string) *Value {
			v := block(members.export(at(o), email)...)
			v.Inline = inline
			return v
		},
		past: func(o, _ *T) *Value { return members.past(at(o), nil) },
	}
}

// read reads an object strictly; what names it in messages ("a field"). It
// returns the members that were given.
func (t table[T]) read(d *decoder, n *Value, what string, o *T) map[string]*Value {
	given := map[string]*Value{}
	var members []member
	for _, a := range t {
		if a.read != nil {
			members = append(members, member{a.key, func(v *Value) { given[a.key] = v; a.read(d, o, v) }})
		}
	}
	d.object(n, what, members...)
	return given
}

// export returns the members of an object as Export has them.
func (t table[T]) export(o *T, email func(key string) string) (list []pair) {
	for _, a := range t {
		if a.tell == nil || a.show == inHistory {
			continue
		}
		v := a.tell(o, email)
		if v.Kind != Null && (a.show != notEmpty && a.show != sparse || !v.empty()) {
			list = append(list, pair{a.key, v})
		}
	}
	return list
}

// view returns an object as the change history has it; nil is none.
func (t table[T]) view(o, prev *T) any {
	if o == nil {
		return nil
	}
	return t.past(o, prev).json()
}

func (t table[T]) past(o, prev *T) *Value {
	var list []pair
	for _, a := range t {
		var v *Value
		switch {
		case a.past != nil:
			v = a.past(o, prev)
		case a.tell == nil || a.show == inExport:
			continue
		default:
			v = a.tell(o, asIs)
		}
		if (a.show != sparse && a.show != inHistory) || !v.empty() {
			list = append(list, pair{a.key, v})
		}
	}
	return block(list...)
}

func asIs(key string) string { return key }

// empty reports whether a value says no more than its absence.
func (v *Value) empty() bool {
	switch v.Kind {
	case Null:
		return true
	case Text:
		return v.Text == ""
	case Bool:
		return v.Text == "false"
	case List:
		return len(v.Items) == 0
	case Mapping:
		return len(v.Members) == 0
	}
	return false
}

// AsJSON returns a value of Export as JSON.
func (v *Value) AsJSON() jsontext.Value { return v.json() }

// json is a value of Export as JSON.
func (v *Value) json() jsontext.Value {
	switch v.Kind {
	case Null:
		return jsontext.Value("null")
	case Text:
		return wtf8.AppendUTF8(nil, v.Text)
	case List:
		out := jsontext.Value{'['}
		for i, item := range v.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, item.json()...)
		}
		return append(out, ']')
	case Mapping:
		out := jsontext.Value{'{'}
		for i, m := range v.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(wtf8.AppendUTF8(out, m.Key.Text), ':'), m.Value.json()...)
		}
		return append(out, '}')
	}
	return slices.Clone(v.JSON)
}

// secrets returns what is stored of the object's secrets.
func (t table[T]) secrets(o *T) (list []string) {
	for _, a := range t {
		if a.secret != nil {
			list = append(list, a.secret(o))
		}
	}
	return list
}

// exports and pasts are lists of objects, each on a line.
func (t table[T]) exports(objects []*T) *Value {
	var list []*Value
	for _, o := range objects {
		list = append(list, flow(t.export(o, asIs)...))
	}
	return rows(list)
}

func (t table[T]) pasts(objects []*T) *Value {
	var list []*Value
	for _, o := range objects {
		list = append(list, t.past(o, nil))
	}
	return rows(list)
}

func (t table[T]) keys() []string {
	keys := make([]string, len(t))
	for i, a := range t {
		keys[i] = a.key
	}
	return keys
}
