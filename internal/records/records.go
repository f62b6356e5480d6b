// Package records is the permission-checked store of records.
//
// There is one way in: Store.As(viewer) gives a Session, and a Session does
// only what its viewer may. Which records a verb reaches is decided by
// access.Scope and turned into SQL by one predicate (predicate.go); which
// fields, by one mask (render.go, validate.go). A record the viewer may not see
// is answered exactly like one that does not exist.
//
// Records are listed by created_at and id, newest first. created_at strictly
// grows per tenant in commit order (decisions 2.10), so no two records share
// it, it alone is that order, and paging by it is stable and complete.
package records

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Member is one member of a record's JSON object, as a caller sent it.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Record is a record as its viewer may read it: one flat JSON object
// (decisions 2.6).
type Record jsontext.Value

// ID is the record's id, which every form of it begins with.
func (r Record) ID() string {
	const before = `{"id":"`
	if len(r) < len(before)+idLength {
		return ""
	}
	return string(r[len(before) : len(before)+idLength])
}

// idLength is the length of a UUID as text.
const idLength = 36

// row is a record as it is stored.
type row struct {
	id, owner, ownerRole string
	createdAt, updatedAt int64 // microseconds UTC
	version              int64
	data                 jsontext.Value
	allowed              bool // the asked verb reaches it, not only read
}

var (
	errUnseen = fault.New(fault.NotFound, "there is no such record")
	// errStale says that the configuration moved on since the viewer was built.
	errStale = errors.New("configuration changed")
)

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
