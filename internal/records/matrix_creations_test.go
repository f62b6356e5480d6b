package records_test

import (
	"context"
	"slices"
	"strings"

	"gatehouse/internal/records"
)

// aboutCreations creates records with only the required fields, with each other
// field added, and with an owner. It deletes what was created.
func (x *exam) aboutCreations(s *records.Session, p *person, entity string) (list []question) {
	parents := []*thing{nil}
	if above := x.w.types[entity].parent; above != "" {
		parents = ends(x.w.of(above))
	}
	for _, parent := range parents {
		list = append(list, x.aboutCreationsBelow(s, p, entity, parent)...)
	}
	return list
}

// aboutCreationsBelow is aboutCreations with a parent, nil where the type has
// none.
func (x *exam) aboutCreationsBelow(s *records.Session, p *person, entity string, parent *thing) []question {
	ctx := context.Background()
	create := func(extra records.Member) string {
		members := x.required(entity, extra.Name, parent)
		if extra.Name != "" {
			members = append(members, extra)
		}
		got, err := s.Create(ctx, entity, members)
		if err == nil {
			shows := shown(got)
			x.h.delete(x.system, entity, id(object(x.h.t, got)))
			return "ok " + names(shows)
		}
		return outcome("", err)
	}
	ask := func(verb string, extra records.Member, expect func(o *oracle) string) question {
		return question{
			cells: 1, about: x.describe(p, verb, &thing{entity: entity}),
			ask: func() string { return create(extra) }, expect: expect,
		}
	}
	shows := func(o *oracle, v verdict) string {
		if v != ok {
			return string(v)
		}
		return "ok " + strings.Join(o.members(p, entity), " ")
	}
	list := []question{
		ask("creates", records.Member{}, func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, "", parent)) }),
		ask("creates for themselves", records.Member{Name: "owner_id", Value: []byte(`"` + p.id + `"`)},
			func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, "", parent)) }),
	}
	for _, other := range []*person{x.w.people[witness], x.w.people[someoneExternal]} {
		if other == p {
			continue
		}
		list = append(list, ask("creates for another", records.Member{Name: "owner_id", Value: []byte(`"` + other.id + `"`)},
			func(o *oracle) string {
				if v := o.judgeCreate(p, entity, "", nil); v != ok {
					return shows(o, v)
				}
				if v := o.judgeCreate(p, entity, "", parent); v != ok && o.mayOwn(p, entity, other) != forbidden {
					return shows(o, v)
				}
				return shows(o, o.mayOwn(p, entity, other))
			}))
	}
	list = append(list, question{
		cells: 1, about: x.describe(p, "creates, with nothing,", &thing{entity: entity}),
		ask: func() string {
			got, err := s.Create(ctx, entity, nil)
			if err == nil {
				x.h.delete(x.system, entity, id(object(x.h.t, got)))
			}
			return outcome("", err)
		},
		expect: func(o *oracle) string {
			v := o.judgeCreate(p, entity, "", nil)
			if v == ok && len(x.required(entity, "", parent)) > 0 {
				v = invalid
			}
			return string(v)
		},
	})
	for _, f := range slices.Concat(x.w.types[entity].fields, []field{{name: "nothing", values: []string{"1"}}}) {
		if f.name == "parent" {
			continue
		}
		list = append(list, ask("creates with "+f.name, records.Member{Name: f.name, Value: []byte(f.values[0])},
			func(o *oracle) string { return shows(o, o.judgeCreate(p, entity, f.name, parent)) }))
	}
	return list
}

// required returns a body with the required fields except one.
func (x *exam) required(entity, but string, parent *thing) (members []records.Member) {
	for _, f := range x.w.types[entity].fields {
		if f.name == "parent" {
			members = append(members, records.Member{Name: f.name, Value: []byte(`"` + parent.id + `"`)})
		} else if f.required && f.name != but {
			members = append(members, records.Member{Name: f.name, Value: []byte(f.values[0])})
		}
	}
	return members
}

func names(shown string) string {
	var list []string
	for _, part := range strings.Split(shown, " ") {
		if name, _, found := strings.Cut(part, "="); found {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}
