package records

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Self returns the viewer's own row, which needs no permission (contract U1).
// It returns UNAUTHORIZED when the user is gone.
func (s *Session) Self(ctx context.Context) (*user.User, error) {
	u, err := user.ByID(ctx, s.h, s.viewer.UserID())
	if errors.Is(err, user.ErrUnknown) {
		return nil, fault.New(fault.Unauthorized, "the user is unknown or not active")
	}
	return u, err
}

// unseen returns errUnseen for a user that does not exist, and any other error
// unchanged.
func unseen(err error) error {
	if errors.Is(err, user.ErrUnknown) {
		return errUnseen
	}
	return err
}

func (s *Session) listUsers(ctx context.Context, q Query) (Page, error) {
	r, err := s.rights(schema.UserEntity, "", access.Read)
	if err != nil {
		return Page{}, err
	}
	var only user.ID
	if s.viewer.External() {
		only = s.viewer.UserID()
	}
	if len(q.Fields) > 0 {
		return Page{}, fault.Fields("user has no selection of fields", map[string]string{"fields": "expected none for user"})
	}
	if len(q.Include) > 0 {
		return Page{}, fault.Fields("records of user are listed alone", map[string]string{"include": "expected none for user"})
	}
	if err := unsortedUsers(q.Sort); err != nil {
		return Page{}, err
	}
	if err := unsearchedUsers(q.Search); err != nil {
		return Page{}, err
	}
	email, filtered, err := emailFilter(r, &q)
	if err != nil {
		return Page{}, err
	}
	if filtered {
		only, err = s.only(ctx, email, only)
		if err != nil {
			return Page{}, err
		}
	}
	var at *user.User
	return s.page(ctx, schema.UserEntity, r, q, &plan{}, func(w window, each func(*row) error) error {
		if filtered && only == "" {
			return nil
		}
		return user.Page(ctx, s.h, only, w.after, w.before, w.limit, func(u *user.User) error {
			at = u
			return each(&row{id: string(u.ID), createdAt: u.CreatedAt})
		})
	}, func(dst []byte, _ *row) []byte { return renderUser(dst, r, at) }, nil)
}

// only returns the id of the user with an e-mail address, "" when there is none
// that the viewer may see.
func (s *Session) only(ctx context.Context, email string, own user.ID) (user.ID, error) {
	u, err := user.ByEmail(ctx, s.h, email)
	if errors.Is(err, user.ErrUnknown) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if own != "" && own != u.ID {
		return "", nil
	}
	return u.ID, nil
}
