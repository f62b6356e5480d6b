package config

import (
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Spec is a requested configuration, decoded and checked without the stored one. It
// does not change after Decode.
type Spec struct {
	problems *Problems // found by Decode
	// places holds the position and order of the objects that were given; see mark.
	places map[string]marked
	// removed are the objects that must go, by section and key, each with its
	// name as it was given.
	removed map[[2]string]string
	// activated are users who are made active, by e-mail key, as removed has them.
	activated map[string]string
	edits     []Edit // that it is made of, if it is

	tenant   tenant.ID
	settings tenant.Tenant // its hosts in the order given

	entities   []*schema.Entity
	userFields []*schema.Field
	roles      []access.Role
	sets       []*access.PermissionSet
	rules      []*ruleDecl
	users      []*userDecl

	modules     []*moduleDecl
	components  []*componentDecl
	automations []*automationDecl
	endpoints   []*endpointDecl
	templates   map[string]tenant.EmailTemplate
}

type marked struct {
	Place
	order int
}

// mark records the position of an object: path is the section's key, followed by
// what identifies the object inside it.
func (m *Spec) mark(n *Value, path ...string) {
	key := strings.Join(path, "\x00")
	if _, had := m.places[key]; !had {
		m.places[key] = marked{n.Place, len(m.places)}
	}
}

// place returns the position of an object, or of the nearest enclosing thing that
// was given.
func (m *Spec) place(path ...string) Place {
	at, _ := m.nearest(path)
	return at.Place
}

func (m *Spec) nearest(path []string) (marked, bool) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if at, ok := m.places[strings.Join(path, "\x00")]; ok {
			return at, true
		}
	}
	return marked{order: -1}, false
}

// later returns the position of that of two objects which was given later.
func (m *Spec) later(one, other []string) Place {
	a, _ := m.nearest(one)
	b, _ := m.nearest(other)
	if a.order > b.order {
		return a.Place
	}
	return b.Place
}

// has reports whether a top-level key was given.
func (m *Spec) has(key string) bool { _, ok := m.places[key]; return ok }

// names reports whether an object was given.
func (m *Spec) names(path ...string) bool {
	_, ok := m.places[strings.Join(path, "\x00")]
	return ok
}

// Source is what a Spec is decoded from.
type Source struct {
	Root *Value
	// Getenv returns the environment variables that texts name.
	Getenv func(string) string
	// Read returns the content of a file that the configuration names; nil
	// leaves such files unread.
	Read func(path string) ([]byte, error)
}

// Decode reads a configuration. Its mistakes are in Spec.Err; the Spec has
// everything else that could be read.
func Decode(src Source) *Spec {
	d := &decoder{Problems: &Problems{}, getenv: src.Getenv, read: src.Read}
	m := &Spec{problems: d.Problems, places: map[string]marked{}}
	if src.Root.Kind != Mapping {
		d.wrong(src.Root, "a manifest as a mapping, with at least the key tenant")
		return m
	}
	d.mapping(src.Root, "the manifest", func(key, value *Value) { d.section(m, key, value) })
	if !m.has("tenant") {
		d.fail(src.Root, "the key tenant is missing: expected tenant: NAME")
	}
	return m
}

// Err returns the mistakes that Decode found as *Problems, or nil.
func (m *Spec) Err() error { return m.problems.err() }

// Tenant returns the tenant whose configuration it is; "" when that could not be read.
func (m *Spec) Tenant() tenant.ID { return m.tenant }

func (d *decoder) section(m *Spec, key, value *Value) {
	for _, s := range sections {
		for _, name := range s.keys {
			if name == key.Text {
				m.mark(key, name)
				s.decode(d, m, name, value)
				return
			}
		}
	}
	d.fail(key, "unknown key %s: expected %s", show(key.Text), strings.Join(sectionKeys(), ", "))
}

func sectionKeys() []string {
	var keys []string
	for _, s := range sections {
		keys = append(keys, s.keys...)
	}
	return keys
}
