package records

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Commit makes all changes of the unit in one transaction. It calls also in
// that transaction, if not nil, possibly more than once. It returns ErrLost,
// CONFLICT and EXECUTION_ERROR beyond the bounds of index rows (contract V4), the
// error of also, or ctx's error; in that case nothing was changed.
func (u *Unit) Commit(ctx context.Context, also func(db.Tx) error) error {
	if len(u.changes) == 0 && also == nil {
		return nil
	}
	write := u.h.Write
	if u.created > 0 {
		write = u.h.WriteOrdered
	}
	err := write(ctx, func(tx db.Tx) error {
		failpoint.At("commit.begun")
		if err := u.replayed(ctx, tx); err != nil || also == nil {
			return err
		}
		return also(tx)
	})
	u.committed(err)
	return err
}

// replayed is replay, with ErrLost for every refusal: the changes were possible
// when they were added to the unit. Their index rows are counted in the replay alone.
func (u *Unit) replayed(ctx context.Context, tx db.Tx) error {
	err := u.replay(ctx, tx)
	if errors.Is(err, errIndexed) || errors.Is(err, errEntries) {
		return err
	}
	if errors.Is(err, errStale) {
		return ErrReconfigured
	}
	var refused *fault.Error
	if errors.As(err, &refused) || errors.Is(err, db.ErrUnique) {
		return ErrLost
	}
	return err
}

// committed must be called with the error of the transaction of a replay.
func (u *Unit) committed(err error) {
	if err == nil && u.managed {
		u.store.dir.Forget() // the users' viewers
	}
}

// replay is the transaction that makes a unit's changes.
type replay struct {
	u     *Unit
	tx    db.Tx
	held  map[ref]*row           // the records that the unit reads, changes or creates
	users map[user.ID]*user.User // those that were changed
	gone  map[ref]bool           // the records deleted so far
	kept  map[ref]bool           // records that are referred to: they exist and are locked
	roles map[owns]string
	tick  int64 // the created_at of the next record
	next  creations
	// unwritten are the records in next. parents are those under which this
	// transaction may create records since the last other change.
	unwritten map[ref]bool
	parents   map[underParent]bool
	// dropped and cleared are what the deletions took with them (txView).
	dropped, cleared load
	indexing         indexing
}

// underParent is a session that creates records of a type under a parent.
type underParent struct {
	s      *Session
	entity string
	id     string
}

// write writes the creations that wait.
func (r *replay) write(ctx context.Context) error {
	clear(r.unwritten)
	return r.next.write(ctx, r.tx)
}

// do makes a change other than a creation.
func (r *replay) do(ctx context.Context, c change) error {
	clear(r.parents)
	if n := c.needs; n.late {
		for _, verb := range []access.Verb{access.Read, n.verb} {
			if ok, err := n.session.reaches(ctx, r.tx, c.entity, c.id, verb); err != nil || !ok {
				return errors.Join(err, ErrLost)
			}
		}
	}
	return c.do(ctx, r)
}

// below holds the parent of a record that is created, and checks that it may be.
func (r *replay) below(ctx context.Context, c *creation) error {
	f := c.e.Controller()
	under := underParent{s: c.s, entity: c.e.Name}
	if f != nil {
		under.id = refersTo(c.values[f.Index])
	}
	config := c.s.viewer.Config()
	if len(config.Lineages(c.e.StoredAs())) == 0 || f != nil && r.parents[under] {
		return nil
	}
	if len(r.unwritten) > 0 {
		if err := r.write(ctx); err != nil {
			return err
		}
	}
	if err := holdParents(ctx, r.tx, config, c.e, nil, c.data); err != nil {
		return err
	}
	if f != nil {
		if err := checkParent(ctx, f, under.id, (&txView{s: c.s, tx: r.tx}).reaches); err != nil {
			return err
		}
		r.parents[under] = len(config.Lineages(c.e.StoredAs())) == 1
	}
	return follow(ctx, r.tx, config, c.e, nil, nil, c.data)
}

// owns is an entity type and an owner of some of its records.
type owns struct {
	entity string
	owner  user.ID
}

// replay makes the unit's changes in their order, on records that are as the
// run saw them. Every statement fails once ctx has ended.
func (u *Unit) replay(ctx context.Context, tx db.Tx) error {
	version, err := tenant.Fence(ctx, tx)
	if err != nil {
		return err
	}
	if version != u.config.Tenant.Version {
		return errStale
	}
	r := &replay{
		u: u, tx: tx, users: map[user.ID]*user.User{}, gone: map[ref]bool{}, kept: map[ref]bool{}, roles: map[owns]string{},
		unwritten: map[ref]bool{}, parents: map[underParent]bool{}, indexing: indexing{bounded: true},
	}
	if u.created > 0 {
		// Creations hold the tenant's clock to the end. A transaction that took
		// it after locking records could wait for another node that waits for
		// these records.
		if r.tick, err = tenant.Ticks(ctx, tx, clock.Micros(u.store.clock.Now()), u.created); err != nil {
			return err
		}
	}
	if r.held, err = u.hold(ctx, tx); err != nil {
		return err
	}
	u.after, u.left = make([]written, len(u.changes)), nil
	for i, c := range u.changes {
		if c.creation != nil {
			err = r.create(ctx, c.creation)
		} else if err = r.write(ctx); err == nil {
			err = r.do(ctx, c)
		}
		if err != nil {
			return err
		}
		u.after[i] = r.written(c.ref)
	}
	if err := r.write(ctx); err != nil || !u.managed {
		return err
	}
	return tenant.RaisePeople(ctx, tx) // last: others wait for it
}

