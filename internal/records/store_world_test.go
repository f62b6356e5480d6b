package records_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// provision writes a world into a database.
func provision(t testing.TB, d *db.DB, w *world) *house {
	h := newHouse(t, d, clock.System(), tenant.ID(w.tenant))
	records.SiftAtMost(h.store, 2*len(w.things)) // no list needs more, and each way to one is taken
	h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
		if err := w.write(ctx, tx, change{types: true, rules: true, roles: true, sets: true}); err != nil {
			return err
		}
		for _, p := range w.people {
			u := p.row()
			var err error
			if u.CreatedAt, err = tenant.Tick(ctx, tx, 0); err != nil {
				return err
			}
			if err := user.Insert(ctx, tx, u); err != nil {
				return err
			}
		}
		return nil
	})
	for _, r := range w.things {
		h.put(r)
	}
	return h
}

// put creates r as a record, with its shares, and stores the record's id in r.
func (h *house) put(r *thing) {
	if r.parent != nil {
		r.moveTo(r.parent)
	}
	text := fmt.Sprintf(`{"owner_id": %q`, r.owner)
	for name, value := range r.data {
		text += fmt.Sprintf(`, %q: %s`, name, value)
	}
	made := h.create(h.system(), r.entity, text+"}")
	r.id, r.at = id(made), createdAt(made)
	h.putShares(r)
}

func (h *house) putShares(r *thing) {
	for _, s := range r.shares {
		if err := h.system().Share(context.Background(), r.entity, r.id, s.params()); err != nil {
			h.t.Fatalf("share %v: %v", s, describe(err))
		}
	}
}

func (s share) params() records.Share {
	p := records.Share{Principal: access.RolePrincipal(s.role), Access: level(s.edit)}
	if s.user != "" {
		p.Principal = access.UserPrincipal(user.ID(s.user))
	}
	return p
}

func level(edit bool) access.Level {
	if edit {
		return access.Edit
	}
	return access.ReadOnly
}

// follow applies one change of the world to the database.
func (h *house) follow(w *world, c change) {
	h.t.Helper()
	switch {
	case c.noShare != nil:
		if err := h.system().Unshare(context.Background(), c.shared.entity, c.shared.id, c.noShare.params().Principal); err != nil {
			h.t.Fatalf("unshare %v: %v", *c.noShare, describe(err))
		}
	case c.shared != nil:
		h.putShares(c.shared)
	case c.managed != nil:
		h.viewer(c.managed.id) // is kept, and made again
		text := "{"
		for i, name := range []string{"desk", "stages", "near"} {
			text += fmt.Sprintf("%s%q: %s", strings.Repeat(", ", min(i, 1)), name, cmp.Or(c.managed.managed[name], "null"))
		}
		h.update(h.system(), "user", c.managed.id, text+"}")
	case c.record != nil:
		text := fmt.Sprintf(`{"owner_id": %q`, c.record.owner)
		for _, name := range c.fields {
			text += fmt.Sprintf(`, %q: %s`, name, cmp.Or(c.record.data[name], "null"))
		}
		h.update(h.system(), c.record.entity, c.record.id, text+"}")
	default:
		h.configure(func(ctx context.Context, tx tenant.ConfigTx) error { return w.write(ctx, tx, c) })
	}
}

