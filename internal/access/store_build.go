package access

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Times stored here are the database's, because the process that continues or undoes
// a build may run on another machine.

// loadBuild reads the build and the further names of roles.
func (c *Config) loadBuild(ctx context.Context, q db.Querier) (err error) {
	if c.Build, err = loadBuild(ctx, q, ""); err != nil {
		return err
	}
	if c.Build != nil {
		for _, m := range c.Build.Work.Moves {
			c.nameRole(m.From, m.Token)
		}
	}
	left, err := Leftovers(ctx, q)
	for _, l := range left {
		if l.Kind == LeftRole {
			c.nameRole(l.Becomes, l.Name)
		}
	}
	return err
}

// ReadBuild reads the tenant's build as it is now. It returns nil when there is none.
func ReadBuild(ctx context.Context, q db.Querier) (*Build, error) { return loadBuild(ctx, q, "") }

// LockBuild reads the tenant's build and locks it until tx ends. It returns nil
// when there is none.
func LockBuild(ctx context.Context, tx db.Tx) (*Build, error) {
	return loadBuild(ctx, tx, tx.Dialect().ForUpdate)
}

func loadBuild(ctx context.Context, q db.Querier, suffix string) (*Build, error) {
	var b *Build
	err := q.Query(ctx, `SELECT build_id, work, walk, after_at, top_at, done, total, `+q.Dialect().Now+` - beat_at FROM builds WHERE tenant_id = $1`+suffix,
		func(r db.Row) error {
			b = &Build{
				ID: r.Text(0), Work: &Work{}, Walk: int(r.Int(2)), After: r.Int(3), Top: r.Int(4), Done: r.Int(5), Total: r.Int(6),
				Idle: time.Duration(r.Int(7)) * time.Microsecond,
			}
			return json.Unmarshal(r.Bytes(1), b.Work)
		})
	if err != nil || b == nil {
		return nil, err
	}
	for _, s := range b.Work.Shapes {
		schema.New([]*schema.Entity{s.Entity}, nil) // indexes its fields by name
	}
	return b, nil
}

// PutBuild stores a new build. The tenant must not have one.
func PutBuild(ctx context.Context, tx tenant.ConfigTx, b *Build) error {
	work, err := json.Marshal(b.Work)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO builds (tenant_id, build_id, work, walk, after_at, top_at, done, total, started_at, beat_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, `+tx.Dialect().Now+`, `+tx.Dialect().Now+`)`,
		b.ID, string(work), b.Walk, b.After, b.Top, b.Done, b.Total)
	return err
}

// MoveBuild stores the progress of the build.
func MoveBuild(ctx context.Context, tx db.Tx, b *Build) error {
	_, err := tx.Exec(ctx, `UPDATE builds SET walk = $3, after_at = $4, done = $5, beat_at = `+tx.Dialect().Now+` WHERE tenant_id = $1 AND build_id = $2`,
		b.ID, b.Walk, b.After, b.Done)
	return err
}

// DeleteBuild deletes the tenant's build.
func DeleteBuild(ctx context.Context, tx tenant.ConfigTx) error {
	_, err := tx.Exec(ctx, `DELETE FROM builds WHERE tenant_id = $1`)
	return err
}

// The kinds of leftovers.
const (
	LeftValues  = "values"  // index rows of an entity type's field
	LeftMatches = "matches" // matches of a sharing rule by field value
	LeftRole    = "role"    // a further name of the role Becomes
	LeftShares  = "shares"  // shares with a deleted role, by its name in the table shares
	// LeftReferences are references to a deleted record, in a field of an
	// entity type. Package records defines what Name and Becomes contain.
	LeftReferences = "references"
	// LeftChildren are records of an entity type that are deleted with their
	// parent, which is gone already. Nobody sees them.
	LeftChildren = "children"
)

// ChildrenLeftIn begins the SQL condition that there are leftovers of the kind
// LeftChildren of one of some entity types, whose list of stored names follows,
// and a closing parenthesis.
const ChildrenLeftIn = `EXISTS (SELECT 1 FROM leftovers l WHERE l.tenant_id = $1 AND l.kind = '` + LeftChildren + `' AND l.entity IN `

// ChildrenLeft reports whether there are leftovers of the kind LeftChildren of an
// entity type.
func ChildrenLeft(ctx context.Context, q db.Querier, entity string) (left bool, err error) {
	err = q.Query(ctx, `SELECT 1 FROM leftovers WHERE tenant_id = $1 AND kind = $2 AND entity = $3 LIMIT 1`,
		func(db.Row) error { left = true; return nil }, LeftChildren, entity)
	return left, err
}

// Leftover is stored data that no configuration names any longer.
type Leftover struct {
	Kind, Entity, Name, Becomes string
	// Due is set once no reader can still use an older configuration.
	Due bool
}

// Leave records a leftover, which is due after the given time.
func Leave(ctx context.Context, tx db.Tx, l Leftover, after time.Duration) error {
	_, err := tx.Exec(ctx, `INSERT INTO leftovers (tenant_id, kind, entity, name, becomes, due_at) VALUES ($1, $2, $3, $4, $5, `+tx.Dialect().Now+` + $6)
		ON CONFLICT (tenant_id, kind, entity, name) DO NOTHING`,
		l.Kind, l.Entity, l.Name, l.Becomes, after.Microseconds())
	return err
}

// Leftovers returns the tenant's leftovers.
func Leftovers(ctx context.Context, q db.Querier) ([]Leftover, error) {
	var list []Leftover
	err := q.Query(ctx, `SELECT kind, entity, name, becomes, CASE WHEN due_at <= `+q.Dialect().Now+` THEN 1 ELSE 0 END
		FROM leftovers WHERE tenant_id = $1 ORDER BY kind, entity, name`,
		func(r db.Row) error {
			list = append(list, Leftover{r.Text(0), r.Text(1), r.Text(2), r.Text(3), r.Bool(4)})
			return nil
		})
	return list, err
}

// LockLeftover locks a leftover until tx ends. It returns false when the
// leftover no longer exists.
func LockLeftover(ctx context.Context, tx db.Tx, l Leftover) (there bool, err error) {
	err = tx.Query(ctx, `SELECT 1 FROM leftovers WHERE tenant_id = $1 AND kind = $2 AND entity = $3 AND name = $4`+tx.Dialect().ForUpdate,
		func(db.Row) error { there = true; return nil }, l.Kind, l.Entity, l.Name)
	return there, err
}

// DeleteLeftover deletes the stored entry of a leftover.
func DeleteLeftover(ctx context.Context, tx db.Tx, l Leftover) error {
	_, err := tx.Exec(ctx, `DELETE FROM leftovers WHERE tenant_id = $1 AND kind = $2 AND entity = $3 AND name = $4`, l.Kind, l.Entity, l.Name)
	return err
}

// Unfinished returns the tenants with a build or leftovers.
func Unfinished(ctx context.Context, d *db.DB) (list []tenant.ID, err error) {
	err = d.Unscoped("housekeeping asks who has something to do").Query(ctx,
		`SELECT tenant_id FROM builds UNION SELECT tenant_id FROM leftovers ORDER BY tenant_id`,
		func(r db.Row) error { list = append(list, tenant.ID(r.Text(0))); return nil })
	return list, err
}
