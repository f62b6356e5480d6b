package schema

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// A rename moves no data (contract D7): the names under which records, index rows
// and shares are stored stay, and the definition holds them (Entity.Stored,
// Field.Member, Field.IndexName). So a rename is one short transaction however many
// records there are, and readers see the old name or the new one, never half of
// each. When something else is stored under the name of a new entity type or field,
// the new one is stored under another name.

// renameEntity renames an entity type. It does nothing when there is none by the
// old name, or one by the new name.
func renameEntity(ctx context.Context, tx tenant.ConfigTx, from, to string) error {
	if from == "" {
		return nil
	}
	stored, there := map[string]string{}, map[string]bool{}
	err := tx.Query(ctx, `SELECT name, stored_as FROM entities WHERE tenant_id = $1 AND name IN ($2, $3)`, func(r db.Row) error {
		stored[r.Text(0)], there[r.Text(0)] = r.Text(1), true
		return nil
	}, from, to)
	if err != nil || !there[from] || there[to] {
		return err
	}
	is := stored[from]
	if is == "" {
		is = from
	}
	if is == to {
		is = ""
	}
	_, err = tx.Exec(ctx, `UPDATE entities SET name = $3, stored_as = $4 WHERE tenant_id = $1 AND name = $2`, from, to, is)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, `UPDATE fields SET entity = $3 WHERE tenant_id = $1 AND entity = $2`, from, to); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE field_members SET entity = $3 WHERE tenant_id = $1 AND entity = $2`, from, to)
	return err
}

// freeStorage returns the name under which a new entity type's records are stored;
// "" means its own.
func freeStorage(ctx context.Context, tx db.Tx, name string) (string, error) {
	var taken []string
	err := tx.Query(ctx, `SELECT stored_as FROM entities WHERE tenant_id = $1 AND stored_as <> '' AND name <> $2`,
		func(r db.Row) error { taken = append(taken, r.Text(0)); return nil }, name)
	if is := free(name, taken); err != nil || is != name {
		return is, err
	}
	return "", nil
}

// free returns name if it is not taken, else name#1, name#2 and so on, which no
// author can choose.
func free(name string, taken []string) string {
	for n, is := 1, name; ; n++ {
		if !slices.Contains(taken, is) {
			return is
		}
		is = name + "#" + strconv.Itoa(n)
	}
}

// members returns the names of fields' values in stored data, where they differ from
// the fields' names. Fields since removed are among them.
func members(ctx context.Context, tx db.Tx, entity string) (map[string]string, error) {
	of := map[string]string{}
	err := tx.Query(ctx, `SELECT name, member FROM field_members WHERE tenant_id = $1 AND entity = $2`,
		func(r db.Row) error { of[r.Text(0)] = r.Text(1); return nil }, entity)
	return of, err
}

// setMember sets the name of a field's values in stored data.
func setMember(ctx context.Context, tx tenant.ConfigTx, f FieldName, member string) error {
	_, err := tx.Exec(ctx, `INSERT INTO field_members (tenant_id, entity, name, member) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, entity, name) DO UPDATE SET member = excluded.member`, f.Entity, f.Field, member)
	return err
}

// renameField renames a field. It does nothing when there is none by the old name,
// or one by the new name. Data of a removed field that had the new name stays in its
// records and belongs to no field any more, not even to a new field that gets the
// name when it is free again.
func renameField(ctx context.Context, tx tenant.ConfigTx, was FieldName, to string) error {
	entity, from := was.Entity, was.Field
	if from == "" {
		return nil
	}
	index, there := map[string]string{}, map[string]bool{}
	err := tx.Query(ctx, `SELECT name, index_name FROM fields WHERE tenant_id = $1 AND entity = $2 AND name IN ($3, $4)`, func(r db.Row) error {
		index[r.Text(0)], there[r.Text(0)] = r.Text(1), true
		return nil
	}, entity, from, to)
	if err != nil || !there[from] || there[to] {
		return err
	}
	of, err := members(ctx, tx, entity)
	if err != nil {
		return err
	}
	if old := cmp.Or(of[to], to); of[to] != "" || !slices.Contains(slices.Collect(maps.Values(of)), to) { // it stays taken
		names := append(slices.Collect(maps.Keys(of)), to)
		if err := setMember(ctx, tx, FieldName{entity, free(to, names)}, old); err != nil {
			return err
		}
	}
	member := of[from]
	if member == "" {
		member = from
	}
	if _, err := tx.Exec(ctx, `DELETE FROM field_members WHERE tenant_id = $1 AND entity = $2 AND name = $3`, entity, from); err != nil {
		return err
	}
	if err := setMember(ctx, tx, FieldName{entity, to}, member); err != nil {
		return err
	}
	rows := index[from]
	if rows == "" {
		rows = from
	}
	_, err = tx.Exec(ctx, `UPDATE fields SET name = $4, index_name = $5 WHERE tenant_id = $1 AND entity = $2 AND name = $3`, entity, from, to, rows)
	return err
}

// giveMembers keeps a new field from finding the data of another one: where another
// field's values have its name in stored data, its own get another name there.
func giveMembers(ctx context.Context, tx tenant.ConfigTx, entity string, fields []*Field) error {
	of, err := members(ctx, tx, entity)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if _, given := of[f.Name]; given {
			continue
		}
		var taken []string
		for _, member := range of {
			taken = append(taken, member)
		}
		is := free(f.Name, taken)
		if is == f.Name {
			continue
		}
		if err := setMember(ctx, tx, FieldName{entity, f.Name}, is); err != nil {
			return err
		}
		of[f.Name] = is
	}
	return nil
}
