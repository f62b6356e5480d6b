package records

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// UnitSession is a unit of work as one viewer may use it. Its methods return
// the same results and errors as those of a Session, and change nothing before
// the unit's Commit.
type UnitSession struct {
	u *Unit
	s *Session
}

// Within makes a holder bound the answers. It returns the UnitSession.
func (p *UnitSession) Within(h Holder) *UnitSession {
	p.s.holder = h
	return p
}

// held returns rec unless the holder refuses it.
func (p *UnitSession) held(rec Record) (Record, error) {
	if err := p.s.hold(len(rec)); err != nil {
		return nil, err
	}
	return rec, nil
}

// Get reads one record as it is in the unit.
func (p *UnitSession) Get(ctx context.Context, entity, id string) (Record, error) {
	if entity == schema.UserEntity {
		return p.getUser(ctx, user.ID(id))
	}
	r, err := p.s.on(entity, access.Read)
	if err != nil {
		return nil, err
	}
	rec, err := p.find(ctx, r, id, access.Read)
	if err != nil {
		return nil, err
	}
	return p.held(render(nil, r, rec))
}

// List reads one page of what is stored, without the changes of the unit.
func (p *UnitSession) List(ctx context.Context, entity string, q Query) (Page, error) {
	return p.s.List(ctx, entity, q)
}

// May is Session.May.
func (p *UnitSession) May(entity string, verb access.Verb) error { return p.s.May(entity, verb) }

// find returns a record as it is in the unit, and whether verb reaches it. The
// caller may change the result.
func (p *UnitSession) find(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	at := ref{r.Entity.Name, id}
	if p.u.gone[at] {
		return nil, errUnseen
	}
	if rec := p.u.own(r.Entity, id); rec != nil {
		copied := *rec
		seen, err := p.reaches(ctx, r, access.Read, rec)
		if err == nil && !seen {
			err = errUnseen
		}
		if err != nil {
			return nil, err
		}
		copied.allowed, err = p.reaches(ctx, r, verb, rec)
		return &copied, err
	}
	rec, err := find(ctx, p.u.h, r, id, verb, "")
	if err != nil {
		return nil, err
	}
	if err := p.u.saw(at, rec.version); err != nil {
		return nil, err
	}
	rec.data = without(r.Entity, rec.data, p.u.gone)
	return rec, nil
}

// reaches is the visibility predicate for a record as it is in the unit. Shares
// do not change inside a unit, so it reads the stored ones.
func (p *UnitSession) reaches(ctx context.Context, r *access.EntityRights, verb access.Verb, rec *row) (bool, error) {
	scope := r.Scope(verb)
	if scope.All || rec.owner == scope.Owner || slices.Contains(scope.OwnerRoles, rec.ownerRole) {
		return true, nil
	}
	if len(scope.Rules) > 0 {
		values := stored(r.Entity, rec.data)
		for _, rule := range valueRules(p.u.config, r.Entity.Name) {
			if slices.Contains(scope.Rules, rule.StoredAs()) && matches(r.Entity, rule, values) {
				return true, nil
			}
		}
	}
	if rec.version == 0 || len(scope.SharedTo) == 0 {
		return false, nil
	}
	st := newStatement(`SELECT 1 FROM shares s WHERE s.tenant_id = $1 AND s.entity = $2 AND s.record_id = $3 AND s.principal IN `, r.Entity.StoredAs(), rec.id)
	st.list(scope.SharedTo)
	st.level(scope)
	found := false
	err := p.u.h.Query(ctx, st.String(), func(db.Row) error { found = true; return nil }, st.args...)
	return found, err
}

// visible is visibleFunc inside the unit.
func (p *UnitSession) visible(ctx context.Context, entity, id string) (bool, error) {
	at := ref{entity, id}
	if p.u.gone[at] {
		return false, nil
	}
	if p.u.records[at] == nil {
		return p.s.visible(ctx, p.u.h, entity, id)
	}
	r, err := p.s.viewer.On(entity)
	if err != nil || !r.May(access.Read) {
		return false, nil //nolint:nilerr // an entity type the viewer may not read holds nothing they may see
	}
	rec := p.u.own(r.Entity, id)
	return p.reaches(ctx, r, access.Read, rec)
}

