package config

import (
	"cmp"
	"fmt"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// judge adds a problem, whose cause is FORBIDDEN, for each change of a plan that its
// author may not make: nobody gives, or lets run, what they do not hold (contract
// A13, D13). It is the only place that decides it, for every way to write.
func (p *plan) judge() {
	p.judgeAuthor()
	if p.also == nil || p.err() != nil {
		return
	}
	author := p.author
	p.author = *p.also
	p.judgeAuthor()
	p.author = author
}

// judgeAuthor is judge for p.author.
func (p *plan) judgeAuthor() {
	if p.author.free {
		return
	}
	for _, c := range p.changes {
		if c.kind == kindUser {
			p.judgeOwnPassword(c)
		}
		if p.author.viewer.TenantOwner() {
			continue
		}
		switch c.kind {
		case kindTenant:
			p.judgeTenant(c)
		case kindEntity:
			p.judgeEntity(c)
		case kindUserFields:
			p.needs(c, access.ManageEntities)
			p.judgeFields(c, "", p.before.userFields, p.after.userFields)
		case kindRole:
			p.judgeRole(c)
		case kindSet:
			p.judgeSet(c)
		case kindRule:
			p.judgeRule(c)
		case kindUser:
			p.judgeUser(c)
		default:
			p.needs(c, access.ManageEndpoints)
		}
	}
	if !p.author.viewer.TenantOwner() {
		p.judgeDefinitions()
	}
}

// deny adds a problem for a change that the author may not make.
func (p *plan) deny(c change, format string, args ...any) {
	k, _ := find(c.kind)
	reason := fmt.Sprintf(format, args...)
	what := words(c.kind)
	if c.kind != kindUserFields {
		what += " " + printable(c.name)
	}
	p.Note(Problem{
		Place: p.m.place(k.section, c.key), Text: what + ": " + reason, Reason: reason,
		Cause: fault.New(fault.Forbidden, "%s: %s", what, reason).With("kind", c.kind).With("name", c.name),
	})
}

func (p *plan) needs(c change, permission string) {
	if !p.author.viewer.May(permission) {
		p.deny(c, "this needs the permission %s", permission)
	}
}

// judgeTenant judges settings member by member. Whom External Identity lets in has its
// default permission set, and so whoever opens it gives that.
func (p *plan) judgeTenant(c change) {
	w, was, is := p.author.viewer, p.before.tenant, p.after.tenant
	for _, a := range settingsTable {
		if encoded(a.tell(was, asIs).json()) == encoded(a.tell(is, asIs).json()) {
			continue
		}
		p.needs(c, settingsPermission(a.key))
		if slices.Contains(ownersSettings, a.key) {
			p.deny(c, "only the tenant's owner changes %s", a.key)
		}
	}
	if encoded(templatesOf(was).json()) != encoded(templatesOf(is).json()) {
		p.needs(c, access.TenantSettings)
	}
	before, after := &was.Settings.ExternalIdentity, &is.Settings.ExternalIdentity
	if after.AppURL != before.AppURL {
		p.deny(c, "only the tenant's owner changes external_identity.app_url")
	}
	set := p.after.sets[after.DefaultPermissionSet]
	if set == nil || !opens(before, after) {
		return
	}
	if lacks := w.LacksOf(set, nil, p.schema); lacks != "" {
		p.deny(c, "who registers gets permission set %s, which gives %s, and you do not have that", set.Name, lacks)
	}
}

// opens reports whether a change lets more people have the default permission set, or
// gives them another.
func opens(before, after *tenant.ExternalIdentity) bool {
	return after.Enabled && (!before.Enabled || after.OpenRegistration && !before.OpenRegistration ||
		after.ActivationMode != before.ActivationMode || after.DefaultPermissionSet != before.DefaultPermissionSet) ||
		!after.Enabled && after.DefaultPermissionSet != before.DefaultPermissionSet
}

func (p *plan) judgeEntity(c change) {
	p.needs(c, access.ManageEntities)
	was, is := p.before.entities[c.was], p.after.entities[c.key]
	if was == nil || is == nil {
		return
	}
	p.judgeFields(c, was.StoredAs(), was.Fields, is.Fields)
	if deletesMore(was, is) && !p.author.viewer.ReachesAll(is, access.Delete) {
		p.deny(c, "keep %dd deletes records that you may not delete", is.KeepDays)
	}
	before, after := sharingOf(was), sharingOf(is)
	plain := before.Kind == Text && after.Kind == Text
	if encoded(before.json()) == encoded(after.json()) || plain && is.Sharing == schema.Private {
		return
	}
	w, verbs := p.author.viewer, []access.Verb{access.Read}
	switch {
	case !plain: // who reaches a record then, another one decides
		verbs = []access.Verb{access.Read, access.Update, access.Delete}
	case is.Sharing != schema.PublicRead:
		verbs = append(verbs, access.Update)
	}
	if slices.ContainsFunc(verbs, func(verb access.Verb) bool { return !w.ReachesAll(is, verb) }) {
		p.deny(c, "sharing %s opens records that you do not reach", encoded(after.json()))
	}
}

// deletesMore reports whether a change of keep deletes records sooner.
func deletesMore(was, is *schema.Entity) bool {
	return is.KeepDays > 0 && (was.KeepDays == 0 || is.KeepDays < was.KeepDays)
}

// sharingOf is the member sharing of an entity type as Export has it: a text, or what
// names the field whose records decide.
func sharingOf(e *schema.Entity) *Value {
	i := slices.IndexFunc(entityTable, func(a attr[schema.Entity]) bool { return a.key == "sharing" })
	return entityTable[i].tell(e, asIs)
}

// judgeFields finds fields that come back with the values of records that the author
// does not reach, for everybody whose permission sets do not close them. Whether there
// are such values is found out apart from the transaction (see unprobed).
func (p *plan) judgeFields(c change, stored string, before, after []*schema.Field) {
	if p.author.viewer.AllEntityAccess() {
		return
	}
	for _, f := range after {
		member := f.MemberName()
		if slices.ContainsFunc(before, func(was *schema.Field) bool { return was.MemberName() == member }) {
			continue
		}
		switch held, known := p.probed[fieldAt{stored, member}]; {
		case !known:
			p.unprobed = append(p.unprobed, fieldAt{stored, member})
		case held:
			p.deny(c, "field %s has values from before it was removed, which only a user with all_entity_access may bring back", f.Name)
		}
	}
}

// judgeRole: who stands above a role has what its users' records are, and what is
// shared with them.
func (p *plan) judgeRole(c change) {
	p.needs(c, access.ManagePermissions)
	was, had := p.before.roles[c.key]
	is, has := p.after.roles[c.key]
	if !had || !has || is.Parent == was.Parent || is.Parent == "" {
		return
	}
	if w := p.author.viewer; !w.AllEntityAccess() && !w.Above(c.key) {
		p.deny(c, "users with the roles above it would reach records that you do not reach")
	}
}

func (p *plan) judgeSet(c change) {
	p.needs(c, access.ManagePermissions)
	is := p.after.sets[c.key]
	if is == nil {
		return
	}
	if lacks := p.author.viewer.LacksOf(is, p.before.sets[c.key], p.schema); lacks != "" {
		p.deny(c, "it would give %s, and you do not have that", lacks)
	}
}

func (p *plan) judgeRule(c change) {
	p.needs(c, access.ManagePermissions)
	is, was := p.after.rules[c.key], p.before.rules[c.key]
	if is == nil || was != nil && is.Access == access.ReadOnly {
		return
	}
	for _, old := range p.before.rules { // the same one, with the names of now
		if r := p.renamedRule(old); r.ID() == is.ID() && (r.Access == is.Access || is.Access == access.ReadOnly) {
			return
		}
	}
	if e := p.schema.Entity(is.Entity); e == nil || !p.author.viewer.Reaches(is, e) {
		p.deny(c, "it would share records that you do not reach, or give more than you may do with them")
	}
}

// judgeOwnPassword: a password of one's own is changed with the one before, so that a
// session alone is not enough to keep an account.
func (p *plan) judgeOwnPassword(c change) {
	was, is := p.before.users[c.key], p.after.users[c.key]
	if c.key == p.author.key && was != nil && is != nil && was.PasswordHash != is.PasswordHash {
		p.deny(c, "your own password is changed at your account")
	}
}

func (p *plan) judgeUser(c change) {
	was, is := p.before.users[c.key], p.after.users[c.key]
	if is == nil {
		return
	}
	activated := was != nil && !was.Active && is.Active
	if p.m.activated[c.key] != "" && is.Type == user.External && was != nil && was.Pending && p.author.viewer.May(access.ManageExternalUsers) {
		return // as the Public API lets them (contract I8)
	}
	p.needs(c, access.ManageUsers)
	switch {
	case is.Owner && (was == nil || !was.Owner):
		p.deny(c, "only an owner of the tenant makes another")
		return
	case was != nil && was.Owner:
		p.deny(c, "only an owner of the tenant changes one")
		return
	}
	had := was
	if was == nil || activated && is.Type == user.Internal { // gets all that they have
		had = &user.User{}
	}
	p.judgeGiven(c, had, is)
	p.judgeManaged(c, was, is)
	if was == nil && is.PasswordHash != "" {
		p.judgeMatches(c, is)
	}
	if was == nil || p.author.key == c.key {
		return
	}
	if is.PasswordHash != was.PasswordHash || is.Email != was.Email { // who has these is the user
		p.judgeTakeover(c, was, is)
	}
	if is.Role != was.Role && is.Role != "" && !p.reachesRecordsOf(was) {
		p.deny(c, "users with the roles above %s would reach the records of this user, which you do not reach", printable(is.Role))
	}
}

// unborn stands for the id of a user who is about to be added.
const unborn user.ID = "unborn"

// identity is a user as sharing rules know them.
func identity(u *user.User) access.Identity {
	is := access.IdentityOf(u)
	is.UserID, is.EmailKey = cmp.Or(is.UserID, unborn), user.EmailKey(u.Email)
	return is
}

// judgeManaged finds managed fields that the author may not set: their own, those that
// name records which they may not see, and those by which sharing rules open records that
// they do not reach (contract U9). Whom external users work for is decided by whoever
// manages these.
func (p *plan) judgeManaged(c change, was, is *user.User) {
	if p.author.key == c.key && len(p.managed[c.key]) > 0 {
		p.deny(c, "your own managed fields are set by others")
	}
	for _, m := range p.managed[c.key] {
		f := p.schema.User.Field(m.field)
		if e := p.schema.Entity(f.Target); e != nil && !schema.IsNull(m.value) && !p.author.viewer.ReachesAll(e, access.Read) {
			p.deny(c, "field %s names records that you do not reach", f.Name)
		}
	}
	if len(p.managed[c.key]) == 0 || is.Type == user.External && p.author.viewer.May(access.ManageExternalUsers) {
		return
	}
	before := identity(is)
	before.Custom = nil
	if was != nil {
		before.Custom = was.Custom
	}
	if p.author.viewer.LacksMatchesOf(identity(is), &before) {
		p.deny(c, "by these managed fields sharing rules open records that you do not reach")
	}
}

// judgeMatches finds records that sharing rules open to a user whose password the author
// knows, and that the author does not reach.
func (p *plan) judgeMatches(c change, of *user.User) {
	var nothing *access.Identity
	if of.ID == "" { // what names the id of a user is of nobody yet
		nothing = &access.Identity{UserID: unborn}
	}
	if p.author.viewer.LacksMatchesOf(identity(of), nothing) {
		p.deny(c, "sharing rules open records to this user that you do not reach: leave the password to them")
	}
}

// judgeGiven finds what a change gives to a user and the author does not have.
func (p *plan) judgeGiven(c change, had, is *user.User) {
	w := p.author.viewer
	for _, name := range is.Sets {
		set := p.after.sets[name]
		if slices.Contains(had.Sets, name) || set == nil {
			continue
		}
		if lacks := w.LacksOf(set, nil, p.schema); lacks != "" {
			p.deny(c, "permission set %s gives %s, and you do not have that", printable(name), lacks)
		}
	}
	if is.Role != had.Role && is.Role != "" && !w.AllEntityAccess() && !w.HasRole(is.Role) {
		p.deny(c, "role %s is neither yours nor below yours", printable(is.Role))
	}
}

// judgeTakeover finds what the author would have with a user's account and does not
// have.
func (p *plan) judgeTakeover(c change, was, is *user.User) {
	p.judgeGiven(c, &user.User{}, was)
	if !p.reachesRecordsOf(was) || !p.author.viewer.AllEntityAccess() && p.shared(was.ID) {
		p.deny(c, "with this user's password come records that you do not reach")
	}
	p.judgeMatches(c, is)
}

// reachesRecordsOf reports whether the author reaches what a stored user owns. Whether
// a user without such a role owns anything is found out in the transaction.
func (p *plan) reachesRecordsOf(was *user.User) bool {
	return p.author.viewer.AllEntityAccess() || p.author.viewer.Above(was.Role) || !p.owns(was.ID)
}

// fieldAt is a field that a plan adds to an entity type: the name that its records are
// stored under, "" for users, and the one that its values stand under.
type fieldAt struct{ stored, member string }

// actorName is the e-mail address of a user of a definition, for a message.
func (p *plan) actorName(key string) string {
	if u := p.person(key); u != nil {
		return u.Email
	}
	return cmp.Or(key, "another user")
}
