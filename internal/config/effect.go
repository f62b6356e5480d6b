package config

import (
	"crypto/subtle"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/internal/custom"
	"gatehouse/internal/records"
)

// Effect is what a change does beyond the objects that it names.
type Effect struct {
	// Reindexed are the entity types of which records must be looked at, with at
	// most 10,000 of each counted.
	Reindexed []records.Visit `json:"reindexed"`
	// Fields are those that go from objects that stay, with who holds a value.
	Fields []GoneField `json:"fields"`
	// Losing are the active users who may do less, by e-mail address: they are
	// deactivated, or have fewer rights by what is theirs or by what a permission
	// set, the role tree, a sharing rule or an entity's default says.
	Losing Affected `json:"losing"`
	// Keys are the valid API keys whose user is deactivated.
	Keys Affected `json:"keys"`
	// Endpoints are custom endpoints that are removed, run as a user who is
	// deactivated, or take other credentials than before: another auth, no external
	// users any more, or no longer what is signed with the secret of before.
	Endpoints Affected `json:"endpoints"`
}

// maxCounted bounds the records of an entity type that an Effect counts, and
// maxNamed what it names of each kind.
const (
	maxCounted = 10_000
	maxNamed   = 20
)

// Affected are objects that a change touches from outside: how many, and the
// names of the first 20.
type Affected struct {
	Count int      `json:"count"`
	Names []string `json:"names,omitempty"`
}

func (a *Affected) add(name string) {
	a.Count++
	if len(a.Names) < maxNamed {
		a.Names = append(a.Names, name)
	}
}

func (a *Affected) String() string {
	names := make([]string, len(a.Names))
	for i, name := range a.Names {
		names[i] = printable(name)
	}
	line := strings.Join(names, ", ")
	if more := a.Count - len(a.Names); more > 0 {
		line += " and " + strconv.Itoa(more) + " more"
	}
	return line
}

// GoneField is a field that goes from an object that stays. Its values are kept,
// and are back when the field is.
type GoneField struct {
	Entity  string `json:"entity"` // "" for users
	Field   string `json:"field"`
	Holding int64  `json:"holding"` // how many hold a value
	Of      int64  `json:"of"`
	// Hidden is set where who asks may not know how many there are.
	Hidden bool `json:"hidden,omitempty"`
}

func (f GoneField) String() string {
	where, what := "entity "+f.Entity, "records"
	if f.Entity == "" {
		where, what = "user_fields", "users"
	}
	if f.Hidden {
		return fmt.Sprintf("%s: field %s; values that %s hold are kept, and are back when the field is", where, f.Field, what)
	}
	if f.Holding == 0 {
		return fmt.Sprintf("%s: field %s; none of %d %s holds a value", where, f.Field, f.Of, what)
	}
	return fmt.Sprintf("%s: field %s; %d of %d %s hold a value: it is kept, and is back when the field is", where, f.Field, f.Holding, f.Of, what)
}

// Lines says what the effect is, a line for each part of it: what re-indexes, who
// may do less, and which keys and endpoints stop. Result.Gone has the fields.
func (e *Effect) Lines() (lines []string) {
	for _, v := range e.Reindexed {
		of := strconv.FormatInt(v.Records, 10)
		if v.Hidden {
			of = "its records"
		} else if v.More {
			of = "over " + of
		}
		lines = append(lines, fmt.Sprintf("looks at records again: entity %s: %s", v.Entity, of))
	}
	for _, part := range []struct {
		what string
		Affected
	}{
		{"users who may do less", e.Losing}, {"API keys that stop working", e.Keys}, {"custom endpoints that stop working for their callers", e.Endpoints},
	} {
		if part.Count > 0 {
			lines = append(lines, fmt.Sprintf("%s: %s", part.what, part.Affected.String()))
		}
	}
	return lines
}

// stopping lists the stored endpoints that stop working for those who call them
// now.
func (p *plan) stopping() (list Affected) {
	active := func(s *state, key string) bool {
		u := s.users[key]
		if u == nil {
			u = p.people[key]
		}
		return u != nil && u.Active
	}
	for _, slug := range sortedKeys(p.before.endpoints) {
		was, is := p.before.endpoints[slug], p.after.endpoints[slug]
		if is == nil {
			list.add(slug)
			continue
		}
		by, will := p.before.actor(was), p.after.actor(is)
		if p.refuses(was, is) || will != "" && !active(p.after, will) && (by == "" || active(p.before, by)) {
			list.add(slug)
		}
	}
	return list
}

// refuses reports whether an endpoint takes other credentials than before.
func (p *plan) refuses(was, is *custom.Endpoint) bool {
	switch {
	case was.Auth != is.Auth, was.ExternalUsers && !is.ExternalUsers:
		return true
	case was.SealedSecret == "", is.SealedSecret == was.SealedSecret:
		return false
	case is.SealedPrevious == "":
		return true
	}
	secret, err := p.keyring.Open(custom.SecretPurpose, was.SealedSecret)
	if err != nil {
		return true
	}
	previous, err := p.keyring.Open(custom.SecretPurpose, is.SealedPrevious)
	return err != nil || subtle.ConstantTimeCompare(secret, previous) == 0
}

// actor returns the e-mail key of the user that an endpoint of a state runs as; "" when
// that is its caller (contract X2).
func (s *state) actor(e *custom.Endpoint) string {
	var c custom.Context
	if e.Target.Kind == custom.ToComponent {
		if target := s.components[e.Target.Name]; target != nil {
			c = target.Context
		}
	} else if target := s.automations[e.Target.Name]; target != nil {
		c = target.Context
	}
	switch {
	case c.Kind == custom.SpecificUser:
		return c.UserID
	case e.RunAs != "" || e.Auth == custom.APIKey:
		return e.RunAs
	}
	return e.DefinedBy
}
