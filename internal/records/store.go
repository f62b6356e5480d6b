package records

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

// Store holds the records of every tenant. They are reached only through As.
type Store struct {
	d         *db.DB
	dir       *access.Directory
	clock     clock.Clock
	cursorKey []byte
	written   *admission.Budget // bytes that units hold, by tenant
	cores     *admission.Cores  // the cores on which long pages are built and long batches prepared; nil means no bound
	remote    bool              // a database server reads the rows, not this process
	asking    *admission.Gate   // admits explanations and counts of what changes open, by tenant
	counting  *admission.Gate   // admits counts of lists, by tenant
	sifts     int               // how many rows are looked at for one page
	batches   *batchGates       // admit batches, by tenant; nil means no bound
	heavy     *admission.Gate   // admits reads of large records, by tenant; nil where this process reads them
}

// New returns the store over a database. cursorKey authenticates cursors: it
// must be secret, and the same on every node.
func New(d *db.DB, dir *access.Directory, clk clock.Clock, cursorKey []byte) *Store {
	return &Store{
		d: d, dir: dir, clock: clk, cursorKey: cursorKey, written: admission.NewBudget(maxAllWritten), remote: d.Engine() != db.SQLite,
		asking: newAsking(), counting: newCounting(), sifts: maxSifted,
	}
}

// Share makes long pages and batches take turns on the cores with all other work on them.
// It returns the store, and must be called before the store is used.
//
// A database server spends more time reading large records than this process
// spends on them, and treats all its connections alike. So one tenant may have
// at most as many such reads at a time as there are cores to build their
// answers.
func (s *Store) Share(cores *admission.Cores) *Store {
	s.cores = cores
	if cores != nil {
		s.batches = newBatchGates(cores.Count())
	}
	if cores != nil && s.remote {
		s.heavy = admission.NewGate(admission.Limits{
			Running: 2 * cores.Count(), PerKey: cores.Count(), Waiting: maxHeavy, WaitingPerKey: maxHeavy / 2, MaxWait: maxHeavyWait,
		})
	}
	return s
}

// How many heavy reads may wait, and for how long.
const (
	maxHeavy     = 1024
	maxHeavyWait = 10 * time.Second
)

// heavyRead acquires a slot for a read of large records on a database server;
// leave releases it. It returns OVERLOADED when too many reads wait. Without a
// database server there is no limit.
func (s *Session) heavyRead(ctx context.Context) (leave func(), err error) {
	if s.store.heavy == nil {
		return func() {}, nil
	}
	leave, err = s.store.heavy.Enter(ctx, string(s.viewer.Tenant()))
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "too many large records are being read").After(time.Second)
	}
	return leave, err
}

// As returns the store as viewer may use it.
func (s *Store) As(viewer access.Viewer) *Session {
	return &Session{store: s, viewer: viewer, h: s.d.For(viewer.Tenant())}
}

// Session is the store as one viewer may use it. Errors that the viewer may see
// are of type *fault.Error; each method names their codes. Methods also return
// the error of the session's Holder. A write returns UNAUTHORIZED when the
// viewer was deactivated meanwhile, and OVERLOADED when the configuration keeps
// changing. Any other error is db's.
type Session struct {
	store  *Store
	viewer access.Viewer
	h      db.Handle
	holder Holder // nil means no bound
	// expected is the version that Update expects, 0 for any.
	expected int64
	// matches is what the viewer must read of a record that Update and Delete are to
	// change, nil for anything.
	matches func(Record) bool
	// keepEqual is that of a Batch.
	keepEqual bool
	work      *admission.Work // on the cores, nil for none; see working
}

// working returns the session that asks the database for a work.
func (s *Session) working(work *admission.Work) *Session {
	at := *s
	at.h, at.work = pausing{s.h, work}, work
	return &at
}

// pausing asks the database for a work, which holds no core meanwhile: who has the
// connections may be waiting for that core.
type pausing struct {
	db.Handle
	work *admission.Work
}

func (p pausing) Query(ctx context.Context, sql string, each func(db.Row) error, args ...any) error {
	had := p.work.Pause()
	err := p.Handle.Query(ctx, sql, each, args...)
	if had && err == nil {
		err = p.work.Resume()
	}
	return err
}

// Holder bounds what is built for one caller.
type Holder interface {
	// Hold is called with the size so far of one answer in bytes. Its error
	// ends the call, which in that case has changed nothing.
	Hold(n int) error
}

// Within makes a holder bound the answers of the session. It returns the
// session.
func (s *Session) Within(h Holder) *Session {
	s.holder = h
	return s
}

// hold reports the size so far of an answer to the holder.
func (s *Session) hold(n int) error {
	if s.holder == nil {
		return nil
	}
	return s.holder.Hold(n)
}

// MaxRenewals bounds how often a write, or a run, starts again because the tenant's
// configuration changed meanwhile.
const MaxRenewals = 10

// ErrUnsettled refuses what would have to start again once more.
var ErrUnsettled = fault.New(fault.Overloaded, "the configuration changes too fast to write; nothing was done").After(time.Second)

// current runs a write with a viewer of the current configuration: when fn
// returns errStale, it renews the viewer and runs fn again. It returns
// OVERLOADED when the configuration keeps changing.
func (s *Session) current(ctx context.Context, fn func(*Session) error) error {
	at := s
	for range MaxRenewals {
		err := fn(at)
		if !errors.Is(err, errStale) {
			return err
		}
		viewer, err := s.store.dir.Renew(ctx, at.viewer)
		if err != nil {
			return err
		}
		at = &Session{store: s.store, viewer: viewer, h: s.h, holder: s.holder, expected: s.expected, matches: s.matches}
	}
	return ErrUnsettled
}
