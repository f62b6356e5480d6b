package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
)

// Service exports and imports for the console, by parts (contract Y17).
type Service struct{ o Options }

// Options are what a Service works with.
type Options struct {
	DB        *db.DB
	Records   *records.Store
	Directory *access.Directory
	Clock     clock.Clock
	// Query reads the query of a list.
	Query func(*url.URL) (records.Query, error)
}

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// Import creates and changes records of an entity type from an input.
//
// Where it stands is stored with each batch, in the same transaction. So an import that
// was interrupted in any way is continued behind the last record that had effect.
type Import struct {
	DB        *db.DB
	Records   *records.Store
	Directory *access.Directory
	Clock     clock.Clock
	// Viewer is who does it, and who owns records that name nobody.
	Viewer access.Viewer
	Entity string
	Format Format
	// By is the unique field by which records are found that are changed, or "id". Where
	// it is "", all records are new.
	By string
	// Ignore are columns and members that are left out.
	Ignore []string
	// Batch is how many records have effect together; 0 and more than records.MaxBatch
	// are records.MaxBatch.
	Batch int
	// Spreadsheet undoes Export.Spreadsheet.
	Spreadsheet bool
	// DryRun does everything and keeps nothing.
	DryRun bool
	// Resume continues an import of this input that was interrupted, and Restart begins
	// it anew.
	Resume, Restart bool
	// Failed is called with each record that failed, Note with what else the caller
	// should know, and Progress after each batch.
	Failed   func(Failure)
	Note     func(text string)
	Progress func(Result)

	told, ignored map[string]bool // the members that Note has named, and those of Ignore
}

// How long, and of how many imports of a tenant, it is known where they stand.
const (
	keepFor  = 30 * 24 * time.Hour
	maxKnown = 1000
)

// ErrTaken means that another process imports the same input. What it imports is its own.
var ErrTaken = errors.New("another process is importing this input")

// store keeps where imports stand.
type store struct {
	h     db.Handle
	clock clock.Clock
	name  named
}

// named is what an import is known by.
type named struct {
	entity string // as it is stored
	input  string // the digest of its first lines
}

// run is which run of an import came how far.
type run struct {
	id     string
	offset int64
}

// find returns where an import stands. known is false where there is none.
func (s *store) find(ctx context.Context) (at run, is state, known bool, err error) {
	err = s.h.Query(ctx, `SELECT run, done_bytes, finished, state FROM imports WHERE tenant_id = $1 AND entity = $2 AND input = $3 AND changed_at > $4`,
		func(r db.Row) error {
			at, known = run{r.Text(0), r.Int(1)}, true
			err := json.Unmarshal(r.Bytes(3), &is)
			is.Finished = r.Bool(2)
			return err
		}, s.name.entity, s.name.input, s.since())
	return at, is, known, err
}

func (s *store) since() int64 { return clock.Micros(s.clock.Now().Add(-keepFor)) }

// keep stores where an import stands. It returns ErrTaken unless the import stands at
// was, nil where it is not known.
func (s *store) keep(ctx context.Context, tx db.Tx, was *run, at run, is *state) error {
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	args := []any{s.name.entity, s.name.input, at.id, at.offset, is.Finished, string(text), clock.Micros(s.clock.Now())}
	var n int64
	if was == nil {
		n, err = tx.Exec(ctx, `INSERT INTO imports (tenant_id, entity, input, run, done_bytes, finished, state, changed_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT (tenant_id, entity, input) DO UPDATE SET run = excluded.run, done_bytes = excluded.done_bytes, finished = excluded.finished,
			state = excluded.state, changed_at = excluded.changed_at WHERE imports.changed_at <= $9`, append(args, s.since())...)
	} else {
		n, err = tx.Exec(ctx, `UPDATE imports SET run = $4, done_bytes = $5, finished = $6, state = $7, changed_at = $8
			WHERE tenant_id = $1 AND entity = $2 AND input = $3 AND run = $9 AND done_bytes = $10`, append(args, was.id, was.offset)...)
	}
	if err == nil && n == 0 {
		err = ErrTaken
	}
	if err != nil || was != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM imports WHERE tenant_id = $1 AND changed_at < (SELECT changed_at FROM imports WHERE tenant_id = $1
		ORDER BY changed_at DESC LIMIT 1 OFFSET $2)`, maxKnown-1)
	return err
}

// also returns what a batch does in its transaction: fn decides what is stored.
func (s *store) also(ctx context.Context, was *run, fn func(done []records.Done) (run, *state, error)) func(db.Tx, []records.Done) error {
	return func(tx db.Tx, done []records.Done) error {
		at, is, err := fn(done)
		if err != nil {
			return err
		}
		return s.keep(ctx, tx, was, at, is)
	}
}

// finish stores that an import has ended, and forgets old ones.
func (s *store) finish(ctx context.Context, was *run, at run, is *state) error {
	return s.h.Write(ctx, func(tx db.Tx) error {
		if err := s.keep(ctx, tx, was, at, is); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM imports WHERE tenant_id = $1 AND changed_at <= $2`, s.since())
		return err
	})
}

// store returns where the import is kept.
func (im *Import) store(entity, input string) *store {
	return &store{h: im.DB.For(im.Viewer.Tenant()), clock: im.Clock, name: named{entity, input}}
}
