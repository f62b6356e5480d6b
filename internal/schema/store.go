package schema

import (
	"context"
	"encoding/json"

	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Load reads a tenant's schema. The error is one of the database (package db).
func Load(ctx context.Context, q db.Querier) (*Schema, error) {
	var entities []*Entity
	byName := map[string]*Entity{}
	err := q.Query(ctx, `SELECT name, label, sharing, stored_as, controlled_by, lineage, keep_days FROM entities WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		e := &Entity{
			Name: r.Text(0), Label: r.Text(1), Sharing: Sharing(r.Text(2)), Stored: r.Text(3), ControlledBy: r.Text(4), Lineage: r.Text(5),
			KeepDays: int(r.Int(6)),
		}
		entities = append(entities, e)
		byName[e.Name] = e
		return nil
	})
	if err != nil {
		return nil, err
	}
	var userFields []*Field
	err = q.Query(ctx, `SELECT f.entity, f.name, f.type, f.required, f.is_unique, f.is_indexed, f.options, f.target, f.index_name,
		COALESCE(m.member, ''), f.managed, f.searchable FROM fields f
		LEFT JOIN field_members m ON m.tenant_id = $1 AND m.entity = f.entity AND m.name = f.name
		WHERE f.tenant_id = $1 ORDER BY f.entity, f.position`, func(r db.Row) error {
		f := &Field{
			Name: r.Text(1), Type: Type(r.Text(2)), Required: r.Bool(3), Unique: r.Bool(4), Indexed: r.Bool(5),
			Target: r.Text(7), IndexName: r.Text(8), Member: r.Text(9), Managed: r.Bool(10), Searchable: r.Bool(11),
		}
		if err := json.Unmarshal(r.Bytes(6), &f.Options); err != nil {
			return err
		}
		if name := r.Text(0); name == UserEntity {
			userFields = append(userFields, f)
		} else if e := byName[name]; e != nil {
			e.Fields = append(e.Fields, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return New(entities, userFields), nil
}

// PutEntity makes the entity type in the database equal to e, fields included;
// renames come first. The caller must change the records in the same transaction
// (records.Transition). The error is one of the database.
func PutEntity(ctx context.Context, tx tenant.ConfigTx, e *Entity) error {
	if err := renameEntity(ctx, tx, e.RenamedFrom, e.Name); err != nil {
		return err
	}
	stored, err := freeStorage(ctx, tx, e.Name)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO entities (tenant_id, name, label, sharing, stored_as, controlled_by, lineage, keep_days) VALUES ($1, $2, $3, $4, $5, $6, '', $7)
		ON CONFLICT (tenant_id, name) DO UPDATE SET label = excluded.label, sharing = excluded.sharing, controlled_by = excluded.controlled_by,
		keep_days = excluded.keep_days`,
		e.Name, e.Label, string(e.Sharing), stored, e.ControlledBy, e.KeepDays)
	if err != nil {
		return err
	}
	return putFields(ctx, tx, e.Name, e.Fields)
}

// PutUserFields makes the custom fields of users equal to fields. The error is one
// of the database.
func PutUserFields(ctx context.Context, tx tenant.ConfigTx, fields []*Field) error {
	return putFields(ctx, tx, UserEntity, fields)
}

// DeleteEntity removes an entity type and its fields, not its records. The error is
// one of the database.
func DeleteEntity(ctx context.Context, tx tenant.ConfigTx, name string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM entities WHERE tenant_id = $1 AND name = $2`, name); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM field_members WHERE tenant_id = $1 AND entity = $2`, name); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM fields WHERE tenant_id = $1 AND entity = $2`, name)
	return err
}

// Keeping returns the tenants with an entity type that does not keep its records for ever.
// The error is one of the database.
func Keeping(ctx context.Context, d *db.DB) (list []tenant.ID, err error) {
	err = d.Unscoped("retention asks who has something to do").Query(ctx, `SELECT DISTINCT tenant_id FROM entities WHERE keep_days > 0 ORDER BY tenant_id`,
		func(r db.Row) error { list = append(list, tenant.ID(r.Text(0))); return nil })
	return list, err
}

// FieldName names a field of an entity type.
type FieldName struct{ Entity, Field string }

// SetIndexName sets the name of the index rows that are in use for a field; ""
// means the field's own name. The error is one of the database.
func SetIndexName(ctx context.Context, tx tenant.ConfigTx, f FieldName, name string) error {
	_, err := tx.Exec(ctx, `UPDATE fields SET index_name = $4 WHERE tenant_id = $1 AND entity = $2 AND name = $3`, f.Entity, f.Field, name)
	return err
}

// SetLineage sets the name of the index rows that ancestors have for the records
// of an entity type; "" means none. The error is one of the database.
func SetLineage(ctx context.Context, tx tenant.ConfigTx, entity, name string) error {
	_, err := tx.Exec(ctx, `UPDATE entities SET lineage = $3 WHERE tenant_id = $1 AND name = $2`, entity, name)
	return err
}

// putFields makes the fields of an entity type equal to fields. Each keeps the name
// of its index rows.
func putFields(ctx context.Context, tx tenant.ConfigTx, entity string, fields []*Field) error {
	for _, f := range fields {
		if err := renameField(ctx, tx, FieldName{entity, f.RenamedFrom}, f.Name); err != nil {
			return err
		}
	}
	if err := giveMembers(ctx, tx, entity, fields); err != nil {
		return err
	}
	named := map[string]string{}
	err := tx.Query(ctx, `SELECT name, index_name FROM fields WHERE tenant_id = $1 AND entity = $2`, func(r db.Row) error {
		named[r.Text(0)] = r.Text(1)
		return nil
	}, entity)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM fields WHERE tenant_id = $1 AND entity = $2`, entity); err != nil {
		return err
	}
	for i, f := range fields {
		options := f.Options
		if options == nil {
			options = []string{}
		}
		o, err := json.Marshal(options)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO fields
			(tenant_id, entity, name, position, type, required, is_unique, is_indexed, options, target, index_name, managed, searchable)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			entity, f.Name, i, string(f.Type), f.Required, f.Unique, f.Indexed, string(o), f.Target, named[f.Name], f.Managed, f.Searchable)
		if err != nil {
			return err
		}
	}
	return nil
}
