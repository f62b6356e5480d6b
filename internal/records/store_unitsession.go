package records

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// UnitSession is a unit of work for one viewer. Its methods return the same
// results and errors as those of a Session, and change nothing before the
// unit's Commit. In addition, methods that read by id or change records return
// ErrLost when an earlier read of the record saw another version, and
// EXECUTION_ERROR or OVERLOADED at the limits of a unit.
type UnitSession struct {
	u *Unit
	s *Session
	// reached keeps what reaches has found, for as long as nothing but creations follow.
	// nil keeps nothing.
	reached map[reach]bool
}

// reach is a question of reaches.
type reach struct {
	ref
	verb access.Verb
}

// Within makes a holder bound the answers. It returns the UnitSession.
func (p *UnitSession) Within(h Holder) *UnitSession {
	p.s.holder = h
	return p
}

// Get reads one record as it is in the unit.
func (p *UnitSession) Get(ctx context.Context, entity, id string) (Record, error) {
	r, err := p.s.rights(entity, id, access.Read)
	if err != nil {
		return nil, err
	}
	if entity == schema.UserEntity {
		u, err := p.findUser(ctx, user.ID(id))
		if err != nil {
			return nil, err
		}
		return p.s.held(renderUser(nil, r, u))
	}
	rec, err := p.find(ctx, r, id, access.Read)
	if err != nil {
		return nil, err
	}
	return p.s.held(render(nil, r, rec))
}

// List reads one page of the stored records, without the changes of the unit.
func (p *UnitSession) List(ctx context.Context, entity string, q Query) (Page, error) {
	return p.s.List(ctx, entity, q)
}

// May is Session.May.
func (p *UnitSession) May(entity string, verb access.Verb) error { return p.s.May(entity, verb) }

// Create adds a record.
func (p *UnitSession) Create(ctx context.Context, entity string, members []Member) (Record, error) {
	r, err := p.s.rights(entity, "", access.Create)
	if err != nil {
		return nil, err
	}
	in, err := checkCreate(r, members)
	if err != nil {
		return nil, err
	}
	if err := p.s.draft(ctx, r, in, p.reaches); err != nil {
		return nil, err
	}
	return p.s.create(ctx, p, r, in)
}

// Update merges members into a record.
func (p *UnitSession) Update(ctx context.Context, entity, id string, members []Member) (Record, error) {
	r, err := p.s.rights(entity, id, access.Update)
	if err != nil {
		return nil, err
	}
	return p.s.update(ctx, p, r, id, members, checkUpdate(r, members))
}

// Delete removes a record.
func (p *UnitSession) Delete(ctx context.Context, entity, id string) error {
	r, err := p.s.rights(entity, id, access.Delete)
	if err != nil {
		return err
	}
	return p.s.remove(ctx, p, r, id)
}

// ---- view: what is stored, under what the unit has changed ----

func (p *UnitSession) find(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	at := ref{r.Entity.Name, id}
	if p.u.gone[at] {
		return nil, errUnseen
	}
	if rec := p.u.own(r.Entity, id); rec != nil {
		copied := *rec
		seen, err := p.inScope(ctx, r.Entity, r.Scope(access.Read), rec)
		if err == nil && !seen {
			err = errUnseen
		}
		if err != nil {
			return nil, err
		}
		copied.allowed, err = p.inScope(ctx, r.Entity, r.Scope(verb), rec)
		return &copied, err
	}
	rec, err := p.findStored(ctx, r, id, verb)
	if err != nil {
		return nil, err
	}
	if err := p.u.saw(at, rec.version); err != nil {
		return nil, err
	}
	rec.data = without(r.Entity, rec.data, p.u.gone)
	return rec, nil
}

// findStored is find for a record that the unit did not change. What it changed
// above the record counts.
func (p *UnitSession) findStored(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	if !p.u.touched(r.Scope(access.Read)) && !p.u.touched(r.Scope(verb)) {
		return find(ctx, p.u.q, r, id, verb, "")
	}
	rec, err := findRow(ctx, p.u.q, r.Entity, id, "")
	if err != nil {
		return nil, err
	}
	seen, err := p.inScope(ctx, r.Entity, r.Scope(access.Read), rec)
	if err == nil && !seen {
		err = errUnseen
	}
	if err != nil {
		return nil, err
	}
	rec.allowed, err = p.inScope(ctx, r.Entity, r.Scope(verb), rec)
	return rec, err
}

