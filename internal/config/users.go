package config

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/internal/email"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// userDecl is a user as it was given. Name and locale belong to the user,
// who may change them through the API, and so does the password: absent, they
// keep what is stored. Active is kept too: what an operator deactivated stays so.
type userDecl struct {
	user.User // its Key is given too
	password  string
	given     map[string]*Value
}

var userTable = table[userDecl]{
	text("email", func(u *userDecl) *string { return &u.Email }),
	profile("name", func(u *userDecl) *string { return &u.Name }, user.CheckName),
	profile("locale", func(u *userDecl) *string { return &u.Locale }, user.CheckLocale).when(notEmpty),
	{
		key:  "type",
		read: choice("type", func(u *userDecl) *user.Type { return &u.Type }, user.Internal, user.External).read,
		tell: func(u *userDecl, _ func(string) string) *Value {
			if u.Type == user.Internal {
				return str("")
			}
			return str(string(u.Type))
		},
		past: func(u, _ *userDecl) *Value { return str(string(u.Type)) },
		show: notEmpty,
	},
	flag("owner", func(u *userDecl) *bool { return &u.Owner }).when(notEmpty),
	text("role", func(u *userDecl) *string { return &u.Role }).when(notEmpty),
	{
		key: "permission_sets", show: notEmpty,
		read: func(d *decoder, u *userDecl, v *Value) {
			d.texts(v, "permission sets", func(_ *Value, name string) { u.Sets = append(u.Sets, name) })
			slices.Sort(u.Sets)
		},
		tell: func(u *userDecl, _ func(string) string) *Value { return strs(u.Sets) },
	},
	{ // the change history has that there is one, never which
		key:  "password",
		read: func(d *decoder, u *userDecl, v *Value) { u.password = d.password(v) },
		past: func(u, prev *userDecl) *Value { return sealedText(u.PasswordHash, prev.PasswordHash) },
	},
	{
		key:  "active",
		read: flag("active", func(u *userDecl) *bool { return &u.Active }).read,
		tell: func(u *userDecl, _ func(string) string) *Value {
			if u.Active {
				return &Value{}
			}
			return yes(false)
		},
		past: func(u, _ *userDecl) *Value { return yes(u.Active) },
	},
	{key: "email_verified", past: func(u, _ *userDecl) *Value { return yes(u.EmailVerified) }},
}

// sealedText is how the change history tells of a secret that prev was before.
func sealedText(sealed, prev string) *Value {
	switch {
	case sealed == "":
		return str("")
	case prev != "" && prev != sealed:
		return str("(changed)")
	}
	return str("(set)")
}

// profile is a name or locale, which check judges as for the API.
func profile(key string, at func(*userDecl) *string, check func(string) error) attr[userDecl] {
	a := text(key, at)
	a.read = func(d *decoder, u *userDecl, v *Value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		if err := check(s); err != nil {
			d.bad(v, "%s", err)
			return
		}
		*at(u) = s
	}
	return a
}

func (d *decoder) users(m *Spec, key string, n *Value) {
	d.list(n, "a list of users", func(_ int, item *Value) {
		u := &userDecl{User: user.User{Type: user.Internal}}
		u.given = userTable.read(d, item, "a user", u)
		if !d.addressed(m, item, u) {
			return
		}
		if u.Owner && u.Type == user.External {
			d.fail(u.given["owner"], "user %s: an external user cannot be the tenant's owner", u.Email)
		}
		m.mark(item, key, u.Key)
		for name, at := range u.given {
			m.mark(at, key, u.Key, name)
		}
		if sets := u.given["permission_sets"]; sets != nil {
			for _, set := range sets.Items {
				m.mark(set, key, u.Key, "permission_sets/"+d.meant(set))
			}
		}
		m.users = append(m.users, u)
	})
}

// addressed checks a user's e-mail address, by which the user is known.
func (d *decoder) addressed(m *Spec, n *Value, u *userDecl) bool {
	if u.given["email"] == nil {
		if n.Kind == Mapping {
			d.fail(n, "a user needs an email")
		}
		return false
	}
	if u.Email == "" && d.has(u.given["email"].Place.Path) {
		return false
	}
	if strings.Count(u.Email, "@") != 1 { // of a new user, more is asked (checkAddress)
		d.fail(n, "email: expected an e-mail address, found %s", show(u.Email))
		return false
	}
	u.Email = email.Clean(u.Email)
	u.Key = user.EmailKey(u.Email)
	if m.names("users", u.Key) {
		d.twice(n.Place, m.place("users", u.Key), "user %s is declared twice", u.Email)
		return false
	}
	return true
}

