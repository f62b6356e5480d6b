package records

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/wtf8"
)

// Share is one record shared with one principal (access.UserPrincipal,
// access.RolePrincipal).
type Share struct {
	Principal access.Principal
	Access    access.Level
	CreatedAt int64 // microseconds UTC
	CreatedBy string
}

// With names the principal that a record is shared with: a user, by id or
// e-mail address, or a role. Exactly one of the two is set.
type With struct{ User, Role string }

// MaxShares is how many shares a record may have (contract A17). A list of
// shares returns all of them, and a deletion reads all of them.
const MaxShares = 1000

// maxShareBytes is larger than any rendered share.
const maxShareBytes = 256

var errShares = fault.New(fault.Conflict, "a record may have at most %d shares; share it with a role instead", MaxShares)

// AppendJSON appends the share as its viewers read it (contract A16).
func (sh Share) AppendJSON(dst []byte) []byte {
	dst = append(appendPrincipal(dst, sh.Principal), `,"access":`...)
	dst = wtf8.AppendUTF8(dst, string(sh.Access))
	dst = append(dst, `,"created_at":"`...)
	return append(clock.AppendRFC3339Micro(dst, sh.CreatedAt), `"}`...)
}

// appendUnshared appends the answer for a removed share.
func appendUnshared(dst []byte, principal access.Principal) []byte {
	return append(appendPrincipal(dst, principal), `,"deleted":true}`...)
}

// appendPrincipal appends the beginning of an object: user and role, one of
// which is null.
func appendPrincipal(dst []byte, principal access.Principal) []byte {
	dst = append(dst, `{"user":`...)
	if id, ok := principal.User(); ok {
		return append(wtf8.AppendUTF8(dst, string(id)), `,"role":null`...)
	}
	name, _ := principal.Role()
	return wtf8.AppendUTF8(append(dst, `null,"role":`...), name)
}

const (
	oneOf    = "expected one of user and role"
	levels   = "expected read or edit"
	notValid = "some fields are not valid"
)

// checkWith returns VALIDATION, with the fields, unless with names one of user
// and role.
func checkWith(with With) error {
	if (with.User == "") != (with.Role == "") {
		return nil
	}
	return fault.Fields(oneOf, map[string]string{"user": oneOf, "role": oneOf})
}

// checkLevel returns VALIDATION for a level that shares do not have.
func checkLevel(level access.Level) error {
	if level == access.ReadOnly || level == access.Edit {
		return nil
	}
	return fault.Fields("access: "+levels, map[string]string{"access": levels})
}

// checkGiven is checkWith and checkLevel.
func checkGiven(with With, level access.Level) error {
	if err := checkWith(with); err != nil {
		return err
	}
	return checkLevel(level)
}

// sharable returns the viewer's rights on an entity type if they may share the
// records of it that are theirs (contract A1). It returns CONFLICT for a type
// whose records are controlled by a parent (contract A21).
func (s *Session) sharable(entity string) (*access.EntityRights, error) {
	r, err := s.on(entity, access.Read) // not for users, which are not shared
	if err != nil {
		return nil, err
	}
	if f := r.Entity.Controller(); f != nil {
		return nil, fault.New(fault.Conflict, "records of %s have no shares: who may see one follows from its %s, which can be shared", entity, f.Target)
	}
	return r, nil
}

// MayShare checks whether the viewer may see and change shares of records of an
// entity type at all. It returns NOT_FOUND when there is no such type or it is
// user, and FORBIDDEN when they may not read the type.
func (s *Session) MayShare(entity string) error {
	_, err := s.sharable(entity)
	return err
}

