package records

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// The built-in entity type user (contract U3–U6): internal users with the
// permission see every user, an external user sees only their own row.

var (
	errUsersClosed = fault.New(fault.Forbidden, "users are not created or deleted here")
	errNoUser      = fault.New(fault.NotFound, "there is no such record")
)

// onUsers returns the viewer's rights on user if they include verb.
func (s *Session) onUsers(verb access.Verb) (*access.EntityRights, error) {
	r, err := s.viewer.OnUsers()
	if err != nil {
		return nil, err
	}
	if !r.May(verb) {
		return nil, fault.New(fault.Forbidden, "you may not %s records of user", verb)
	}
	return r, nil
}

// mayMeet reports whether the viewer may see the user's row at all.
func (s *Session) mayMeet(id user.ID) bool { return !s.viewer.External() || id == s.viewer.UserID() }

// Self returns the viewer's own row, which needs no permission (contract U1).
// It returns UNAUTHORIZED when the user is gone.
func (s *Session) Self(ctx context.Context) (*user.User, error) {
	u, err := user.ByID(ctx, s.h, s.viewer.UserID())
	if errors.Is(err, user.ErrUnknown) {
		return nil, fault.New(fault.Unauthorized, "the user is unknown or not active")
	}
	return u, err
}

func (s *Session) getUser(ctx context.Context, id user.ID) (Record, error) {
	r, err := s.onUsers(access.Read)
	if err != nil {
		return nil, err
	}
	if !s.mayMeet(id) {
		return nil, errNoUser
	}
	u, err := user.ByID(ctx, s.h, id)
	if errors.Is(err, user.ErrUnknown) {
		return nil, errNoUser
	}
	if err != nil {
		return nil, err
	}
	out := renderUser(nil, r, u)
	return out, s.hold(len(out))
}

func (s *Session) listUsers(ctx context.Context, q Query) (Page, error) {
	r, err := s.onUsers(access.Read)
	if err != nil {
		return Page{}, err
	}
	var only user.ID
	if s.viewer.External() {
		only = s.viewer.UserID()
	}
	email, filtered, err := emailFilter(r, q.Filter)
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
	return s.page(ctx, schema.UserEntity, r.Scope(access.Read), q, func(w window, each func(*row) error) error {
		if filtered && only == "" {
			return nil
		}
		return user.Page(ctx, s.h, only, w.after, w.before, w.limit, func(u *user.User) error {
			at = u
			return each(&row{id: string(u.ID), createdAt: u.CreatedAt})
		})
	}, func(dst []byte, _ *row) []byte { return renderUser(dst, r, at) })
}

