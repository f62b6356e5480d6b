package config

import (
	"errors"
	"strings"

	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/user"
)

var declarationTable = table[inputs.Declaration]{
	text("name", func(d *inputs.Declaration) *string { return &d.Name }).needed("letters, digits, _ and -"),
	text("type", func(d *inputs.Declaration) *inputs.Type { return &d.Type }).among("text", "number", "boolean", "json").needed("what it is"),
	flag("required", func(d *inputs.Declaration) *bool { return &d.Required }).when(sparse).says("it must be sent"),
	{
		key: "pattern", kind: TextMember, show: sparse, doc: "of a text: a regular expression that it must match",
		read: func(d *decoder, o *inputs.Declaration, v *Value) {
			if s, ok := d.text(v); ok {
				o.Pattern = inputs.PatternOf(s)
			}
		},
		tell: func(o *inputs.Declaration, _ func(string) string) *Value { return str(o.Pattern.String()) },
	},
}

// declared is a member that is a list of declared inputs or outputs.
func declared[T any](key string, at func(*T) *[]inputs.Declaration) attr[T] {
	return attr[T]{
		key: key, kind: ListMember, of: func(*T) []MemberDescription { return declarationTable.describe(&inputs.Declaration{}) },
		read: func(d *decoder, o *T, v *Value) { *at(o) = d.declarations(v) },
		tell: func(o *T, _ func(string) string) *Value {
			var list []*Value
			for _, one := range *at(o) {
				list = append(list, flow(declarationTable.export(&one, asIs)...))
			}
			return rows(list)
		},
	}
}

// contextOf is a member that is an execution context.
func contextOf[T any](at func(*T) *custom.Context) attr[T] {
	return attr[T]{
		key: "execution_context", kind: ContextMember, doc: "whom it runs as: caller, system or {specific_user: EMAIL}",
		read: func(d *decoder, o *T, v *Value) { *at(o) = d.context(v) },
		tell: func(o *T, email func(string) string) *Value {
			if c := at(o); c.Kind == custom.SpecificUser {
				return flow(pair{"specific_user", str(email(c.UserID))})
			}
			return str(string(at(o).Kind))
		},
	}
}

// declarations reads the declared inputs or outputs of a component or automation.
func (d *decoder) declarations(n *Value) []inputs.Declaration {
	decls, items, bad := []inputs.Declaration{}, []*Value{}, map[int]bool{}
	d.list(n, "a list of declarations like {name: email, type: text}", func(i int, item *Value) {
		one, before := inputs.Declaration{}, len(d.List)
		given := declarationTable.read(d, item, "a declaration", &one)
		if d.named(item, "a declaration", given, one.Name) && given["type"] == nil {
			d.fail(item, "declaration %s needs a type: expected text, number, boolean or json", printable(one.Name))
		}
		bad[i] = len(d.List) > before
		decls, items = append(decls, one), append(items, item)
	})
	var mistakes inputs.Mistakes
	if errors.As(inputs.Check(decls), &mistakes) {
		for _, one := range mistakes {
			if !bad[one.Index] {
				d.bad(items[one.Index].Member(one.Member), "%s", one.Text)
			}
		}
	}
	return decls
}

// subject is an object that a problem is about: the section of a configuration that
// it is in, its name, and what messages call it.
type subject struct{ section, name, what string }

// identified checks the name of a component or automation, or an endpoint's
// slug, and marks its place.
func (d *decoder) identified(m *Spec, n *Value, o subject) bool {
	valid, expected := custom.ValidName(o.name), "snake_case of at most 63 characters"
	if o.section == "custom_endpoints" {
		valid, expected = custom.ValidSlug(o.name), "a slug of at most 100 lower case letters, digits, - and _"
	}
	if !valid {
		d.fail(n, "%s %s: expected %s", o.what, show(o.name), expected)
		return false
	}
	return d.once(m, n, o)
}

// once marks the place of a declared object; it refuses one that is declared already.
func (d *decoder) once(m *Spec, n *Value, o subject) bool {
	if m.names(o.section, o.name) {
		d.twice(n.Place, m.place(o.section, o.name), "%s %s is declared twice", o.what, o.name)
		return false
	}
	m.mark(n, o.section, o.name)
	return true
}

// context reads an execution context; it has the e-mail key of its user.
func (d *decoder) context(n *Value) custom.Context {
	caller := custom.Context{Kind: custom.Caller}
	if n.Kind == Mapping {
		var key string
		before := len(d.List)
		d.object(n, "an execution context", member{"specific_user", d.someone(&key)})
		if key == "" && len(d.List) == before {
			d.fail(n, "execution_context: expected {specific_user: EMAIL}")
		}
		return custom.Context{Kind: custom.SpecificUser, UserID: key}
	}
	const expected = "caller, system or {specific_user: EMAIL}"
	if n.Kind == List || n.Kind == JSON {
		d.wrong(n, expected)
		return caller
	}
	s, ok := d.text(n)
	switch {
	case !ok:
	case s == string(custom.System):
		return custom.Context{Kind: custom.System}
	case s != string(custom.Caller):
		d.bad(n, "expected %s, found %s", expected, d.found(n))
	}
	return caller
}

// someone reads a user's e-mail address into its key.
func (d *decoder) someone(key *string) func(*Value) {
	return func(n *Value) {
		s, ok := d.text(n)
		if ok && !strings.Contains(s, "@") { // who is nobody is found out later
			d.bad(n, "expected an e-mail address, found %s", d.found(n))
		} else if ok {
			*key = user.EmailKey(s)
		}
	}
}

// checkContext finds an execution context that names nobody, or whom the author may not
// name; before is the stored one.
func (p *plan) checkContext(o subject, c, before custom.Context) {
	if !p.mayName(c.UserID, before.UserID) {
		p.unnameable(p.m.place(o.section, o.name, "execution_context"), o.what+" "+o.name+": execution_context")
		return
	}
	if c.UserID != "" && p.person(c.UserID) == nil {
		p.add(p.m.place(o.section, o.name, "execution_context"), "%s %s: execution_context: there is no user %s", o.what, o.name, show(c.UserID))
	}
}

// email is how export names a user of a definition.
func (s *state) email(key string) string {
	if u := s.users[key]; u != nil {
		return u.Email
	}
	if address, ok := s.people[key]; ok {
		return address
	}
	return key
}

// lineOf returns the line, from 1, of the byte at offset.
func lineOf(s string, offset int) int { return 1 + strings.Count(s[:offset], "\n") }
