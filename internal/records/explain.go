package records

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Explanation is Why as staff of the tenant may ask for it: without what they may
// not see themselves, and with what would change the answer.
type Explanation struct {
	*Why
	// Closed says of each cause that opens the record for no verb why not.
	Closed []Closed
	// Openings would each open the record for the verb that was asked about. There
	// are none where it is open.
	Openings []Opening
}

// Closed is why a cause does not open a record. Near marks the one that is closest
// to opening it.
type Closed struct {
	Cause access.Cause
	Text  string
	Near  bool
}

// OpeningKind is a kind of change that opens a record.
type OpeningKind string

// The kinds of openings.
const (
	OpenBySet   OpeningKind = "permission_set" // give the user a permission set
	OpenByShare OpeningKind = "share"          // share the record with the user
	OpenByRule  OpeningKind = "rule"           // a sharing rule by the owner's role
	OpenByRole  OpeningKind = "role"           // give the user a role above the owner's
)

// Opening is a change that opens a record for a user, and what it opens besides.
type Opening struct {
	Kind OpeningKind
	Text string
	// Set, Role and OwnedByRole name what the change is about: the permission set;
	// the role to give or to share with; the role whose records a rule shares.
	Set, Role, OwnedByRole string
	Access                 access.Level // of a share or rule
	// May reports whether who asks may make the change: share the record.
	May   bool
	Reach Reach
}

// Count is a number of things that were counted up to a bound: More means that
// there may be more than N.
type Count struct {
	N    int
	More bool
}

// Reach is what a change opens: how many records, of those that who asks may read,
// to how many users.
type Reach struct{ Records, Users Count }

// mask removes what the asker may not see themselves: fields that they may not
// read, and the conditions of rules about such fields.
func (x *Explanation) mask(asks access.Viewer, r *access.EntityRights) {
	e := r.Entity
	x.Fields = slices.DeleteFunc(x.Fields, func(f FieldWhy) bool {
		if declared := e.Field(f.Name); declared != nil {
			return !r.ReadField[declared.Index]
		}
		return !r.Column(f.Name).Read
	})
	for i := range x.Ways {
		for _, reason := range x.Ways[i].Reasons {
			if reason.Rule != nil && !readable(asks, r, reason.Rule) {
				reason.Rule, reason.Text = nil, "a rule shares it by the values of fields that you may not read"
			}
			if reason.Parent == nil {
				continue
			}
			if above, err := asks.On(reason.Parent.Entity); err == nil {
				(&Explanation{Why: reason.Parent.Why}).mask(asks, above)
				reason.Text = reason.Parent.text()
			}
		}
	}
}

// readable reports whether the viewer, with these rights on the entity type, may
// read every field that a rule of it compares, those of users included.
func readable(asks access.Viewer, r *access.EntityRights, rule *access.SharingRule) bool {
	return !slices.ContainsFunc(rule.Where, func(c access.Condition) bool {
		return !readableOf(r, r.Entity.Comparand(c.Field)) || !readableOfUsers(asks, c)
	})
}

// readableOf reports whether rights include reading what a condition names. The id
// of a record is no secret to those who see the record.
func readableOf(r *access.EntityRights, f *schema.Field) bool {
	return f != nil && (f.Name == schema.IDField || r.ReadField[f.Index])
}

// readableOfUsers reports whether the viewer may read what a condition takes from
// whoever looks.
func readableOfUsers(asks access.Viewer, c access.Condition) bool {
	if c.Viewer == "" || c.Viewer == access.ViewerID || c.Viewer == access.ViewerEmail {
		return true
	}
	users, err := asks.OnUsers()
	if err != nil {
		return false
	}
	own := users.Entity.Field(c.Viewer)
	return own != nil && users.ReadField[own.Index]
}

// verbWhy returns the explanation of a verb.
func (why *Why) verbWhy(v access.Verb) *VerbWhy {
	i := slices.IndexFunc(why.Verbs, func(at VerbWhy) bool { return at.Verb == v })
	if i < 0 {
		return &VerbWhy{Verb: v, Code: fault.Forbidden}
	}
	return &why.Verbs[i]
}

// facts is what the words about a record are made of.
type facts struct {
	of        access.Viewer
	asks      access.Viewer
	rights    *access.EntityRights // of who asks
	owner     string               // the owner's name, or id
	ownerRole string
	matching  []*access.SharingRule // rules by field value that match the record
}

