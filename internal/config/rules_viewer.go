package config

import (
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// ofViewer reads the right side of a condition that may name something of the
// viewer. A text that is meant to and does not is refused.
func (d *decoder) ofViewer(n *Value, text string) (viewer string, is, ok bool) {
	viewer, is = access.ViewerForm(text)
	if is && viewer == "" {
		d.bad(n, access.ViewerExpected+", found %s", d.found(n))
		return "", false, false
	}
	return viewer, is, true
}

// conditionOf is the right side of a condition as Export writes it.
func conditionOf(c access.Condition) *Value {
	if c.Viewer != "" {
		return str("{{user." + c.Viewer + "}}")
	}
	return scalarOf(c.Value)
}

// checkViewed finds a stored rule that compares a field with the viewer and that
// a change would break. A change of the field's type is refused as well: the
// matches are stored by values of the old one.
func (p *plan) checkViewed(r *access.SharingRule, c access.Condition, f *schema.Field) {
	own := p.schema.User.Field(c.Viewer)
	if own == nil && c.Viewer != access.ViewerID && c.Viewer != access.ViewerEmail {
		p.add(p.m.place("user_fields"), "field %s of user_fields %s: sharing rule %s needs it", c.Viewer, p.cannotGo(schema.UserEntity, c.Viewer), ruleName(r))
		return
	}
	place := p.m.place("entities", r.Entity, "field", c.Field)
	if p.m.names("user_fields", "field", c.Viewer) {
		place = p.m.later([]string{"entities", r.Entity, "field", c.Field}, []string{"user_fields", "field", c.Viewer})
	}
	if err := c.Comparable(p.schema, f); err != nil {
		p.add(place, "sharing rule %s: %s", ruleName(r), err)
		return
	}
	if was := p.was(r.Entity); was != nil {
		if old := was.OfMember(f.MemberName()); old != nil && (!sameKeys(old.Type, f.Type) || old.TargetAs() != f.TargetAs()) {
			p.add(place, "field %s of %s cannot be changed so: sharing rule %s needs its values", c.Field, r.Entity, ruleName(r))
		}
	}
}

// sameKeys reports whether values of two types have the same keys.
func sameKeys(a, b schema.Type) bool {
	texts := []schema.Type{schema.Text, schema.Select}
	return a == b || slices.Contains(texts, a) && slices.Contains(texts, b)
}

// boundMembers refuses rules of an entity type that may share with one viewer
// under too many names.
func (p *plan) boundMembers() {
	sum := map[string]int{}
	for _, id := range sortedKeys(p.after.rules) {
		if r := p.after.rules[id]; p.schema.Entity(r.Entity) != nil {
			sum[r.Entity] += r.Combinations(p.schema)
		}
	}
	for _, entity := range sortedKeys(sum) {
		if n := sum[entity]; n > access.MaxMembers {
			p.add(p.m.place("sharing_rules"), "the sharing rules of %s compare lists of the viewer in %d combinations: expected at most %d "+
				"(a multireference counts %d, a multiselect its options, and lists in one rule are multiplied)", entity, n, access.MaxMembers, schema.MaxReferences)
		}
	}
}

// warnOfAddresses warns of rules that believe addresses which nobody verifies.
func (p *plan) warnOfAddresses() {
	x := &p.after.tenant.Settings.ExternalIdentity
	if !x.Enabled || !x.OpenRegistration || x.ActivationMode != tenant.ActivateAtOnce {
		return
	}
	for _, id := range sortedKeys(p.after.rules) {
		r := p.after.rules[id]
		if p.before.rules[id] != nil && !p.m.has("external_identity") || r.ShareWith == access.InternalUsers {
			continue
		}
		for _, c := range r.Where {
			if c.Viewer == access.ViewerEmail {
				p.warn("sharing rule %s: with activation_mode none whoever registers may give any e-mail address, and sees what the rule shares with it", ruleName(r))
			}
		}
	}
}
