package records

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// ErrLost says that a unit of work lost a race: what it read by id is not what
// it was any more, or what it did can no longer be done. Nothing was changed;
// whoever began it may begin anew.
var ErrLost = errors.New("a record that the run used was changed meanwhile")

// What one unit of work may hold: the turn at the writer that its commit takes,
// and the memory until then, must not depend on how long a flow loops.
const (
	// MaxChanged is how many changes a unit may make, each create, update and
	// delete counted; MaxWritten is what the documents of all changes may add up
	// to, in bytes. A change counts the larger of the document before and after
	// it: the commit reads what it replaces or deletes, and holds it to the end.
	MaxChanged = 1000
	MaxWritten = 8 << 20
	// MaxRead is how many records it may read by id, those it changes included:
	// the version of each is kept, and each is locked in the commit.
	MaxRead = 2 * MaxChanged
	// maxAllWritten bounds the documents that all units of a store change, and
	// hold until their end. With the inputs they were made of they take up about three times
	// as much memory.
	maxAllWritten = 128 << 20
)

var (
	errChanged = fault.New(fault.ExecutionError, "a run may change at most %d records (each create, update and delete counts)", MaxChanged)
	errWritten = fault.New(fault.ExecutionError,
		"a run may change at most %d MiB of records (the larger of what a record was and becomes, deleted ones too)", MaxWritten>>20)
	errRead   = fault.New(fault.ExecutionError, "a run may read at most %d records by their ids", MaxRead)
	errMemory = fault.New(fault.Overloaded, "Too much is being written. Try again soon.").After(time.Second)
)

// Unit is work on records that takes effect as a whole or not at all: the
// changes of one run of a component or automation. As gives it as one viewer
// may use it, and several viewers may share in one unit. Reads by id see what
// the unit did so far, lists see what is stored. Commit does it all in one
// transaction. Close it in the end.
//
// Each change is checked twice: at once, so that the run can deal with a
// refusal, and again in the transaction, where a refusal means a lost race. The
// created_at that a record has inside the unit is only near the one it gets.
//
// A change beyond MaxChanged or MaxWritten and a read beyond MaxRead are refused
// with EXECUTION_ERROR, and with OVERLOADED where all units together hold too
// much; what was done before stands.
//
// A Unit belongs to one goroutine.
type Unit struct {
	store  *Store
	config *access.Config
	h      db.Handle

	changes []change
	created int           // how many of the changes create a record
	written int64         // bytes of the changes' documents, taken from the store's budget
	read    map[ref]int64 // the version of each stored record that was read by id
	// records and users are those the unit changed, as they are in it; gone are
	// those it deleted. Of a record in records that refers to one in gone, own
	// clears the reference.
	records map[ref]*row
	users   map[string]*user.User
	gone    map[ref]bool
	unique  uniqueValues
}

// ref names a record.
type ref struct{ entity, id string }

// change is one change of a unit, to be done in its transaction: a creation,
// or what do does on the records that are held there. needs says what it takes
// to hold the one it is about.
type change struct {
	ref
	needs    need
	creation *creation
	do       func(ctx context.Context, r *replay) error
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
		read: map[ref]int64{}, records: map[ref]*row{}, users: map[string]*user.User{}, gone: map[ref]bool{},
		unique: newUniqueValues(),
	}
}

// Close gives back what the unit holds of the memory that all units share. The
// unit must not be used any more.
func (u *Unit) Close() {
	u.store.written.Release(u.config.Tenant.ID, u.written)
	u.written = 0
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

// Touched names the stored records, users included, that the unit read by id or
// changed, in a fixed order: those over which it may lose a race.
func (u *Unit) Touched() []string {
	names := make([]string, 0, len(u.read))
	for r := range u.read {
		names = append(names, r.entity+"/"+r.id)
	}
	slices.Sort(names)
	return names
}

// add takes a change of a document of so many bytes. Nothing else may
// append to changes.
func (u *Unit) add(c change, bytes int) error {
	switch {
	case len(u.changes) >= MaxChanged:
		return errChanged
	case u.written+int64(bytes) > MaxWritten:
		return errWritten
	case !u.store.written.Take(u.config.Tenant.ID, int64(bytes)):
		return errMemory
	}
	u.written += int64(bytes)
	u.changes = append(u.changes, c)
	if c.creation != nil {
		u.created++
	}
	return nil
}

// put makes rec the record as the unit has it.
func (u *Unit) put(e *schema.Entity, rec *row) {
	at := ref{e.Name, rec.id}
	u.unique.replace(e, u.records[at], rec)
	u.records[at] = rec
}

// drop notes that the unit deleted a record.
func (u *Unit) drop(e *schema.Entity, rec *row) {
	at := ref{e.Name, rec.id}
	u.unique.remove(e, u.records[at], rec)
	delete(u.records, at)
	u.gone[at] = true
}

// own is a record that the unit changed, as it is in it; nil for any other.
func (u *Unit) own(e *schema.Entity, id string) *row {
	rec := u.records[ref{e.Name, id}]
	if rec != nil {
		rec.data = without(e, rec.data, u.gone)
	}
	return rec
}

// saw notes the version a record was read at; ErrLost when it was another before.
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

// without is a record's data with no reference to a record that is gone.
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
