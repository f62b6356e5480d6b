package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Edit is a change of one object of a configuration.
type Edit struct {
	Kind string // as Change.Kind, or email_template
	// Name is the object's Object.Name; "" for one that Value names. An entity
	// type whose Value has another name is renamed.
	Name string
	// Value is the object as it is to be, and nil removes it: a user is
	// deactivated. A member that is absent has its default, as in a manifest.
	// Where the value has no path of its own, problems name it edits[i].
	Value *Value
	// Activate makes a user active who is deactivated or waits for activation, and
	// changes nothing else of them. Value must be nil.
	Activate bool
	// Against is the version of the object that the edit was made against, or
	// Absent. "" does not ask.
	Against string
}

// Absent is the version of an object that does not exist.
const Absent = "absent"

// Object is one object of a configuration.
type Object struct {
	Kind    string
	Name    string // stays the same while the object does
	Value   *Value // as Export has it
	Version string
}

// kindTemplate is the kind of e-mail templates. They are part of the tenant,
// which is what the change history has of them.
const kindTemplate = "email_template"

// DecodeEdits reads edits of a tenant's configuration, as Decode does for the
// whole of it; Apply makes them all or nothing. What the edits do not name stays.
func DecodeEdits(tenantID tenant.ID, edits []Edit, getenv func(string) string) *Spec {
	e := &editor{removed: map[[2]string]string{}, activated: map[string]string{}, problems: &Problems{}}
	e.top("tenant", str(string(tenantID)))
	edits = slices.Clone(edits)
	for i := range edits {
		if v := edits[i].Value; v != nil && v.Place.Path == "" {
			edits[i].Value = v.at(Place{Path: At("edits", i)})
		}
		e.add(&edits[i])
	}
	root := block(e.sections...)
	root.Place.Path = Root
	for _, top := range root.Members {
		if top.Key.Place == (Place{}) {
			top.Key.Place = Place{Path: Of(Root, top.Key.Text), Key: true}
		}
	}
	m := Decode(Source{Root: root, Getenv: getenv})
	m.removed, m.activated, m.edits = e.removed, e.activated, edits
	for at := range m.removed {
		if m.names(at[0], at[1]) {
			m.problems.add(m.place(at[0], at[1]), "%s is both changed and removed", printableName(at[1]))
		}
	}
	for key := range m.activated {
		if _, removed := m.removed[[2]string{"users", key}]; removed || m.names("users", key) {
			m.problems.add(m.place("users", key), "%s is both activated and changed", printableName(key))
		}
	}
	for _, one := range e.problems.List {
		m.problems.Note(one)
	}
	return m
}

// at is a copy of a value that was made by hand, with the paths of what is in it.
func (v *Value) at(place Place) *Value {
	is := *v
	is.Place, is.Items, is.Members = place, nil, nil
	for i, item := range v.Items {
		is.Items = append(is.Items, item.at(Place{Path: At(place.Path, i)}))
	}
	for _, m := range v.Members {
		path := Of(place.Path, m.Key.Text)
		is.Members = append(is.Members, Member{m.Key.at(Place{Path: path, Key: true}), m.Value.at(Place{Path: path})})
	}
	return &is
}

// editor puts edits together to a whole configuration.
type editor struct {
	sections []pair
	removed  map[[2]string]string
	// activated is Spec.activated.
	activated map[string]string
	problems  *Problems
}

// top is the value of a top-level key, which is v if there is none yet.
func (e *editor) top(key string, v *Value) *Value {
	for _, one := range e.sections {
		if one.key == key {
			return one.value
		}
	}
	e.sections = append(e.sections, pair{key, v})
	return v
}

func (e *editor) add(one *Edit) {
	switch one.Kind {
	case kindTenant:
		e.tenant(one)
		return
	case kindTemplate:
		all := e.top("email_templates", &Value{Kind: Mapping})
		if one.Value == nil {
			e.removed[[2]string{"email_templates", one.Name}] = one.Name
		} else {
			all.Members = append(all.Members, Member{str(one.Name), one.Value})
		}
		return
	case kindUserFields:
		list := one.Value
		if list == nil {
			list = rows(nil)
		}
		e.top("user_fields", list)
		return
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == one.Kind })
	if i < 0 {
		e.problems.add(Place{}, "there is no kind of object %s", show(one.Kind))
		return
	}
	k := kinds[i]
	if one.Activate {
		e.activate(k, one)
		return
	}
	list := e.top(k.section, rows(nil))
	if one.Value == nil {
		e.removed[[2]string{k.section, k.key(one.Name)}] = one.Name
		return
	}
	list.Items = append(list.Items, e.named(k, one))
}

func (e *editor) activate(k kind, one *Edit) {
	if k.name != kindUser || one.Value != nil {
		e.problems.add(Place{}, "only a user can be activated, with no value: found %s", words(k.name))
		return
	}
	e.top(k.section, rows(nil))
	e.activated[k.key(one.Name)] = one.Name
}

