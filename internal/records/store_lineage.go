package records

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// The rows of lineages (see lineage.go) are kept true by whoever creates, moves
// or deletes a descendant. Such a transaction holds all ancestors of the record,
// from the root down, so that none is moved or deleted meanwhile: if a record
// has descendants, it has the rows. Rows are removed with the last descendant.
// If another transaction holds the ancestor at that moment, they stay until the
// next removal; lists only take longer for that.

// families returns the places of a record in the lineages of which it has
// descendants.
func families(ctx context.Context, q db.Querier, c *access.Config, e *schema.Entity, createdAt int64) ([]access.Place, error) {
	m, err := pageFamilies(ctx, q, c, e, createdAt-1, createdAt)
	return m[createdAt], err
}

// pageFamilies is families for the records of a page of a walk, by created_at.
func pageFamilies(ctx context.Context, q db.Querier, c *access.Config, e *schema.Entity, after, last int64) (map[int64][]access.Place, error) {
	places := c.Above(e.StoredAs())
	if len(places) == 0 {
		return nil, nil
	}
	m := map[int64][]access.Place{}
	for _, place := range places {
		err := q.Query(ctx, `SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = '' AND reach = ''
			AND record_created_at > $4 AND record_created_at <= $5`, func(r db.Row) error {
			m[r.Int(0)] = append(m[r.Int(0)], place)
			return nil
		}, e.StoredAs(), place.Name, after, last)
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// ancestor is a record above another one.
type ancestor struct {
	entity string // stored name
	id     string
}

// holdAncestors holds a parent and the records above it until tx ends, from the
// root down, as a deletion of an ancestor does. It returns false if one does not
// exist. Without row locks, as on SQLite, it only checks that.
func holdAncestors(ctx context.Context, tx db.Tx, links []schema.Link, id string) (bool, error) {
	var held []ancestor
	for {
		line, err := lineOf(ctx, tx, links, id)
		if err != nil {
			return false, err
		}
		if tx.Dialect().ForShare == "" || slices.Equal(line, held) {
			return len(line) == len(links), nil
		}
		for i := len(line) - 1; i >= 0; i-- {
			if slices.Contains(held, line[i]) {
				continue
			}
			if _, err := exists(ctx, tx, named{line[i].entity, line[i].id}, tx.Dialect().ForShare); err != nil {
				return false, err
			}
		}
		held = line // one may have been moved or deleted before it was held
	}
}

// lineOf returns a parent and the records above it, as far as there are any.
func lineOf(ctx context.Context, q db.Querier, links []schema.Link, id string) (line []ancestor, err error) {
	for i, link := range links {
		up, member, there := "", "id", false // no data has a member id
		if i+1 < len(links) {
			member = links[i+1].Member
		}
		err := q.Query(ctx, `SELECT COALESCE(data ->> CAST($4 AS TEXT), '') FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`,
			func(r db.Row) error { up, there = r.Text(0), true; return nil }, link.Entity, id, member)
		if err != nil || !there {
			return line, err
		}
		line = append(line, ancestor{link.Entity, id})
		id = up
	}
	return line, nil
}

// enroll adds the rows of a lineage to the ancestors of a record from Links[at]
// upwards; id is the one that Links[at] leads to. The ancestors must be held.
// It stops at the first that has them, because so have those above it.
func enroll(ctx context.Context, tx db.Tx, c *access.Config, place access.Place, id string) error {
	for ; place.At < len(place.Links) && id != ""; place.At++ {
		entity := place.Links[place.At].Entity
		rec, has, err := familyOf(ctx, tx, place, id, "")
		if err != nil || rec == nil || has {
			return err
		}
		st, err := ancestorStanding(ctx, tx, c, place, rec)
		if err != nil {
			return err
		}
		var rows batch
		for _, en := range st.familyEntries() {
			rows = append(rows, placed{en, rec.createdAt})
		}
		if err := rows.insert(ctx, tx, entity); err != nil {
			return err
		}
		if !place.Root() {
			id = memberOf(rec.data, place.Links[place.At+1].Member)
		}
	}
	return nil
}

// familyOf returns the ancestor of a place, nil if there is none, and whether it
// has the rows of the lineage.
func familyOf(ctx context.Context, tx db.Tx, place access.Place, id, suffix string) (rec *row, has bool, err error) {
	entity := place.Links[place.At].Entity
	err = tx.Query(ctx, `SELECT r.created_at, r.record_id, r.owner_id, r.owner_role, `+tx.Dialect().JSONText("r.data", "r.data_bytes")+`,
		COALESCE((SELECT 1 FROM field_values f WHERE f.tenant_id = $1 AND f.entity = $2 AND f.field = $4 AND f.value = '' AND f.reach = ''
			AND f.record_created_at = r.created_at), 0)
		FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3`+suffix, func(r db.Row) error {
		found := rowOf(r)
		found.data = append(jsontext.Value(nil), found.data...)
		rec, has = &found, r.Bool(5)
		return nil
	}, entity, id, place.Name)
	return rec, has, err
}

// ancestorStanding returns what the rows of a lineage are derived from. If a
// change is being prepared, that includes its new rules.
func ancestorStanding(ctx context.Context, tx db.Tx, c *access.Config, place access.Place, rec *row) (st standing, err error) {
	st = standing{data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, families: []access.Place{place}}
	if !place.Root() {
		return st, nil
	}
	entity := place.Links[place.At].Entity
	if e := c.Schema.StoredAs(entity); e != nil {
		st.rules = holding(e, valueRules(c, e.Name), rec.id, stored(e, rec.data))
	}
	if shape := c.Shape(entity); shape != nil {
		st.rules = append(st.rules, holding(shape.Entity, newRules(shape), rec.id, stored(shape.Entity, rec.data))...)
	}
	err = tx.Query(ctx, `SELECT principal FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3 ORDER BY principal`,
		func(r db.Row) error { st.shares = append(st.shares, r.Text(0)); return nil }, entity, rec.id)
	return st, err
}

// leave removes the rows of a lineage from the ancestors of a record that is no
// longer below them, as far up as there is no other descendant.
func leave(ctx context.Context, tx db.Tx, c *access.Config, place access.Place, id string) error {
	suffix := tx.Dialect().ForUpdate
	if suffix != "" {
		suffix += " OF r SKIP LOCKED"
	}
	for ; place.At < len(place.Links) && id != ""; place.At++ {
		rec, has, err := familyOf(ctx, tx, place, id, suffix)
		if err != nil || rec == nil {
			return err
		}
		if has {
			others, err := othersBelow(ctx, tx, c, place, id)
			if err != nil || others {
				return err
			}
			st, err := ancestorStanding(ctx, tx, c, place, rec)
			if err != nil {
				return err
			}
			if err := deleteEntries(ctx, tx, place.Links[place.At].Entity, rec.createdAt, st.familyEntries()); err != nil {
				return err
			}
		}
		if !place.Root() {
			id = memberOf(rec.data, place.Links[place.At+1].Member)
		}
	}
	return nil
}

// othersBelow reports whether a record has descendants of a lineage. For one
// that is being prepared it says yes.
func othersBelow(ctx context.Context, tx db.Tx, c *access.Config, place access.Place, id string) (found bool, err error) {
	child := c.Schema.StoredAs(place.Entity)
	if child == nil || child.Lineage != place.Name {
		return true, nil
	}
	entity, field, value, reach := place.Entity, child.Controller().StoredAs(), id, everybody
	if place.At > 0 {
		entity, field, value, reach = place.Links[place.At-1].Entity, place.Name, "", ways[access.ByParent].reach(id)
	}
	err = tx.Query(ctx, `SELECT 1 FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4 AND reach = $5 LIMIT 1`,
		func(db.Row) error { found = true; return nil }, entity, field, value, reach)
	return found, err
}

// memberships returns the places that the ancestors of a record have because of
// it: those of its own lineages, and of the lineages of which it has
// descendants.
func memberships(c *access.Config, e *schema.Entity, families []access.Place) (list []access.Place) {
	for _, l := range c.Lineages(e.StoredAs()) {
		list = append(list, access.Place{Lineage: l})
	}
	for _, family := range families {
		if !family.Root() {
			list = append(list, access.Place{Lineage: family.Lineage, At: family.At + 1})
		}
	}
	return list
}

// follow keeps the rows of lineages true for a record that was created, moved
// or deleted: before and after are its data, nil for none. The new ancestors
// must be held.
func follow(ctx context.Context, tx db.Tx, c *access.Config, e *schema.Entity, families []access.Place, before, after jsontext.Value) error {
	for _, place := range memberships(c, e, families) {
		was, is := "", ""
		if before != nil {
			was = memberOf(before, place.Links[place.At].Member)
		}
		if after != nil {
			is = memberOf(after, place.Links[place.At].Member)
		}
		if was == is {
			continue
		}
		if err := enroll(ctx, tx, c, place, is); err != nil {
			return err
		}
		if err := leave(ctx, tx, c, place, was); err != nil {
			return err
		}
	}
	return nil
}

// holdParents holds the ancestors that a record will have, under every lineage
// of its type, where they are not those that it had. before and after are its
// data, nil for none. A parent that does not exist is VALIDATION.
func holdParents(ctx context.Context, tx db.Tx, c *access.Config, e *schema.Entity, before, after jsontext.Value) error {
	for _, l := range c.Lineages(e.StoredAs()) {
		id := memberOf(after, l.Links[0].Member)
		if id == "" || before != nil && memberOf(before, l.Links[0].Member) == id {
			continue
		}
		there, err := holdAncestors(ctx, tx, l.Links, id)
		if err != nil {
			return err
		}
		if f := e.Controller(); !there && f != nil && l.Name == e.Lineage {
			return fault.Fields("some fields are not valid", map[string]string{f.Name: "there is no such record of " + f.Target})
		}
	}
	return nil
}
