package records

import (
	"context"
	"encoding/json"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Look is a record as somebody has it before them who may be about to change it.
type Look struct {
	Record Record
	// Version is what Expecting takes. Each change of the record changes it.
	Version int64
	// Update and Delete report whether the viewer may do so with this record. Who
	// may delete it may share it (contract A1).
	Update, Delete bool
}

// Look reads one record as Get does, with what is needed to change it. Its errors
// are Get's.
func (s *Session) Look(ctx context.Context, entity, id string) (*Look, error) {
	r, err := s.rights(entity, id, access.Read)
	if err != nil {
		return nil, err
	}
	if entity == schema.UserEntity {
		u, err := user.ByID(ctx, s.h, user.ID(id))
		if err != nil {
			return nil, unseen(err)
		}
		out, err := s.held(renderUser(nil, r, u))
		return &Look{Record: out, Version: u.UpdatedAt, Update: r.May(access.Update)}, err
	}
	rec, err := find(ctx, s.h, r, id, access.Update, "")
	if err != nil {
		return nil, err
	}
	look := &Look{Version: rec.version, Update: r.May(access.Update) && rec.allowed}
	if r.May(access.Delete) {
		if look.Delete, err = inScope(ctx, s.h, r.Scope(access.Delete), r.Entity, id); err != nil {
			return nil, err
		}
	}
	look.Record, err = s.held(render(nil, r, rec))
	return look, err
}

// Expecting makes Update refuse a record that has another version than the one that
// the caller knows (Look.Version): it returns CONFLICT, whose details have the
// version that is stored, and the record if the viewer may read it. It returns the
// session. 0 expects nothing.
func (s *Session) Expecting(version int64) *Session {
	s.expected = version
	return s
}

// Matching makes Update and Delete refuse a record of which match does not hold, as
// the viewer reads it at that instant: they return PRECONDITION_FAILED. It is called
// with nil where the viewer may not read the entity type. It returns the session.
func (s *Session) Matching(match func(Record) bool) *Session {
	s.matches = match
	return s
}

// meets returns CONFLICT unless a version is the one that the session expects, and
// PRECONDITION_FAILED unless the record matches.
func (s *Session) meets(r *access.EntityRights, version int64, show func() Record) error {
	if s.matches != nil {
		var rec Record
		if r.May(access.Read) {
			rec = show()
		}
		if !s.matches(rec) {
			return fault.New(fault.PreconditionFailed, "the record is another one than If-Match names: read it again")
		}
	}
	if s.expected == 0 || s.expected == version {
		return nil
	}
	conflict := fault.New(fault.Conflict, "it was changed by somebody else meanwhile").With("version", version)
	if !r.May(access.Read) {
		return conflict
	}
	rec, err := s.held(show())
	if err != nil {
		return err
	}
	return conflict.With("record", json.RawMessage(rec))
}
