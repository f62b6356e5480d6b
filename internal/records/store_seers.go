package records

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Seer is a user who sees a record.
type Seer struct {
	User  *user.User
	Verbs []access.Verb // what they may do with it, Read first
	Text  string        // what opens it, in words
	More  int           // further reasons
}

// Seers is one page of the users who see a record.
type Seers struct {
	List []Seer
	// Looked is how many users were looked at for this page.
	Looked int
	// Next continues the list; "" when every user was looked at.
	Next string
}

// How many users one page looks at, and for how long.
const (
	maxSeers   = 100
	seersTime  = time.Second
	seersScope = "seers"
)

// Ref names a record.
type Ref struct{ Entity, ID string }

// Seers lists the active users of a type who see a record that the session's own
// viewer may read, newest users first. cursor is "" or the Next of the page before.
// Who may see these users is the caller's to decide. Its errors are Explain's, and
// VALIDATION for a cursor of another list.
func (s *Session) Seers(ctx context.Context, rec Ref, of user.Type, cursorText string) (*Seers, error) {
	entity, id := rec.Entity, rec.ID
	r, err := s.mayAsk(ctx, s.viewer, entity, id)
	if err != nil {
		return nil, err
	}
	bound := cursorScope(s.viewer.Tenant(), entity, &Query{Filter: []Filter{{Field: seersScope, Value: id}, {Field: "type", Value: string(of)}}})
	var at cursor
	if cursorText != "" {
		if at, err = decodeCursor(s.store.cursorKey, bound, cursorText); err != nil {
			return nil, err
		}
	}
	bounded, s, leave, err := s.question(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var users []*user.User
	err = user.PageOfType(bounded, s.h, of, at.before, maxSeers, func(u *user.User) error {
		users = append(users, u)
		return nil
	})
	if err != nil {
		return nil, tooLong(ctx, err)
	}
	page, begun := &Seers{}, time.Now()
	for _, u := range users {
		if err := s.work.Yield(); err != nil {
			return nil, tooLong(ctx, err)
		}
		seer, err := s.seer(bounded, u, r, id)
		if err != nil {
			return nil, tooLong(ctx, err)
		}
		if seer != nil {
			page.List = append(page.List, *seer)
		}
		page.Looked++
		at.before, at.beforeID = u.CreatedAt, string(u.ID)
		if time.Since(begun) > seersTime {
			break
		}
	}
	if page.Looked < len(users) || len(users) == maxSeers {
		page.Next = at.encode(s.store.cursorKey, bound)
	}
	return page, nil
}

// seer returns what a user may do with a record, or nil when they do not see it.
func (s *Session) seer(ctx context.Context, u *user.User, r *access.EntityRights, id string) (*Seer, error) {
	s.work.Pause() // as in pausing
	of, err := s.store.dir.Viewer(ctx, s.viewer.Config(), u.ID, true)
	if resumed := s.work.Resume(); err == nil {
		err = resumed
	}
	if fault.CodeOf(err) == fault.Unauthorized {
		return nil, nil // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	if r.Entity.Name != schema.UserEntity {
		of, err := of.On(r.Entity.Name)
		if err != nil || !of.May(access.Read) {
			return nil, err
		}
		if seen, err := inScope(ctx, s.h, of.Scope(access.Read), r.Entity, id); err != nil || !seen {
			return nil, err
		}
	}
	why, err := s.explain(ctx, of, r.Entity.Name, id)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Why: why}
	x.mask(s.viewer, r)
	seer := &Seer{User: u}
	for _, v := range why.Verbs {
		if v.Code == "" {
			seer.Verbs = append(seer.Verbs, v.Verb)
		}
	}
	if !slices.Contains(seer.Verbs, access.Read) {
		return nil, nil
	}
	for _, reason := range why.strongest() {
		if seer.Text == "" {
			seer.Text = reason.Text
		} else {
			seer.More++
		}
	}
	return seer, nil
}

// Subject returns a user of the viewer's tenant, active or not, and the viewer that
// an explanation about them takes. It returns NOT_FOUND when there is no such user.
// Whether the session's viewer may ask about them is the caller's to decide.
func (s *Session) Subject(ctx context.Context, id user.ID) (access.Viewer, *user.User, error) {
	u, err := user.ByID(ctx, s.h, id)
	if errors.Is(err, user.ErrUnknown) {
		return access.Viewer{}, nil, fault.New(fault.NotFound, "there is no such user")
	}
	if err != nil {
		return access.Viewer{}, nil, err
	}
	of, err := s.store.dir.Viewer(ctx, s.viewer.Config(), id, true)
	return of, u, err
}
