package records

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// Reshape brings the records of a tenant in line with a change of its entity
// types, fields and sharing rules, in the transaction that makes it. Data is
// kept: what a removed field held stays in its records and is back when the
// field is. What would break data is refused with a CONFLICT that says how
// many records stand against it (details: entity, field, records), and nothing
// is changed.
func Reshape(ctx context.Context, tx db.Tx, before, after *access.Config) error {
	for _, e := range before.Schema.Entities {
		if after.Schema.Entity(e.Name) != nil {
			continue
		}
		n, err := count(ctx, tx, e.Name)
		if err != nil {
			return err
		}
		if n > 0 {
			return broken(e.Name, "", n, "entity %s still holds %d records: delete them before the entity", e.Name, n)
		}
	}
	for _, e := range after.Schema.Entities {
		r := &reshape{
			tx: tx, entity: e, before: before.Schema.Entity(e.Name),
			rules: valueRules(after, e.Name), oldRules: valueRules(before, e.Name),
		}
		if err := r.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

func count(ctx context.Context, q db.Querier, entity string) (n int64, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM records WHERE tenant_id = $1 AND entity = $2`, func(r db.Row) error {
		n = r.Int(0)
		return nil
	}, entity)
	return n, err
}

func broken(entity, field string, n int64, format string, args ...any) error {
	e := fault.New(fault.Conflict, format, args...).With("entity", entity).With("records", n)
	if field != "" {
		e = e.With("field", field)
	}
	return e
}

// reshape is the change of one entity type.
type reshape struct {
	tx              db.Tx
	entity          *schema.Entity
	before          *schema.Entity // nil for a new one
	rules, oldRules []*access.SharingRule

	check  []*schema.Field // whose stored values must fit what they did not have to fit so far
	rekey  []*schema.Field // whose index rows are made anew
	misfit map[string]int64
	total  int64
}

func (r *reshape) run(ctx context.Context) error {
	r.plan()
	for _, f := range r.dropped() {
		if err := r.deleteValues(ctx, f.Name); err != nil {
			return err
		}
	}
	rulesChanged := !sameRules(r.rules, r.oldRules)
	if len(r.check) == 0 && len(r.rekey) == 0 && !rulesChanged {
		return nil
	}
	for _, f := range r.rekey {
		if err := r.deleteValues(ctx, f.Name); err != nil {
			return err
		}
	}
	for _, rule := range r.oldRules {
		if err := r.deleteMatches(ctx, rule.ID()); err != nil {
			return err
		}
	}
	if err := r.walk(ctx); err != nil {
		return err
	}
	for _, f := range r.check {
		if n := r.misfit[f.Name]; n > 0 {
			return broken(r.entity.Name, f.Name, n, "entity %s: field %s cannot become %s: %d of %d records hold a value that does not fit",
				r.entity.Name, f.Name, describe(f), n, r.total)
		}
	}
	return r.seal(ctx)
}

func describe(f *schema.Field) string {
	switch f.Type {
	case schema.Select, schema.Multiselect:
		return fmt.Sprintf("%s of %v", f.Type, f.Options)
	case schema.Reference:
		return "reference to " + f.Target
	}
	return string(f.Type)
}

// plan finds the fields whose values must be looked at. A field that is new
// may find data from before its removal.
func (r *reshape) plan() {
	for _, f := range r.entity.Fields {
		var old *schema.Field
		if r.before != nil {
			old = r.before.Field(f.Name)
		}
		shape := old == nil || old.Type != f.Type || old.Target != f.Target || !reflect.DeepEqual(old.Options, f.Options)
		if shape {
			r.check = append(r.check, f)
		}
		if f.Keyed() && (shape || !old.Keyed() || old.Unique != f.Unique || ranged(old) != ranged(f)) {
			r.rekey = append(r.rekey, f)
		}
	}
}

// dropped are fields that had index rows and have none any more.
func (r *reshape) dropped() []*schema.Field {
	var list []*schema.Field
	if r.before == nil {
		return nil
	}
	for _, old := range r.before.Fields {
		if f := r.entity.Field(old.Name); old.Keyed() && (f == nil || !f.Keyed()) {
			list = append(list, old)
		}
	}
	return list
}

func sameRules(a, b []*access.SharingRule) bool {
	ids := map[string]bool{}
	for _, r := range a {
		ids[r.ID()] = true
	}
	for _, r := range b {
		if !ids[r.ID()] {
			return false
		}
	}
	return len(a) == len(b)
}

func (r *reshape) deleteValues(ctx context.Context, field string) error {
	_, err := r.tx.Exec(ctx, `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3`, r.entity.Name, field)
	return err
}

func (r *reshape) deleteMatches(ctx context.Context, rule string) error {
	_, err := r.tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id = $2`, rule)
	return err
}

// walkPage is how many records a reshape holds in memory at once.
const walkPage = 500

// walk visits every record of the entity type. The caller's change of
// configuration holds off every writer of records (tenant.Fence).
func (r *reshape) walk(ctx context.Context) error {
	r.misfit = map[string]int64{}
	for last, done := int64(0), false; !done; {
		var page []row
		err := r.tx.Query(ctx, `SELECT created_at, record_id, owner_id, owner_role, `+r.tx.Dialect().JSONText("data", "data_bytes")+` FROM records WHERE tenant_id = $1 AND entity = $2 AND created_at > $3
			ORDER BY created_at LIMIT `+strconv.Itoa(walkPage), func(dbRow db.Row) error {
			page = append(page, rowOf(dbRow))
			return nil
		}, r.entity.Name, last)
		if err != nil {
			return err
		}
		for _, rec := range page {
			last = rec.createdAt
			r.total++
			if err := r.visit(ctx, &rec); err != nil {
				return err
			}
		}
		done = len(page) < walkPage
	}
	return nil
}

// rowOf reads the columns of walk.
func rowOf(r db.Row) row {
	return row{createdAt: r.Int(0), id: r.Text(1), owner: r.Text(2), ownerRole: r.Text(3), data: jsontext.Value(r.Text(4))}
}

func (r *reshape) visit(ctx context.Context, rec *row) error {
	values := stored(r.entity, rec.data)
	for _, f := range r.check {
		if values[f.Index] == nil {
			continue
		}
		if _, reason := f.Canonical(values[f.Index]); reason != "" {
			r.misfit[f.Name]++
			values[f.Index] = nil // counted; it has no key under the new type
			continue
		}
		if f.Type == schema.Reference {
			kept, err := r.keepReference(ctx, f, rec.createdAt, values[f.Index])
			if err != nil {
				return err
			}
			if !kept {
				values[f.Index] = nil
			}
		}
	}
	is := standing{
		values: values, owner: rec.owner, ownerRole: rec.ownerRole, rules: holding(r.entity, r.rules, values),
	}
	for _, id := range is.rules {
		if err := setMatch(ctx, r.tx, id, rec.createdAt, true); err != nil {
			return err
		}
	}
	return r.settle(ctx, rec, &is)
}

// settle makes the index rows of one record those of its standing: all of the
// fields that are keyed anew, and of the others those of rules that come or go.
func (r *reshape) settle(ctx context.Context, rec *row, is *standing) error {
	anew := func(f *schema.Field) bool { return slices.Contains(r.rekey, f) }
	if slices.ContainsFunc(r.rekey, ranged) {
		var err error
		if is.shares, err = principals(ctx, r.tx, r.entity, rec.id); err != nil {
			return err
		}
	}
	var was []string // at most
	for _, rule := range r.oldRules {
		was = append(was, wayOfRule(rule.ID()))
	}
	kept := func(f *schema.Field) bool { return !anew(f) }
	before := wayEntries(r.entity, is.values, was, kept)
	after := wayEntries(r.entity, is.values, appendWays(nil, wayOfRule, is.rules), kept)
	for _, en := range is.entries(r.entity) {
		if anew(r.entity.Field(en.field)) {
			en.unique = false // looked at when all are in, so that it can be counted
			after = append(after, en)
		}
	}
	return settleEntries(ctx, r.tx, r.entity.Name, rec.createdAt, before, after)
}

// keepReference reports whether a value refers to a record there is, and counts
// it as a misfit where not. But an id in a field that was removed and is back is
// cleared: deleting the record it named could not meanwhile.
func (r *reshape) keepReference(ctx context.Context, f *schema.Field, createdAt int64, v jsontext.Value) (bool, error) {
	found := false
	err := r.tx.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`,
		func(db.Row) error { found = true; return nil }, f.Target, schema.Unquote(v))
	if err != nil || found {
		return found, err
	}
	back := r.before == nil || r.before.Field(f.Name) == nil
	if !back || len(schema.Unquote(v)) != idLength {
		r.misfit[f.Name]++
		return false, nil
	}
	_, err = r.tx.Exec(ctx, `UPDATE records SET data = `+r.tx.Dialect().JSONRemove("data", "CAST($4 AS TEXT)")+`
		WHERE tenant_id = $1 AND entity = $2 AND created_at = $3`, r.entity.Name, createdAt, f.Name)
	return false, err
}

// seal makes the index rows of unique fields unique, or refuses with how many
// records share a value.
func (r *reshape) seal(ctx context.Context) error {
	for _, f := range r.rekey {
		if !f.Unique {
			continue
		}
		var doubled int64
		err := r.tx.Query(ctx, `SELECT COALESCE(SUM(n), 0) FROM (SELECT count(*) AS n FROM field_values
			WHERE tenant_id = $1 AND entity = $2 AND field = $3 GROUP BY value HAVING count(*) > 1) d`, func(row db.Row) error {
			doubled = row.Int(0)
			return nil
		}, r.entity.Name, f.Name)
		if err != nil {
			return err
		}
		if doubled == 0 {
			_, err = r.tx.Exec(ctx, `UPDATE field_values SET is_unique = 1 WHERE tenant_id = $1 AND entity = $2 AND field = $3`,
				r.entity.Name, f.Name)
			if err != nil && !errors.Is(err, db.ErrUnique) {
				return err
			}
			if err == nil {
				continue
			}
		}
		return broken(r.entity.Name, f.Name, doubled, "entity %s: field %s cannot become unique: %d of %d records share their value with another",
			r.entity.Name, f.Name, doubled, r.total)
	}
	return nil
}
