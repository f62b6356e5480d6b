package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// maxBatchInput is the size of the input at which a batch ends early, in bytes.
const maxBatchInput = 2 << 20

// Counts says what became of the records of an input.
type Counts struct {
	Created   int64 `json:"created"`
	Updated   int64 `json:"updated"`
	Unchanged int64 `json:"unchanged"` // they had these values
	Failed    int64 `json:"failed"`
}

// All is how many records were looked at.
func (c Counts) All() int64 { return c.Created + c.Updated + c.Unchanged + c.Failed }

// Failure is a record that failed.
type Failure struct {
	Line   int64  `json:"line"` // where it begins
	Reason string `json:"reason"`
}

// Result is how far an import came.
type Result struct {
	Counts
	Line   int64 // how many lines have had effect, 0 for none
	Before int64 // how many records a run before this one had looked at
}

// state is where an import stands, as it is stored.
type state struct {
	At position `json:"at"`
	// By and Spreadsheet are as the import was begun with.
	By          string `json:"by,omitempty"`
	Spreadsheet bool   `json:"spreadsheet,omitempty"`
	Counts
	// Failures are those of the last batch, or of the last part: a process that was killed
	// may not have named them.
	Failures []Failure `json:"failures,omitempty"`
	Finished bool      `json:"-"`
}

// errParts asks for the items of a batch in smaller ones, errDry keeps nothing of it.
var (
	errParts = errors.New("the batch is too large")
	errDry   = errors.New("a dry run keeps nothing")
)

// Run imports the input. The result is what was stored, whatever the error. It returns
// VALIDATION for a header or a field By that does not fit, NOT_FOUND and FORBIDDEN as
// records.Session.MayWrite, an error where the input cannot be read on, ErrTaken, and those
// of records.Session.Batch for all items together. A record that fails is no error.
func (im *Import) Run(ctx context.Context, in io.Reader) (Result, error) {
	r, err := im.prepare()
	if err != nil {
		return Result{}, err
	}
	if im.Batch < 1 || im.Batch > records.MaxBatch {
		im.Batch = records.MaxBatch
	}
	l, known, err := newLines(in)
	if err != nil {
		return Result{}, err
	}
	src, err := im.source(r, l)
	if err != nil {
		return Result{}, err
	}
	w := &importer{Import: im, src: src, store: im.store(r.Entity.StoredAs(), known), id: clock.NewID(im.Clock.Now())}
	if !im.DryRun {
		if err := w.begin(ctx, l); err != nil {
			return Result{}, err
		}
	}
	err = w.putAll(ctx)
	if err == nil && !im.DryRun {
		w.at.At, w.at.Failures, w.at.Finished = l.at(), nil, true
		err = w.store.finish(ctx, w.was, run{w.id, l.offset}, &w.at)
	}
	return w.result(), err
}

// prepare prepares the import, and returns the viewer's rights on the entity type. It
// returns the errors of Run.
func (im *Import) prepare() (*access.EntityRights, error) {
	im.told, im.ignored = map[string]bool{}, map[string]bool{}
	for _, name := range im.Ignore {
		im.ignored[name] = true
	}
	if err := errUsers(im.Entity); err != nil {
		return nil, err
	}
	return im.rights()
}

// rights returns the viewer's rights on the entity type, where they are enough for some
// record.
func (im *Import) rights() (*access.EntityRights, error) {
	as := im.Records.As(im.Viewer)
	err := as.MayWrite(im.Entity)
	switch {
	case err != nil:
	case im.By == "":
		err = as.May(im.Entity, access.Create)
	case im.By == idMember:
		err = as.May(im.Entity, access.Update)
	}
	if err != nil {
		return nil, err
	}
	r, err := im.Viewer.On(im.Entity)
	if err != nil || im.By == "" || im.By == idMember {
		return r, err
	}
	if f := r.Entity.Field(im.By); f == nil || !f.Unique || !r.ReadField[f.Index] {
		return nil, invalid("records are not found by %s: expected a unique field of %s, or id", shown(im.By), im.Entity)
	}
	return r, nil
}

// source returns the entries of an input, behind the header of a CSV.
func (im *Import) source(r *access.EntityRights, l *lines) (source, error) {
	if im.Format == NDJSON {
		return &jsonSource{l, im}, nil
	}
	read := &csvReader{lines: l}
	from, cells, bad, err := read.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, invalid("the input is empty: expected a line with the names of the columns")
	case err != nil:
		return nil, err
	case bad != "":
		return nil, invalid("line %d: the header: %s", from, bad)
	}
	columns, err := im.header(r, cells)
	return &csvSource{read, im, columns}, err
}

// importer is a run of an import.
type importer struct {
	*Import
	src    source
	store  *store
	id     string
	hasty  bool  // it leaves to its caller to try again
	before int64 // how many records were looked at before it
	was    *run  // what is stored of the import, nil for nothing
	at     state // what had effect
}

func (w *importer) result() Result { return Result{w.at.Counts, max(w.at.At.Line-1, 0), w.before} }

// begin finds out where the import stands, and goes there.
func (w *importer) begin(ctx context.Context, l *lines) error {
	was, is, known, err := w.store.find(ctx)
	switch {
	case err != nil:
		return err
	case w.Resume && !known:
		return fmt.Errorf("there is nothing to resume: no import into %s of an input with these first lines is known", w.Entity)
	case w.Resume && (is.By != w.By || is.Spreadsheet != w.Spreadsheet):
		return fmt.Errorf("the import was begun with --by %q and --spreadsheet=%t: it goes on with the same", is.By, is.Spreadsheet)
	case w.Resume:
		if err := l.resume(is.At); err != nil {
			return err
		}
		w.at, w.was, w.before = is, &was, is.All()
		if is.Finished {
			w.Note("the import of this input had ended")
		} else {
			w.Note(fmt.Sprintf("resumed behind line %d", is.At.Line-1))
		}
		w.name(is.Failures)
		return nil
	case known && !is.Finished && !w.Restart:
		return fmt.Errorf("an import of this input runs, or was interrupted, behind line %d: --resume continues it, --restart begins it anew", is.At.Line-1)
	case known:
		w.was = &was
	}
	return nil
}

