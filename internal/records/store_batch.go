package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

const (
	// maxBatchTime is how long a batch may take, its waits and its commit included.
	maxBatchTime = 10 * time.Second
	// A batch is prepared outside of its transaction, which others wait for, as long
	// as it loses no more than freeTries races. Then it is prepared inside.
	freeTries     = 2
	maxBatchTries = 5
)

var batchTime = maxBatchTime // a test sets it

var (
	errBatchTime = fault.New(fault.Overloaded, "the batch did not finish within %d s; nothing was done; try again, with fewer items", maxBatchTime/time.Second)
	errBatchLost = fault.New(fault.Conflict, "the records of this batch were changed by others, %d times in a row; nothing was done", maxBatchTries)
	errBatchSize = fault.New(fault.Validation,
		"a batch may change at most %d MiB of records (the larger of what a record was and becomes, deleted ones too): expected fewer items", MaxWritten>>20)
	errBatchIndexed = fault.New(fault.Validation, "a batch may change at most %d entries of the indexes (each indexed field and each word of a searchable one, "+
		"for each way in which a record is reached): expected fewer items", maxEntries)
)

// Batch are the items of one call on one entity type.
type Batch struct {
	Entity string
	Items  []Item
	// Atomic batches take effect as a whole or not at all. Of others, the items that
	// do not fail take effect, together.
	Atomic bool
	// KeepEqual leaves a record as it is, its updated_at too, where an item names no
	// value that differs.
	KeepEqual bool
	// Also is called in the transaction with the outcome, without records, if not
	// nil, possibly more than once.
	Also func(tx db.Tx, done []Done) error
}

// Batch does the items in their order, in one transaction, and returns the outcome of
// each. Each item has the results and errors of Create, Update, Delete or
// UnitSession.Upsert, and sees what those before it did. It returns a *BatchError for
// an atomic batch of which items failed, VALIDATION beyond maxEntries, OVERLOADED where it took too long, CONFLICT
// after several lost races, ErrUnsettled, and the error of Also. Then nothing was changed.
func (s *Session) Batch(ctx context.Context, b Batch) ([]Done, error) {
	limited, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	done, left, err := s.tries(limited, &b)
	switch {
	case err == nil:
		clearLeft(ctx, s.h, left)
		return done, nil
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, db.ErrUnavailable) && ctx.Err() == nil:
		return nil, errBatchTime
	case errors.Is(err, errIndexed):
		return nil, errBatchIndexed
	}
	return nil, err
}

// tries does a batch, again where it lost a race.
func (s *Session) tries(ctx context.Context, b *Batch) (done []Done, left []access.Leftover, err error) {
	for try, renewals := 1, 0; ; {
		done, left, err = s.try(ctx, b, try > freeTries)
		switch {
		case !errors.Is(err, ErrLost):
			return done, left, err
		case errors.Is(err, ErrReconfigured):
			if renewals++; renewals == MaxRenewals {
				return nil, nil, ErrUnsettled
			}
		case try == maxBatchTries:
			return nil, nil, errBatchLost
		default:
			try++
		}
		viewer, err := s.store.dir.Renew(ctx, s.viewer)
		if err != nil {
			return nil, nil, err
		}
		s = &Session{store: s.store, viewer: viewer, h: s.h, holder: s.holder}
	}
}

// try does a batch once, in its tenant's turn. inside prepares it in its transaction, on
// records that are held, so that it loses races for values of unique fields only.
func (s *Session) try(ctx context.Context, b *Batch, inside bool) (done []Done, left []access.Leftover, err error) {
	t := &batchTurn{store: s.store, key: string(s.viewer.Tenant())}
	defer t.end()
	if len(b.Items) > fewItems {
		if err := t.begin(ctx); err != nil {
			return nil, nil, err
		}
	}
	u := s.store.Begin(s.viewer.Config())
	defer u.Close()
	var changes []int
	if inside {
		done, changes, err = s.tryInside(ctx, u, b)
	} else if done, changes, err = s.prepareOutside(ctx, u, b, t); err == nil {
		err = t.commit(ctx, u, b.also(done))
	}
	if err != nil {
		return nil, nil, err
	}
	s.showWritten(b.Entity, u, done, changes)
	return done, u.left, nil
}

// tryInside prepares and replays a batch in one transaction.
func (s *Session) tryInside(ctx context.Context, u *Unit, b *Batch) (done []Done, changes []int, err error) {
	err = s.h.WriteOrdered(ctx, func(tx db.Tx) (err error) {
		u.Close()
		*u = *s.store.Begin(s.viewer.Config()) // the transaction may run several times
		u.q = tx
		if err := s.holdAll(ctx, tx, b); err != nil {
			return err
		}
		if done, changes, err = s.prepare(ctx, u, b, func() error { return nil }); err != nil {
			return err
		}
		if err := u.replayed(ctx, tx); err != nil || b.Also == nil {
			return err
		}
		return b.Also(tx, done)
	})
	u.committed(err)
	return done, changes, err
}

