package schema

import (
	"fmt"
	"slices"
)

// MaxControl is the greatest number of ancestors that a record may have.
const MaxControl = 5

// Link is one step from a record to its parent, by stored names.
type Link struct {
	// Member is the name, in the record's stored data, of the value that refers
	// to the parent (Field.MemberName).
	Member string `json:"member"`
	// Entity is the parent's entity type (Entity.StoredAs).
	Entity string `json:"entity"`
}

// Controller returns the field that refers to the parent of the type's records,
// or nil if the type is not controlled by a parent.
func (e *Entity) Controller() *Field {
	if e.ControlledBy == "" {
		return nil
	}
	return e.Field(e.ControlledBy)
}

// Parent returns the entity type whose records decide who reaches those of e,
// or nil.
func (s *Schema) Parent(e *Entity) *Entity {
	if f := e.Controller(); f != nil && f.Type == Reference {
		return s.Entity(f.Target)
	}
	return nil
}

// Chain returns the links from a record of e to its root: none if e is not
// controlled by a parent. The schema must have passed CheckControl.
func (s *Schema) Chain(e *Entity) (links []Link) {
	for at := s.Parent(e); at != nil && len(links) <= MaxControl; at = s.Parent(e) {
		links = append(links, Link{e.Controller().MemberName(), at.StoredAs()})
		e = at
	}
	return links
}

// CheckControl returns the first mistake in what controls an entity type, in
// words for its author, or nil: the field must be a required reference to an
// entity type, and lead to a root in at most MaxControl steps.
func (s *Schema) CheckControl(e *Entity) error {
	if e.ControlledBy == "" {
		return nil
	}
	f := e.Controller()
	switch {
	case f == nil:
		return fmt.Errorf("entity %s: sharing: controlled_by: there is no field %q: expected a required reference of the entity", e.Name, e.ControlledBy)
	case f.Type != Reference || s.Entity(f.Target) == nil:
		return fmt.Errorf("entity %s: sharing: controlled_by: field %s is a %s: expected a reference to an entity", e.Name, f.Name, f.Describe())
	case !f.Required:
		return fmt.Errorf("entity %s: sharing: controlled_by: field %s is not required: a record without a parent would be seen by nobody", e.Name, f.Name)
	}
	passed := []*Entity{e}
	for at := s.Parent(e); at != nil; at = s.Parent(at) {
		if slices.Contains(passed, at) {
			return fmt.Errorf("entity %s: sharing: controlled_by: %s leads back to %s: expected a chain that ends at an entity that is not controlled",
				e.Name, f.Name, at.Name)
		}
		if len(passed) > MaxControl {
			return fmt.Errorf("entity %s: sharing: controlled_by: %s has more than %d entities above it", e.Name, e.Name, MaxControl)
		}
		passed = append(passed, at)
	}
	return nil
}
