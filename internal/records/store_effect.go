package records

import (
	"context"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
)

// Visit is how many records of an entity type a change must look at: those
// whose values must be checked or indexed again, those to be matched against a
// new sharing rule, and those whose owner's role changes.
type Visit struct {
	Entity  string `json:"entity"`
	Records int64  `json:"records"`
	// More is set when there are more than Records, which then is the limit.
	More bool `json:"more,omitempty"`
	// Hidden is set where who asks may not know how many there are.
	Hidden bool `json:"hidden,omitempty"`
}

// Visits returns how many records the transition must look at, by entity type.
// It counts at most limit records of each.
func (t *Transition) Visits(ctx context.Context, q db.Querier, limit int) ([]Visit, error) {
	var list []Visit
	w := t.work()
	for _, s := range w.Shapes {
		n, err := atMost(ctx, q, limit+1, `entity = $2`, s.Entity.StoredAs())
		if err != nil {
			return nil, err
		}
		list = append(list, visit(s.Entity.Name, n, limit))
	}
	for _, l := range w.Lineages {
		e := t.After.Schema.StoredAs(l.Entity)
		if slices.ContainsFunc(list, func(v Visit) bool { return v.Entity == e.Name }) {
			continue
		}
		n, err := atMost(ctx, q, limit+1, `entity = $2`, l.Entity)
		if err != nil {
			return nil, err
		}
		list = append(list, visit(e.Name, n, limit))
	}
	for _, stored := range w.Entities {
		e := t.After.Schema.StoredAs(stored)
		if e == nil || slices.ContainsFunc(w.Shapes, func(s *access.Shape) bool { return s.Entity.StoredAs() == stored }) {
			continue
		}
		n, probes := 0, 0
		for _, m := range w.Moves {
			for _, u := range m.Users {
				if probes++; probes > maxProbes {
					n = limit + 1
				}
				if n > limit {
					break
				}
				more, err := atMost(ctx, q, limit+1-n, `entity = $2 AND owner_id = $3`, stored, u)
				if err != nil {
					return nil, err
				}
				n += more
			}
		}
		list = append(list, visit(e.Name, n, limit))
	}
	return list, nil
}

func visit(entity string, n, limit int) Visit {
	return Visit{Entity: entity, Records: int64(min(n, limit)), More: n > limit}
}
