package records

import (
	"context"
	"encoding/json"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Op is what one item of a batch does.
type Op string

// The operations of a batch.
const (
	OpCreate Op = "create"
	OpUpdate Op = "update"
	OpDelete Op = "delete"
	OpUpsert Op = "upsert"
)

// Limits of a batch (contract R17).
const (
	// MaxBatch is how many items a batch may have.
	MaxBatch = 200
	// maxBatchAnswer is the total size of the records in the answer, in bytes.
	maxBatchAnswer = 8 << 20
)

// Item is one item of a batch.
type Item struct {
	Op     Op
	ID     string   // of an update or delete
	By     string   // of an upsert: the unique field by which the record is found
	Fields []Member // of all but a delete
	// Err is set for an item that could not be read: it fails with this.
	Err *fault.Error
}

// Done is the outcome of one item of a batch.
type Done struct {
	ID      string
	Created bool
	// Unchanged says that the item changed nothing: not the record, and not its
	// updated_at.
	Unchanged bool
	// Record is what the viewer may read of the record after this item, nil for a
	// deletion and for an item that failed.
	Record Record
	Err    *fault.Error // the error that the single call would have returned
}

// BatchError is the error of a batch that takes effect as a whole and of which items
// failed. Nothing was changed.
type BatchError struct{ Done []Done }

func (e *BatchError) Error() string { return e.Fault().Error() }

// failedItem is an item in the details of a Fault, with its error as in the envelope.
type failedItem struct {
	Index int       `json:"index"`
	Error itemError `json:"error"`
}

type itemError struct {
	Code    fault.Code     `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// Fault returns the error as the caller sees it: the code is that of the first item
// that failed, and details.items names each.
func (e *BatchError) Fault() *fault.Error {
	var list []failedItem
	for i, d := range e.Done {
		if d.Err == nil {
			continue
		}
		details := d.Err.Details
		if details == nil {
			details = map[string]any{}
		}
		list = append(list, failedItem{i, itemError{d.Err.Code, d.Err.Message, details}})
	}
	first := list[0]
	return fault.New(first.Error.Code, "%d of %d items failed; nothing was done. Item %d: %s", len(list), len(e.Done), first.Index, first.Error.Message).
		With("items", list)
}

// MayWrite checks whether the viewer may change records of an entity type at all. It
// returns NOT_FOUND when there is no such type, and FORBIDDEN when they may not.
func (s *Session) MayWrite(entity string) error {
	var first error
	for _, verb := range []access.Verb{access.Create, access.Update, access.Delete} {
		err := s.May(entity, verb)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if fault.CodeOf(first) == fault.Forbidden {
		return fault.New(fault.Forbidden, "you may not write records of %s", entity)
	}
	return first
}

// Upsert updates the record whose unique field by has the value that members has for
// it, or creates one where there is none. A record that the viewer may not see gets
// the answer of a create: CONFLICT for those who may create. It returns FORBIDDEN for
// a viewer who may not read the entity type, VALIDATION for a field that is not unique
// or that the viewer may not read, and for members without a value of it, and else
// the errors of Create and Update. created says which of the two it was.
func (p *UnitSession) Upsert(ctx context.Context, entity, by string, members []Member) (rec Record, created bool, err error) {
	if entity == schema.UserEntity {
		_, err := p.s.rights(entity, "", access.Create)
		return nil, false, err
	}
	r, err := p.s.rights(entity, "", access.Read)
	if err != nil {
		return nil, false, err
	}
	f, key, err := upsertKey(r, by, members)
	if err != nil {
		return nil, false, err
	}
	id, err := p.holder(ctx, r.Entity, f, key)
	if err != nil {
		return nil, false, err
	}
	// Where the answer is that of a create in any case, its time must not tell who may not
	// create whether a record that they do not see has the value.
	if id != "" || !r.May(access.Create) {
		found, err := p.find(ctx, r, id, access.Update)
		if err == nil {
			rec, err = p.upsertInto(ctx, entity, found, f, key, members)
			return rec, false, err
		}
		if !errors.Is(err, errUnseen) {
			return nil, false, err
		}
	}
	rec, err = p.Create(ctx, entity, members)
	if id == "" && fault.CodeOf(err) == fault.Conflict {
		if now, failed := p.holder(ctx, r.Entity, f, key); failed != nil || now != "" {
			return nil, false, errors.Join(failed, ErrLost) // it was created meanwhile
		}
	}
	return rec, true, err
}

// upsertInto updates a record that was found by the key of a unique field. It returns
// ErrLost where the record has another value by now.
func (p *UnitSession) upsertInto(ctx context.Context, entity string, rec *row, f *schema.Field, key string, members []Member) (Record, error) {
	r, err := p.s.rights(entity, rec.id, access.Update)
	if err != nil {
		return nil, err
	}
	if is, ok := uniqueKey(f, stored(r.Entity, rec.data)[f.Index]); !ok || is != key {
		return nil, ErrLost
	}
	if err := rec.mayBe("change"); err != nil {
		return nil, err
	}
	return p.s.change(ctx, p, r, rec, checkUpdate(r, except(members, f.Name))) // it has this value
}

// upsertKey returns the field by which an upsert finds its record, and the key of the
// value that members has for it.
func upsertKey(r *access.EntityRights, by string, members []Member) (f *schema.Field, key string, err error) {
	f = r.Entity.Field(by)
	if f == nil || !f.Unique || !r.ReadField[f.Index] {
		return nil, "", fault.Fields("by: expected a unique field of "+r.Entity.Name, map[string]string{"by": "expected the name of a unique field"})
	}
	for _, m := range members {
		if m.Name != by {
			continue
		}
		v, reason := f.Canonical(m.Value)
		if reason != "" {
			return nil, "", fault.Fields("some fields are not valid", map[string]string{by: reason})
		}
		if key, ok := uniqueKey(f, v); ok {
			return f, key, nil
		}
	}
	return nil, "", fault.Fields("some fields are not valid", map[string]string{by: "required: the record is found by it"})
}

// apply does one item in the unit.
func (p *UnitSession) apply(ctx context.Context, entity string, item *Item) (d Done, err error) {
	switch item.Op {
	case OpCreate:
		d.Created = true
		d.Record, err = p.Create(ctx, entity, item.Fields)
	case OpUpdate:
		d.ID = item.ID
		d.Record, err = p.Update(ctx, entity, item.ID, item.Fields)
	case OpUpsert:
		d.Record, d.Created, err = p.Upsert(ctx, entity, item.By, item.Fields)
	case OpDelete:
		d.ID = item.ID
		err = p.Delete(ctx, entity, item.ID)
	default:
		err = fault.New(fault.Validation, "op: expected create, update, delete or upsert")
	}
	if d.Record != nil {
		d.ID = d.Record.ID()
	}
	return d, err
}

// Reread reads the records of an outcome that is known by its ids, as the viewer may
// read them now. Of a record that they no longer see, and of those for which the answer
// has no room, it is `{"id": …}`.
func (s *Session) Reread(ctx context.Context, b Batch, done []Done) error {
	holder := &batchHolder{of: s.holder}
	within := &Session{store: s.store, viewer: s.viewer, h: s.h, holder: holder}
	for i := range done {
		d := &done[i]
		if d.Err != nil || b.Items[i].Op == OpDelete {
			continue
		}
		rec, err := within.Get(ctx, b.Entity, d.ID)
		switch fault.CodeOf(err) {
		case "":
			if err != nil {
				return err
			}
		case fault.NotFound, fault.Forbidden, fault.Validation: // gone, hidden, or no room
			rec = renderID(d.ID)
		default:
			return err
		}
		d.Record = rec
		holder.before += len(rec)
	}
	return nil
}

// item does one item in the unit. A refusal is in the outcome; OVERLOADED and ErrLost
// are errors of the whole batch.
func (p *UnitSession) item(ctx context.Context, entity string, item *Item) (Done, error) {
	d, err := p.apply(ctx, entity, item)
	var refused *fault.Error
	switch {
	case err == nil:
		return d, nil
	case !errors.As(err, &refused) || refused.Code == fault.Overloaded:
		return Done{}, err
	case refused.Code == fault.ExecutionError: // a limit of the unit
		refused = errBatchSize
	}
	return Done{Err: refused}, nil
}

// Many does several operations, all or none of them: where it returns an error, the unit
// is as it was before. It returns a *fault.Error as that of a BatchError, VALIDATION for
// more than MaxBatch items, and the errors of the unit.
func (p *UnitSession) Many(ctx context.Context, entity string, items []Item) (out []Record, err error) {
	if len(items) > MaxBatch {
		return nil, fault.New(fault.Validation, "expected at most %d records in one call, found %d", MaxBatch, len(items))
	}
	if len(items) == 0 {
		return nil, nil
	}
	before := p.u.mark()
	defer func() {
		if err != nil {
			p.u.restore(before)
		}
	}()
	holder := &batchHolder{of: p.s.holder}
	session := *p.s
	session.holder = holder
	q := &UnitSession{u: p.u, s: &session, reached: map[reach]bool{}}
	if err := q.lookUp(ctx, &Batch{Entity: entity, Items: items}); err != nil {
		return nil, err
	}
	defer func() { p.u.known = nil }() // what is stored may change while the run goes on
	done, failed := make([]Done, len(items)), false
	for i := range items {
		d, err := q.apply(ctx, entity, &items[i])
		var refused *fault.Error
		switch code := fault.CodeOf(err); {
		case err == nil:
		case !errors.As(err, &refused) || code == fault.Overloaded || code == fault.ExecutionError:
			return nil, err
		default:
			d, failed = Done{Err: refused}, true
		}
		if done[i] = d; !d.Created {
			clear(q.reached)
		}
		if err := holder.keep(&d); err != nil {
			return nil, err
		}
		out = append(out, d.Record)
	}
	if failed {
		return nil, (&BatchError{done}).Fault()
	}
	return out, nil
}

// batchHolder bounds the answer of a batch as one: before are the bytes of the items
// before the present one, and named is how many fields their errors name.
type batchHolder struct {
	of     Holder
	before int
	named  int
}

// maxNamed is how many fields the errors of a batch name before further ones name none: a
// body of 1 MiB could have a hundred thousand, which take some hundred times as much.
const maxNamed = 1000

var errBatchAnswer = fault.New(fault.Validation, "the records that a batch returns, and what is wrong with its items, may have at most %d MiB together: expected fewer items", maxBatchAnswer>>20)

// TooMuch reports whether err, of a batch or of one of its items, says that the batch is
// too large as a whole: the same items may be possible in smaller batches.
func TooMuch(err error) bool {
	is, ok := err.(*fault.Error) //nolint:errorlint // errors.Is compares codes
	return ok && (is == errBatchSize || is == errBatchIndexed || is == errBatchTime || is == errBatchAnswer)
}

// Hold returns VALIDATION for an item with which the answer is too large.
func (h *batchHolder) Hold(n int) error {
	if h.before+n > maxBatchAnswer {
		return errBatchAnswer
	}
	if h.of == nil {
		return nil
	}
	return h.of.Hold(h.before + n)
}

// keep counts what the answer has of an item. It returns VALIDATION where it is too
// much, and OVERLOADED.
func (h *batchHolder) keep(d *Done) error {
	n := len(d.Record)
	if d.Err != nil {
		fields, _ := d.Err.Details["fields"].(map[string]string)
		if h.named > maxNamed && len(fields) > 0 {
			d.Err = fault.New(d.Err.Code, "%s; which fields these are is left out, since items before this one name more than %d", d.Err.Message, maxNamed)
		}
		h.named += len(fields)
		details, err := json.Marshal(d.Err.Details)
		if err != nil {
			return err
		}
		n = len(d.Err.Message) + len(details)
		if err := h.Hold(n); err != nil {
			return err
		}
	}
	h.before += n
	return nil
}
