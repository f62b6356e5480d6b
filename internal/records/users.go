package records

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// The built-in entity type user (contract U3–U6): internal users with the
// permission see every user, an external user sees only their own row.

// rightsOnUsers is rights for the entity type user. It returns NOT_FOUND for a
// user that the viewer may not see.
func (s *Session) rightsOnUsers(id string, verb access.Verb) (*access.EntityRights, error) {
	if verb == access.Create || verb == access.Delete {
		return nil, fault.New(fault.Forbidden, "users are not created or deleted here")
	}
	r, err := s.viewer.OnUsers()
	if err != nil {
		return nil, err
	}
	if !r.May(verb) {
		return nil, fault.New(fault.Forbidden, "you may not %s records of user", verb)
	}
	if id != "" && !s.reachesUser(user.ID(id)) {
		return nil, errUnseen
	}
	return r, nil
}

// reachesUser reports whether the viewer reaches a user: an external user only
// their own row (contract U4).
func (s *Session) reachesUser(id user.ID) bool {
	return !s.viewer.External() || id == s.viewer.UserID()
}

// emailFilter returns the value of the only filter that user has (contract U6).
func emailFilter(r *access.EntityRights, q *Query) (email string, ok bool, err error) {
	for _, f := range slices.Concat(append(q.Or, q.Filter)...) {
		if f.Field != "email" || cmp.Or(f.Op, schema.OpEq) != schema.OpEq || len(q.Or) > 0 || !r.Column("email").Read {
			return "", false, fault.Fields("the filter names a field it cannot use",
				map[string]string{f.Field: "user can be filtered by email alone, for equality"})
		}
		email, ok = f.Value, true
	}
	return email, ok, nil
}

// unsortedUsers returns VALIDATION for an order: user has one.
func unsortedUsers(by []Sort) error {
	if len(by) == 0 {
		return nil
	}
	return fault.Fields("user has one order, newest first", map[string]string{"sort": "expected none for user"})
}

// unsearchedUsers returns VALIDATION for a search: user has none.
func unsearchedUsers(words string) error {
	if words == "" {
		return nil
	}
	return fault.Fields("user has no searchable fields", map[string]string{"search": "expected none for user"})
}

// updateUser changes name, locale and custom fields; any other change is
// refused (contract U5).
func (s *Session) updateUser(ctx context.Context, v view, r *access.EntityRights, id string, members []Member) (Record, error) {
	u, err := v.findUser(ctx, user.ID(id))
	if err != nil {
		return nil, err
	}
	if err := s.meets(r, u.UpdatedAt, func() Record { return renderUser(nil, r, u) }); err != nil {
		return nil, err
	}
	before := len(u.Custom)
	if err := s.editUser(ctx, v, r, u, members); err != nil {
		return nil, err
	}
	out, err := s.held(showUser(r, u)) // before the change, as in create
	if err != nil || len(members) == 0 {
		return out, err
	}
	return out, v.putUser(ctx, r, u, before, members)
}

// managing reports whether a body names a managed field of users.
func managing(e *schema.Entity, members []Member) bool {
	return slices.ContainsFunc(members, func(m Member) bool { f := e.Field(m.Name); return f != nil && f.Managed })
}

// editUser applies a patch to a user in memory.
func (s *Session) editUser(ctx context.Context, v view, r *access.EntityRights, u *user.User, members []Member) error {
	if err := s.patchUser(ctx, v, r, u, members); err != nil || len(members) == 0 {
		return err
	}
	u.UpdatedAt = max(clock.Micros(s.store.clock.Now()), u.UpdatedAt+1) // each change is another version
	return nil
}

// showUser returns what the viewer may see of a user they changed.
func showUser(r *access.EntityRights, u *user.User) Record {
	if !r.May(access.Read) {
		return renderID(string(u.ID))
	}
	return renderUser(nil, r, u)
}

func (s *Session) patchUser(ctx context.Context, v view, r *access.EntityRights, u *user.User, members []Member) error {
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
	if !s.viewer.MayManage(u.ID, u.Type == user.External) {
		for _, f := range r.Entity.Fields {
			if f.Managed && (rest.values[f.Index] != nil || r.EditField[f.Index] && rest.reasons[f.Name] != "") {
				forbidden[f.Name] = "is managed: you may not set it for this user"
			}
		}
	}
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
	changed := &input{values: slices.Clone(rest.values), reasons: rest.reasons}
	for i, v := range changed.values {
		if v != nil && same(before[i], v) {
			changed.values[i] = nil
		}
	}
	if err := checkReferences(ctx, r.Entity, changed, v.reaches); err != nil {
		return err
	}
	rest.reasons = changed.reasons
	for name, reason := range rest.reasons {
		in.fail(name, reason)
	}
	if err := in.err(); err != nil {
		return err
	}
	was := access.IdentityOf(u)
	u.Custom = document(r.Entity, values, u.Custom)
	for _, f := range r.Entity.Fields {
		if f.Managed && changed.values[f.Index] != nil {
			forbidden[f.Name] = "is managed: by this value a sharing rule opens records that you do not reach"
		}
	}
	if len(forbidden) > 0 && !s.viewer.MayGive(access.IdentityOf(u), was) {
		return errForbidden(forbidden)
	}
	return nil
}

// profile sets a user's name or locale; a null locale removes it. The present
// value may be sent back unchanged, even if it would not be accepted today.
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
	dst = renderFields(dst, r.Entity, r.ReadField, u.Custom)
	return append(dst, '}')
}