// tenant adds the members of the tenant itself, and no section of another kind.
func (e *editor) tenant(one *Edit) {
	if one.Value == nil || one.Value.Kind != Mapping {
		e.problems.add(Place{}, "expected the settings of a tenant as a mapping")
		return
	}
	for _, m := range one.Value.Members {
		switch {
		case m.Key.Text == "tenant":
		case !slices.Contains(settingsTable.keys(), m.Key.Text):
			e.problems.add(m.Key.Place, "unknown key %s: expected %s", show(m.Key.Text), strings.Join(settingsTable.keys(), ", "))
		default:
			e.sections = append(e.sections, pair{m.Key.Text, m.Value})
		}
	}
}

// named is the value of an edit with the name of its object in it.
func (e *editor) named(k kind, one *Edit) *Value {
	if one.Name == "" || one.Value.Kind != Mapping {
		return one.Value
	}
	v := *one.Value
	is := v.Member(k.id)
	switch {
	case k.id == "": // another rule takes the place of one whose content changes
		e.removed[[2]string{k.section, one.Name}] = one.Name
	case is == &v:
		v.Members = append([]Member{{str(k.id), str(one.Name)}}, v.Members...)
	case is.Kind == Text && k.key(is.Text) == k.key(one.Name):
	case k.name == kindEntity:
		if v.Member("renamed_from") == &v {
			v.Members = append(slices.Clone(v.Members), Member{str("renamed_from"), str(one.Name)})
		}
	default:
		e.problems.add(is.Place, "%s %s cannot be renamed", words(k.name), one.Name)
	}
	return &v
}

// key is how a state knows an object by its name.
func (k kind) key(name string) string {
	if k.name == kindUser {
		return user.EmailKey(name)
	}
	return name
}

// object is an object of a state. Its version is a digest of its view in the change
// history and of its secrets as they are stored: sealed with a random nonce or
// hashed with a random salt, so that nobody can try secrets on the digest. Value is nil when there is none.
func (k kind) object(s *state, key string) Object {
	o := Object{Kind: k.name, Name: key, Version: Absent}
	if v := k.view(s, nil, key); v != nil {
		text := encoded(v)
		if k.secrets != nil {
			text += encoded(k.secrets(s, key))
		}
		digest := sha256.Sum256([]byte(text))
		o.Version, o.Value = hex.EncodeToString(digest[:12]), k.tell(s, key)
	}
	return o
}

// templateKind describes e-mail templates.
var templateKind = kind{
	name: kindTemplate, section: "email_templates",
	changing: []string{access.TenantSettings}, reading: []string{access.TenantSettings},
	keys: func(s *state) []string { return sortedKeys(s.tenant.Settings.EmailTemplates) },
	view: func(s, _ *state, name string) any {
		if s.tenant == nil {
			return nil
		}
		t, ok := s.tenant.Settings.EmailTemplates[name]
		if !ok {
			return nil
		}
		return templateTable.view(&t, nil)
	},
	tell: func(s *state, name string) *Value {
		t := s.tenant.Settings.EmailTemplates[name]
		return block(templateTable.export(&t, asIs)...)
	},
}

// find is the kind of a name.
func find(name string) (kind, bool) {
	for _, k := range append(slices.Clone(kinds), templateKind) {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// checkVersions refuses edits of what is not there to be removed, or was changed
// since the edit was made.
func (p *plan) checkVersions() error {
	for _, one := range p.m.edits {
		k, ok := find(one.Kind)
		if !ok {
			continue // a problem already
		}
		key := k.key(one.Name)
		if one.Name == "" {
			key = k.key(one.nameIn(k))
		}
		stored := k.object(p.before, key)
		what := strings.TrimSpace(words(k.name) + " " + printableName(key))
		if k.name == kindUser {
			what = "user with the e-mail address " + printableName(strings.TrimSpace(cmp.Or(one.Name, one.nameIn(k))))
		}
		if one.Value == nil && stored.Value == nil {
			return fault.New(fault.NotFound, "there is no %s", what)
		}
		if one.Against == "" || one.Against == stored.Version {
			continue
		}
		message := what + " was changed meanwhile"
		if one.Against == Absent {
			message = "a " + what + " exists already"
		}
		return stored.conflict(message, jsonOf(one.Value))
	}
	return nil
}

// conflict is CONFLICT with what is stored and what was asked for instead.
func (o Object) conflict(message string, asked any) error {
	return fault.New(fault.Conflict, "%s", message).With("kind", o.Kind).With("name", o.Name).With("version", o.Version).
		With("stored", jsonOf(o.Value)).With("asked", asked)
}

// words is the name of a kind in a sentence.
func words(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// nameIn is the name that an edit's value gives its object.
func (e *Edit) nameIn(k kind) string {
	if k.id == "" || e.Value == nil {
		return ""
	}
	if v := e.Value.Member(k.id); v.Kind == Text {
		return v.Text
	}
	return ""
}

func printableName(s string) string {
	if s == "" {
		return ""
	}
	return printable(s)
}

// jsonOf is a value for a message; what may be a secret is left out.
func jsonOf(v *Value) any {
	if v == nil {
		return nil
	}
	return v.without("password", "webhook_secret", "previous_webhook_secret", "secrets").json()
}

func (v *Value) without(keys ...string) *Value {
	if v.Kind != Mapping {
		return v
	}
	is := *v
	is.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m Member) bool { return slices.Contains(keys, m.Key.Text) })
	return &is
}