// closed explains each cause that opens the record for no verb.
func (f *facts) closed(why *Why) (list []Closed) {
	rules, near := f.rules(), f.nearest()
	for _, way := range why.Ways {
		if len(way.Verbs) > 0 {
			continue
		}
		c := Closed{Cause: way.Cause}
		if f.byParent(&c) {
			list = append(list, c)
			continue
		}
		switch way.Cause {
		case access.Ownership:
			c.Text = f.owner + " owns it"
		case access.Hierarchy:
			c.Text = f.notAbove()
		case access.ShareWithUser:
			c.Text = "it is not shared with the user"
		case access.ShareWithRole:
			c.Text = "it is shared with no role that reaches the user"
		case access.RuleByOwnerRole, access.RuleByValue, access.RuleByViewer:
			c.Text, c.Near = f.noRule(way.Cause, rules, near)
		case access.EntityDefault:
			c.Text = "the default of " + f.rights.Entity.Name + " is " + string(f.rights.Entity.Sharing)
			if f.of.External() {
				c.Text = "the default is for internal users"
			}
		case access.AllEntityAccess:
			c.Text = "no permission set of the user has all_entity_access"
		case access.TenantOwner:
			c.Text = "the user does not own the tenant"
		default:
			c.Text = "it does not open the record"
		}
		list = append(list, c)
	}
	return list
}

// byParent explains a cause by what controls the record, and reports whether it
// did: the parent, or that nothing else counts.
func (f *facts) byParent(c *Closed) bool {
	controller := f.rights.Entity.Controller()
	switch c.Cause {
	case access.TenantOwner, access.AllEntityAccess:
		return false
	case access.ControlledByParent:
		if controller == nil {
			c.Text = "records of " + f.rights.Entity.Name + " are not controlled by a parent"
			return true
		}
		c.Text, c.Near = "the user may not read its "+controller.Target, true
		return true
	}
	if controller != nil {
		c.Text = "only its " + controller.Target + " decides"
	}
	return controller != nil
}

func (f *facts) notAbove() string {
	switch {
	case f.of.Role() == "":
		return "the user has no role"
	case f.ownerRole == "":
		return "the owner has no role, so none stands above it"
	case f.of.Role() == f.ownerRole:
		return "the user has the role of the owner, " + f.ownerRole + "; peers see nothing of one another"
	}
	return f.of.Role() + " is not above " + f.ownerRole
}

// rules returns the rules on the entity type that who asks may know: those about
// fields that they may read.
func (f *facts) rules() (list []*access.SharingRule) {
	for _, rule := range f.of.Config().Rules {
		if rule.Entity == f.rights.Entity.Name && readable(f.asks, f.rights, rule) {
			list = append(list, rule)
		}
	}
	return list
}

// nearest returns the rule that is closest to opening the record: one that matches
// it and shares it with somebody else, by the owner's role before one by value, or
// else one that shares other records with the user.
func (f *facts) nearest() *access.SharingRule {
	var byValue, with *access.SharingRule
	for _, rule := range f.rules() {
		switch {
		case rule.OwnedByRole != "" && rule.OwnedByRole == f.ownerRole:
			return rule
		case slices.Contains(f.matching, rule):
			byValue = cmp.Or(byValue, rule)
		case rule.ShareWith.Has(f.of.External()), rule.ShareWithRole != "" && rule.ShareWithRole == f.of.Role():
			with = cmp.Or(with, rule)
		}
	}
	return cmp.Or(byValue, with)
}

func (f *facts) noRule(cause access.Cause, rules []*access.SharingRule, near *access.SharingRule) (text string, isNear bool) {
	n := 0
	for _, rule := range rules {
		if rule.Cause() == cause {
			n++
		}
	}
	kind := "by field value"
	switch cause {
	case access.RuleByOwnerRole:
		kind = "by the owner's role"
	case access.RuleByViewer:
		kind = "that matches the user"
		if n > 1 {
			kind = "that match the user"
		}
	}
	text = plural(n, "rule") + " " + kind + " on " + f.rights.Entity.Name
	if near != nil && near.Cause() == cause {
		return text + "; nearest: " + ruleWords(near), true
	}
	return text, false
}

func plural(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun
	case 1:
		return "1 " + noun
	}
	return itoa(n) + " " + noun + "s"
}

// ruleWords returns a short text for a rule.
func ruleWords(rule *access.SharingRule) string {
	what := "owned by " + rule.OwnedByRole
	if rule.OwnedByRole == "" {
		var where []string
		for _, c := range rule.Where {
			where = append(where, conditionWords(c))
		}
		what = strings.Join(where, " and ")
	}
	return what + " → " + sharedWith(rule) + ", " + string(rule.Access)
}

// allowing returns the names of the permission sets of the tenant that allow a verb
// on an entity type, at most maxReasons.
func allowing(c *access.Config, e *schema.Entity, v access.Verb, external bool) (names []string) {
	for name, set := range c.Sets {
		g := set.Entities[e.Name]
		may := map[access.Verb]bool{access.Read: g.Read, access.Update: g.Update, access.Delete: g.Delete}
		if may[v] || set.AllEntityAccess && !external {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxReasons)]
}

// strongest returns the reasons, those first that open the record for the most verbs
// and, of these, in the order of causes.
func (why *Why) strongest() (list []*Reason) {
	for _, way := range why.Ways {
		list = append(list, way.Reasons...)
	}
	slices.SortStableFunc(list, func(a, b *Reason) int { return cmp.Compare(len(b.Verbs), len(a.Verbs)) })
	return list
}
