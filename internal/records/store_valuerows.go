package records

import (
	"context"
	"maps"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// valueRows are the index rows of all records that have one value in a field, which
// are few. The index has them by reach first (see reach.go), so that the rows of
// all reaches are found by what the records can be reached by.
type valueRows struct {
	entity, field string // as they are stored
	value         string
}

// reaches returns the reaches of the rows: those of each record in use, and under the
// shape that is being prepared. asking are rules that the records matched as long as
// they had the value.
func (v valueRows) reaches(ctx context.Context, tx db.Tx, config *access.Config, asking []*access.SharingRule) ([]string, error) {
	found := map[string]bool{everybody: true}
	add := func(reaches []string) {
		for _, reach := range reaches {
			found[reach] = true
		}
	}
	e, shape := config.Schema.StoredAs(v.entity), config.Shape(v.entity)
	var list []row
	err := tx.Query(ctx, `SELECT r.created_at, r.record_id, r.owner_id, r.owner_role, `+tx.Dialect().JSONText("r.data", "r.data_bytes")+`
		FROM field_values v`+lookUp(tx, "v.record_created_at")+` WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3 AND v.value = $4 AND v.reach = ''`,
		func(r db.Row) error { list = append(list, rowOf(r)); return nil }, v.entity, v.field, v.value)
	if err != nil {
		return nil, err
	}
	for i := range list {
		rec := &list[i]
		st := standing{id: rec.id, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole}
		if e != nil {
			st.values = stored(e, rec.data)
			st.rules = holding(e, valueRules(config, e.Name), rec.id, st.values)
			add(st.reaches(e))
		}
		if shape != nil {
			made := newShaped(shape, &st)
			add(made.reaches)
		}
	}
	for part := range slices.Chunk(list, reachesAtOnce) {
		st := newStatement(`SELECT DISTINCT s.principal FROM shares s WHERE s.tenant_id = $1 AND s.entity = $2 AND s.record_id IN `, v.entity)
		ids := make([]string, reachesAtOnce) // so that one statement is prepared for any number
		for i := range ids {
			ids[i] = part[min(i, len(part)-1)].id
		}
		st.list(ids)
		err := tx.Query(ctx, st.String(), func(r db.Row) error {
			add([]string{ways[access.ByShare].reach(r.Text(0))})
			return nil
		}, st.args...)
		if err != nil {
			return nil, err
		}
	}
	for _, rule := range asking {
		add([]string{ways[access.ByRule].reach(rule.StoredAs())})
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// unset makes the rows those of records without a value, or removes them where such
// records have none.
func (v valueRows) unset(ctx context.Context, tx db.Tx, kept bool, reaches []string) error {
	for part := range slices.Chunk(reaches, reachesAtOnce) {
		st := newStatement(`DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4 AND reach IN `,
			v.entity, v.field, v.value)
		if kept {
			st = newStatement(`UPDATE field_values SET is_unique = 0, value = $5 WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4 AND reach IN `,
				v.entity, v.field, v.value, schema.Unset)
		}
		for len(part) < reachesAtOnce { // so that one statement is prepared for any number
			part = append(slices.Clip(part), part[0])
		}
		st.list(part)
		if _, err := tx.Exec(ctx, st.String(), st.args...); err != nil {
			return err
		}
	}
	return nil
}

// reachesAtOnce is the number of reaches, or of records, in one statement.
const reachesAtOnce = 16

// unsetShape does the same for the rows that a field has under the shape that is being
// prepared, and removes its marks.
func (v valueRows) unsetShape(ctx context.Context, tx db.Tx, shape *access.Shape, member string, reaches []string) error {
	if shape == nil || shape.Entity.OfMember(member) == nil {
		return nil
	}
	f := shape.Entity.OfMember(member)
	x := shape.Index(f.Name)
	if x == nil {
		return nil
	}
	v.field = x.Name
	if err := v.unset(ctx, tx, x.Rows && ranged(f), reaches); err != nil {
		return err
	}
	if f == shape.Entity.Controller() { // they were made to be reached by it
		for _, x := range shape.Fields {
			_, err := tx.Exec(ctx, `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field IN ($3, $4) AND reach = $5`,
				v.entity, x.Name, schema.WordsAs(x.Name), ways[access.ByParent].reach(v.value))
			if err != nil {
				return err
			}
		}
	}
	for _, mark := range []string{x.Misfits(), x.Doubles()} {
		v.field = mark
		if err := v.unset(ctx, tx, false, []string{everybody}); err != nil {
			return err
		}
	}
	return nil
}
