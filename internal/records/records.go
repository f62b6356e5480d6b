// Package records is the permission-checked store of records.
//
// There is one way in: Store.As(viewer) gives a Session, and a Session does
// only what its viewer may. Which records a verb reaches is decided by
// access.Scope and turned into SQL by one predicate (predicate.go); which
// fields, by one mask (render.go, validate.go). A record the viewer may not see
// is answered exactly like one that does not exist.
//
// Records are listed by created_at and id, newest first. created_at strictly
// grows per tenant and an id is made from it, so the order of ids alone is
// that order (decisions 2.10), and paging by id is stable and complete.
package records

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Store holds the records of every tenant. It offers nothing but As.
type Store struct {
	d         *db.DB
	dir       *access.Directory
	clock     clock.Clock
	cursorKey []byte
}

// New returns the store over a database. cursorKey authenticates cursors: it
// must be secret, and the same on every node.
func New(d *db.DB, dir *access.Directory, clk clock.Clock, cursorKey []byte) *Store {
	return &Store{d: d, dir: dir, clock: clk, cursorKey: cursorKey}
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
}

// Member is one member of a record's JSON object, as a caller sent it.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Record is a record as its viewer may read it: one flat JSON object
// (decisions 2.6).
type Record = jsontext.Value

// row is a record as it is stored.
type row struct {
	id, owner, ownerRole string
	createdAt, updatedAt int64 // microseconds UTC
	createdBy            string
	version              int64
	data                 jsontext.Value
	allowed              bool // the asked verb reaches it, not only read
}

var (
	errUnseen = fault.New(fault.NotFound, "there is no such record")
	// errStale says that the configuration moved on since the viewer was built.
	errStale = errors.New("configuration changed")
)

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
		at = &Session{store: s.store, viewer: viewer, h: s.h}
	}
	return fault.New(fault.Overloaded, "the configuration changes too fast to write").After(1e9)
}

// on is the viewer's rights on an entity type, when they include verb.
func (s *Session) on(entity string, verb access.Verb) (*access.EntityRights, error) {
	r, err := s.viewer.On(entity)
	if err != nil {
		return nil, err
	}
	if !r.May(verb) {
		return nil, fault.New(fault.Forbidden, "you may not %s records of %s", verb, entity)
	}
	return r, nil
}

// May reports whether the viewer may do verb with an entity type at all:
// NOT_FOUND when there is none of that name, FORBIDDEN when they may not.
func (s *Session) May(entity string, verb access.Verb) error {
	if entity == schema.UserEntity {
		if verb == access.Create || verb == access.Delete {
			return errUsersClosed
		}
		_, err := s.onUsers(verb)
		return err
	}
	_, err := s.on(entity, verb)
	return err
}