// touched reports whether the unit changed a record of a type above those that
// a scope reaches.
func (u *Unit) touched(scope *access.Scope) bool {
	for p := scope.ByParent(); p != nil; p = p.Scope.ByParent() {
		if u.types[p.Entity.Name] {
			return true
		}
	}
	return false
}

// parentInScope reports whether a record's parent, as it is in the unit, is in
// a scope.
func (p *UnitSession) parentInScope(ctx context.Context, of *access.Parent, rec *row) (bool, error) {
	id := parentID(of.Of, rec.data)
	if id == "" || p.u.gone[ref{of.Entity.Name, id}] {
		return false, nil
	}
	parent := p.u.own(of.Entity, id)
	if parent == nil && !p.u.touched(of.Scope) {
		return inScope(ctx, p.u.q, of.Scope, of.Entity, id)
	}
	if parent == nil {
		var err error
		if parent, err = findRow(ctx, p.u.q, of.Entity, id, ""); err != nil {
			return false, ignoreUnseen(err)
		}
	}
	return p.inScope(ctx, of.Entity, of.Scope, parent)
}

// inScope reports whether a scope reaches a record that the unit changed. Of
// the ways that depend on other tables, a unit changes only shares, so the
// others are checked on the stored record.
func (p *UnitSession) inScope(ctx context.Context, e *schema.Entity, scope *access.Scope, rec *row) (bool, error) {
	if of := scope.ByParent(); of != nil {
		return p.parentInScope(ctx, of, rec)
	}
	st := standing{owner: rec.owner, ownerRole: rec.ownerRole}
	if st.reachedBy(scope, ofRow) {
		return true, nil
	}
	if rules := valueRules(p.u.config, e.Name); len(rules) > 0 {
		st.rules = holding(e, rules, rec.id, stored(e, rec.data))
	}
	if st.reachedBy(scope, ofValues) {
		return true, nil
	}
	others, reached := p.u.byShares(ref{e.Name, rec.id}, waysOf(scope, ofOthers))
	if reached {
		return true, nil
	}
	if rec.version == 0 || len(others.Ways) == 0 {
		return false, nil
	}
	return inScope(ctx, p.u.q, others, e, rec.id)
}

func (p *UnitSession) reaches(ctx context.Context, entity, id string, verb access.Verb) (bool, error) {
	at := reach{ref{entity, id}, verb}
	if is, known := p.reached[at]; known {
		return is, nil
	}
	is, err := p.reachesNow(ctx, entity, id, verb)
	if err == nil && p.reached != nil {
		p.reached[at] = is
	}
	return is, err
}

func (p *UnitSession) reachesNow(ctx context.Context, entity, id string, verb access.Verb) (bool, error) {
	if entity == schema.UserEntity {
		return p.s.reaches(ctx, p.u.q, entity, id, verb)
	}
	if p.u.gone[ref{entity, id}] {
		return false, nil
	}
	r, err := p.s.viewer.On(entity)
	if err != nil || !r.May(access.Read) || !r.May(verb) {
		return false, nil //nolint:nilerr // an entity type the viewer may not read holds nothing they may see
	}
	rec := p.u.own(r.Entity, id)
	switch {
	case rec == nil && !p.u.touched(r.Scope(verb)):
		return p.s.reaches(ctx, p.u.q, entity, id, verb)
	case rec == nil:
		if rec, err = findRow(ctx, p.u.q, r.Entity, id, ""); err != nil {
			return false, ignoreUnseen(err)
		}
	}
	return p.inScope(ctx, r.Entity, r.Scope(verb), rec)
}

// ignoreUnseen returns nil for errUnseen.
func ignoreUnseen(err error) error {
	if errors.Is(err, errUnseen) {
		return nil
	}
	return err
}

func (p *UnitSession) fresh(context.Context) (*row, error) {
	return newRow(clock.Micros(p.s.store.clock.Now()), 0), nil
}

func (p *UnitSession) own(ctx context.Context, e *schema.Entity, rec *row, owner user.ID) (err error) {
	isNew := rec.owner == ""
	rec.owner = owner
	rec.ownerRole, err = p.s.roleOf(ctx, p.u.q, e, owner, isNew)
	return err
}

func (p *UnitSession) free(ctx context.Context, e *schema.Entity, f *schema.Field, key string, rec *row) (bool, error) {
	v := &p.u.unique
	if id, taken := v.owner[uniqueValue{e.Name, f.Name, key}]; taken && id != rec.id {
		return false, nil
	}
	if has, known := p.u.known[uniqueValue{e.Name, f.Name, key}]; known {
		own := rec.version != 0 && has.createdAt == rec.createdAt
		return own || has.id == "" || v.stale[has.createdAt], nil
	}
	free := true
	err := p.u.q.Query(ctx, `SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3
		AND value = $4 AND reach = '' AND is_unique = 1`, func(row db.Row) error {
		own := rec.version != 0 && row.Int(0) == rec.createdAt
		free = free && (own || v.stale[row.Int(0)])
		return nil
	}, e.StoredAs(), f.StoredAs(), key)
	return free, err
}

