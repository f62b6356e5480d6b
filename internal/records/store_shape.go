package records

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// While a change of configuration is prepared (access.Build), a record has
// index rows of two kinds: those in use, and those of the Shape that its entity
// type will have. The latter are derived here, both for the walk over existing
// records and for transactions that write one meanwhile, and have names that no
// reader uses. A value that does not fit the shape has a row that marks it. The
// change is refused while there are such rows.

// indexName returns another name for the index rows of a field or the matches
// of a rule. n must not be used twice for the same plain name.
func indexName(plain string, n int64) string { return plain + "#" + strconv.FormatInt(n, 10) }

// anyValue is a field for which every value has a key.
var anyValue = &schema.Field{Type: schema.Text}

// shaped is what the rows of a record under a shape are derived from.
type shaped struct {
	shape   *access.Shape
	id      string           // of the record
	values  []jsontext.Value // by the index of the shape's fields
	rules   []string         // names of the shape's rules that match
	reaches []string
	// families are those of the record (see standing).
	families []access.Place
}

func newShaped(shape *access.Shape, st *standing) *shaped {
	s := &shaped{shape: shape, id: st.id}
	if st.data == nil {
		return s
	}
	s.values = stored(shape.Entity, st.data)
	for _, r := range shape.Rules {
		if name, ok := matching(shape.Entity, r.Rule, s.id, s.values); ok {
			s.rules = append(s.rules, name)
		}
	}
	all := *st
	all.rules = s.rules
	all.values = s.values
	s.reaches = all.reaches(shape.Entity)
	s.families = st.families
	return s
}

