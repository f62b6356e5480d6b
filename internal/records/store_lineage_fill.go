package records

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// walkLineage adds the rows of a lineage in one transaction. c is the
// configuration that writers use.
func walkLineage(ctx context.Context, tx db.Tx, c *access.Config, l *access.Lineage) error {
	for after := int64(0); ; {
		last, _, err := lineagePage(ctx, tx, c, l, after, math.MaxInt64, upTo(walkPage))
		if err != nil || last == 0 {
			return err
		}
		after = last
	}
}

// lineagePage adds the rows of a lineage for its next records; last is 0 when
// there were none. It holds the records' ancestors. The records themselves need
// not be held, because whoever moves one adds the rows for its new ancestors.
func lineagePage(ctx context.Context, tx db.Tx, c *access.Config, l *access.Lineage, after, top int64, limit extent) (last int64, visited extent, err error) {
	parents := map[string]bool{}
	err = tx.Query(ctx, `SELECT created_at, COALESCE(data ->> CAST($5 AS TEXT), '') FROM records WHERE tenant_id = $1 AND entity = $2
		AND created_at > $3 AND created_at <= $4 ORDER BY created_at LIMIT `+strconv.Itoa(limit.records), func(r db.Row) error {
		last = r.Int(0)
		visited.records++
		if id := r.Text(1); id != "" {
			parents[id] = true
		}
		return nil
	}, l.Entity, after, top, l.Links[0].Member)
	for _, id := range slices.Sorted(maps.Keys(parents)) {
		if err == nil {
			_, err = holdAncestors(ctx, tx, l.Links, id)
		}
		if err == nil {
			err = enroll(ctx, tx, c, access.Place{Lineage: l}, id)
		}
	}
	return last, visited, err
}

// lineageRows returns all rows of a lineage as leftovers.
func lineageRows(links []schema.Link, name string) (list []access.Leftover) {
	for _, link := range links {
		list = append(list, access.Leftover{Kind: access.LeftValues, Entity: link.Entity, Name: name})
	}
	return list
}

// leaveLineage returns the rows of the lineage that an entity type no longer
// has. after is the type after the change, nil if it is removed.
func (t *Transition) leaveLineage(ctx context.Context, tx tenant.ConfigTx, e, after *schema.Entity, w *access.Work) ([]access.Leftover, error) {
	if e.Lineage == "" {
		return nil, nil
	}
	stays := after != nil && after.ControlledBy != ""
	if stays && !slices.ContainsFunc(w.Lineages, func(l *access.Lineage) bool { return l.Entity == e.StoredAs() }) {
		return nil, nil
	}
	if after != nil && !stays {
		if err := schema.SetLineage(ctx, tx, after.Name, ""); err != nil {
			return nil, err
		}
	}
	return lineageRows(t.Before.Schema.Chain(e), e.Lineage), nil
}

// mayChangeParents returns CONFLICT if records whose ancestors would change are
// still being deleted with a parent.
func (t *Transition) mayChangeParents(ctx context.Context, q db.Querier) error {
	for _, e := range t.Before.Schema.Entities {
		links := t.Before.Schema.Chain(e)
		after := t.After.Schema.StoredAs(e.StoredAs())
		if len(links) == 0 || after != nil && slices.Equal(links, t.After.Schema.Chain(after)) {
			continue
		}
		left, err := access.ChildrenLeft(ctx, q, e.StoredAs())
		if err != nil {
			return err
		}
		if left {
			return fault.New(fault.Conflict, "entity %s: records are still being deleted with their parent: apply this again in a minute", e.Name).
				With("entity", e.Name)
		}
	}
	return nil
}