func (w *world) write(ctx context.Context, tx tenant.ConfigTx, c change) error {
	var errs []error
	for _, name := range w.roleNames() {
		if c.roles {
			errs = append(errs, access.PutRole(ctx, tx, access.Role{Name: name, Parent: w.parentOf[name]}))
		}
	}
	for _, e := range w.types {
		if c.types {
			errs = append(errs, schema.PutEntity(ctx, tx, e.schema()))
		}
	}
	if c.types {
		errs = append(errs, schema.PutUserFields(ctx, tx, []*schema.Field{
			{Name: "desk", Type: schema.Text, Managed: true},
			{Name: "stages", Type: schema.Multiselect, Options: []string{"new", "won", "lost"}, Managed: true},
			{Name: "near", Type: schema.Multireference, Target: w.near, Managed: true},
		}))
	}
	for name, s := range w.sets {
		if c.sets {
			errs = append(errs, access.PutPermissionSet(ctx, tx, s.product(name)))
		}
	}
	if c.noRule != nil {
		errs = append(errs, access.DeleteRule(ctx, tx, c.noRule.product().ID()))
	}
	for _, q := range w.rules {
		if c.rules {
			errs = append(errs, access.PutRule(ctx, tx, q.product()))
		}
	}
	if c.user != nil {
		config, err := access.Load(ctx, tx)
		if err != nil {
			return err
		}
		errs = append(errs, user.Update(ctx, tx, c.user.row()), records.ReassignRole(ctx, tx, config, user.ID(c.user.id), c.user.role))
	}
	return errors.Join(errs...)
}

func (p *person) row() *user.User {
	u := &user.User{
		ID: user.ID(p.id), Email: p.address(), Name: "n", Type: user.Internal, Owner: p.owner, Active: true, Role: p.role,
		Sets: p.sets,
	}
	values := map[string]jsontext.Value{}
	for name, value := range p.managed {
		values[name+"#managed"] = jsontext.Value(value)
	}
	custom, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	u.Custom = custom
	if p.external {
		u.Type = user.External
	}
	return u
}

func (e *recordType) schema() *schema.Entity {
	s := &schema.Entity{Name: e.name, Label: e.name, Sharing: schema.Sharing(e.sharing)}
	if e.controlled {
		s.ControlledBy = "parent"
	}
	for _, f := range e.fields {
		sf := &schema.Field{Name: f.name, Type: schema.Type(f.kind), Required: f.required, Indexed: f.indexed, Searchable: f.searchable}
		if sf.Type == schema.Reference {
			if sf.Target = schema.UserEntity; f.name == "parent" {
				sf.Target = e.parent
			}
		}
		if sf.Type == schema.Select {
			sf.Options = []string{"new", "won", "lost"}
		}
		s.Fields = append(s.Fields, sf)
	}
	return s
}

func (s *permSet) product(name string) *access.PermissionSet {
	p := &access.PermissionSet{Name: name, System: s.system, AllEntityAccess: s.all, Entities: map[string]access.EntityGrant{}}
	for entity, g := range s.entities {
		eg := access.EntityGrant{AssignOwner: g.assigns, Create: g.verbs[toCreate], Read: g.verbs[toRead], Update: g.verbs[toUpdate], Delete: g.verbs[toDelete],
			Fields: map[string]access.FieldGrant{}}
		for f, fg := range g.fields {
			eg.Fields[f] = access.FieldGrant{Read: fg.read, Edit: fg.edit}
		}
		p.Entities[entity] = eg
	}
	return p
}

func (q *rule) product() *access.SharingRule {
	r := &access.SharingRule{
		Entity: q.entity, OwnedByRole: q.ownedByRole, ShareWithRole: q.shareWith, ShareWith: access.Audience(q.audience), Access: level(q.edit),
	}
	for f, value := range q.where {
		r.Where = append(r.Where, access.Condition{Field: f, Value: jsontext.Value(value)})
	}
	for f, what := range q.viewer {
		r.Where = append(r.Where, access.Condition{Field: f, Viewer: what})
	}
	slices.SortFunc(r.Where, func(a, b access.Condition) int { return strings.Compare(a.Field, b.Field) })
	return r
}

// shown returns a record in the form in which the matrix compares it: declared
// fields and owner by value, members that the service sets by name only.
func shown(r []byte) string {
	var parts []string
	dec := jsontext.NewDecoder(strings.NewReader(string(r)))
	_, err := dec.ReadToken()
	for err == nil && dec.PeekKind() == '"' {
		name, _ := dec.ReadToken()
		key := name.String()
		var value jsontext.Value
		value, err = dec.ReadValue()
		if slices.Contains([]string{"id", "created_at", "updated_at"}, key) {
			value = nil
		}
		parts = append(parts, key+"="+string(value))
	}
	if err != nil {
		return err.Error()
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}