// Create adds a record.
func (p *UnitSession) Create(ctx context.Context, entity string, members []Member) (Record, error) {
	if entity == schema.UserEntity {
		return nil, errUsersClosed
	}
	s := p.s
	r, err := s.on(entity, access.Create)
	if err != nil {
		return nil, err
	}
	in, err := checkCreate(r, members)
	if err != nil {
		return nil, err
	}
	if err := s.checkOwner(in, s.viewer.UserID()); err != nil {
		return nil, err
	}
	if err := checkReferences(ctx, r.Entity, in, p.visible); err != nil {
		return nil, err
	}
	if err := in.err(); err != nil {
		return nil, err
	}
	now := s.store.clock.Now()
	rec := &row{
		id: clock.NewID(now), owner: s.viewer.UserID(), createdAt: clock.Micros(now), updatedAt: clock.Micros(now),
		data: document(r.Entity, in.values, nil),
	}
	if in.owner != "" {
		rec.owner = in.owner
	}
	if rec.ownerRole, err = s.roleOf(ctx, p.u.h, rec.owner); err != nil {
		return nil, err
	}
	if err := p.checkUnique(ctx, r.Entity, rec, in.values); err != nil {
		return nil, err
	}
	out, err := p.held(s.show(r, rec))
	if err != nil {
		return nil, err
	}
	made := &creation{s: s, e: r.Entity, id: rec.id, owner: rec.owner, values: in.values, data: rec.data}
	if err := p.u.add(change{ref: ref{entity, rec.id}, creation: made}, len(rec.data)); err != nil {
		return nil, err
	}
	p.u.put(r.Entity, rec)
	return out, nil
}

// Update merges members into a record.
func (p *UnitSession) Update(ctx context.Context, entity, id string, members []Member) (Record, error) {
	if entity == schema.UserEntity {
		return p.updateUser(ctx, user.ID(id), members)
	}
	s := p.s
	r, err := s.on(entity, access.Update)
	if err != nil {
		return nil, err
	}
	rec, err := p.find(ctx, r, id, access.Update)
	if err != nil {
		return nil, err
	}
	if !rec.allowed {
		return nil, errNotYours("change")
	}
	before := len(rec.data)
	edit, err := s.patched(ctx, r, rec, members, p.visible)
	if err != nil || len(members) == 0 {
		if err != nil {
			return nil, err
		}
		return p.held(s.show(r, rec))
	}
	if err := p.checkUnique(ctx, r.Entity, rec, edit.changed); err != nil {
		return nil, err
	}
	s.apply(r, rec, edit)
	if edit.owner != "" && edit.owner != rec.owner {
		if rec.ownerRole, err = s.roleOf(ctx, p.u.h, edit.owner); err != nil {
			return nil, err
		}
		rec.owner = edit.owner
	}
	out, err := p.held(s.show(r, rec))
	if err != nil {
		return nil, err
	}
	// The unit has checked the system members; the commit sets them again.
	rest := slices.DeleteFunc(slices.Clone(members), func(m Member) bool {
		return m.Name == "id" || m.Name == "created_at" || m.Name == "updated_at"
	})
	at := ref{entity, id}
	c := change{ref: at, needs: p.need(r, rec, access.Update), do: func(ctx context.Context, rp *replay) error {
		return s.merge(ctx, rp.tx, r, rp.record(r.Entity, at), rest)
	}}
	if err := p.u.add(c, max(before, len(rec.data))); err != nil {
		return nil, err
	}
	p.u.put(r.Entity, rec)
	return out, nil
}