// each calls fn for every field of the shape that has a value or, with null,
// needs one or has rows without one.
func (s *shaped) each(fn func(x *access.Index, f *schema.Field, v jsontext.Value) error) error {
	if s.values == nil {
		return nil
	}
	for _, x := range s.shape.Fields {
		f := s.shape.Entity.Field(x.Field)
		v := s.values[f.Index]
		if v == nil {
			v = schema.Null
		}
		if x.Needed || x.Rows && ranged(f) || !schema.IsNull(v) {
			if err := fn(x, f, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows returns the rows of a value that fits.
func (s *shaped) rows(x *access.Index, f *schema.Field, v jsontext.Value) []entry {
	if !x.Rows {
		return nil
	}
	return appendRows(nil, f, x.Name, v, s.reaches)
}

func misfit(x *access.Index, v jsontext.Value) entry {
	key, _ := anyValue.Key(v)
	return entry{x.Misfits(), key, everybody, false}
}

// kept returns the rows of unchanged fields for new rules.
func (s *shaped) kept() []entry {
	if s.values == nil {
		return nil
	}
	var reaches []string
	for _, r := range s.shape.Rules {
		if name, ok := matching(s.shape.Entity, r.Rule, s.id, s.values); ok && r.New {
			reaches = append(reaches, ways[access.ByRule].reach(name))
		}
	}
	if len(reaches) == 0 {
		return nil
	}
	list := wayEntries(s.shape.Entity, s.values, reaches, func(f *schema.Field) bool {
		x := s.shape.Index(f.Name)
		return x == nil || !x.Rows
	})
	for _, family := range s.families {
		if family.Root() {
			list = appendEntries(list, family.Name, "", reaches)
		}
	}
	return list
}

// possible returns all rows that the record may have under the shape.
func (s *shaped) possible() []entry {
	list := s.kept()
	_ = s.each(func(x *access.Index, f *schema.Field, v jsontext.Value) error {
		for _, en := range s.rows(x, f, v) {
			if en.unique {
				list = append(list, entry{x.Doubles(), en.value, everybody, false})
			}
			en.unique = false
			list = append(list, en)
		}
		if x.Check {
			list = append(list, misfit(x, v))
		}
		return nil
	})
	return list
}

// insert adds the record's rows under the shape; existing ones stay. It writes
// rows of unique values and appends the others to the batch.
func (s *shaped) insert(ctx context.Context, tx db.Tx, createdAt int64, b *batch) error {
	list, entity := s.kept(), s.shape.Entity.StoredAs()
	err := s.each(func(x *access.Index, f *schema.Field, v jsontext.Value) error {
		fits, err := s.fits(ctx, tx, x, f, v)
		switch {
		case err != nil:
			return err
		case !fits:
			list = append(list, misfit(x, v))
			return nil
		}
		rows := s.rows(x, f, v)
		if len(rows) > 0 && rows[0].unique {
			if err := insertOnce(ctx, tx, entity, createdAt, x, rows[0]); err != nil {
				return err
			}
			rows = rows[1:]
		}
		list = append(list, rows...)
		return nil
	})
	for _, en := range list {
		*b = append(*b, placed{en, createdAt})
	}
	return err
}

// batch collects index rows of many records, to be inserted together.
type batch []placed

type placed struct {
	entry
	createdAt int64
}

// There are few counts, so that every statement is prepared once.
var batchInserts = []manyEntries{batchOf(48), batchOf(12), batchOf(3), batchOf(1)}

// batchOf returns the statement that inserts n rows; $2 is the entity.
func batchOf(n int) manyEntries {
	rows := make([]string, n)
	for i := range rows {
		at := func(k int) string { return "$" + strconv.Itoa(3+4*i+k) }
		rows[i] = "($1, $2, " + at(0) + ", " + at(1) + ", " + at(2) + ", " + at(3) + ", 0)"
	}
	return manyEntries{n, insertRows(strings.Join(rows, ", "))}
}

func (b batch) insert(ctx context.Context, tx db.Tx, entity string) error {
	var args []any
	for _, in := range batchInserts {
		for ; len(b) >= in.n; b = b[in.n:] {
			args = append(args[:0], entity)
			for _, p := range b[:in.n] {
				args = append(args, p.field, p.value, p.reach, p.createdAt)
			}
			if _, err := tx.Exec(ctx, in.sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// fits reports whether a stored value fits the shape. It locks the record that
// a reference names.
func (s *shaped) fits(ctx context.Context, tx db.Tx, x *access.Index, f *schema.Field, v jsontext.Value) (bool, error) {
	if !x.Check || schema.IsNull(v) && !x.Needed {
		return true, nil
	}
	if _, reason := f.Canonical(v); reason != "" {
		return false, nil
	}
	if !f.Refers() {
		return true, nil
	}
	return exists(ctx, tx, named{f.TargetAs(), schema.Unquote(v)}, tx.Dialect().ForShare)
}

// named names a record, or a user: an entity type, as its records are stored, and an id.
type named struct{ entity, id string }

// exists reports whether there is a record or a user. suffix is the locking clause; a user needs
// none, because the fence keeps users.
func exists(ctx context.Context, q db.Querier, of named, suffix string) (found bool, err error) {
	if of.entity == schema.UserEntity {
		_, _, err = user.KindOf(ctx, q, user.ID(of.id))
		if errors.Is(err, user.ErrUnknown) {
			return false, nil
		}
		return err == nil, err
	}
	err = q.Query(ctx, `SELECT 1 FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`+suffix,
		func(db.Row) error { found = true; return nil }, of.entity, of.id)
	return found, err
}

// insertOnce adds the row of a unique value. If another record has the value,
// it adds the row without uniqueness, and one that marks it.
func insertOnce(ctx context.Context, tx db.Tx, entity string, createdAt int64, x *access.Index, en entry) error {
	const sql = `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	n, err := tx.Exec(ctx, sql, entity, en.field, en.value, en.reach, createdAt, true)
	if err != nil || n > 0 {
		return err
	}
	own := false
	err = tx.Query(ctx, `SELECT 1 FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4 AND reach = $5
		AND record_created_at = $6`, func(db.Row) error { own = true; return nil }, entity, en.field, en.value, en.reach, createdAt)
	if err != nil || own {
		return err
	}
	if _, err := tx.Exec(ctx, sql, entity, en.field, en.value, en.reach, createdAt, false); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sql, entity, x.Doubles(), en.value, en.reach, createdAt, false)
	return err
}

// match stores which of the shape's new rules match.
func (s *shaped) match(ctx context.Context, tx db.Tx, createdAt int64, before *shaped) error {
	for _, r := range s.shape.Rules {
		if !r.New {
			continue
		}
		name, is := matching(s.shape.Entity, r.Rule, s.id, s.values)
		if before != nil {
			if old, was := matching(s.shape.Entity, r.Rule, before.id, before.values); was && old != name {
				if err := setMatch(ctx, tx, old, createdAt, false); err != nil {
					return err
				}
			}
		}
		if is {
			if err := setMatch(ctx, tx, name, createdAt, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// followShape replaces the rows of a record under a shape when the record is
// written, whether or not the walk has visited it.
func followShape(ctx context.Context, tx db.Tx, shape *access.Shape, createdAt int64, before, after standing) error {
	was, is := newShaped(shape, &before), newShaped(shape, &after)
	if err := deleteEntries(ctx, tx, shape.Entity.StoredAs(), createdAt, minus(was.possible(), is.possible())); err != nil {
		return err
	}
	if err := is.match(ctx, tx, createdAt, was); err != nil {
		return err
	}
	var rows batch
	if err := is.insert(ctx, tx, createdAt, &rows); err != nil {
		return err
	}
	return rows.insert(ctx, tx, shape.Entity.StoredAs())
}

// shapeWays returns the rows of the given reaches for the fields that the shape
// changes.
func shapeWays(shape *access.Shape, data jsontext.Value, reaches []string) (list []entry) {
	if shape.Entity.ControlledBy != "" {
		return nil
	}
	s := &shaped{shape: shape, values: stored(shape.Entity, data)}
	_ = s.each(func(x *access.Index, f *schema.Field, v jsontext.Value) error {
		if x.Rows {
			list = appendReached(list, f, x.Name, v, reaches)
		}
		return nil
	})
	return list
}

func newRules(shape *access.Shape) (list []*access.SharingRule) {
	for _, r := range shape.Rules {
		if r.New {
			list = append(list, r.Rule)
		}
	}
	return list
}

// unfitReferences marks values that were to become references to a record that
// is being deleted.
func unfitReferences(ctx context.Context, tx db.Tx, config *access.Config, target, id string) error {
	if config.Build == nil {
		return nil
	}
	for _, shape := range config.Build.Work.Shapes {
		for _, x := range shape.Fields {
			f := shape.Entity.Field(x.Field)
			if !x.Check || f.Type != schema.Reference || f.TargetAs() != target {
				continue
			}
			_, err := tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
				SELECT $1, v.entity, $5, v.value, '', v.record_created_at, 0 FROM field_values v
				WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3 AND v.value = $4 AND v.reach = '' ON CONFLICT DO NOTHING`,
				shape.Entity.StoredAs(), x.Name, id, x.Misfits())
			if err != nil {
				return err
			}
			rows := valueRows{shape.Entity.StoredAs(), x.Name, id}
			reaches, err := rows.reaches(ctx, tx, config, nil)
			if err != nil {
				return err
			}
			if err := rows.unset(ctx, tx, false, reaches); err != nil {
				return err
			}
		}
	}
	return nil
}

// principals returns the principals that a record is shared with, if an index
// row depends on them now or under the shape that is being prepared.
func (s *Session) principals(ctx context.Context, q db.Querier, e *schema.Entity, id string) ([]string, error) {
	c := s.viewer.Config()
	shape := c.Shape(e.StoredAs())
	if !hasSpread(e) && len(c.Above(e.StoredAs())) == 0 && (shape == nil || !hasSpread(shape.Entity)) {
		return nil, nil
	}
	return principals(ctx, q, e, id)
}

// ErrGone means that what was being prepared is done or undone.
var ErrGone = errors.New("what was being made ready is gone")
