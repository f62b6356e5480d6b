package config

import (
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Spec is what is asked of a tenant's configuration, before anything is known
// of what is stored. It is not changed after Decode.
type Spec struct {
	problems *Problems // found by Decode
	// places tells where the object of a path stands, and in which order they
	// were given; see mark.
	places map[string]marked
	// removed are the objects that must go, by section and key.
	removed map[[2]string]bool
	edits   []Edit // that it is made of, if it is

	tenant   tenant.ID
	settings tenant.Tenant // its hosts in the order given

	entities   []*schema.Entity
	userFields []*schema.Field
	roles      []access.Role
	sets       []*access.PermissionSet
	rules      []*ruleDecl
	users      []*userDecl

	components  []*componentDecl
	automations []*automationDecl
	endpoints   []*endpointDecl
	templates   map[string]tenant.EmailTemplate
}

type marked struct {
	Place
	order int
}

// mark remembers the place of an object: the section's key, then whatever
// leads to it inside.
func (m *Spec) mark(n *Value, path ...string) {
	key := strings.Join(path, "\x00")
	if _, had := m.places[key]; !had {
		m.places[key] = marked{n.Place, len(m.places)}
	}
}

// place finds the place of an object, or of the nearest thing around it that
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

// later is the place of that one of two objects which was given later.
func (m *Spec) later(one, other []string) Place {
	a, _ := m.nearest(one)
	b, _ := m.nearest(other)
	if a.order > b.order {
		return a.Place
	}
	return b.Place
}

// has reports whether the manifest has a top-level key.
func (m *Spec) has(key string) bool { _, ok := m.places[key]; return ok }

// names reports whether the manifest has an object.
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

// Decode reads a configuration. The Spec is as whole as it could be read even
// when there are problems.
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

// Err returns what Decode found wrong, as *Problems, or nil.
func (m *Spec) Err() error { return m.problems.err() }

// Tenant is the tenant whose configuration it is; "" when that could not be read.
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
