package manifest

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"gatehouse/internal/email"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// userDecl is a user as the file has it. Name and locale belong to the user,
// who may change them through the API, and so does the password: absent, they
// keep what is stored. Active is kept too: what an operator deactivated stays so.
type userDecl struct {
	key          string // user.EmailKey
	email        string
	name, locale *string
	kind         user.Type
	owner        bool
	role         string
	sets         []string
	password     string // "" keeps the stored one
	active       *bool
}

func (d *decoder) users(m *manifest, key string, n *yaml.Node) {
	d.list(n, "a list of users", func(_ int, item *yaml.Node) {
		u := &userDecl{kind: user.Internal}
		marks := map[string]*yaml.Node{}
		marked := func(name string, read func(*yaml.Node)) member {
			return member{name, func(v *yaml.Node) { marks[name] = v; read(v) }}
		}
		given := d.object(item, "a user",
			marked("email", d.to(&u.email)),
			member{"name", d.profile(&u.name, user.CheckName)},
			member{"locale", d.profile(&u.locale, user.CheckLocale)},
			marked("type", func(v *yaml.Node) {
				if s, ok := d.oneOf(v, string(user.Internal), string(user.External)); ok {
					u.kind = user.Type(s)
				}
			}),
			marked("owner", d.flag(&u.owner)),
			marked("role", d.to(&u.role)),
			member{"permission_sets", func(v *yaml.Node) {
				d.texts(v, "permission sets", func(item *yaml.Node, name string) {
					u.sets = append(u.sets, name)
					marks["permission_sets/"+name] = item
				})
			}},
			member{"password", func(v *yaml.Node) { u.password = d.password(v) }},
			member{"active", func(v *yaml.Node) {
				if on, ok := d.boolean(v); ok {
					u.active = &on
				}
			}})
		if !d.addressed(m, item, given, u) {
			return
		}
		if u.owner && u.kind == user.External {
			d.fail(marks["owner"], "user %s: an external user cannot be the tenant's owner", u.email)
		}
		slices.Sort(u.sets)
		m.mark(item, key, u.key)
		for name, at := range marks {
			m.mark(at, key, u.key, name)
		}
		m.users = append(m.users, u)
	})
}

// addressed checks a user's e-mail address, by which the user is known.
func (d *decoder) addressed(m *manifest, n *yaml.Node, given map[string]bool, u *userDecl) bool {
	if !given["email"] {
		if n.Kind == yaml.MappingNode {
			d.fail(n, "a user needs an email")
		}
		return false
	}
	if u.email == "" && d.at(n.Line) {
		return false
	}
	if strings.Count(u.email, "@") != 1 { // of a new user, more is asked (checkAddress)
		d.fail(n, "email: expected an e-mail address, found %s", show(u.email))
		return false
	}
	u.email = email.Clean(u.email)
	u.key = user.EmailKey(u.email)
	if m.names("users", u.key) {
		d.fail(n, "user %s is declared twice, first on line %d", u.email, m.line("users", u.key))
		return false
	}
	return true
}

// profile reads a name or locale, which check judges as for the API.
func (d *decoder) profile(p **string, check func(string) error) func(*yaml.Node) {
	return func(n *yaml.Node) {
		s, ok := d.text(n)
		if !ok {
			return
		}
		if err := check(s); err != nil {
			d.bad(n, "%s", err)
			return
		}
		*p = &s
	}
}