func (w *importer) name(list []Failure) {
	for _, f := range list {
		w.Failed(f)
	}
}

// putAll imports what the source has, batch by batch. What comes before an error of the
// source has effect.
func (w *importer) putAll(ctx context.Context) error {
	for {
		batch, err := w.read()
		if len(batch) > 0 {
			w.at.Failures = nil
			err := w.put(ctx, batch)
			w.name(w.at.Failures)
			if err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// read reads the entries of one batch. It returns those that come before an error, too.
func (w *importer) read() (batch []*entry, err error) {
	for size := int64(0); len(batch) < w.Batch && size < maxBatchInput; {
		e, err := w.src.next()
		if err != nil {
			return batch, err
		}
		batch = append(batch, e)
		size += e.size
	}
	return batch, nil
}

// put imports a batch, in parts where it is too large as a whole. Of one record alone the
// refusal of the batch is the record's.
func (w *importer) put(ctx context.Context, batch []*entry) error {
	err := w.patiently(ctx, func() error { return w.commit(ctx, batch) })
	var refused *fault.Error
	var changed *changedError
	switch {
	case err == nil:
		w.Progress(w.result())
		return nil
	case errors.As(err, &changed):
		return changed.error
	case errors.Is(err, errParts) || errors.As(err, &refused) && ofItems(refused):
	default:
		return err
	}
	if half := len(batch) / 2; half > 0 {
		if err := w.put(ctx, batch[:half]); err != nil {
			return err
		}
		return w.put(ctx, batch[half:])
	}
	if refused.Code == fault.Overloaded {
		return err
	}
	batch[0].item = records.Item{Err: refused}
	return w.put(ctx, batch)
}

// ofItems reports whether a refusal of a batch is one of its items.
func ofItems(refused *fault.Error) bool {
	return records.TooMuch(refused) || slices.Contains([]fault.Code{fault.Validation, fault.Conflict}, refused.Code)
}

// How often a batch is tried while others use too much, and how long it waits first.
const (
	maxTries  = 8
	firstWait = time.Second / 4
)

// patiently calls fn again while it returns OVERLOADED, with longer and longer waits.
func (w *importer) patiently(ctx context.Context, fn func() error) error {
	for try, wait := 1, firstWait; ; try, wait = try+1, 2*wait {
		err := fn()
		if fault.CodeOf(err) != fault.Overloaded || records.TooMuch(err) || try == maxTries || w.hasty {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commit imports a batch in one transaction, together with where the import stands
// then. It returns errParts for items that fail by their number.
func (w *importer) commit(ctx context.Context, batch []*entry) (err error) {
	if w.Viewer, err = w.Directory.Renew(ctx, w.Viewer); err != nil {
		return err
	}
	if err := w.stillFits(); err != nil {
		return &changedError{err}
	}
	items := make([]records.Item, len(batch))
	for i, e := range batch {
		items[i] = e.item
	}
	var next state
	is := run{w.id, batch[len(batch)-1].end.Offset}
	_, err = w.Records.As(w.Viewer).Batch(ctx, records.Batch{
		Entity: w.Entity, Items: items, KeepEqual: true,
		Also: w.store.also(ctx, w.was, func(done []records.Done) (run, *state, error) {
			if len(done) > 1 && slices.ContainsFunc(done, func(d records.Done) bool { return records.TooMuch(d.Err) }) {
				return run{}, nil, errParts
			}
			next = w.at.after(batch, done)
			next.By, next.Spreadsheet = w.By, w.Spreadsheet
			if w.DryRun {
				return run{}, nil, errDry
			}
			return is, &next, nil
		}),
	})
	if err != nil && !(w.DryRun && errors.Is(err, errDry)) {
		return err
	}
	w.at = next
	if !w.DryRun {
		w.was = &is
	}
	return nil
}

// changedError is one that ends an import, because what it was begun with does not hold
// any more: each record behind it would fail.
type changedError struct{ error }

// stillFits returns the error with which the import would not begin now: the viewer's
// rights and the fields may have changed since. Where they fit as before, what comes is
// read by them as they are now.
func (w *importer) stillFits() error {
	r, err := w.rights()
	if err != nil {
		return err
	}
	src, ok := w.src.(*csvSource)
	if !ok {
		return nil
	}
	columns, err := w.header(r, src.names())
	if err != nil {
		return err
	}
	if !slices.EqualFunc(columns, src.columns, alike) {
		return fault.New(fault.Conflict, "the fields of %s have changed", w.Entity)
	}
	src.columns = columns
	return nil
}

// after returns the state behind a batch.
func (s state) after(batch []*entry, done []records.Done) state {
	s.At, s.Failures = batch[len(batch)-1].end, slices.Clone(s.Failures)
	for i, d := range done {
		switch {
		case d.Err != nil:
			s.Failed++
			s.Failures = append(s.Failures, Failure{batch[i].line, batch[i].reason(d.Err)})
		case d.Created:
			s.Created++
		case d.Unchanged:
			s.Unchanged++
		default:
			s.Updated++
		}
	}
	return s
}
