package access

import "gatehouse/internal/schema"

// Source is one reason why a verb reaches records for a viewer. A Scope is
// built from sources, and an explanation of the scope lists them.
type Source struct {
	Cause Cause
	// Kind, Name and EditOnly are the way that the source adds to a scope, with
	// its only name. A cause that grants all records has none.
	Kind     Kind
	Name     string
	EditOnly bool
	// Role is the owner's role (Hierarchy), or the role of the share (ShareWithRole).
	Role string
	Rule *SharingRule // for RuleByOwnerRole, RuleByValue and RuleByViewer
	Set  string       // for AllEntityAccess, a permission set
	// known is set when an earlier source added the name.
	known bool
	// parent is set for ControlledByParent.
	parent *Parent
}

// Way returns the way that the source adds to a scope.
func (s *Source) Way() Way {
	if s.parent != nil {
		return Way{Kind: s.Kind, Parent: s.parent}
	}
	return Way{Kind: s.Kind, Names: []string{s.Name}, EditOnly: s.EditOnly}
}

// Cause is the kind of a source.
type Cause string

// The causes, in the order of the contract's table (A1).
const (
	Ownership       Cause = "owner"
	Hierarchy       Cause = "hierarchy"
	ShareWithUser   Cause = "share_with_user"
	ShareWithRole   Cause = "share_with_role"
	RuleByOwnerRole Cause = "rule_by_owner_role"
	RuleByValue     Cause = "rule_by_value"
	RuleByViewer    Cause = "rule_by_viewer"
	// ControlledByParent: the parent of the record may be read, or updated.
	ControlledByParent Cause = "parent"
	EntityDefault      Cause = "default"
	AllEntityAccess    Cause = "all_entity_access"
	TenantOwner        Cause = "tenant_owner"
)

// Causes lists them all.
var Causes = []Cause{
	Ownership, Hierarchy, ShareWithUser, ShareWithRole, RuleByOwnerRole, RuleByValue, RuleByViewer, ControlledByParent, EntityDefault, AllEntityAccess, TenantOwner,
}

// Sources returns every reason why a verb reaches records of an entity type:
// the reasons why it reaches all of them, and those that name some. Scope is
// built from the same list. Create has no sources.
func (w Viewer) Sources(e *schema.Entity, verb Verb) (all, some []Source) {
	if w.v == nil || verb == Create {
		return nil, nil
	}
	w.v.sources(e, verb, func(src Source) { some = append(some, src) })
	return w.v.whole(e, verb), some
}

// whole returns the reasons why a verb reaches all records of an entity type
// (contract A3, A4, A10). The default of the entity type applies to internal
// users.
func (v *viewer) whole(e *schema.Entity, verb Verb) (list []Source) {
	if v.owner {
		list = append(list, Source{Cause: TenantOwner})
	}
	for _, set := range v.allBy {
		list = append(list, Source{Cause: AllEntityAccess, Set: set})
	}
	if !v.external && verb != Delete {
		if e.Sharing == schema.PublicReadWrite || e.Sharing == schema.PublicRead && verb == Read {
			list = append(list, Source{Cause: EntityDefault})
		}
	}
	return list
}

