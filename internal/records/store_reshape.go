package records

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// Long is the error of a transition that must be prepared first.
type Long struct{ Work *access.Work }

func (*Long) Error() string { return "the change takes long and was not made ready" }

// ErrMarked means that a change was prepared and some records may not fit it.
var ErrMarked = errors.New("records are marked as not fitting the change")

const (
	// leaveFor is how long rows remain that the configuration no longer names.
	// By its end, every read that began under the old configuration has ended.
	leaveFor = 60 * time.Second
	// abandoned is how long a build must be idle before other work may undo it.
	abandoned = 30 * time.Second
)

// Run brings the records in line with the new configuration, in the transaction
// that changes it: it does the work itself if that is short, else it puts in
// force what was prepared. It returns *Long when nothing was prepared,
// ErrMarked when records are marked, and CONFLICT when the data does not permit
// the change.
func (t *Transition) Run(ctx context.Context, tx tenant.ConfigTx) error {
	for _, e := range t.Before.Schema.Entities {
		if t.After.Schema.StoredAs(e.StoredAs()) == nil {
			if err := mustBeEmpty(ctx, tx, e); err != nil {
				return err
			}
		}
	}
	if err := t.mayChangeParents(ctx, tx); err != nil {
		return err
	}
	work, build := t.work(), t.Before.Build
	switch {
	case work.Empty():
		return t.leave(ctx, tx, work)
	case build != nil && build.Work.Key() == work.Key():
		return t.enforce(ctx, tx, build)
	case build != nil:
		if err := giveWay(ctx, tx, build); err != nil {
			return err
		}
	}
	short, err := t.short(ctx, tx, work)
	if err != nil {
		return err
	}
	if !short {
		return &Long{work}
	}
	if err := name(ctx, tx, work, t.After, t.Before); err != nil {
		return err
	}
	return t.inline(ctx, tx, work)
}

