// Package records is the permission-checked store of records.
//
// The only way in is Store.As(viewer), which returns a Session that does only
// what its viewer is allowed to do. access.Scope decides which records a verb
// reaches, as a union of ways (way.go), and one predicate turns it into SQL
// (predicate.go); one mask decides which fields (render.go, validate.go). A
// record that the viewer may not see gets exactly the answer of one that does
// not exist (contract E2). The verbs that change records are written once, for
// a transaction and for a unit of work (verbs.go).
//
// Records are listed by created_at and id, newest first. created_at strictly
// grows per tenant in commit order (contract R15). So no two records share a
// created_at, it determines the order by itself, and paging by it is stable and
// complete.
package records

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

// Member is one member of a record's JSON object, as a caller sent it.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Record is a record as its viewer may read it: one flat JSON object (contract
// R2).
type Record jsontext.Value

// ID returns the record's id, with which every form of a record begins.
func (r Record) ID() string {
	const before = `{"id":"`
	if len(r) < len(before)+idLength {
		return ""
	}
	return string(r[len(before) : len(before)+idLength])
}

// idLength is the length of a UUID as text.
const idLength = 36

// row is a record as stored.
type row struct {
	id, ownerRole        string
	owner                user.ID
	createdAt, updatedAt int64 // microseconds UTC
	version              int64
	data                 jsontext.Value
	allowed              bool     // whether the verb in question, not only read, reaches it
	keys                 []string // of its place, where it was read in an order
	missed               bool     // an index says that a filter does not match it; the row has its place alone
}

// standing returns the part of a record's standing that the row determines.
func (rec *row) standing(values []jsontext.Value, shares []string) standing {
	return standing{id: rec.id, values: values, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, shares: shares}
}

var (
	errUnseen = fault.New(fault.NotFound, "there is no such record")
	// errStale means that the configuration has changed since the viewer was
	// built.
	errStale = errors.New("configuration changed")
)

// on returns the viewer's rights on an entity type if they include verb. It
// returns NOT_FOUND or FORBIDDEN otherwise.
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

// May checks whether the viewer may perform verb on an entity type at all. It
// returns NOT_FOUND when there is no such type, and FORBIDDEN when the viewer
// may not.
func (s *Session) May(entity string, verb access.Verb) error {
	_, err := s.rights(entity, "", verb)
	return err
}