// put adds a change to the unit, which repeats the checks of a patch when it is
// committed, against the records stored at that time. What the body says by itself it
// does not check again: the commit is under the same configuration.
func (p *UnitSession) put(ctx context.Context, r *access.EntityRights, rec *row, e *patch) error {
	at := ref{r.Entity.Name, rec.id}
	c, size := change{ref: at}, len(rec.data)
	if e.was.values == nil {
		c.creation = &creation{s: p.s, e: r.Entity, id: rec.id, owner: rec.owner, values: e.after, data: rec.data}
	} else {
		size = max(size, len(e.was.data))
		body := e.in.timeless()
		c.needs = p.need(r, rec, access.Update)
		c.do = func(ctx context.Context, rp *replay) error {
			v, rec := &txView{s: p.s, tx: rp.tx, indexing: &rp.indexing}, rp.record(r.Entity, at)
			e, err := p.s.edit(ctx, v, r, rec, body)
			if err != nil || e == nil {
				return err
			}
			return v.put(ctx, r, rec, e)
		}
	}
	if err := p.u.add(c, size); err != nil {
		return err
	}
	p.u.put(r.Entity, rec)
	return nil
}

// timeless returns what the commit of a unit checks again: all but the times, which the
// unit has checked.
func (in *input) timeless() *input {
	in = in.again()
	in.given = maps.Clone(in.given)
	delete(in.given, "created_at")
	delete(in.given, "updated_at")
	return in
}

// timeless returns members without the times. Of a body that has nothing else it is the
// id, which is no empty body.
func timeless(members []Member, id string) []Member {
	if members = except(members, "created_at", "updated_at"); len(members) > 0 {
		return members
	}
	return []Member{{Name: "id", Value: jsontext.Value(`"` + id + `"`)}}
}

// except returns members without those of the given names.
func except(members []Member, names ...string) []Member {
	return slices.DeleteFunc(slices.Clone(members), func(m Member) bool { return slices.Contains(names, m.Name) })
}

func (p *UnitSession) drop(_ context.Context, r *access.EntityRights, rec *row) error {
	at := ref{r.Entity.Name, rec.id}
	c := change{ref: at, needs: p.need(r, rec, access.Delete), do: func(ctx context.Context, rp *replay) error {
		v := &txView{s: p.s, tx: rp.tx, dropped: rp.dropped, cleared: rp.cleared, indexing: &rp.indexing}
		if err := v.drop(ctx, r, rp.record(r.Entity, at)); err != nil {
			return err
		}
		rp.dropped, rp.cleared = v.dropped, v.cleared
		// A server clears the remaining references: a run does not wait for it.
		rp.u.left = append(rp.u.left, v.left...)
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
	// What the unit changes above the record decides, too.
	return need{session: p.s, rights: r, verb: verb, late: p.u.touched(r.Scope(access.Read)) || p.u.touched(r.Scope(verb))}
}

func (p *UnitSession) findUser(ctx context.Context, id user.ID) (*user.User, error) {
	if u := p.u.users[id]; u != nil {
		copied := *u
		return &copied, nil
	}
	u, err := user.ByID(ctx, p.u.q, id)
	if err != nil {
		return nil, unseen(err)
	}
	return u, p.u.saw(ref{schema.UserEntity, string(id)}, u.UpdatedAt)
}

func (p *UnitSession) putUser(_ context.Context, r *access.EntityRights, u *user.User, before int, members []Member) error {
	members = timeless(members, string(u.ID))
	c := change{ref: ref{schema.UserEntity, string(u.ID)}, do: func(ctx context.Context, rp *replay) error {
		v := &txView{s: p.s, tx: rp.tx}
		held, err := v.findUser(ctx, u.ID)
		if err != nil {
			return err
		}
		if err := p.s.editUser(ctx, v, r, held, members); err != nil {
			return err
		}
		copied := *held
		rp.users[u.ID] = &copied
		return user.UpdateProfile(ctx, rp.tx, held)
	}}
	if err := p.u.add(c, max(before, len(u.Custom))); err != nil {
		return err
	}
	p.u.managed = p.u.managed || managing(r.Entity, members)
	p.u.users[u.ID] = u
	return nil
}
