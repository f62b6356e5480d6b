package records

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// References to a deleted record are cleared in the transaction that deletes it
// or, if there are many, in short ones after it (contract R10). Until the last
// of them a record may still name the deleted one. That transaction stores the
// remaining work (access.LeftReferences), so that a server completes it if the
// deleting process does not.

const (
	// maxCleared is how many references the deleting transaction clears.
	maxCleared = 1000
	// clearRows is how many each later transaction clears.
	clearRows = 50
)

// clearFor is how long the caller of a deletion clears references itself. Tests
// change it.
var clearFor = 5 * time.Second

// clearLeft clears references that a deletion left, for as long as the caller
// can wait. The record is already deleted, and a server clears the rest: a
// failure here does not make the deletion fail, and the server will encounter
// and report it.
func clearLeft(ctx context.Context, h db.Handle, left []access.Leftover) {
	ctx, cancel := context.WithTimeout(ctx, clearFor)
	defer cancel()
	for _, l := range left {
		if sweep(ctx, h, l) != nil {
			return
		}
	}
}

// clearPage clears some of the references of a leftover, starting after a
// record; last is 0 when there are no more. No new references appear, because a
// record cannot be made to refer to a deleted one.
func clearPage(ctx context.Context, tx db.Tx, config *access.Config, l access.Leftover, after int64) (last int64, err error) {
	name, id, _ := strings.Cut(l.Name, "=")
	e := config.Schema.StoredAs(l.Entity)
	if e == nil || e.OfMember(name) == nil || e.OfMember(name).Type != schema.Reference {
		return 0, nil // if the field comes back as a reference, it is cleared then
	}
	f := e.OfMember(name)
	var at []any
	err = tx.Query(ctx, `SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
		AND reach = '' AND record_created_at > $5 ORDER BY record_created_at LIMIT `+strconv.Itoa(clearRows),
		func(r db.Row) error { at = append(at, r.Int(0)); return nil }, e.StoredAs(), f.StoredAs(), id, after)
	if err != nil || len(at) == 0 {
		return 0, err
	}
	top := at[len(at)-1].(int64)
	for len(at) < clearRows { // so that one statement is prepared for any number
		at = append(at, top)
	}
	list, last, err := page(ctx, tx, clearing, after, top, upTo(clearRows), tx.Dialect().ForUpdate, append([]any{e.StoredAs()}, at...)...)
	if err != nil {
		return 0, err
	}
	if last == 0 {
		last = top // these records were deleted meanwhile
	}
	s := &Session{viewer: access.System(config, "clears references to a deleted record")}
	for i := range list {
		if err := s.clearOne(ctx, tx, e, f, &list[i], id, l.Becomes); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// clearing is the condition for clearRows records. It lists their keys, so that
// PostgreSQL reads no others, whatever the table's statistics.
var clearing = func() string {
	st := &statement{args: make([]any, 2)} // set by page
	st.WriteString("entity = ")
	st.arg(nil)
	st.WriteString(" AND created_at IN ")
	st.list(make([]string, clearRows))
	return st.String()
}()

// clearOne clears a reference of one locked record. by says when and by which
// user the referenced record was deleted.
func (s *Session) clearOne(ctx context.Context, tx db.Tx, e *schema.Entity, f *schema.Field, rec *row, id, by string) error {
	before := stored(e, rec.data)
	if v := before[f.Index]; v == nil || schema.IsNull(v) || schema.Unquote(v) != id {
		return nil
	}
	shares, err := s.principals(ctx, tx, e, rec.id)
	if err != nil {
		return err
	}
	was := standing{id: rec.id, values: before, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, shares: shares}
	if was.families, err = families(ctx, tx, s.viewer.Config(), e, rec.createdAt); err != nil {
		return err
	}
	is := was
	is.values = slices.Clone(before)
	is.values[f.Index] = nil
	is.data = document(e, is.values, rec.data)
	deleted, err := parseDeletion(by)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE records SET data = `+tx.Dialect().JSONRemove("data", "CAST($4 AS TEXT)")+`, version = version + 1,
		updated_at = CASE WHEN updated_at > $5 THEN updated_at ELSE $5 END, updated_by = $6
		WHERE tenant_id = $1 AND entity = $2 AND created_at = $3`, e.StoredAs(), rec.createdAt, f.MemberName(), deleted.at, deleted.by)
	if err != nil {
		return err
	}
	return s.reindex(ctx, tx, nil, e, rec.createdAt, was, is)
}

// deletion says when, and by which user, a record was deleted.
type deletion struct {
	at int64
	by user.ID
}

func (d deletion) String() string { return strconv.FormatInt(d.at, 10) + " " + string(d.by) }

func parseDeletion(text string) (d deletion, err error) {
	at, by, _ := strings.Cut(text, " ")
	d.at, err = strconv.ParseInt(at, 10, 64)
	d.by = user.ID(by)
	return d, err
}

// deleted returns by whom the view's records are deleted, and when.
func (v *txView) deleted() deletion {
	if v.by != nil {
		return *v.by
	}
	return deletion{clock.Micros(v.s.store.clock.Now()), v.s.viewer.UserID()}
}

// leave leaves work on what refers to a record through f to short transactions
// after this one.
func (v *txView) leave(ctx context.Context, kind string, from *schema.Entity, f *schema.Field, id string) error {
	l := access.Leftover{Kind: kind, Entity: from.StoredAs(), Name: f.MemberName() + "=" + id, Becomes: v.deleted().String()}
	v.left = append(v.left, l)
	return access.Leave(ctx, v.tx, l, 0)
}

// clearReferences clears the field f of every record that refers to id. If
// there are many, it leaves that to short transactions after this one.
func (v *txView) clearReferences(ctx context.Context, from *schema.Entity, f *schema.Field, id string) error {
	is, err := v.refer(ctx, from, f, id)
	if err != nil {
		return err
	}
	if is.n <= maxCleared && is.size <= walkBytes {
		v.cleared = is
		return clearAtOnce(ctx, v.tx, v.s.viewer.Config(), from, f, id, v.deleted())
	}
	return v.leave(ctx, access.LeftReferences, from, f, id)
}

// refer returns what the transaction will have cleared with the references to
// one more record. It counts a few more than maxCleared at most.
func (v *txView) refer(ctx context.Context, from *schema.Entity, f *schema.Field, id string) (load, error) {
	is := v.cleared
	err := v.tx.Query(ctx, `SELECT r.data_bytes FROM field_values v`+lookUp(v.tx, "v.record_created_at")+` WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3
		AND v.value = $4 AND v.reach = '' LIMIT `+strconv.Itoa(maxCleared+1), func(r db.Row) error {
		is.n++
		is.size += r.Int(0)
		return nil
	}, from.StoredAs(), f.StoredAs(), id)
	return is, err
}

// clearAtOnce clears the field f of all records that refer to id, in one
// transaction. It also checks the data: PostgreSQL's statement may still see an
// index row of a record whose reference was changed meanwhile.
func clearAtOnce(ctx context.Context, tx db.Tx, config *access.Config, from *schema.Entity, f *schema.Field, id string, by deletion) error {
	if err := dropMembers(ctx, tx, config, from, f, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE records SET data = `+tx.Dialect().JSONRemove("data", "CAST($3 AS TEXT)")+`, version = version + 1,
		updated_at = CASE WHEN updated_at > $5 THEN updated_at ELSE $5 END, updated_by = $6
		WHERE tenant_id = $1 AND entity = $2 AND created_at IN
		(SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $7 AND value = $4 AND reach = '')
		AND (data ->> CAST($3 AS TEXT)) = $4`,
		from.StoredAs(), f.MemberName(), id, by.at, by.by, f.StoredAs())
	if err != nil {
		return err
	}
	if err := markCleared(ctx, tx, config.Shape(from.StoredAs()), f, id); err != nil {
		return err
	}
	asking := rulesAsking(valueRules(config, from.Name), f.Name, id)
	shape := config.Shape(from.StoredAs())
	if shape != nil {
		if is := shape.Entity.OfMember(f.MemberName()); is != nil {
			asking = append(asking, rulesAsking(newRules(shape), is.Name, id)...)
		}
	}
	rows := valueRows{from.StoredAs(), f.StoredAs(), id}
	reaches, err := rows.reaches(ctx, tx, config, asking)
	if err != nil {
		return err
	}
	if err := rows.unset(ctx, tx, ranged(f), reaches); err != nil {
		return err
	}
	if err := rows.unsetShape(ctx, tx, shape, f.MemberName(), reaches); err != nil {
		return err
	}
	for _, rule := range asking { // these rules require exactly this record, so they match nothing now
		if err := dropMatches(ctx, tx, config, from, rule.StoredAs()); err != nil {
			return err
		}
	}
	return nil
}

// markCleared marks the records whose reference is cleared, if a change is being
// prepared that needs it.
func markCleared(ctx context.Context, tx db.Tx, shape *access.Shape, f *schema.Field, id string) error {
	if shape == nil || shape.Entity.OfMember(f.MemberName()) == nil {
		return nil
	}
	x := shape.Index(shape.Entity.OfMember(f.MemberName()).Name)
	if x == nil || !x.Needed {
		return nil
	}
	_, err := tx.Exec(ctx, `INSERT INTO field_values (tenant_id, entity, field, value, reach, record_created_at, is_unique)
		SELECT $1, v.entity, $5, '', '', v.record_created_at, 0 FROM field_values v
		WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3 AND v.value = $4 AND v.reach = '' ON CONFLICT DO NOTHING`,
		shape.Entity.StoredAs(), f.StoredAs(), id, x.Misfits())
	return err
}

// dropMembers removes the matches, with rules that compare the field f with the
// viewer, of all records that refer to id. It locks the records first, because
// what they match depends on their other fields, too.
func dropMembers(ctx context.Context, tx db.Tx, config *access.Config, from *schema.Entity, f *schema.Field, id string) error {
	asks := func(rule *access.SharingRule, field string) bool {
		return slices.ContainsFunc(rule.Where, func(c access.Condition) bool { return c.Field == field && c.Viewer != "" })
	}
	asking := func(rules []*access.SharingRule, field string) []*access.SharingRule {
		return slices.DeleteFunc(slices.Clone(rules), func(rule *access.SharingRule) bool { return !asks(rule, field) })
	}
	e, rules := from, asking(valueRules(config, from.Name), f.Name)
	shape, later := config.Shape(from.StoredAs()), []*access.SharingRule(nil)
	if shape != nil {
		if is := shape.Entity.OfMember(f.MemberName()); is != nil {
			later = asking(newRules(shape), is.Name)
		}
	}
	if len(rules)+len(later) == 0 {
		return nil
	}
	type match struct {
		createdAt int64
		id        string
		data      jsontext.Value
	}
	var list []match
	err := tx.Query(ctx, `SELECT r.created_at, r.record_id, `+tx.Dialect().JSONText("r.data", "r.data_bytes")+` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2
		AND r.created_at IN (SELECT v.record_created_at FROM field_values v WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3 AND v.value = $4 AND v.reach = '')
		AND (r.data ->> CAST($5 AS TEXT)) = $4 ORDER BY r.record_id`+tx.Dialect().ForUpdate, func(row db.Row) error {
		list = append(list, match{row.Int(0), row.Text(1), jsontext.Value(row.Text(2))})
		return nil
	}, from.StoredAs(), f.StoredAs(), id, f.MemberName())
	if err != nil {
		return err
	}
	for _, m := range list {
		names := holding(e, rules, m.id, stored(e, m.data))
		if shape != nil {
			names = append(names, holding(shape.Entity, later, m.id, stored(shape.Entity, m.data))...)
		}
		for _, name := range names {
			if err := dropMatch(ctx, tx, config, from, name, m.createdAt, m.data); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropMatch removes a match of a rule, with the index rows that come from it.
func dropMatch(ctx context.Context, tx db.Tx, config *access.Config, e *schema.Entity, name string, createdAt int64, data jsontext.Value) error {
	if err := setMatch(ctx, tx, name, createdAt, false); err != nil {
		return err
	}
	below, err := families(ctx, tx, config, e, createdAt)
	if err != nil {
		return err
	}
	return deleteEntries(ctx, tx, e.StoredAs(), createdAt, entriesOf(config, e, data, below, access.ByRule, name))
}

// rulesAsking returns the rules whose condition is that field refers to a
// record.
func rulesAsking(rules []*access.SharingRule, field, id string) (list []*access.SharingRule) {
	for _, rule := range rules {
		if slices.ContainsFunc(rule.Where, func(c access.Condition) bool {
			return c.Field == field && c.Viewer == "" && schema.Unquote(c.Value) == id
		}) {
			list = append(list, rule)
		}
	}
	return list
}

// dropMatches removes all matches of a rule by field value, and of its members.
func dropMatches(ctx context.Context, tx db.Tx, config *access.Config, e *schema.Entity, rule string) error {
	type match struct {
		createdAt int64
		data      jsontext.Value
		name      string
	}
	for _, span := range access.Spans(rule) {
		var list []match
		if hasSpread(e) || len(config.Above(e.StoredAs())) > 0 || config.Shape(e.StoredAs()) != nil {
			err := tx.Query(ctx, `SELECT r.created_at, `+tx.Dialect().JSONText("r.data", "r.data_bytes")+`, m.rule_id FROM rule_matches m CROSS JOIN records r
				WHERE m.tenant_id = $1 AND m.rule_id >= $2 AND m.rule_id < $3
				AND r.tenant_id = $1 AND r.entity = $4 AND r.created_at = m.record_created_at`, func(row db.Row) error {
				list = append(list, match{row.Int(0), jsontext.Value(row.Text(1)), row.Text(2)})
				return nil
			}, span.From, span.To, e.StoredAs())
			if err != nil {
				return err
			}
		}
		for _, m := range list {
			below, err := families(ctx, tx, config, e, m.createdAt)
			if err != nil {
				return err
			}
			if err := deleteEntries(ctx, tx, e.StoredAs(), m.createdAt, entriesOf(config, e, m.data, below, access.ByRule, m.name)); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id >= $2 AND rule_id < $3`, span.From, span.To); err != nil {
			return err
		}
	}
	return nil
}
