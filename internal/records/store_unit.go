package records

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// ErrLost says that a unit of work lost a race: what it read by id is not what
// it was any more, or what it did can no longer be done. Nothing was changed;
// whoever began it may begin anew.
var ErrLost = errors.New("a record that the run used was changed meanwhile")

// Unit is work on records that takes effect as a whole or not at all: the
// changes of one run of a component or automation (decisions 2.31). As gives
// it as one viewer may use it, and several viewers may share in one unit. Reads
// by id see what the unit did so far, lists see what is stored. Commit does it
// all in one transaction.
//
// Each change is checked twice: at once, so that the run can deal with a
// refusal, and again in the transaction, where a refusal means a lost race. The
// created_at that a record has inside the unit is only near the one it gets.
//
// A Unit belongs to one goroutine.
type Unit struct {
	store  *Store
	config *access.Config
	h      db.Handle

	changes []change
	created bool
	read    map[ref]int64 // the version of each record that was read by id
	// records and users are those the unit changed, as they are in it; gone are
	// those it deleted, by the created_at they had.
	records map[ref]*row
	users   map[string]*user.User
	gone    map[ref]int64
}

// ref names a record.
type ref struct{ entity, id string }

// change is one change of a unit, to be done in its transaction on the records
// that are held there. needs says what it takes to hold the one it is about.
type change struct {
	ref
	needs need
	do    func(ctx context.Context, tx db.Tx, held map[ref]*row) error
}

// need is the viewer and the verb whose scope must reach a record; its session
// is nil for a record that the unit creates.
type need struct {
	session *Session
	rights  *access.EntityRights
	verb    access.Verb
}

// Begin starts a unit of work under a configuration.
func (s *Store) Begin(config *access.Config) *Unit {
	return &Unit{
		store: s, config: config, h: s.d.For(config.Tenant.ID),
		read: map[ref]int64{}, records: map[ref]*row{}, users: map[string]*user.User{}, gone: map[ref]int64{},
	}
}

// As returns the unit as viewer may use it. The viewer must be of the
// configuration that the unit began with.
func (u *Unit) As(viewer access.Viewer) *Part {
	if viewer.Config() != u.config {
		panic("records: a unit and its viewer have different configurations")
	}
	return &Part{u, u.store.As(viewer)}
}

// Changed reports whether there is anything to commit.
func (u *Unit) Changed() bool { return len(u.changes) > 0 }

// Commit does everything the unit did in one transaction, and also in the same,
// which may be nil and may run more than once. It fails with ErrLost, and with
// what also fails with.
func (u *Unit) Commit(ctx context.Context, also func(db.Tx) error) error {
	if len(u.changes) == 0 && also == nil {
		return nil
	}
	write := u.h.Write
	if u.created {
		write = u.h.WriteOrdered
	}
	return write(ctx, func(tx db.Tx) error {
		if err := u.replay(ctx, tx); err != nil {
			var refused *fault.Error
			if errors.As(err, &refused) || errors.Is(err, errStale) {
				return ErrLost // it was possible a moment ago
			}
			return err
		}
		if also == nil {
			return nil
		}
		return also(tx)
	})
}

// replay does the unit's changes in their order, on records that are as the
// run saw them.
func (u *Unit) replay(ctx context.Context, tx db.Tx) error {
	version, err := tenant.Fence(ctx, tx)
	if err != nil {
		return err
	}
	if version != u.config.Tenant.Version {
		return errStale
	}
	if u.created && len(u.read) > 0 && tx.Dialect().ForUpdate != "" {
		// Creations hold the tenant's clock to the end. Who takes it after records
		// waits for another node that waits for these records.
		if _, err := tenant.Tick(ctx, tx, 0); err != nil {
			return err
		}
	}
	held, err := u.hold(ctx, tx)
	if err != nil {
		return err
	}
	for _, c := range u.changes {
		if err := c.do(ctx, tx, held); err != nil {
			return err
		}
	}
	return nil
}

// hold locks what the unit changes and read, in the order of names, so that two
// units never wait for each other; ErrLost where a version is not the one read.
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

// holdOne locks one record and checks its version; nil where the unit creates it.
func (u *Unit) holdOne(ctx context.Context, tx db.Tx, r ref, n need) (*row, error) {
	was, read := u.read[r]
	if !read {
		return nil, nil
	}
	rec, err := &row{}, error(nil)
	switch {
	case r.entity == schema.UserEntity:
		var held *user.User
		if held, err = user.Lock(ctx, tx, r.id); err == nil {
			rec.version = held.UpdatedAt
		}
	case n.session != nil:
		rec, err = n.session.lock(ctx, tx, n.rights, r.id, n.verb)
		if err == nil && !rec.allowed {
			err = ErrLost
		}
	default:
		err = tx.Query(ctx, `SELECT version FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+tx.Dialect().ForShare,
			func(dbRow db.Row) error { rec.version = dbRow.Int(0); return nil }, r.entity, r.id)
	}
	if errors.Is(err, user.ErrUnknown) || err == nil && rec.version != was {
		err = ErrLost
	}
	return rec, err
}

// saw notes the version a record was read at; ErrLost when it was another before.
func (u *Unit) saw(r ref, version int64) error {
	if was, ok := u.read[r]; ok && was != version {
		return ErrLost
	}
	u.read[r] = version
	return nil
}

// forget clears every reference to a deleted record in records that are held
// in memory, as remove does in the database.
func forget(config *access.Config, records map[ref]*row, target ref) {
	for at, rec := range records {
		if rec == nil || rec.data == nil {
			continue
		}
		rec.data = without(config.Schema.Entity(at.entity), rec.data, target)
	}
}

// without is a record's data with no reference to target.
func without(e *schema.Entity, data []byte, target ref) []byte {
	values, found := stored(e, data), false
	for i, f := range e.Fields {
		if f.Type == schema.Reference && f.Target == target.entity && values[i] != nil && schema.Unquote(values[i]) == target.id {
			values[i], found = nil, true
		}
	}
	if !found {
		return data
	}
	return document(e, values, data)
}