// password reads a new password; messages never show it.
func (d *decoder) password(n *yaml.Node) string {
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
		prev := p.before.users[decl.key]
		p.checkAddress(decl, prev)
		if prev != nil && prev.Type != decl.kind {
			p.add(p.m.line("users", decl.key, "type"), "user %s is %s: the type of a user cannot be changed to %s",
				decl.email, prev.Type, decl.kind)
			continue
		}
		p.after.users[decl.key] = decl.merge(prev, p.hash)
	}
	if !p.prunes("users") {
		return
	}
	for key, prev := range p.before.users {
		if prev.Type == user.External || p.m.names("users", key) {
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
	if err := user.CheckEmail(decl.email); err != nil {
		p.add(p.m.line("users", decl.key, "email"), "user %s: email: %s", show(decl.email), err)
	}
}

// merge is the user that the declaration makes of prev, which may be nil.
func (decl *userDecl) merge(prev *user.User, hash func(userKey, stored, password string) string) *user.User {
	name, _, _ := strings.Cut(decl.email, "@")
	u := &user.User{Type: decl.kind, Name: name, Active: true, EmailVerified: true}
	if prev != nil {
		copied := *prev
		u = &copied
	}
	u.Email, u.Owner, u.Role, u.Sets = decl.email, decl.owner, decl.role, decl.sets
	if decl.name != nil {
		u.Name = *decl.name
	}
	if decl.locale != nil {
		u.Locale = *decl.locale
	}
	if decl.active != nil {
		u.Active = *decl.active
		u.EmailVerified = u.EmailVerified || u.Active // activation counts as verification (decisions 2.25)
	}
	if decl.password != "" {
		u.PasswordHash = hash(decl.key, u.PasswordHash, decl.password)
	}
	return u
}

func checkUsers(p *plan) {
	for _, decl := range p.m.users {
		if _, ok := p.after.roles[decl.role]; !ok && decl.role != "" {
			p.add(p.m.line("users", decl.key, "role"), "user %s: there is no role %s", decl.email, show(decl.role))
		}
		for _, set := range decl.sets {
			if p.after.sets[set] == nil {
				p.add(p.m.line("users", decl.key, "permission_sets/"+set), "user %s: there is no permission set %s", decl.email, show(set))
			}
		}
	}
}

// userView is a user in the change history. Password tells that there is one,
// never which.
type userView struct {
	Email    string   `json:"email"`
	Name     string   `json:"name"`
	Locale   string   `json:"locale"`
	Type     string   `json:"type"`
	Owner    bool     `json:"owner"`
	Role     string   `json:"role"`
	Sets     []string `json:"permission_sets"`
	Active   bool     `json:"active"`
	Verified bool     `json:"email_verified"`
	Password string   `json:"password"`
}

// viewUser shows a user; prev is the same user before the change, or nil.
func viewUser(u, prev *user.User) any {
	if u == nil {
		return nil
	}
	v := userView{u.Email, u.Name, u.Locale, string(u.Type), u.Owner, u.Role, append([]string{}, u.Sets...), u.Active, u.EmailVerified, ""}
	switch {
	case u.PasswordHash == "":
	case prev != nil && prev.PasswordHash != "" && prev.PasswordHash != u.PasswordHash:
		v.Password = "(changed)"
	default:
		v.Password = "(set)"
	}
	return v
}

// exportUsers writes the users in the order of their creation, passwords left out.
func exportUsers(s *state) []pair {
	users := make([]*user.User, 0, len(s.users))
	for _, u := range s.users {
		users = append(users, u)
	}
	slices.SortFunc(users, func(a, b *user.User) int { return strings.Compare(a.ID, b.ID) })
	var list []*yaml.Node
	for _, u := range users {
		pairs := []pair{{"email", str(u.Email)}, {"name", str(u.Name)}}
		if u.Locale != "" {
			pairs = append(pairs, pair{"locale", str(u.Locale)})
		}
		if u.Type == user.External {
			pairs = append(pairs, pair{"type", str(string(u.Type))})
		}
		if u.Owner {
			pairs = append(pairs, pair{"owner", yes(true)})
		}
		if u.Role != "" {
			pairs = append(pairs, pair{"role", str(u.Role)})
		}
		if len(u.Sets) > 0 {
			pairs = append(pairs, pair{"permission_sets", strs(u.Sets)})
		}
		if !u.Active {
			pairs = append(pairs, pair{"active", yes(false)})
		}
		list = append(list, flow(pairs...))
	}
	return []pair{{"users", rows(list)}}
}
