package records

import (
	"context"
	"errors"
	"strconv"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// errBusy refuses a change while another one is being prepared.
func errBusy(b *access.Build) error {
	return fault.New(fault.Conflict, "another change of records is being made ready (%d of %d records): wait for it, or apply this %s after it stopped",
		min(b.Done, b.Total), b.Total, abandoned)
}

// giveWay undoes an idle build to make room for other work. It returns CONFLICT
// while the build goes on. The caller must hold the configuration.
func giveWay(ctx context.Context, tx tenant.ConfigTx, b *access.Build) error {
	if b.Idle < abandoned {
		return errBusy(b)
	}
	return undo(ctx, tx, b)
}

// undo deletes a build and leaves the rows it made to the sweep. The caller
// must hold the configuration and raise its version, so that writers stop
// maintaining the build.
func undo(ctx context.Context, tx tenant.ConfigTx, b *access.Build) error {
	var list []access.Leftover
	for _, s := range b.Work.Shapes {
		for _, x := range s.Fields {
			for _, name := range []string{x.Name, schema.WordsAs(x.Name), x.Misfits(), x.Doubles()} {
				list = append(list, access.Leftover{Kind: access.LeftValues, Entity: s.Entity.StoredAs(), Name: name})
			}
		}
		for _, r := range newRules(s) {
			list = append(list, access.Leftover{Kind: access.LeftMatches, Entity: s.Entity.StoredAs(), Name: r.StoredAs()})
		}
	}
	for _, l := range b.Work.Lineages {
		list = append(list, lineageRows(l.Links, l.Name)...)
	}
	for _, m := range b.Work.Moves {
		list = append(list, access.Leftover{Kind: access.LeftRole, Name: m.Token, Becomes: m.From})
	}
	for _, l := range list {
		after := leaveFor
		if l.Kind != access.LeftRole { // no reader uses them
			after = 0
		}
		if err := access.Leave(ctx, tx, l, after); err != nil {
			return err
		}
	}
	return access.DeleteBuild(ctx, tx)
}

// anyMarked reports whether any record is marked as not fitting.
func anyMarked(ctx context.Context, q db.Querier, w *access.Work) (marked bool, err error) {
	for _, s := range w.Shapes {
		for _, x := range s.Fields {
			for _, name := range []string{x.Misfits(), x.Doubles()} {
				list, err := marks(ctx, q, s, name, marking{}, 1)
				if err != nil || len(list) > 0 {
					return true, err
				}
			}
		}
	}
	return false, nil
}

// marking is an index row that marks a record.
type marking struct {
	value     string
	createdAt int64
}

func marks(ctx context.Context, q db.Querier, s *access.Shape, name string, after marking, limit int) (list []marking, err error) {
	err = q.Query(ctx, `SELECT value, record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3
		AND reach = '' AND (value, record_created_at) > ($4, $5) ORDER BY value, record_created_at LIMIT `+strconv.Itoa(limit),
		func(r db.Row) error { list = append(list, marking{r.Text(0), r.Int(1)}); return nil }, s.Entity.StoredAs(), name, after.value, after.createdAt)
	return list, err
}

// settleShape checks every mark again, because its cause may be gone.
func settleShape(ctx context.Context, tx db.Tx, s *access.Shape) error {
	for _, x := range s.Fields {
		for _, settle := range settlers(s, x) {
			for after, more := (marking{}), true; more; {
				var err error
				if after, more, err = settle(ctx, tx, after); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// settler checks some marks, starting after one.
type settler func(ctx context.Context, tx db.Tx, after marking) (last marking, more bool, err error)

const marksPage = 50

// settlers returns the settlers for the marks of a field. A reference in a
// field that was removed and restored is cleared if it names no record, because
// deleting that record could not clear it while the field was removed. A value
// that no other record has any longer becomes unique.
func settlers(s *access.Shape, x *access.Index) (list []settler) {
	f := s.Entity.Field(x.Field)
	each := func(name string, one func(ctx context.Context, tx db.Tx, m marking) error) settler {
		return func(ctx context.Context, tx db.Tx, after marking) (marking, bool, error) {
			found, err := marks(ctx, tx, s, name, after, marksPage)
			for _, m := range found {
				if err == nil {
					err = one(ctx, tx, m)
				}
				after = m
			}
			return after, len(found) == marksPage, err
		}
	}
	if x.Back && f.Type == schema.Reference {
		list = append(list, each(x.Misfits(), func(ctx context.Context, tx db.Tx, m marking) error { return clearMarked(ctx, tx, s, x, f, m) }))
	}
	if f.Unique && x.Rows {
		list = append(list, each(x.Doubles(), func(ctx context.Context, tx db.Tx, m marking) error { return singleMarked(ctx, tx, s, x, m) }))
	}
	return list
}

// clearMarked clears a reference to a record that does not exist, in a field
// that is not visible yet.
func clearMarked(ctx context.Context, tx db.Tx, s *access.Shape, x *access.Index, f *schema.Field, m marking) error {
	if len(m.value) != idLength {
		return nil
	}
	there, err := exists(ctx, tx, named{f.TargetAs(), m.value}, "")
	if err != nil {
		return err
	}
	list, _, err := page(ctx, tx, `entity = $4`, m.createdAt-1, m.createdAt, upTo(1), tx.Dialect().ForUpdate, s.Entity.StoredAs())
	if err != nil {
		return err
	}
	for i := range list {
		if there {
			return nil
		}
		values := stored(s.Entity, list[i].data)
		if v := values[f.Index]; v == nil || v.Kind() != '"' || schema.Unquote(v) != m.value {
			continue
		}
		_, err := tx.Exec(ctx, `UPDATE records SET data = `+tx.Dialect().JSONRemove("data", "CAST($4 AS TEXT)")+`
			WHERE tenant_id = $1 AND entity = $2 AND created_at = $3`, s.Entity.StoredAs(), m.createdAt, f.MemberName())
		if err != nil {
			return err
		}
	}
	if x.Needed && !there { // it has no parent
		if err := insertEntries(ctx, tx, s.Entity, m.createdAt, []entry{misfit(x, schema.Null)}); err != nil {
			return err
		}
	}
	return deleteEntries(ctx, tx, s.Entity.StoredAs(), m.createdAt, []entry{{x.Misfits(), m.value, everybody, false}})
}

// singleMarked makes a value unique that no other record has any longer.
func singleMarked(ctx context.Context, tx db.Tx, s *access.Shape, x *access.Index, m marking) error {
	if _, _, err := page(ctx, tx, `entity = $4`, m.createdAt-1, m.createdAt, upTo(1), tx.Dialect().ForUpdate, s.Entity.StoredAs()); err != nil {
		return err
	}
	shared := false
	err := tx.Query(ctx, `SELECT 1 FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
		AND reach = '' AND record_created_at <> $5 LIMIT 1`, func(db.Row) error { shared = true; return nil }, s.Entity.StoredAs(), x.Name, m.value, m.createdAt)
	if err != nil || shared {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE field_values SET is_unique = 1 WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
		AND reach = '' AND record_created_at = $5`, s.Entity.StoredAs(), x.Name, m.value, m.createdAt)
	if err != nil {
		return err
	}
	return deleteEntries(ctx, tx, s.Entity.StoredAs(), m.createdAt, []entry{{x.Doubles(), m.value, everybody, false}})
}

// settle runs settleShape in short transactions, for every shape.
func (p *preparation) settle(ctx context.Context) error {
	for _, s := range p.work.Shapes {
		for _, x := range s.Fields {
			for i := range settlers(s, x) {
				for after, more := (marking{}), true; more; {
					err := p.short(ctx, func(tx db.Tx, b *access.Build) (err error) {
						built := shapeOf(b.Work, s.Entity.Name)
						after, more, err = settlers(built, built.Index(x.Field))[i](ctx, tx, after)
						if err == nil {
							err = access.MoveBuild(ctx, tx, b)
						}
						return err
					})
					if errors.Is(err, db.ErrUnique) {
						break // a concurrent writer took the value first: the next step sees its row
					}
					if err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

func shapeOf(w *access.Work, entity string) *access.Shape {
	for _, s := range w.Shapes {
		if s.Entity.Name == entity {
			return s
		}
	}
	return nil
}

// Refusal returns a CONFLICT, with counts, if stored records do not fit what
// was prepared, and nil if all fit.
func Refusal(ctx context.Context, h db.Handle) error {
	c, err := access.Load(ctx, h)
	if err != nil || c.Build == nil {
		return err
	}
	for _, s := range c.Build.Work.Shapes {
		if err := refusal(ctx, h, s); err != nil {
			return err
		}
	}
	return nil
}

// refusal counts the marked records of one entity type.
func refusal(ctx context.Context, q db.Querier, s *access.Shape) error {
	const misfits = `SELECT count(*) FROM field_values v WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3`
	const doubles = `SELECT count(*) FROM field_values v WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $4 AND v.reach = '' AND v.value IN
		(SELECT d.value FROM field_values d WHERE d.tenant_id = $1 AND d.entity = $2 AND d.field = $3)`
	for _, x := range s.Fields {
		tell := unfit
		if x.Needed {
			tell = orphaned
		}
		if err := counted(ctx, q, s, x, tell, misfits, x.Misfits()); err != nil {
			return err
		}
	}
	for _, x := range s.Fields {
		if err := counted(ctx, q, s, x, notUnique, doubles, x.Doubles(), x.Name); err != nil {
			return err
		}
	}
	return nil
}

// counted returns the error that tell makes from a count, or nil for 0.
func counted(ctx context.Context, q db.Querier, s *access.Shape, x *access.Index,
	tell func(entity string, f *schema.Field, n, total int64) error, sql string, names ...any) error {
	var n int64
	err := q.Query(ctx, sql, func(r db.Row) error { n = r.Int(0); return nil }, append([]any{s.Entity.StoredAs()}, names...)...)
	if err != nil || n == 0 {
		return err
	}
	total, err := count(ctx, q, s.Entity.StoredAs())
	if err != nil {
		return err
	}
	return tell(s.Entity.Name, s.Entity.Field(x.Field), n, total)
}

func unfit(entity string, f *schema.Field, n, total int64) error {
	return broken(entity, f.Name, n, "entity %s: field %s cannot become %s: %d of %d records hold a value that does not fit",
		entity, f.Name, f.Describe(), n, total)
}

func orphaned(entity string, f *schema.Field, n, total int64) error {
	return broken(entity, f.Name, n, "entity %s cannot be controlled by %s: %d of %d records have no %s there", entity, f.Name, n, total, f.Target)
}

func notUnique(entity string, f *schema.Field, n, total int64) error {
	return broken(entity, f.Name, n, "entity %s: field %s cannot become unique: %d of %d records share their value with another",
		entity, f.Name, n, total)
}

// Undo undoes what is being prepared, if it is still this work. Its errors are
// those of tenant.Configure and db.
func Undo(ctx context.Context, h db.Handle, clk clock.Clock, work *access.Work) error {
	return configure(ctx, h, clk, func(tx tenant.ConfigTx, keep func()) error {
		b, err := access.LockBuild(ctx, tx)
		if err != nil || b == nil || b.Work.Key() != work.Key() {
			return err
		}
		keep()
		return undo(ctx, tx, b)
	})
}
