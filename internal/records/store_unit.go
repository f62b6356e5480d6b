package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// ErrLost means that a unit of work lost a race: a record that it read by id
// has changed, or a change that it made is no longer possible. Nothing was
// changed; the caller may start again.
var ErrLost = errors.New("a record that the run used was changed meanwhile")

// ErrReconfigured is an ErrLost whose cause is no record, but a change of the tenant's
// configuration: what the unit may do was decided by the one before.
var ErrReconfigured = fmt.Errorf("%w: the tenant's configuration", ErrLost)

// Limits of one unit of work (contract X6). The time that its commit holds the
// database writer, and the memory used until then, must not depend on how long
// a flow loops.
const (
	// MaxChanged is how many changes a unit may make, each create, update,
	// delete and change of a share counted. MaxWritten is the total size of the
	// documents of all changes, in bytes. A change counts the larger of the
	// document before and after it: the commit reads what it replaces or
	// deletes, and keeps it in memory to the end.
	MaxChanged = 1000
	MaxWritten = 8 << 20
	// MaxRead is how many records it may read by id, including those it
	// changes: the unit keeps the version of each, and the commit locks each.
	MaxRead = 2 * MaxChanged
	// maxAllWritten bounds the documents that all units of a store hold until
	// their end. With the inputs that they were made from, they take about
	// three times as much memory.
	maxAllWritten = 128 << 20
)

var (
	errChanged = fault.New(fault.ExecutionError, "a run may change at most %d records (each create, update, delete, share and unshare counts)", MaxChanged)
	errWritten = fault.New(fault.ExecutionError,
		"a run may change at most %d MiB of records (the larger of what a record was and becomes, deleted ones too)", MaxWritten>>20)
	errRead   = fault.New(fault.ExecutionError, "a run may read at most %d records by their ids", MaxRead)
	errMemory = fault.New(fault.Overloaded, "Too much is being written. Try again soon.").After(time.Second)
)

// Unit is work on records that takes effect as a whole or not at all: the
// changes of one run of a component or automation (contract X1). As returns the
// unit for one viewer; several viewers may share one unit. Reads by id see the
// changes that the unit has made so far; lists see what is stored (contract
// X4). Commit does everything in one transaction. Close must be called at the
// end.
//
// Each change is checked twice: at once, so that the run can handle a refusal,
// and again in the transaction, where a refusal means a lost race. The
// created_at of a record inside the unit only approximates the one that it gets
// when it is committed.
//
// A change beyond MaxChanged or MaxWritten and a read beyond MaxRead are
// refused with EXECUTION_ERROR, and with OVERLOADED where all units together
// hold too much; earlier changes remain.
//
// A Unit must not be used by several goroutines at once.
type Unit struct {
	store  *Store
	config *access.Config
	h      db.Handle
	q      db.Querier // what is stored is read through it

	changes []change
	created int           // how many of the changes create a record
	written int64         // bytes of the changes' documents, taken from the store's budget
	read    map[ref]int64 // the version of each stored record that was read by id
	// records and users are those that the unit changed, as they are in it;
	// gone are those it deleted. own clears the references of a record in
	// records to one in gone.
	records map[ref]*row
	users   map[user.ID]*user.User
	gone    map[ref]bool
	types   map[string]bool // the entity types of records, gone and shares
	// shares are those that the unit made, changed or removed (without access),
	// by the stored principal. Their records are in records.
	shares map[ref]map[string]unitShare
	unique uniqueValues
	// known are stored values of unique fields that were looked up together.
	known map[uniqueValue]taken
	// managed says that the unit changes managed fields of users.
	managed bool
	// after are the records that each change left behind, and left is what its
	// deletions left to be done, once the unit was committed.
	after []written
	left  []access.Leftover
}

// written is what a change has written: a record or a user, none of both for a deletion.
type written struct {
	rec  *row
	user *user.User
}

// ref identifies a record.
type ref struct{ entity, id string }

// change is one change of a unit, to be made in its transaction: a creation, or
// do, which changes the records held there. needs says what is required to hold
// its record.
type change struct {
	ref
	needs    need
	creation *creation
	do       func(ctx context.Context, r *replay) error
}

// need is the viewer's session and the verb whose scope must reach a record.
// session is nil for a record that the unit creates.
type need struct {
	session *Session
	rights  *access.EntityRights
	verb    access.Verb
	// late is set when the scope must be asked at the change itself, not before
	// all changes.
	late bool
}

// Begin starts a unit of work under a configuration.
func (s *Store) Begin(config *access.Config) *Unit {
	h := s.d.For(config.Tenant.ID)
	return &Unit{
		store: s, config: config, h: h, q: h,
		read: map[ref]int64{}, records: map[ref]*row{}, users: map[user.ID]*user.User{}, gone: map[ref]bool{}, types: map[string]bool{},
		shares: map[ref]map[string]unitShare{}, unique: newUniqueValues(),
	}
}