// password reads a new password; messages never show it.
func (d *decoder) password(n *Value) string {
	s, ok := d.text(n)
	if !ok {
		return ""
	}
	if err := secret.CheckPassword(s); err != nil {
		d.bad(n, "%s", err)
		return ""
	}
	return s
}

func mergeUsers(p *plan) {
	for _, decl := range p.m.users {
		prev := p.before.users[decl.Key]
		p.checkAddress(decl, prev)
		if prev != nil && prev.Type != decl.Type {
			p.add(p.m.place("users", decl.Key, "type"), "user %s is %s: the type of a user cannot be changed to %s",
				decl.Email, prev.Type, decl.Type)
			continue
		}
		p.after.users[decl.Key] = decl.merge(prev, p.hash)
	}
	for key, prev := range p.before.users {
		if p.m.names("users", key) || !p.drops("users", key) || prev.Type == user.External && p.prunes("users") {
			continue
		}
		u := *prev
		u.Active = false
		if _, ok := p.after.roles[u.Role]; !ok {
			u.Role = ""
		}
		u.Sets = slices.DeleteFunc(slices.Clone(u.Sets), func(set string) bool { return p.after.sets[set] == nil })
		p.after.users[key] = &u
	}
}

// checkAddress refuses a new user whom no mail can reach. One who is stored
// already stays: an export must apply, whatever was taken for an address before.
func (p *plan) checkAddress(decl *userDecl, prev *user.User) {
	if prev != nil {
		return
	}
	if err := user.CheckEmail(decl.Email); err != nil {
		p.add(p.m.place("users", decl.Key, "email"), "user %s: email: %s", show(decl.Email), err)
	}
}

// merge is the user that the declaration makes of prev, which may be nil.
func (decl *userDecl) merge(prev *user.User, hash func(userKey, stored, password string) string) *user.User {
	name, _, _ := strings.Cut(decl.Email, "@")
	u := &user.User{Type: decl.Type, Name: name, Active: true, EmailVerified: true}
	if prev != nil {
		copied := *prev
		u = &copied
	}
	u.Email, u.Owner, u.Role, u.Sets = decl.Email, decl.Owner, decl.Role, decl.Sets
	if decl.given["name"] != nil {
		u.Name = decl.Name
	}
	if decl.given["locale"] != nil {
		u.Locale = decl.Locale
	}
	if decl.given["active"] != nil {
		u.Active = decl.Active
		u.EmailVerified = u.EmailVerified || u.Active // activation counts as verification (contract I6)
	}
	if decl.password != "" {
		u.PasswordHash = hash(decl.Key, u.PasswordHash, decl.password)
	}
	return u
}

func checkUsers(p *plan) {
	for _, decl := range p.m.users {
		if _, ok := p.after.roles[decl.Role]; !ok && decl.Role != "" {
			p.add(p.m.place("users", decl.Key, "role"), "user %s: there is no role %s", decl.Email, show(decl.Role))
		}
		for _, set := range decl.Sets {
			if p.after.sets[set] == nil {
				p.add(p.m.place("users", decl.Key, "permission_sets/"+set), "user %s: there is no permission set %s", decl.Email, show(set))
			}
		}
	}
}

var userKind = kind{
	name: kindUser, section: "users", id: "email",
	keys:  keysOf(func(s *state) map[string]*user.User { return s.users }),
	title: func(s *state, key string) string { return s.users[key].Email },
	view: func(s, prev *state, key string) any {
		is, was := s.users[key], &user.User{}
		if is == nil {
			return nil
		}
		if prev != nil && prev.users[key] != nil {
			was = prev.users[key]
		}
		return userTable.view(&userDecl{User: *is}, &userDecl{User: *was})
	},
	tell: func(s *state, key string) *Value {
		return flow(userTable.export(&userDecl{User: *s.users[key]}, asIs)...)
	},
	write: writeUser,
}

func writeUser(w *writer, c change) error {
	is, was := w.p.after.users[c.key], w.p.before.users[c.key]
	if was == nil {
		return w.located(user.Add(w.ctx, w.tx, w.now, is), "users", c.key)
	}
	is.UpdatedAt = max(w.now, was.UpdatedAt)
	if err := user.Update(w.ctx, w.tx, is); err != nil {
		return w.located(err, "users", c.key)
	}
	if is.Role == was.Role {
		return nil
	}
	w.roles = append(w.roles, records.RoleChange{User: is.ID, From: was.Role, To: is.Role})
	return nil
}

// exportUsers writes the users in the order of their creation, passwords left out.
func exportUsers(s *state) []pair {
	users := make([]*user.User, 0, len(s.users))
	for _, u := range s.users {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b *user.User) int { return cmp.Compare(a.ID, b.ID) })
	var list []*Value
	for _, u := range users {
		list = append(list, userKind.tell(s, u.Key))
	}
	return []pair{{"users", rows(list)}}
}