// prepareOutside prepares a batch outside of its transaction. If that is much work, it
// computes on a core that it takes in turns with all other work on them.
func (s *Session) prepareOutside(ctx context.Context, u *Unit, b *Batch, t *batchTurn) (done []Done, changes []int, err error) {
	var work *admission.Work
	defer func() {
		work.Stop()
		u.q = u.h
	}()
	return s.prepare(ctx, u, b, func() error {
		if work != nil {
			return work.Yield()
		}
		if len(b.Items) <= fewItems && u.written <= heavyBatch {
			return nil
		}
		if err := t.begin(ctx); err != nil {
			return err
		}
		if work, err = s.store.cores.Start(ctx, t.key); err == nil {
			u.q = pausing{u.h, work}
		}
		return err
	})
}

// also returns Also for Unit.Commit.
func (b *Batch) also(done []Done) func(db.Tx) error {
	if b.Also == nil {
		return nil
	}
	return func(tx db.Tx) error { return b.Also(tx, done) }
}

// prepare adds the changes of a batch to a unit. changes has for each item the index of
// the change that left its record as it is then, -1 for none. It returns a *BatchError
// for an atomic batch with items that fail, and OVERLOADED and ErrLost as errors of the
// whole batch, and the error of yield, which is called before each item.
func (s *Session) prepare(ctx context.Context, u *Unit, b *Batch, yield func() error) (done []Done, changes []int, err error) {
	holder := &batchHolder{of: s.holder}
	p := u.As(s.viewer).Within(holder)
	p.s.keepEqual = b.KeepEqual
	p.reached = map[reach]bool{}
	if err := p.lookUp(ctx, b); err != nil {
		return nil, nil, err
	}
	done, changes = make([]Done, len(b.Items)), make([]int, len(b.Items))
	failed, last := false, map[string]int{} // the last change of each record
	for i := range b.Items {
		if err := yield(); err != nil {
			return nil, nil, err
		}
		changes[i] = -1
		item, before := &b.Items[i], len(u.changes)
		if item.Err != nil {
			done[i].Err = item.Err
		} else if done[i], err = p.item(ctx, b.Entity, item); err != nil {
			return nil, nil, err
		}
		if len(u.changes) > before {
			last[done[i].ID] = before
			if !done[i].Created {
				clear(p.reached)
			}
		}
		done[i].Unchanged = done[i].Err == nil && len(u.changes) == before
		if at, changed := last[done[i].ID]; changed { // also where this item changed nothing
			changes[i] = at
		}
		failed = failed || done[i].Err != nil
		if err := holder.keep(&done[i]); err != nil {
			return nil, nil, err
		}
	}
	if failed && b.Atomic {
		return nil, nil, &BatchError{done}
	}
	return done, changes, nil
}

