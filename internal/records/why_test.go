package records_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// aboutWhy asks why a viewer may or may not perform each verb on a record, and
// which permission sets open its fields.
func (x *exam) aboutWhy(p *person, r *thing) question {
	asker, of := x.system, x.viewers[p]
	return question{
		cells: 3, about: x.describe(p, whyVerb, r), why: true,
		ask: func() string {
			why, err := asker.Why(context.Background(), of, r.entity, r.id)
			if err != nil {
				return outcome("", err)
			}
			return explained(why)
		},
		expect: func(o *oracle) string { return o.explains(p, r) },
	}
}

// explains reports whether explanations are made from what a seeded fault misreads. They
// list the fields of each set separately.
func explains(fault string) bool { return !strings.Contains(fault, "field") }

const whyVerb = "asks why about"

// explained returns an explanation in the form in which the matrix compares it.
func explained(why *records.Why) string {
	var parts []string
	for _, v := range why.Verbs {
		var causes []string
		for _, w := range why.Ways {
			opens := slices.ContainsFunc(w.Reasons, func(r *records.Reason) bool { return r.Opens(v.Verb) && r.Text != "" })
			if opens != slices.Contains(w.Verbs, v.Verb) {
				causes = append(causes, "no reason for "+string(w.Cause))
			}
			if opens {
				cause := string(w.Cause)
				if w.Cause == access.TenantOwner || w.Cause == access.AllEntityAccess {
					cause = "everything"
				}
				causes = append(causes, cause)
			}
		}
		slices.Sort(causes)
		if v.Reached != (len(causes) > 0) {
			causes = append(causes, "but reached is "+fmt.Sprint(v.Reached))
		}
		code := v.Code
		if code == "" {
			code = fault.Code(ok)
		}
		parts = append(parts, fmt.Sprintf("%s %s by %v sets %q", v.Verb, code, slices.Compact(causes), v.Sets))
	}
	for _, f := range why.Fields {
		parts = append(parts, fmt.Sprintf("%s read %q edit %q", f.Name, f.Read, f.Edit))
	}
	return strings.Join(parts, "; ")
}

// explains returns the explanation that the rules give.
func (o *oracle) explains(p *person, r *thing) string {
	if !o.sameTenant(p, r) {
		return string(notFound)
	}
	var parts []string
	for _, v := range []verb{toRead, toUpdate, toDelete} {
		sets := o.setsOf(p, r.entity, func(g *grant) bool { return g.verbs[v] })
		parts = append(parts, fmt.Sprintf("%s %s by %v sets %q", v, o.judge(p, r, v), o.causes(p, r, v), sets))
	}
	for _, f := range o.w.types[r.entity].fields {
		says := func(allows func(fieldGrant) bool) []string {
			return o.setsOf(p, r.entity, func(g *grant) bool {
				named, there := g.fields[f.name]
				return !there || allows(named)
			})
		}
		parts = append(parts, fmt.Sprintf("%s read %q edit %q", f.name, says(func(g fieldGrant) bool { return g.read || g.edit }),
			says(func(g fieldGrant) bool { return g.edit })))
	}
	return strings.Join(parts, "; ")
}

// setsOf returns the names of what gives p something on an entity type; "" is
// ownership of the tenant.
func (o *oracle) setsOf(p *person, entity string, gives func(*grant) bool) []string {
	sets := []string{}
	if p.owner {
		sets = append(sets, records.OwnerSet)
	}
	for _, name := range p.sets {
		s := o.w.sets[name]
		if g := s.entities[entity]; s.all && !p.external || g != nil && gives(g) {
			sets = append(sets, name)
		}
	}
	return sets
}

// by returns the map in which a question records the faults that it catches.
func (x *exam) by(q question) map[string]string {
	if q.why {
		return x.caughtByWhy
	}
	return x.caught
}