// written returns a record or user as it is at this point of the replay.
func (r *replay) written(at ref) written {
	if at.entity == schema.UserEntity {
		return written{user: r.users[user.ID(at.id)]}
	}
	rec := r.held[at]
	if rec == nil || r.gone[at] {
		return written{}
	}
	copied := *rec
	return written{rec: &copied}
}

// record returns a record that the unit read or created, in its state at this
// point of the replay.
func (r *replay) record(e *schema.Entity, at ref) *row {
	rec := r.held[at]
	rec.data = without(e, rec.data, r.gone)
	return rec
}

// creation is a checked record that a unit creates.
type creation struct {
	s      *Session
	e      *schema.Entity
	id     string
	owner  user.ID
	values []jsontext.Value // by schema.Field.Index
	data   jsontext.Value
}

// create makes a creation, like txView.put. The record is written together with
// those that follow. The unique index checks its values.
func (r *replay) create(ctx context.Context, c *creation) error {
	role, known := r.roles[owns{c.e.Name, c.owner}]
	if !known {
		var err error
		if role, err = c.s.roleOf(ctx, r.tx, c.e, c.owner, true); err != nil {
			return err
		}
		r.roles[owns{c.e.Name, c.owner}] = role
	}
	if err := r.below(ctx, c); err != nil {
		return err
	}
	if err := r.holdReferences(ctx, c); err != nil {
		return err
	}
	rec := &row{id: c.id, owner: c.owner, ownerRole: role, createdAt: r.tick, updatedAt: r.tick, version: 1, data: c.data}
	r.tick++
	r.held[ref{c.e.Name, c.id}] = rec
	rows := r.next.add(c, rec)
	if rows > maxEntries {
		return errEntries
	}
	if err := r.indexing.add(rows); err != nil {
		return err
	}
	r.unwritten[ref{c.e.Name, c.id}] = true
	if !r.next.full() {
		return nil
	}
	return r.write(ctx)
}

// holdReferences skips the package's holdReferences where this transaction
// already holds every record that is referred to.
func (r *replay) holdReferences(ctx context.Context, c *creation) error {
	var to []ref
	held := true
	for i, f := range c.e.Fields {
		if !f.Refers() || c.values[i] == nil || schema.IsNull(c.values[i]) {
			continue
		}
		at := ref{f.Target, schema.Unquote(c.values[i])}
		if r.gone[at] {
			return ErrLost
		}
		held = held && (r.kept[at] || r.held[at] != nil)
		to = append(to, at)
	}
	if held {
		return nil
	}
	if err := holdReferences(ctx, r.tx, c.e, c.values); err != nil {
		return err
	}
	for _, at := range to {
		r.kept[at] = true
	}
	return nil
}

// hold locks what the unit reads and changes, in the order of names, so that
// two units never deadlock. It returns ErrLost where a version is not the one
// that was read.
func (u *Unit) hold(ctx context.Context, tx db.Tx) (map[ref]*row, error) {
	needs := map[ref]need{}
	for r := range u.read {
		needs[r] = need{}
	}
	for _, c := range u.changes {
		if had, ok := needs[c.ref]; !ok || had.session == nil {
			needs[c.ref] = c.needs
		}
	}
	refs := make([]ref, 0, len(needs))
	for r := range needs {
		refs = append(refs, r)
	}
	slices.SortFunc(refs, func(a, b ref) int {
		if a.entity != b.entity {
			return strings.Compare(a.entity, b.entity)
		}
		return strings.Compare(a.id, b.id)
	})
	held := map[ref]*row{}
	for _, r := range refs {
		rec, err := u.holdOne(ctx, tx, r, needs[r])
		if err != nil {
			return nil, err
		}
		held[r] = rec
	}
	return held, nil
}

// holdOne locks one record and checks its version. It returns nil for a record
// that the unit creates.
func (u *Unit) holdOne(ctx context.Context, tx db.Tx, r ref, n need) (*row, error) {
	was, read := u.read[r]
	if !read {
		return nil, nil
	}
	rec, err := &row{}, error(nil)
	switch {
	case r.entity == schema.UserEntity:
		var held *user.User
		if held, err = user.Lock(ctx, tx, user.ID(r.id)); err == nil {
			rec.version = held.UpdatedAt
		}
	case n.late:
		rec, err = findRow(ctx, tx, n.rights.Entity, r.id, tx.Dialect().ForUpdate)
	case n.session != nil:
		rec, err = (&txView{s: n.session, tx: tx}).find(ctx, n.rights, r.id, n.verb)
		if err == nil && !rec.allowed {
			err = ErrLost
		}
	default:
		e := u.config.Schema.Entity(r.entity)
		err = tx.Query(ctx, `SELECT version FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+tx.Dialect().ForShare,
			func(dbRow db.Row) error { rec.version = dbRow.Int(0); return nil }, e.StoredAs(), r.id)
	}
	if errors.Is(err, user.ErrUnknown) || err == nil && rec.version != was {
		err = ErrLost
	}
	return rec, err
}
