package records

import (
	"context"

	"gatehouse/internal/db"
)

// Holding counts the records of an entity type that hold a value under a name, and
// all of them; stored and member are as schema.Entity.StoredAs and
// schema.Field.MemberName have them. It only reads, and takes as long as to read
// them all: it is for outside of transactions.
func Holding(ctx context.Context, h db.Handle, stored, member string) (holding, all int64, err error) {
	err = h.Query(ctx, `SELECT count(data -> CAST($3 AS TEXT)), count(*) FROM records WHERE tenant_id = $1 AND entity = $2`,
		func(r db.Row) error { holding, all = r.Int(0), r.Int(1); return nil }, stored, member)
	return holding, all, err
}
