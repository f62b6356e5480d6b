package records

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Exists reports whether there is a record of an entity type, which is named as
// its records are stored.
func Exists(ctx context.Context, tx tenant.ConfigTx, stored, id string) (bool, error) {
	return exists(ctx, tx, named{stored, id}, "")
}

// Holding counts the records of an entity type that have a value under a stored
// name, and all of its records. stored and member are results of
// schema.Entity.StoredAs and schema.Field.MemberName. Holding reads every
// record, and must not be called in a transaction.
func Holding(ctx context.Context, h db.Handle, stored, member string) (holding, all int64, err error) {
	err = h.Query(ctx, `SELECT count(data -> CAST($3 AS TEXT)), count(*) FROM records WHERE tenant_id = $1 AND entity = $2`,
		func(r db.Row) error { holding, all = r.Int(0), r.Int(1); return nil }, stored, member)
	return holding, all, err
}