// Close releases what the unit holds of the memory that all units share. The
// unit must not be used afterwards.
func (u *Unit) Close() {
	u.store.written.Release(string(u.config.Tenant.ID), u.written)
	u.written = 0
}

// As returns the unit as viewer may use it. It panics if the viewer does not
// belong to the configuration that the unit began with.
func (u *Unit) As(viewer access.Viewer) *UnitSession {
	if viewer.Config() != u.config {
		panic("records: a unit and its viewer have different configurations")
	}
	return &UnitSession{u: u, s: u.store.As(viewer)}
}

// Changed reports whether there is anything to commit.
func (u *Unit) Changed() bool { return len(u.changes) > 0 }

// Usage is what a unit used of its limits: records changed (of MaxChanged), bytes
// written (of MaxWritten) and stored records read by id (of MaxRead).
type Usage struct {
	Changed int
	Written int64
	Read    int
}

// Used returns what the unit used of its limits. Close sets Written to 0.
func (u *Unit) Used() Usage { return Usage{len(u.changes), u.written, len(u.read)} }

// Touched returns the names of the stored records, users included, that the
// unit read by id or changed, in a fixed order. It may lose a race over these
// only.
func (u *Unit) Touched() []string {
	names := make([]string, 0, len(u.read))
	for r := range u.read {
		names = append(names, r.entity+"/"+r.id)
	}
	slices.Sort(names)
	return names
}

// add adds a change to a document of the given size. It returns EXECUTION_ERROR
// or OVERLOADED where a limit is reached. Only add may append to changes.
func (u *Unit) add(c change, bytes int) error {
	switch {
	case len(u.changes) >= MaxChanged:
		return errChanged
	case u.written+int64(bytes) > MaxWritten:
		return errWritten
	case !u.store.written.Take(string(u.config.Tenant.ID), int64(bytes)):
		return errMemory
	}
	u.written += int64(bytes)
	u.changes = append(u.changes, c)
	if c.creation != nil {
		u.created++
	}
	return nil
}

// put makes rec the unit's version of a record.
func (u *Unit) put(e *schema.Entity, rec *row) {
	at := ref{e.Name, rec.id}
	u.types[e.Name] = true
	u.unique.replace(e, u.records[at], rec)
	u.records[at] = rec
}

// drop marks a record as deleted by the unit.
func (u *Unit) drop(e *schema.Entity, rec *row) {
	at := ref{e.Name, rec.id}
	u.types[e.Name] = true
	u.unique.remove(e, u.records[at], rec)
	delete(u.records, at)
	delete(u.shares, at)
	u.gone[at] = true
}

// mark is a state of a unit to which it can be restored, as long as it deletes and
// shares nothing.
type mark struct {
	changes, created int
	written          int64
	records          map[ref]*row
	users            map[user.ID]*user.User
	types            map[string]bool
	unique           uniqueValues
	managed          bool
}

func (u *Unit) mark() mark {
	return mark{
		len(u.changes), u.created, u.written, maps.Clone(u.records), maps.Clone(u.users), maps.Clone(u.types),
		uniqueValues{maps.Clone(u.unique.owner), maps.Clone(u.unique.stale)}, u.managed,
	}
}

func (u *Unit) restore(m mark) {
	u.store.written.Release(string(u.config.Tenant.ID), u.written-m.written)
	u.changes, u.created, u.written, u.managed = u.changes[:m.changes], m.created, m.written, m.managed
	u.records, u.users, u.types, u.unique = m.records, m.users, m.types, m.unique // what was read was read
}

// own returns the unit's version of a record that it changed, nil for any
// other.
func (u *Unit) own(e *schema.Entity, id string) *row {
	rec := u.records[ref{e.Name, id}]
	if rec != nil {
		rec.data = without(e, rec.data, u.gone)
	}
	return rec
}

// saw records the version of a record that was read. It returns ErrLost when an
// earlier read saw another, and EXECUTION_ERROR beyond MaxRead.
func (u *Unit) saw(r ref, version int64) error {
	was, known := u.read[r]
	switch {
	case known && was != version:
		return ErrLost
	case !known && len(u.read) >= MaxRead:
		return errRead
	}
	u.read[r] = version
	return nil
}

// without returns a record's data without references to records that are gone.
func without(e *schema.Entity, data []byte, gone map[ref]bool) []byte {
	if len(gone) == 0 || !slices.ContainsFunc(e.Fields, func(f *schema.Field) bool { return f.Type == schema.Reference }) {
		return data
	}
	values, found := stored(e, data), false
	for i, f := range e.Fields {
		if f.Type == schema.Reference && values[i] != nil && gone[ref{f.Target, schema.Unquote(values[i])}] {
			values[i], found = nil, true
		}
	}
	if !found {
		return data
	}
	return document(e, values, data)
}