func mustBeEmpty(ctx context.Context, q db.Querier, e *schema.Entity) error {
	n, err := count(ctx, q, e.StoredAs())
	if err != nil || n == 0 {
		return err
	}
	return broken(e.Name, "", n, "entity %s still holds %d records: delete them before the entity", e.Name, n)
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

// name chooses the names of the rows that the work makes: names that no other
// rows have, or have had as long as some of those rows may remain. configs are
// the tenant's configurations, the current one first; the names of their
// fields' index rows are taken, too.
func name(ctx context.Context, tx db.Tx, w *access.Work, configs ...*access.Config) error {
	left, err := access.Leftovers(ctx, tx)
	if err != nil {
		return err
	}
	taken := map[[3]string]bool{}
	for _, l := range left {
		taken[[3]string{l.Kind, l.Entity, l.Name}] = true
	}
	others := func(e *schema.Entity, f *schema.Field) bool { // reports whether another field's rows have f's name
		those := slices.Clone(e.Fields)
		for _, c := range configs {
			if had := c.Schema.StoredAs(e.StoredAs()); had != nil {
				those = append(those, had.Fields...)
			}
		}
		return slices.ContainsFunc(those, func(o *schema.Field) bool { return o.MemberName() != f.MemberName() && o.StoredAs() == f.Name })
	}
	n := configs[0].Tenant.Version // raised for this transaction
	for _, s := range w.Shapes {
		for _, x := range s.Fields {
			x.Name = x.Field
			f := s.Entity.Field(x.Field)
			if !x.Back || f.IndexName != "" || others(s.Entity, f) ||
				taken[[3]string{access.LeftValues, s.Entity.StoredAs(), x.Field}] || taken[[3]string{access.LeftValues, s.Entity.StoredAs(), schema.WordsAs(x.Field)}] {
				x.Name = indexName(x.Field, n)
			}
		}
		for i, r := range s.Rules {
			if r.New {
				named := *r.Rule
				named.MatchName = ""
				if taken[[3]string{access.LeftMatches, s.Entity.StoredAs(), named.ID()}] {
					named.MatchName = indexName(named.ID(), n)
				}
				s.Rules[i] = &access.ShapeRule{Rule: &named, New: true}
			}
		}
	}
	for _, l := range w.Lineages {
		l.Name = indexName("^"+l.Entity, n)
	}
	for i, m := range w.Moves {
		m.Token = indexName(fmt.Sprintf("%s>%s.%d", m.From, m.To, i), n)
	}
	return nil
}

// wordsWeight is how many records one whose words are to be found counts as.
const wordsWeight = 20

// short reports whether the work visits few records.
func (t *Transition) short(ctx context.Context, tx db.Tx, w *access.Work) (bool, error) {
	left := t.Inline
	if left == math.MaxInt {
		return true, nil
	}
	if w.Walks()-len(w.Shapes)-len(w.Lineages) > maxProbes {
		return false, nil
	}
	for _, s := range w.Shapes {
		weight := 1
		if slices.ContainsFunc(s.Fields, func(x *access.Index) bool { return x.Rows && s.Entity.Field(x.Field).Searchable }) {
			weight = wordsWeight
		}
		n, err := atMost(ctx, tx, left/weight+1, `entity = $2`, s.Entity.StoredAs())
		if left -= weight * n; err != nil || left < 0 {
			return false, err
		}
	}
	for _, l := range w.Lineages {
		n, err := atMost(ctx, tx, left+1, `entity = $2`, l.Entity)
		if left -= n; err != nil || left < 0 {
			return false, err
		}
	}
	for _, m := range w.Moves {
		for _, u := range m.Users {
			for _, e := range w.Entities {
				n, err := atMost(ctx, tx, left+1, `entity = $2 AND owner_id = $3`, e, u)
				if left -= n; err != nil || left < 0 {
					return false, err
				}
			}
		}
	}
	return true, nil
}

// enforce puts in force what was prepared.
func (t *Transition) enforce(ctx context.Context, tx tenant.ConfigTx, b *access.Build) error {
	if !b.Ready() {
		return &Long{b.Work}
	}
	marked, err := anyMarked(ctx, tx, b.Work)
	if err != nil {
		return err
	}
	if marked {
		return ErrMarked
	}
	for _, m := range b.Work.Moves {
		l := access.Leftover{Kind: access.LeftRole, Name: m.Token, Becomes: m.To}
		if err := access.Leave(ctx, tx, l, leaveFor); err != nil {
			return err
		}
	}
	failpoint.At("build.checked")
	if err := access.DeleteBuild(ctx, tx); err != nil {
		return err
	}
	err = t.use(ctx, tx, b.Work)
	failpoint.At("build.named")
	return err
}

// inline does the work in this transaction.
func (t *Transition) inline(ctx context.Context, tx tenant.ConfigTx, w *access.Work) error {
	for _, m := range w.Moves {
		for _, u := range m.Users {
			if err := reassignRole(ctx, tx, t.Before, u, m.To); err != nil {
				return err
			}
		}
	}
	for _, s := range w.Shapes {
		if err := walkShape(ctx, tx, t.writing(w), s); err != nil {
			return err
		}
		if err := settleShape(ctx, tx, s); err != nil {
			return err
		}
		if err := refusal(ctx, tx, s); err != nil {
			return err
		}
	}
	for _, l := range w.Lineages {
		if err := walkLineage(ctx, tx, t.writing(w), l); err != nil {
			return err
		}
	}
	return t.use(ctx, tx, w)
}

// use makes the configuration name the new rows, and leaves the old ones to the
// sweep.
func (t *Transition) use(ctx context.Context, tx tenant.ConfigTx, w *access.Work) error {
	for _, s := range w.Shapes {
		for _, x := range s.Fields {
			is := x.Name
			if !x.Rows {
				continue
			}
			if is == x.Field {
				is = ""
			}
			if is == s.Entity.Field(x.Field).IndexName {
				continue
			}
			if err := schema.SetIndexName(ctx, tx, schema.FieldName{Entity: s.Entity.Name, Field: x.Field}, is); err != nil {
				return err
			}
		}
		for _, r := range newRules(s) {
			if r.MatchName != "" {
				if err := access.SetMatchName(ctx, tx, r.ID(), r.MatchName); err != nil {
					return err
				}
			}
		}
	}
	for _, l := range w.Lineages {
		if err := schema.SetLineage(ctx, tx, t.After.Schema.StoredAs(l.Entity).Name, l.Name); err != nil {
			return err
		}
	}
	return t.leave(ctx, tx, w)
}

// leave records what the configuration no longer names: index rows that were
// replaced or are no longer needed, and matches of removed rules. Index rows
// remain for some time, even if there are few: until a node sees the change, it
// may read with the old configuration, and without those rows would find
// nothing. If there are only a few matches, they are removed at once, because
// such a node may see less.
func (t *Transition) leave(ctx context.Context, tx tenant.ConfigTx, w *access.Work) error {
	anew := map[[2]string]bool{}
	for _, s := range w.Shapes {
		for _, x := range s.Fields {
			anew[[2]string{s.Entity.StoredAs(), x.Field}] = x.Rows
		}
	}
	for _, e := range t.Before.Schema.Entities {
		after := t.After.Schema.StoredAs(e.StoredAs())
		var list []access.Leftover
		for _, f := range e.Fields {
			is := (*schema.Field)(nil)
			if after != nil {
				is = after.OfMember(f.MemberName())
			}
			stay := is != nil && !anew[[2]string{e.StoredAs(), is.Name}]
			if f.Keyed() && !(stay && is.Keyed()) {
				list = append(list, access.Leftover{Kind: access.LeftValues, Entity: e.StoredAs(), Name: f.StoredAs()})
			}
			if f.Searchable && !(stay && is.Searchable) {
				list = append(list, access.Leftover{Kind: access.LeftValues, Entity: e.StoredAs(), Name: schema.WordsAs(f.StoredAs())})
			}
			if f.Stored() && is != nil && !is.Stored() && is.IndexName != "" {
				if err := schema.SetIndexName(ctx, tx, schema.FieldName{Entity: after.Name, Field: is.Name}, ""); err != nil {
					return err
				}
			}
		}
		gone, err := t.leaveLineage(ctx, tx, e, after, w)
		if err != nil {
			return err
		}
		list = append(list, gone...)
		stays := ruleIDs(t.After, e.Name)
		for _, r := range valueRules(t.Before, e.Name) {
			if !stays[r.ID()] {
				list = append(list, access.Leftover{Kind: access.LeftMatches, Entity: e.StoredAs(), Name: r.StoredAs()})
			}
		}
		if err := t.leaveAll(ctx, tx, e.StoredAs(), list); err != nil {
			return err
		}
	}
	return nil
}

func (t *Transition) leaveAll(ctx context.Context, tx db.Tx, entity string, list []access.Leftover) error {
	for _, l := range list {
		atOnce := t.Inline == math.MaxInt
		if !atOnce && l.Kind == access.LeftMatches {
			n, err := atMost(ctx, tx, t.Inline+1, `entity = $2`, entity)
			if err != nil {
				return err
			}
			atOnce = n <= t.Inline
		}
		var err error
		if atOnce {
			err = sweepAll(ctx, tx, l)
		} else {
			err = access.Leave(ctx, tx, l, leaveFor)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