// Delete removes a record.
func (p *UnitSession) Delete(ctx context.Context, entity, id string) error {
	if entity == schema.UserEntity {
		return errUsersClosed
	}
	s := p.s
	r, err := s.on(entity, access.Delete)
	if err != nil {
		return err
	}
	rec, err := p.find(ctx, r, id, access.Delete)
	if err != nil {
		return err
	}
	if !rec.allowed {
		return errNotYours("delete")
	}
	at := ref{entity, id}
	c := change{ref: at, needs: p.need(r, rec, access.Delete), do: func(ctx context.Context, rp *replay) error {
		// A server clears what is left of the references: a run does not wait
		// for it.
		if _, err := s.remove(ctx, rp.tx, r.Entity, rp.record(r.Entity, at)); err != nil {
			return err
		}
		rp.gone[at] = true
		return nil
	}}
	if err := p.u.add(c, len(rec.data)); err != nil {
		return err
	}
	p.u.drop(r.Entity, rec)
	return nil
}

// need returns what is required to hold a record for a change: nothing if the
// unit created it.
func (p *UnitSession) need(r *access.EntityRights, rec *row, verb access.Verb) need {
	if rec.version == 0 {
		return need{}
	}
	return need{p.s, r, verb}
}

func errNotYours(word string) error {
	return fault.New(fault.Forbidden, "you may not %s this record", word)
}

// checkUnique returns a CONFLICT that names every field whose value another
// record has in the unit.
func (p *UnitSession) checkUnique(ctx context.Context, e *schema.Entity, rec *row, values []jsontext.Value) error {
	taken := map[string]string{}
	for i, f := range e.Fields {
		key, ok := indexKey(f, values[i])
		if !ok || !f.Unique {
			continue
		}
		free, err := p.free(ctx, e, f, key, rec)
		if err != nil {
			return err
		}
		if !free {
			taken[f.Name] = "the value is taken"
		}
	}
	if len(taken) > 0 {
		return conflict(taken)
	}
	return nil
}

// free reports whether no record but rec has a value in the unit.
func (p *UnitSession) free(ctx context.Context, e *schema.Entity, f *schema.Field, key string, rec *row) (bool, error) {
	v := &p.u.unique
	if id, taken := v.owner[uniqueValue{e.Name, f.Name, key}]; taken && id != rec.id {
		return false, nil
	}
	free := true
	err := p.u.h.Query(ctx, `SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3
		AND value = $4 AND reach = '' AND is_unique = 1`, func(row db.Row) error {
		own := rec.version != 0 && row.Int(0) == rec.createdAt
		free = free && (own || v.stale[row.Int(0)])
		return nil
	}, e.StoredAs(), f.StoredAs(), key)
	return free, err
}

// ---- users ----

func (p *UnitSession) findUser(ctx context.Context, id user.ID) (*user.User, error) {
	if !p.s.mayMeet(id) {
		return nil, errNoUser
	}
	if u := p.u.users[id]; u != nil {
		copied := *u
		return &copied, nil
	}
	u, err := user.ByID(ctx, p.u.h, id)
	if errors.Is(err, user.ErrUnknown) {
		return nil, errNoUser
	}
	if err != nil {
		return nil, err
	}
	return u, p.u.saw(ref{schema.UserEntity, string(id)}, u.UpdatedAt)
}

func (p *UnitSession) getUser(ctx context.Context, id user.ID) (Record, error) {
	r, err := p.s.onUsers(access.Read)
	if err != nil {
		return nil, err
	}
	u, err := p.findUser(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.held(renderUser(nil, r, u))
}

func (p *UnitSession) updateUser(ctx context.Context, id user.ID, members []Member) (Record, error) {
	s := p.s
	r, err := s.onUsers(access.Update)
	if err != nil {
		return nil, err
	}
	u, err := p.findUser(ctx, id)
	if err != nil {
		return nil, err
	}
	before := len(u.Custom)
	if err := s.editUser(r, u, members); err != nil || len(members) == 0 {
		if err != nil {
			return nil, err
		}
		return p.held(showUser(r, u))
	}
	out, err := p.held(showUser(r, u))
	if err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return m.Name == "updated_at" })
	c := change{ref: ref{schema.UserEntity, string(id)}, do: func(ctx context.Context, rp *replay) error {
		held, err := lockUser(ctx, rp.tx, id)
		if err != nil {
			return err
		}
		return s.changeUser(ctx, rp.tx, r, held, rest)
	}}
	if err := p.u.add(c, max(before, len(u.Custom))); err != nil {
		return nil, err
	}
	p.u.users[id] = u
	return out, nil
}
