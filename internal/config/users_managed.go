package config

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
	"gatehouse/internal/wtf8"
)

// managedValue is the value of a managed field of a user. At first it is as it
// was given, later canonical; null clears it.
type managedValue struct {
	field string
	value jsontext.Value
	env   bool // value is the JSON of a text taken from the environment
	refer bool // the field names records
}

// managedMember is the member of a user with the values of managed fields. A
// field that is left out is kept. References are not exported: they name records,
// which are no configuration.
var managedMember = attr[userDecl]{
	key: "managed", kind: MapMember, doc: "values of managed fields, by field; null clears one, and one that is absent is kept",
	show: sparse,
	read: func(d *decoder, u *userDecl, v *Value) { u.managed = d.managed(v) },
	tell: func(u *userDecl, _ func(string) string) *Value {
		return managedOf(u, func(m managedValue) bool { return !m.refer })
	},
	past: func(u, _ *userDecl) *Value { return managedOf(u, func(managedValue) bool { return true }) },
}

func managedOf(u *userDecl, shows func(managedValue) bool) *Value {
	var list []pair
	for _, m := range u.managed {
		if shows(m) {
			list = append(list, pair{m.field, dataOf(m.value)})
		}
	}
	return flow(list...)
}

// dataOf is a canonical value of a field, a list of texts included.
func dataOf(v jsontext.Value) *Value {
	var texts []string
	if v.Kind() == '[' && json.Unmarshal(v, &texts) == nil {
		return strs(texts)
	}
	if v.Kind() == '{' || v.Kind() == '[' {
		return &Value{Kind: JSON, JSON: v}
	}
	return scalarOf(v)
}

func (d *decoder) managed(n *Value) (list []managedValue) {
	d.mapping(n, "managed", func(k, v *Value) {
		if value, env, ok := d.data(v); ok {
			list = append(list, managedValue{field: k.Text, value: value, env: env})
		}
	})
	return list
}

// data reads the value of a field: a scalar, nothing, or a list of texts.
func (d *decoder) data(v *Value) (value jsontext.Value, env, ok bool) {
	switch v.Kind {
	case Null:
		return schema.Null, false, true
	case JSON:
		return v.JSON, false, true
	case List:
		texts, before := []string{}, len(d.List)
		d.texts(v, "texts", func(_ *Value, text string) { texts = append(texts, text) })
		value, err := json.Marshal(texts)
		return value, false, err == nil && len(d.List) == before
	}
	s, ok := d.scalar(v, "a value of the field")
	if !ok || !d.storable(v, s.text) {
		return nil, false, false
	}
	if s.kind == Number || s.kind == Bool {
		if v.JSON == nil {
			d.bad(v, "expected a finite number")
		}
		return v.JSON, false, v.JSON != nil
	}
	return wtf8.AppendUTF8(nil, s.text), s.env, true
}

// manage gives a user the managed fields that a declaration has.
func (p *plan) manage(decl *userDecl, u *user.User) {
	for _, m := range decl.managed {
		place, what := p.m.place("users", decl.Key, "managed"), "user "+printable(decl.Email)+": managed"
		f := p.schema.User.Field(m.field)
		switch {
		case f == nil:
			p.member(place, what, "users have no field %s", show(m.field))
			continue
		case !f.Managed:
			p.member(place, what, "field %s is not managed: it is the user's own, and no part of a manifest", m.field)
			continue
		}
		value, reason := f.Canonical(m.value)
		if m.env {
			value, reason = f.ParseText(schema.Unquote(m.value))
		}
		if reason == "" && f.Required && schema.IsNull(value) {
			reason = "required"
		}
		if reason != "" {
			p.member(place, what, "field %s: %s", m.field, reason)
			continue
		}
		if p.managed == nil {
			p.managed = map[string][]managedValue{}
		}
		p.managed[decl.Key] = append(p.managed[decl.Key], managedValue{field: m.field, value: value})
	}
	u.Custom = setManaged(u.Custom, p.schema.User.Fields, p.managed[decl.Key])
}

// setManaged returns the stored custom fields of a user with other values of
// managed fields.
func setManaged(custom jsontext.Value, fields []*schema.Field, values []managedValue) jsontext.Value {
	if len(values) == 0 {
		return custom
	}
	stored := map[string]jsontext.Value{}
	if len(custom) > 0 {
		if err := json.Unmarshal(custom, &stored); err != nil {
			panic("config: stored custom fields are no object: " + err.Error())
		}
	}
	for _, m := range values {
		for _, f := range fields {
			switch {
			case f.Name != m.field:
			case schema.IsNull(m.value):
				delete(stored, f.MemberName())
			default:
				stored[f.MemberName()] = m.value
			}
		}
	}
	made, err := json.Marshal(stored, json.Deterministic(true))
	if err != nil {
		panic("config: custom fields cannot be encoded: " + err.Error())
	}
	return made
}

// declOf is a stored user with the values of managed fields.
func (s *state) declOf(u *user.User) *userDecl {
	decl := &userDecl{User: *u}
	values := access.ManagedFields(s.userFields, u.Custom)
	for _, f := range s.userFields {
		if v := values[f.Name]; v != nil {
			decl.managed = append(decl.managed, managedValue{field: f.Name, value: v, refer: f.Refers()})
		}
	}
	return decl
}
