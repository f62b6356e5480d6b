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

// Store holds the records of every tenant. It offers nothing but As.
type Store struct {
	d         *db.DB
	dir       *access.Directory
	clock     clock.Clock
	cursorKey []byte
	written   *admission.Budget // what units hold, by tenant
	cores     *admission.Cores  // that long pages are built in, nil without bound
	remote    bool              // a server reads the rows, not this process
	heavy     *admission.Gate   // for who makes a server read large records, by tenant; nil without a server
}

// New returns the store over a database. cursorKey authenticates cursors: it
// must be secret, and the same on every node.
func New(d *db.DB, dir *access.Directory, clk clock.Clock, cursorKey []byte) *Store {
	return &Store{
		d: d, dir: dir, clock: clk, cursorKey: cursorKey, written: admission.NewBudget(maxAllWritten), remote: d.Engine() != db.SQLite,
	}
}

// Share makes long pages take turns at the cores with whatever else computes
// there; it returns the store. It must be called before the store is used.
//
// A database server that reads large records computes for longer than this
// process does with them, and serves all its connections alike. So of one tenant
// no more such reads go on at once than there are cores to build their answers.
func (s *Store) Share(cores *admission.Cores) *Store {
	s.cores = cores
	if cores != nil && s.remote {
		s.heavy = admission.NewGate(admission.Limits{
			Running: 2 * cores.Count(), PerKey: cores.Count(), Waiting: maxHeavy, WaitingPerKey: maxHeavy / 2, MaxWait: maxHeavyWait,
		})
	}
	return s
}

// What may wait for a place among the heavy reads.
const (
	maxHeavy     = 1024
	maxHeavyWait = 10 * time.Second
)

// heavyRead takes a place among those who make a database server read large
// records; leave gives it back. Where there is no server there is a place for all.
func (s *Session) heavyRead(ctx context.Context) (leave func(), err error) {
	if s.store.heavy == nil {
		return func() {}, nil
	}
	leave, err = s.store.heavy.Enter(ctx, s.viewer.Tenant())
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "too many large records are being read").After(time.Second)
	}
	return leave, err
}

// As returns the store as viewer may use it.
func (s *Store) As(viewer access.Viewer) *Session {
	return &Session{store: s, viewer: viewer, h: s.d.For(viewer.Tenant())}
}

// Session is the store as one viewer may use it. Its methods return *fault.Error
// for whatever the viewer may know: NOT_FOUND, FORBIDDEN, VALIDATION, CONFLICT.
type Session struct {
	store  *Store
	viewer access.Viewer
	h      db.Handle
	holder Holder // nil holds anything
}

// Holder bounds what is built for one caller.
type Holder interface {
	// Hold is told how many bytes of one answer there are by now. Its error ends
	// the call, of which nothing has happened then.
	Hold(n int) error
}

// Within makes a holder bound the answers of the session; it returns the session.
func (s *Session) Within(h Holder) *Session {
	s.holder = h
	return s
}

// hold tells the holder how long an answer is by now.
func (s *Session) hold(n int) error {
	if s.holder == nil {
		return nil
	}
	return s.holder.Hold(n)
}

// maxRenewals bounds how often a write starts again because the tenant's
// configuration changed under it.
const maxRenewals = 10

// current runs a write with a viewer of the configuration that holds during it:
// when fn finds the configuration moved on (errStale), the viewer is renewed.
func (s *Session) current(ctx context.Context, fn func(*Session) error) error {
	at := s
	for range maxRenewals {
		err := fn(at)
		if !errors.Is(err, errStale) {
			return err
		}
		viewer, err := s.store.dir.Renew(ctx, at.viewer)
		if err != nil {
			return err
		}
		at = &Session{store: s.store, viewer: viewer, h: s.h, holder: s.holder}
	}
	return fault.New(fault.Overloaded, "the configuration changes too fast to write").After(time.Second)
}