// sources calls add for each name under which a verb reaches records of an
// entity type (contract A7 to A9), in the order of kinds: the owner and users
// with an ancestor of the owner's role may do everything; shares and sharing
// rules allow read, or read and update. Records of an entity type that is
// controlled by a parent are reached by the parent alone (contract A21).
func (v *viewer) sources(e *schema.Entity, verb Verb, add func(Source)) {
	if e.ControlledBy != "" {
		if p := v.parent(e, verb); p != nil {
			add(Source{Cause: ControlledByParent, Kind: ByParent, parent: p})
		}
		return
	}
	var below []string
	if v.role != "" {
		below = v.config.Roles.Below(v.role)
	}
	add(Source{Cause: Ownership, Kind: ByOwner, Name: string(v.userID)})
	for _, role := range below {
		v.config.ownedBy(role, Source{Cause: Hierarchy, Role: role}, add)
	}
	if verb == Delete {
		return
	}
	editOnly := verb == Update
	rules := v.rules(e, below, editOnly)
	owners := map[string]bool{} // the roles whose records the viewer already reaches
	for _, role := range below {
		owners[role] = true
	}
	for _, rule := range rules {
		if rule.OwnedByRole != "" {
			known := owners[rule.OwnedByRole]
			owners[rule.OwnedByRole] = true
			v.config.ownedBy(rule.OwnedByRole, Source{Cause: RuleByOwnerRole, Rule: rule, known: known}, add)
		}
	}
	v.shares(below, editOnly, add)
	for _, rule := range rules {
		if rule.OwnedByRole != "" {
			continue
		}
		for _, name := range v.standsIn(rule) {
			add(Source{Cause: rule.Cause(), Kind: ByRule, Name: name, Rule: rule})
		}
	}
}

// parent returns the parents whose records a verb reaches, or nil where the
// viewer may not do with any parent what that takes: read it to read, and
// update it to update or delete.
func (v *viewer) parent(e *schema.Entity, verb Verb) *Parent {
	of := v.config.Schema.Parent(e)
	if of == nil {
		return nil
	}
	if verb == Delete {
		verb = Update
	}
	r := v.entities[of.Name]
	if !r.May(Read) || !r.May(verb) {
		return nil
	}
	if r.scopes[verb] == nil {
		r.scopes[verb] = v.scope(of, verb)
	}
	return &Parent{Of: e, Field: e.Controller(), Entity: of, Scope: r.scopes[verb]}
}

// ownedBy adds a source under each name that a role has in owner_role.
func (c *Config) ownedBy(role string, src Source, add func(Source)) {
	src.Kind, src.Name = ByOwnerRole, role
	add(src)
	for _, name := range c.roleNames[role] { // names used while users move from the role
		src.Name = name
		add(src)
	}
}

// shares adds the principals whose shares reach the viewer: the viewer, the
// viewer's role and the roles below it.
func (v *viewer) shares(below []string, editOnly bool, add func(Source)) {
	src := Source{Cause: ShareWithUser, Kind: ByShare, Name: string(UserPrincipal(v.userID)), EditOnly: editOnly}
	add(src)
	src.Cause = ShareWithRole
	if v.role == "" {
		return
	}
	src.Role, src.Name = v.role, v.config.Roles.shares[v.role]
	add(src)
	for _, role := range below {
		src.Role, src.Name = role, v.config.Roles.shares[role]
		add(src)
	}
}

// rules returns the sharing rules of an entity type that reach the viewer.
func (v *viewer) rules(e *schema.Entity, below []string, editOnly bool) (list []*SharingRule) {
	mine := map[string]bool{} // the roles whose rules reach the viewer
	if v.role != "" {
		mine[v.role] = true
	}
	for _, role := range below {
		mine[role] = true
	}
	for _, rule := range v.config.Rules {
		reached := mine[rule.ShareWithRole] || rule.ShareWith.Has(v.external)
		if rule.Entity != e.Name || !reached || editOnly && rule.Access != Edit {
			continue
		}
		list = append(list, rule)
	}
	return list
}

// Grant is what one permission set grants by itself or, if Set is "", what
// ownership of the tenant grants.
type Grant struct {
	Set string
	*EntityRights
}

// Grants returns what each of the viewer's permission sets grants on an entity
// type, users included. The union of the grants is the viewer's rights. The
// rights of a grant have no scopes.
func (w Viewer) Grants(e *schema.Entity) (list []Grant) {
	if w.v == nil {
		return nil
	}
	if w.v.owner {
		list = append(list, Grant{"", noRights(e).full()})
	}
	for _, set := range w.v.sets {
		r := noRights(e)
		if w.v.takes(set) {
			r.full()
		} else if g, ok := set.Entities[e.Name]; ok {
			r.unite(g)
		}
		w.v.closeManaged(r)
		list = append(list, Grant{set.Name, r})
	}
	return list
}