// share shares a record with a principal in its stored form, or changes the
// access of an existing share. It reports whether the share is new.
func (s *Session) share(ctx context.Context, v view, r *access.EntityRights, rec *row, to string, level access.Level) (Share, bool, error) {
	was, n, err := v.shareWith(ctx, r.Entity, rec, to)
	switch {
	case err != nil:
		return Share{}, false, err
	case was.Access == level:
		return was, false, nil
	case was.Access == "" && n >= MaxShares:
		return Share{}, false, errShares
	case was.Access == "" && len(wayEntries(r.Entity, stored(r.Entity, rec.data), []string{to}, nil))*(n+1) > maxEntries:
		return Share{}, false, errEntries
	}
	fresh := was.Access == ""
	if fresh {
		was.Principal, _ = s.viewer.Config().Roles.Principal(to)
		was.CreatedAt, was.CreatedBy = clock.Micros(s.store.clock.Now()), string(s.viewer.UserID())
	}
	was.Access = level
	return was, fresh, v.putShare(ctx, r, rec, to, was)
}

// unshare removes the share of a record with a principal in its stored form. It
// returns NOT_FOUND when there is none.
func (s *Session) unshare(ctx context.Context, v view, r *access.EntityRights, rec *row, to string) error {
	was, _, err := v.shareWith(ctx, r.Entity, rec, to)
	if err == nil && was.Access == "" {
		err = errNotShared
	}
	if err != nil {
		return err
	}
	return v.dropShare(ctx, r, rec, to)
}

// errNotShared is the same for a principal that does not exist, one that the
// viewer may not name, and one that has no share.
var errNotShared = fault.New(fault.NotFound, "the record is not shared with them")

// shareNamed is share for a principal that the viewer names.
func (s *Session) shareNamed(ctx context.Context, v view, r *access.EntityRights, id string, with With, level access.Level) (Share, bool, error) {
	rec, err := findFor(ctx, v, r, id, access.Delete, "share")
	if err != nil {
		return Share{}, false, err
	}
	to, err := v.principal(ctx, with)
	if err != nil {
		return Share{}, false, err
	}
	if err := s.hold(maxShareBytes); err != nil {
		return Share{}, false, err
	}
	return s.share(ctx, v, r, rec, to, level)
}

// unshareNamed is unshare for a principal that the viewer names. It returns the
// answer.
func (s *Session) unshareNamed(ctx context.Context, v view, r *access.EntityRights, id string, with With) (Record, error) {
	rec, err := findFor(ctx, v, r, id, access.Delete, "share")
	if err != nil {
		return nil, err
	}
	to, err := v.principal(ctx, with)
	if fault.CodeOf(err) == fault.Validation {
		err = errNotShared
	}
	if err != nil {
		return nil, err
	}
	if err := s.hold(maxShareBytes); err != nil {
		return nil, err
	}
	shown, _ := s.viewer.Config().Roles.Principal(to)
	return appendUnshared(nil, shown), s.unshare(ctx, v, r, rec, to)
}

// ParseWith reads the members of {user | role}, and access if withAccess is
// set. It returns VALIDATION, with the fields, for any other member, a member
// that is missing, and a value that is not a text. A null member counts as
// missing.
func ParseWith(members []Member, withAccess bool) (with With, level access.Level, err error) {
	bad := map[string]string{}
	var given string
	for _, m := range members {
		var to *string
		switch {
		case m.Name == "user":
			to = &with.User
		case m.Name == "role":
			to = &with.Role
		case m.Name == "access" && withAccess:
			to = &given
		default:
			bad[m.Name] = "unknown field"
			continue
		}
		switch m.Value.Kind() {
		case '"':
			*to = schema.Unquote(m.Value)
		case 'n':
		default:
			bad[m.Name] = "expected a text"
		}
	}
	level = access.Level(given)
	if withAccess && bad["access"] == "" && checkLevel(level) != nil {
		bad["access"] = levels
	}
	if bad["user"] == "" && bad["role"] == "" && checkWith(with) != nil {
		bad["user"], bad["role"] = oneOf, oneOf
	}
	if len(bad) > 0 {
		return With{}, "", fault.Fields(notValid, bad)
	}
	return with, level, nil
}