// holdAll holds the records that the items of a batch name and the viewer sees, until the
// transaction ends, in the order of Unit.hold. The tenant's clock comes first, as in replay.
// It waits for no record that the viewer does not see.
func (s *Session) holdAll(ctx context.Context, tx db.Tx, b *Batch) error {
	err := s.fence(ctx, tx)
	if errors.Is(err, errStale) {
		return ErrReconfigured
	}
	if err != nil {
		return err
	}
	if _, err := tenant.Ticks(ctx, tx, clock.Micros(s.store.clock.Now()), 1); err != nil {
		return err
	}
	r, err := s.viewer.On(b.Entity)
	if err != nil || tx.Dialect().ForUpdate == "" {
		return nil //nolint:nilerr // the items fail with it
	}
	e := r.Entity
	var ids []string
	for i := range b.Items {
		item := &b.Items[i]
		switch {
		case item.Err != nil:
		case item.ID != "":
			ids = append(ids, item.ID)
		case item.Op == OpUpsert:
			id, err := s.upserted(ctx, tx, e, item)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, strings.Compare)
	for _, id := range slices.Compact(ids) {
		sees, err := inScope(ctx, tx, r.Scope(access.Read), e, id)
		if err == nil && sees {
			_, err = exists(ctx, tx, named{e.StoredAs(), id}, tx.Dialect().ForUpdate)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// upserted returns the id of the stored record that an upsert finds, "" for none.
func (s *Session) upserted(ctx context.Context, q db.Querier, e *schema.Entity, item *Item) (string, error) {
	r, err := s.rights(e.Name, "", access.Read)
	if err != nil {
		return "", nil //nolint:nilerr // the item fails with it
	}
	f, key, err := upsertKey(r, item.By, item.Fields)
	if err != nil {
		return "", nil //nolint:nilerr // the item fails with it
	}
	has, err := storedHolder(ctx, q, e, f, key)
	return has.id, err
}

// holder returns the id of the record that has a value of a unique field in the unit,
// whoever may see it, "" for none.
func (p *UnitSession) holder(ctx context.Context, e *schema.Entity, f *schema.Field, key string) (string, error) {
	if f.Type == schema.Reference && p.u.gone[ref{f.Target, key}] {
		return "", nil // the deletion cleared it
	}
	if id, ok := p.u.unique.owner[uniqueValue{e.Name, f.Name, key}]; ok {
		return id, nil
	}
	has, known := p.u.known[uniqueValue{e.Name, f.Name, key}]
	if !known {
		var err error
		if has, err = storedHolder(ctx, p.u.q, e, f, key); err != nil {
			return "", err
		}
	}
	if p.u.unique.stale[has.createdAt] {
		return "", nil
	}
	return has.id, nil
}

// takenRows are the unique index rows of a field: $3 of the entity type $2.
const (
	takenRows = ` FROM field_values v` + takenOnes
	takenOnes = ` WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3 AND v.reach = '' AND v.is_unique = 1 AND v.value `
)

// selectTaken selects the record that has a value of a unique field: $4.
func selectTaken(q db.Querier) string {
	return `SELECT v.value, r.record_id, r.created_at FROM (SELECT v.value, v.record_created_at` + takenRows + `= $4 LIMIT 1) v` + lookUp(q, "v.record_created_at")
}

// storedHolder returns the stored record that has a value of a unique field.
func storedHolder(ctx context.Context, q db.Querier, e *schema.Entity, f *schema.Field, key string) (has taken, err error) {
	err = q.Query(ctx, selectTaken(q), func(row db.Row) error {
		has = taken{row.Text(1), row.Int(2)}
		return nil
	}, e.StoredAs(), f.StoredAs(), key)
	return has, err
}

// lookedUp is how many values one statement looks up.
const lookedUp = 50

// selectTakenAny is selectTaken for lookedUp values. PostgreSQL looks up one after the
// other: without statistics it reads all index rows of the field for a list of values.
func selectTakenAny(q db.Querier) string {
	st := &statement{args: make([]any, 2)} // $2 and $3
	if st.WriteString(`SELECT v.value, r.record_id, r.created_at`); q.Dialect().Engine == db.Postgres {
		st.WriteString(` FROM (SELECT DISTINCT k.value FROM unnest(ARRAY[`)
		for i := range lookedUp {
			if i > 0 {
				st.WriteByte(',')
			}
			st.arg("")
		}
		st.WriteString(`]) k(value)) k CROSS JOIN LATERAL (SELECT v.value, v.record_created_at` + takenRows + `= k.value LIMIT 1) v`)
		st.WriteString(lookUp(q, "v.record_created_at"))
		return st.String()
	}
	st.WriteString(` FROM field_values v` + lookUp(q, "v.record_created_at") + takenOnes + `IN `)
	st.list(make([]string, lookedUp))
	return st.String()
}

// lookUp looks up the values of unique fields that the items of a batch have, many at
// once. The unique index decides in the end, and an upsert compares the value. What the
// viewer may not write is not looked up: its time would tell whether a record has it.
func (p *UnitSession) lookUp(ctx context.Context, b *Batch) error {
	r, err := p.s.viewer.On(b.Entity)
	if err != nil || !r.May(access.Create) && !r.May(access.Update) || len(b.Items) == 1 {
		return nil // the items fail, or one asks for itself
	}
	e := r.Entity
	p.u.known = map[uniqueValue]taken{}
	statement := selectTakenAny(p.u.q)
	for _, f := range e.Fields {
		mayFind := slices.ContainsFunc(b.Items, func(item Item) bool { return item.Op == OpUpsert && item.By == f.Name })
		if !f.Unique || !r.ReadField[f.Index] || !r.EditField[f.Index] && !mayFind {
			continue
		}
		var keys []string
		for i := range b.Items {
			for _, m := range b.Items[i].Fields {
				if m.Name != f.Name {
					continue
				}
				v, _ := f.Canonical(m.Value)
				key, ok := uniqueKey(f, v)
				if _, known := p.u.known[uniqueValue{e.Name, f.Name, key}]; ok && !known {
					p.u.known[uniqueValue{e.Name, f.Name, key}] = taken{}
					keys = append(keys, key)
				}
			}
		}
		for part := range slices.Chunk(keys, lookedUp) {
			args := []any{e.StoredAs(), f.StoredAs()}
			for i := range lookedUp { // so that one statement is prepared for any number
				args = append(args, part[min(i, len(part)-1)])
			}
			err := p.u.q.Query(ctx, statement, func(row db.Row) error {
				p.u.known[uniqueValue{e.Name, f.Name, row.Text(0)}] = taken{row.Text(1), row.Int(2)}
				return nil
			}, args...)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// showWritten replaces the records of a batch by what was committed: created_at and
// updated_at are known then.
func (s *Session) showWritten(entity string, u *Unit, done []Done, changes []int) {
	of := s.viewer.On
	if entity == schema.UserEntity {
		of = func(string) (*access.EntityRights, error) { return s.viewer.OnUsers() }
	}
	r, err := of(entity)
	for i := range done {
		if err != nil || changes[i] < 0 || done[i].Record == nil {
			continue
		}
		switch is := u.after[changes[i]]; {
		case is.user != nil:
			done[i].Record = showUser(r, is.user)
		case is.rec != nil:
			done[i].Record = s.show(r, is.rec)
		}
	}
}