// emailFilter returns the value of the only filter that user has (contract U6).
func emailFilter(r *access.EntityRights, list []Filter) (email string, ok bool, err error) {
	for _, f := range list {
		if f.Field != "email" || !r.Column("email").Read {
			return "", false, fault.Fields("the filter names a field it cannot use",
				map[string]string{f.Field: "user can be filtered by email alone"})
		}
		email, ok = f.Value, true
	}
	return email, ok, nil
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

// updateUser changes name, locale and custom fields; any other change is
// refused (contract U5).
func (s *Session) updateUser(ctx context.Context, id user.ID, members []Member) (Record, error) {
	var out Record
	err := s.current(ctx, func(s *Session) error {
		r, err := s.onUsers(access.Update)
		if err != nil {
			return err
		}
		if !s.mayMeet(id) {
			return errNoUser
		}
		return s.h.Write(ctx, func(tx db.Tx) error {
			if err := s.fence(ctx, tx); err != nil {
				return err
			}
			u, err := lockUser(ctx, tx, id)
			if err != nil {
				return err
			}
			if err := s.changeUser(ctx, tx, r, u, members); err != nil {
				return err
			}
			out = showUser(r, u)
			return s.hold(len(out))
		})
	})
	return out, err
}

func lockUser(ctx context.Context, tx db.Tx, id user.ID) (*user.User, error) {
	u, err := user.Lock(ctx, tx, id)
	if errors.Is(err, user.ErrUnknown) {
		err = errNoUser
	}
	return u, err
}

// changeUser applies a patch to a locked user and writes it.
func (s *Session) changeUser(ctx context.Context, tx db.Tx, r *access.EntityRights, u *user.User, members []Member) error {
	if err := s.editUser(r, u, members); err != nil || len(members) == 0 {
		return err
	}
	return user.UpdateProfile(ctx, tx, u)
}

// editUser applies a patch to a user in memory.
func (s *Session) editUser(r *access.EntityRights, u *user.User, members []Member) error {
	if err := patchUser(r, u, members); err != nil || len(members) == 0 {
		return err
	}
	u.UpdatedAt = max(clock.Micros(s.store.clock.Now()), u.UpdatedAt)
	return nil
}

// showUser returns what the viewer may see of a user they changed.
func showUser(r *access.EntityRights, u *user.User) Record {
	if !r.May(access.Read) {
		return renderID(string(u.ID))
	}
	return renderUser(nil, r, u)
}

func patchUser(r *access.EntityRights, u *user.User, members []Member) error {
	in := &input{values: make([]jsontext.Value, len(r.Entity.Fields))}
	forbidden := map[string]string{}
	var custom []Member
	for _, m := range members {
		switch m.Name {
		case "id", "email", "userType", "isOwner", "active", "created_at", "updated_at":
			fixed := m.Name == "id" || m.Name == "created_at" || m.Name == "updated_at"
			switch same := string(m.Value) == string(userColumn(u, m.Name)); {
			case !fixed && !r.Column(m.Name).Read:
				in.fail(m.Name, "unknown field")
			case fixed && !same:
				in.fail(m.Name, "is set by the service and cannot be changed")
			case !same:
				forbidden[m.Name] = "is not changed here"
			}
		case "name", "locale":
			g := r.Column(m.Name)
			switch {
			case !g.Read:
				in.fail(m.Name, "unknown field")
			case !g.Edit:
				forbidden[m.Name] = "you may not edit this field"
			default:
				in.profile(u, m)
			}
		default:
			custom = append(custom, m)
		}
	}
	rest := checkFields(r, custom)
	maps.Copy(forbidden, rest.forbidden)
	if len(forbidden) > 0 {
		return errForbidden(forbidden)
	}
	if rest.owner != "" {
		in.fail("owner_id", "unknown field")
	}
	before := stored(r.Entity, u.Custom)
	values := slices.Clone(before)
	for i, v := range rest.values {
		if v != nil {
			values[i] = v
		}
	}
	rest.weigh(r.Entity, before, values, u.Custom)
	for name, reason := range rest.reasons {
		in.fail(name, reason)
	}
	if err := in.err(); err != nil {
		return err
	}
	u.Custom = document(r.Entity, values, u.Custom)
	return nil
}

// profile sets a user's name or locale; null is no locale. What a user has
// already may be sent back, whatever was taken when it was set.
func (in *input) profile(u *user.User, m Member) {
	column, check := &u.Name, user.CheckName
	if m.Name == "locale" {
		column, check = &u.Locale, user.CheckLocale
	}
	text := schema.Unquote(m.Value)
	if m.Name == "locale" && schema.IsNull(m.Value) {
		text = ""
	} else if m.Value.Kind() != '"' {
		in.fail(m.Name, "expected text")
		return
	}
	if text == *column {
		return
	}
	text = strings.TrimSpace(text)
	if err := check(text); err != nil {
		in.fail(m.Name, err.Error())
		return
	}
	*column = text
}

// userColumn returns a built-in member of a user as JSON.
func userColumn(u *user.User, name string) jsontext.Value {
	text := func(s string) jsontext.Value {
		b, err := jsontext.AppendQuote(nil, s)
		if err != nil {
			b, _ = jsontext.AppendQuote(nil, strconv.QuoteToASCII(s))
		}
		return b
	}
	switch name {
	case "id":
		return text(string(u.ID))
	case "email":
		return text(u.Email)
	case "name":
		return text(u.Name)
	case "locale":
		return text(u.Locale)
	case "userType":
		return text(string(u.Type))
	case "isOwner":
		return strconv.AppendBool(nil, u.Owner)
	case "active":
		return strconv.AppendBool(nil, u.Active)
	case "created_at":
		return text(string(clock.AppendRFC3339Micro(nil, u.CreatedAt)))
	default: // updated_at
		return text(string(clock.AppendRFC3339Micro(nil, u.UpdatedAt)))
	}
}

func renderUser(dst []byte, r *access.EntityRights, u *user.User) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, userColumn(u, "id")...)
	for _, name := range access.UserColumns {
		if r.Column(name).Read {
			dst = append(dst, `,"`+name+`":`...)
			dst = append(dst, userColumn(u, name)...)
		}
	}
	for _, name := range []string{"created_at", "updated_at"} {
		dst = append(dst, `,"`+name+`":`...)
		dst = append(dst, userColumn(u, name)...)
	}
	dst = renderFields(dst, r, u.Custom)
	return append(dst, '}')
}
