package records

import (
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Why explains what a user may do with a record. It is computed from the data
// that decides requests: the sources of the scopes, the conditions of the ways
// (way.go), and each permission set by itself.
type Why struct {
	Owner  user.ID   // of the record; "" for a user
	Verbs  []VerbWhy // of Read, Update and Delete
	Ways   []WayWhy  // every cause, whether it opens the record or not
	Fields []FieldWhy

	role string // the user's role
}

// VerbWhy explains one verb.
type VerbWhy struct {
	Verb access.Verb
	// Code is the error code of a request for the verb, "" where it succeeds.
	Code fault.Code
	// Sets are the permission sets that allow the verb on the entity type.
	Sets []string
	// Reached reports whether the verb reaches the record.
	Reached bool
}

// WayWhy explains one cause: for which verbs it opens the record, and why. It has
// at most maxReasons reasons for a verb; More counts those that are left out.
type WayWhy struct {
	Cause   access.Cause
	Verbs   []access.Verb
	Reasons []*Reason
	More    int
}

// Reason is one cause that opens the record.
type Reason struct {
	Cause access.Cause
	Verbs []access.Verb
	Role  string              // the owner's, or that of the share; "" otherwise
	Rule  *access.SharingRule // nil for others
	Set   string              // the permission set that has all_entity_access
	// Parent is the record that decides; nil unless Cause is
	// access.ControlledByParent.
	Parent *ParentWhy
	Text   string // in words

	words func(*Why, *Reason) string
}

// ParentWhy explains what the user may do with the parent of a record.
type ParentWhy struct {
	Entity, ID string
	Why        *Why
}

// text says what the user may do with the parent that matters here, and why.
func (p *ParentWhy) text() string {
	if p == nil {
		return "its parent is reached"
	}
	var parts []string
	for _, at := range p.Why.Verbs {
		if at.Verb == access.Delete || at.Code != "" {
			continue
		}
		var texts []string
		for _, w := range p.Why.Ways {
			for _, r := range w.Reasons {
				if r.Opens(at.Verb) {
					texts = append(texts, r.Text)
				}
			}
		}
		parts = append(parts, "may be "+map[access.Verb]string{access.Read: "read", access.Update: "updated"}[at.Verb]+
			" ("+strings.Join(texts[:min(len(texts), maxParentReasons)], "; ")+")")
	}
	return "its " + p.Entity + " " + p.ID + " " + strings.Join(parts, " and ")
}

// maxParentReasons bounds the reasons that a text names for a parent.
const maxParentReasons = 3

// FieldWhy names the permission sets that let a field be read, and edited.
type FieldWhy struct {
	Name       string
	Read, Edit []string
}

// OwnerSet represents the ownership of the tenant among names of permission
// sets.
const OwnerSet = ""

// The causes by which a user is reached (contract U4).
const (
	ReachInternal access.Cause = "internal" // an internal user reaches every user
	ReachSelf     access.Cause = "self"     // an external user reaches their own row
)

// verbsOfRecords are the verbs that Why explains.
var verbsOfRecords = [...]access.Verb{access.Read, access.Update, access.Delete}

// maxReasons bounds the reasons that a way gives for a verb.
const maxReasons = 10

// Opens reports whether the reason opens the record for a verb.
func (r *Reason) Opens(v access.Verb) bool { return slices.Contains(r.Verbs, v) }

// of reports whether the reason describes a source. Two sources that differ
// only in verb or name are one reason.
func (r *Reason) of(src *access.Source) bool {
	return r.Cause == src.Cause && r.Role == src.Role && r.Rule == src.Rule && r.Set == src.Set
}

// add records that a source opens the record for a verb; words writes Text.
func (why *Why) add(src *access.Source, v access.Verb, words func(*Why, *Reason) string) {
	way := why.way(src.Cause)
	if !slices.Contains(way.Verbs, v) {
		way.Verbs = append(way.Verbs, v)
	}
	i := slices.IndexFunc(way.Reasons, func(r *Reason) bool { return r.of(src) })
	if i < 0 {
		i = len(way.Reasons)
		way.Reasons = append(way.Reasons, &Reason{Cause: src.Cause, Role: src.Role, Rule: src.Rule, Set: src.Set, words: words})
	}
	if r := way.Reasons[i]; !r.Opens(v) {
		r.Verbs = append(r.Verbs, v)
	}
}

func (why *Why) way(cause access.Cause) *WayWhy {
	i := slices.IndexFunc(why.Ways, func(w WayWhy) bool { return w.Cause == cause })
	if i < 0 {
		i = len(why.Ways)
		why.Ways = append(why.Ways, WayWhy{Cause: cause})
	}
	return &why.Ways[i]
}

// finish keeps at most maxReasons reasons of each way for a verb, and writes the
// texts.
func (why *Why) finish() {
	for i := range why.Ways {
		w, n := &why.Ways[i], map[access.Verb]int{}
		all := len(w.Reasons)
		w.Reasons = slices.DeleteFunc(w.Reasons, func(r *Reason) bool {
			keep := false
			for _, v := range r.Verbs {
				keep = keep || n[v] < maxReasons
				n[v]++
			}
			return !keep
		})
		w.More = all - len(w.Reasons)
		for _, r := range w.Reasons {
			r.Text = r.words(why, r)
		}
	}
}

// whole returns a function that explains why every record of an entity type is
// reached.
func whole(e *schema.Entity) func(*Why, *Reason) string {
	return func(_ *Why, r *Reason) string {
		switch r.Cause {
		case access.TenantOwner:
			return "the user owns the tenant"
		case access.AllEntityAccess:
			return "permission set '" + r.Set + "' has all_entity_access"
		default: // access.EntityDefault
			return "the default of " + e.Name + " is " + string(e.Sharing)
		}
	}
}

// above returns a clause that names the user's role as an ancestor of role, or
// "" for the user's own role.
func (why *Why) above(role string) string {
	if role == "" || role == why.role {
		return ""
	}
	return ", of which " + why.role + " is an ancestor"
}

func (why *Why) ruled(r *Reason) string {
	if r.Rule.ShareWith != "" {
		return " with " + sharedWith(r.Rule) + " (" + string(r.Rule.Access) + ")"
	}
	return " with role " + r.Rule.ShareWithRole + " (" + string(r.Rule.Access) + ")" + why.above(r.Rule.ShareWithRole)
}

// sharedWith returns a text for whom a rule shares with.
func sharedWith(rule *access.SharingRule) string {
	switch rule.ShareWith {
	case access.InternalUsers, access.ExternalUsers:
		return string(rule.ShareWith) + " users"
	case access.Everyone:
		return "everyone"
	}
	return rule.ShareWithRole
}

// setsAllowing returns the names of the grants that allow something.
func setsAllowing(grants []access.Grant, allows func(*access.EntityRights) bool) []string {
	sets := []string{}
	for _, g := range grants {
		if allows(g.EntityRights) {
			sets = append(sets, g.Set)
		}
	}
	return sets
}

// fields explains the fields of an entity type, and for a user also the
// built-in members, of which only name and locale can be edited (contract U5).
func (why *Why) fields(e *schema.Entity, grants []access.Grant) {
	if e.Name == schema.UserEntity {
		for _, name := range access.UserColumns {
			edits := name == "name" || name == "locale"
			why.Fields = append(why.Fields, FieldWhy{
				name,
				setsAllowing(grants, func(r *access.EntityRights) bool { return r.Column(name).Read }),
				setsAllowing(grants, func(r *access.EntityRights) bool { return edits && r.Column(name).Edit }),
			})
		}
	}
	for _, f := range e.Fields {
		why.Fields = append(why.Fields, FieldWhy{
			f.Name,
			setsAllowing(grants, func(r *access.EntityRights) bool { return r.ReadField[f.Index] }),
			setsAllowing(grants, func(r *access.EntityRights) bool { return r.EditField[f.Index] }),
		})
	}
}
