package manifest

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/user"
)

// declarations reads the declared inputs or outputs of a component or automation.
func (d *decoder) declarations(n *yaml.Node) []inputs.Declaration {
	decls, items, bad := []inputs.Declaration{}, []*yaml.Node{}, map[int]bool{}
	d.list(n, "a list of declarations like {name: email, type: text}", func(i int, item *yaml.Node) {
		one, before := inputs.Declaration{}, len(d.List)
		var kind string
		given := d.object(item, "a declaration",
			member{"name", d.to(&one.Name)},
			member{"type", d.to(&kind)},
			member{"required", d.flag(&one.Required)})
		one.Type = inputs.Type(kind)
		if d.named(item, "a declaration", given, one.Name) && !given["type"] {
			d.fail(item, "declaration %s needs a type: expected text, number, boolean or json", printable(one.Name))
		}
		bad[i] = len(d.List) > before
		decls, items = append(decls, one), append(items, item)
	})
	var mistakes inputs.Mistakes
	if errors.As(inputs.Check(decls), &mistakes) {
		for _, one := range mistakes {
			if !bad[one.Index] {
				d.bad(memberOf(items[one.Index], one.Member), "%s", one.Text)
			}
		}
	}
	return decls
}

// memberOf is the value of a mapping's key, or the mapping itself.
func memberOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return n
}

// identified checks the name of a component or automation, or an endpoint's
// slug, and marks its place.
func (d *decoder) identified(m *manifest, n *yaml.Node, what, key, name string) bool {
	valid, expected := custom.ValidName(name), "snake_case of at most 63 characters"
	if key == "custom_endpoints" {
		valid, expected = custom.ValidSlug(name), "a slug of at most 100 lower case letters, digits, - and _"
	}
	if !valid {
		d.fail(n, "%s %s: expected %s", what, show(name), expected)
		return false
	}
	if m.names(key, name) {
		d.fail(n, "%s %s is declared twice, first on line %d", what, name, m.line(key, name))
		return false
	}
	m.mark(n, key, name)
	return true
}

// context reads an execution context; its user stands by e-mail key.
func (d *decoder) context(n *yaml.Node) custom.Context {
	caller := custom.Context{Kind: custom.Caller}
	if n.Kind == yaml.MappingNode {
		var key string
		before := len(d.List)
		d.object(n, "an execution context", member{"specific_user", d.someone(&key)})
		if key == "" && len(d.List) == before {
			d.fail(n, "execution_context: expected {specific_user: EMAIL}")
		}
		return custom.Context{Kind: custom.SpecificUser, UserID: key}
	}
	const expected = "caller, system or {specific_user: EMAIL}"
	if n.Kind != yaml.ScalarNode {
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
func (d *decoder) someone(key *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := d.text(n)
		if ok && !strings.Contains(s, "@") { // who is nobody is found out later
			d.bad(n, "expected an e-mail address, found %s", d.found(n))
		} else if ok {
			*key = user.EmailKey(s)
		}
	}
}

// checkContext finds an execution context that names nobody.
func (p *plan) checkContext(what, section, name string, c custom.Context) {
	if c.UserID != "" && p.person(c.UserID) == nil {
		p.add(p.m.line(section, name, "execution_context"), "%s %s: execution_context: there is no user %s", what, name, show(c.UserID))
	}
}

// viewContext is an execution context in the manifest's words.
func viewContext(c custom.Context) any {
	if c.Kind == custom.SpecificUser {
		return map[string]string{"specific_user": c.UserID}
	}
	return string(c.Kind)
}

// email is how export names a user of a definition.
func (s *state) email(key string) string {
	if u := s.users[key]; u != nil {
		return u.Email
	}
	return key
}

func (s *state) exportContext(c custom.Context) *yaml.Node {
	if c.Kind == custom.SpecificUser {
		return flow(pair{"specific_user", str(s.email(c.UserID))})
	}
	return str(string(c.Kind))
}

func exportDeclarations(decls []inputs.Declaration) *yaml.Node {
	var list []*yaml.Node
	for _, one := range decls {
		pairs := []pair{{"name", str(one.Name)}, {"type", str(string(one.Type))}}
		if one.Required {
			pairs = append(pairs, pair{"required", yes(true)})
		}
		list = append(list, flow(pairs...))
	}
	return rows(list)
}

// place tells where in the manifest the lines of a text stand.
type place struct {
	line    int // of the value
	literal bool
}

func placeOf(n *yaml.Node) place { return place{n.Line, n.Style&yaml.LiteralStyle != 0} }

// at is the manifest's line of the text's line, from 1. Only in a literal block
// are they the same lines.
func (p place) at(line int) int {
	if !p.literal || line < 1 {
		return p.line
	}
	return p.line + line
}

// lineOf is the line, from 1, on which the byte at offset stands.
func lineOf(s string, offset int) int { return 1 + strings.Count(s[:offset], "\n") }
