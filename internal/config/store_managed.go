package config

import (
	"slices"

	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// checkManaged finds managed fields of users that name records which do not exist.
func (w *writer) checkManaged() error {
	p := w.p
	for _, key := range sortedKeys(p.managed) {
		for _, m := range p.managed[key] {
			f := p.schema.User.Field(m.field)
			if f == nil || !f.Refers() {
				continue
			}
			for _, id := range f.Elements(m.value) {
				there, err := records.Exists(w.ctx, w.tx, f.TargetAs(), schema.Unquote(id))
				if err != nil {
					return err
				}
				if !there {
					p.member(p.m.place("users", key, "managed"), "user "+printable(p.after.users[key].Email)+": managed",
						"field %s: there is no record %s of %s", m.field, show(schema.Unquote(id)), f.Target)
				}
			}
		}
	}
	return nil
}

// storeManaged gives a user the managed fields of the Spec under the names that
// they are stored under, which a new field may have got by this change.
func (w *writer) storeManaged(key string, is, was *user.User) error {
	values := w.p.managed[key]
	if len(values) == 0 {
		return nil
	}
	if w.fields == nil {
		s, err := schema.Load(w.ctx, w.tx)
		if err != nil {
			return err
		}
		w.fields = slices.Concat([]*schema.Field{}, s.User.Fields)
	}
	var before []byte
	if was != nil {
		before = was.Custom
	}
	is.Custom = setManaged(before, w.fields, values)
	return nil
}
