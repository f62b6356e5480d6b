package config

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/internal/access"
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
	managed   []managedValue // those that are given or, in a view, all
	given     map[string]*Value
}

var userTable = table[userDecl]{
	text("email", func(u *userDecl) *string { return &u.Email }).needed("the e-mail address, which names the user"),
	profile("name", func(u *userDecl) *string { return &u.Name }, user.CheckName).says("as people see it; from the address for a new user when absent, else kept"),
	profile("locale", func(u *userDecl) *string { return &u.Locale }, user.CheckLocale).when(notEmpty).says("a language tag like de-AT; kept when absent"),
	{
		key: "type", kind: ChoiceMember, values: []string{string(user.Internal), string(user.External)}, doc: "staff or end-user; it cannot be changed",
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
	flag("owner", func(u *userDecl) *bool { return &u.Owner }).when(notEmpty).says("may do everything with the tenant; never an external user"),
	text("role", func(u *userDecl) *string { return &u.Role }).when(notEmpty).says("the place in the role tree"),
	{
		key: "permission_sets", kind: TextsMember, doc: "names of permission sets", show: notEmpty,
		read: func(d *decoder, u *userDecl, v *Value) {
			d.texts(v, "permission sets", func(_ *Value, name string) { u.Sets = append(u.Sets, name) })
			slices.Sort(u.Sets)
		},
		tell: func(u *userDecl, _ func(string) string) *Value { return strs(u.Sets) },
	},
	managedMember,
	{ // the change history has that there is one, never which
		key: "password", kind: SecretMember, doc: "a new password; kept when absent",
		read:   func(d *decoder, u *userDecl, v *Value) { u.password = d.password(v) },
		past:   func(u, prev *userDecl) *Value { return sealedText(u.PasswordHash, prev.PasswordHash) },
		secret: func(u *userDecl) string { return u.PasswordHash },
	},
	{
		key: "active", kind: BooleanMember, doc: "may act; kept when absent",
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
	{key: "pending", past: func(u, _ *userDecl) *Value { return yes(u.Pending) }, show: inHistory},
	{key: "id", past: func(u, _ *userDecl) *Value { return str(string(u.ID)) }, show: inHistory},
}

// sealedText returns what the change history shows for a secret; prev is its earlier
// value.
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

func newUser() *userDecl { return &userDecl{User: user.User{Type: user.Internal, Active: true}} }

func (d *decoder) users(m *Spec, key string, n *Value) {
	d.list(n, "a list of users", func(_ int, item *Value) {
		u := newUser()
		u.given = userTable.read(d, item, "a user", u)
		if !d.addressed(m, item, u) {
			return
		}
		if u.Owner && u.Type == user.External {
			d.member(u.given["owner"].Place, "user "+u.Email, "an external user cannot be the tenant's owner")
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
		d.Note(Problem{Place: u.given["email"].Place, Text: "email: expected an e-mail address, found " + show(u.Email), Reason: user.CheckEmail(u.Email).Error()})
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
		is := decl.merge(prev, p.hash)
		p.manage(decl, is)
		p.after.users[decl.Key] = is
	}
	for key, prev := range p.before.users {
		if p.m.names("users", key) {
			continue
		}
		_, asked := p.m.removed[[2]string{"users", key}]
		switch {
		case p.m.activated[key] != "":
			u := *prev
			activate(&u)
			p.after.users[key] = &u
			continue
		case !asked && (!p.prunes("users") || prev.Type == user.External):
			continue
		}
		u := *prev
		u.Active, u.Pending = false, false
		if _, ok := p.after.roles[u.Role]; !ok {
			u.Role = ""
		}
		u.Sets = slices.DeleteFunc(slices.Clone(u.Sets), func(set string) bool { return p.after.sets[set] == nil })
		p.after.users[key] = &u
	}
}

// checkAddress refuses a new user with an address that no mail can reach. A stored
// user is not checked: an export must apply, also if it has an address that an earlier
// version accepted.
func (p *plan) checkAddress(decl *userDecl, prev *user.User) {
	at := p.m.place("users", decl.Key, "email")
	if prev != nil || p.has(at.Path) {
		return
	}
	if err := user.CheckEmail(decl.Email); err != nil {
		p.member(at, "user "+show(decl.Email)+": email", "%s", err)
	}
}

// merge is the user that the declaration makes of prev, which may be nil.
func (decl *userDecl) merge(prev *user.User, hash hashing) *user.User {
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
		if u.Active {
			activate(u)
		}
	}
	if decl.password != "" {
		u.PasswordHash = hash(chosen{decl.Key, decl.password}, u.PasswordHash)
	}
	return u
}

// activate makes a user active, which counts as verification of the address
// (contract I6).
func activate(u *user.User) { u.Active, u.EmailVerified, u.Pending = true, true, false }

func checkUsers(p *plan) {
	for _, decl := range p.m.users {
		what := "user " + printable(decl.Email)
		if _, ok := p.after.roles[decl.Role]; !ok && decl.Role != "" {
			p.member(p.m.place("users", decl.Key, "role"), what, "there is no role %s", show(decl.Role))
		}
		for _, set := range decl.Sets {
			if p.after.sets[set] == nil {
				p.member(p.m.place("users", decl.Key, "permission_sets/"+set), what, "there is no permission set %s", show(set))
			}
		}
	}
}

var userKind = kind{
	name: kindUser, section: "users", id: "email",
	changing: []string{access.ManageUsers}, reading: []string{access.ManageUsers},
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
		return userTable.view(s.declOf(is), &userDecl{User: *was})
	},
	secrets: func(s *state, key string) []string { return userTable.secrets(&userDecl{User: *s.users[key]}) },
	tell: func(s *state, key string) *Value {
		return flow(userTable.export(s.declOf(s.users[key]), asIs)...)
	},
	write: writeUser,
}

func writeUser(w *writer, c change) error {
	is, was := w.p.after.users[c.key], w.p.before.users[c.key]
	if err := w.storeManaged(c.key, is, was); err != nil {
		return err
	}
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
