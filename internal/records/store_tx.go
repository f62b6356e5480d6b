package records

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// txView is the view of a transaction, which must be fenced. The records that
// it finds are locked until the transaction ends, and the records that it puts
// are written.
type txView struct {
	s    *Session
	tx   db.Tx
	left []access.Leftover // what drop left to do
	// by is who deletes and when; nil is the viewer, now. dropped is what drop
	// deleted with its parent, cleared what it cleared of references: however many
	// records go together, there is one bound for the transaction.
	by               *deletion
	dropped, cleared load
	indexing         *indexing // of the unit, if the changes of one are made
}

// find reads a record and holds it until the transaction ends.
//
// On PostgreSQL a statement that waited for the row gets the row as it is then,
// but shares and rule matches as they were when the statement began. So what
// does not follow from the row itself is checked again, by a statement that
// begins when the row is held. No transaction waits for a record that its
// viewer could not see.
func (v *txView) find(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	tx := v.tx
	suffix := tx.Dialect().ForUpdate
	if r.Entity.ControlledBy != "" && suffix != "" && !r.Scope(verb).All {
		return v.findBelow(ctx, r, id, verb)
	}
	rec, err := find(ctx, tx, r, id, verb, suffix)
	sees, reaches := r.Scope(access.Read), r.Scope(verb)
	switch {
	case suffix == "" || sees.All && reaches.All:
		return rec, err
	case err == nil && byRow(sees, rec) && byRow(reaches, rec):
		return rec, nil
	case errors.Is(err, errUnseen): // the old shares and matches may be the reason
		if _, err := find(ctx, tx, r, id, verb, ""); err != nil {
			return nil, err
		}
		if _, err := exists(ctx, tx, named{r.Entity.StoredAs(), id}, suffix); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	return find(ctx, tx, r, id, verb, "")
}

// find reads a record that the viewer may see; suffix is the locking clause.
func find(ctx context.Context, q db.Querier, r *access.EntityRights, id string, verb access.Verb, suffix string) (*row, error) {
	st := newStatement(`SELECT `+rowColumns(q)+`, r.version, CASE WHEN `, r.Entity.StoredAs(), id)
	st.reached(r.Scope(verb))
	st.WriteString(` THEN 1 ELSE 0 END, r.owner_role FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3 AND `)
	st.reached(r.Scope(access.Read))
	st.WriteString(suffix)
	var rec *row
	err := q.Query(ctx, st.String(), func(dbRow db.Row) error {
		rec = &row{}
		scanRow(dbRow, rec)
		rec.data = append(jsontext.Value(nil), rec.data...)
		rec.version, rec.allowed, rec.ownerRole = dbRow.Int(5), dbRow.Bool(6), dbRow.Text(7)
		return nil
	}, st.args...)
	if err == nil && rec == nil {
		err = errUnseen
	}
	return rec, err
}

// findBelow is find for a record that its parent controls. It holds the
// ancestors as well, and before the record, so that what decides stays as it
// is.
func (v *txView) findBelow(ctx context.Context, r *access.EntityRights, id string, verb access.Verb) (*row, error) {
	links, held := v.s.viewer.Config().Schema.Chain(r.Entity), ""
	for {
		rec, err := find(ctx, v.tx, r, id, verb, "")
		if err != nil {
			return nil, err
		}
		parent := parentID(r.Entity, rec.data)
		if parent == held { // checked with everything held
			return rec, nil
		}
		if _, err := holdAncestors(ctx, v.tx, links, parent); err != nil {
			return nil, err
		}
		if _, err := exists(ctx, v.tx, named{r.Entity.StoredAs(), id}, v.tx.Dialect().ForUpdate); err != nil {
			return nil, err
		}
		held = parent
	}
}

// reaches holds a record's ancestors where its parent controls it, before it
// reports that the viewer may update it.
func (v *txView) reaches(ctx context.Context, entity, id string, verb access.Verb) (bool, error) {
	if verb == access.Update { // the record is to be a parent
		if e := v.s.viewer.Config().Schema.Entity(entity); e != nil {
			links := slices.Concat([]schema.Link{{Entity: e.StoredAs()}}, v.s.viewer.Config().Schema.Chain(e))
			if there, err := holdAncestors(ctx, v.tx, links, id); err != nil || !there {
				return false, err
			}
		}
	}
	return v.s.reaches(ctx, v.tx, entity, id, verb)
}

// findRow reads a record, whoever may see it; suffix is the locking clause. It
// returns errUnseen where there is none.
func findRow(ctx context.Context, q db.Querier, e *schema.Entity, id, suffix string) (*row, error) {
	var rec *row
	err := q.Query(ctx, `SELECT `+rowColumns(q)+`, r.version, r.owner_role FROM records r WHERE r.tenant_id = $1 AND r.entity = $2
		AND r.record_id = $3`+suffix, func(dbRow db.Row) error {
		rec = &row{}
		scanRow(dbRow, rec)
		rec.data = append(jsontext.Value(nil), rec.data...)
		rec.version, rec.ownerRole = dbRow.Int(5), dbRow.Text(6)
		return nil
	}, e.StoredAs(), id)
	if err == nil && rec == nil {
		err = errUnseen
	}
	return rec, err
}

func (v *txView) fresh(ctx context.Context) (*row, error) {
	tick, err := tenant.Tick(ctx, v.tx, clock.Micros(v.s.store.clock.Now()))
	if err != nil {
		return nil, err
	}
	return newRow(tick, 1), nil
}

// newRow returns a record without owner and data.
func newRow(createdAt, version int64) *row {
	return &row{id: clock.NewID(clock.FromMicros(createdAt)), createdAt: createdAt, updatedAt: createdAt, version: version}
}

func (v *txView) own(ctx context.Context, e *schema.Entity, rec *row, owner user.ID) (err error) {
	isNew := rec.owner == ""
	rec.owner = owner
	rec.ownerRole, err = v.s.roleOf(ctx, v.tx, e, owner, isNew)
	return err
}

// roleOf returns the stored role of a record's owner, which holds as long as
// the configuration is fenced. An owner who does not exist, and one whom the
// viewer may not name, is VALIDATION (contract A20). Everybody may own what they
// create, but only those whom a rule names may be given the record of another, the
// viewer included.
func (s *Session) roleOf(ctx context.Context, q db.Querier, e *schema.Entity, owner user.ID, isNew bool) (string, error) {
	role := s.viewer.Role()
	if !isNew || owner != s.viewer.UserID() {
		kind, has, err := user.KindOf(ctx, q, owner)
		if errors.Is(err, user.ErrUnknown) || err == nil && !s.viewer.MayOwn(e, kind == user.External, has) {
			return "", fault.Fields("some fields are not valid", map[string]string{"owner_id": "there is no such user"})
		}
		if err != nil {
			return "", err
		}
		role = has
	}
	return s.viewer.Config().OwnerRole(owner, role), nil
}

func (v *txView) free(ctx context.Context, e *schema.Entity, f *schema.Field, key string, rec *row) (bool, error) {
	free := true
	err := v.tx.Query(ctx, `SELECT 1 FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
			AND reach = '' AND is_unique = 1 AND record_created_at <> $5`, func(db.Row) error {
		free = false
		return nil
	}, e.StoredAs(), f.StoredAs(), key, rec.createdAt)
	return free, err
}

// put writes a record, its index rows and its rule matches, and holds the
// records that it refers to.
func (v *txView) put(ctx context.Context, r *access.EntityRights, rec *row, p *patch) error {
	if err := holdParents(ctx, v.tx, v.s.viewer.Config(), r.Entity, p.was.data, rec.data); err != nil {
		return err
	}
	if err := holdReferences(ctx, v.tx, r.Entity, p.changed); err != nil {
		return err
	}
	if p.was.values != nil {
		return v.rewrite(ctx, r.Entity, rec, p)
	}
	if f := r.Entity.Controller(); f != nil { // draft has checked it before the transaction
		if err := checkParent(ctx, f, refersTo(p.after[f.Index]), v.reaches); err != nil {
			return err
		}
	}
	return v.insert(ctx, r.Entity, rec, p)
}

func (v *txView) insert(ctx context.Context, e *schema.Entity, rec *row, p *patch) error {
	err := v.tx.Later(ctx, `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at,
		created_by, updated_by, version, data, data_bytes) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $7, 1, $8`+v.tx.Dialect().JSON+`, $9)`,
		e.StoredAs(), rec.id, rec.owner, rec.ownerRole, rec.createdAt, v.s.viewer.UserID(), string(rec.data), len(rec.data))
	if err != nil {
		return err
	}
	if err := v.s.reindex(ctx, v.tx, v.indexing, e, rec.createdAt, standing{}, rec.standing(p.after, nil)); err != nil {
		return err
	}
	return follow(ctx, v.tx, v.s.viewer.Config(), e, nil, nil, rec.data)
}

func (v *txView) rewrite(ctx context.Context, e *schema.Entity, rec *row, p *patch) (err error) {
	config := v.s.viewer.Config()
	if p.was.families, err = families(ctx, v.tx, config, e, rec.createdAt); err != nil {
		return err
	}
	if spreadChanges(e, p) || v.s.viewer.Config().Shape(e.StoredAs()) != nil { // otherwise the index rows of the shares do not change
		if p.was.shares, err = v.s.principals(ctx, v.tx, e, rec.id); err != nil {
			return err
		}
	}
	args := []any{e.StoredAs(), rec.id, string(rec.data), rec.updatedAt, v.s.viewer.UserID(), len(rec.data)}
	set := ""
	if rec.owner != p.was.owner {
		set = ", owner_id = $8, owner_role = $9"
		args = append(args, rec.owner, rec.ownerRole)
	}
	_, err = v.tx.Exec(ctx, `UPDATE records SET data = $4`+v.tx.Dialect().JSON+`, updated_at = $5, updated_by = $6,
		data_bytes = $7, version = version + 1`+set+` WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, args...)
	if err != nil {
		return err
	}
	is := rec.standing(p.after, p.was.shares)
	is.families = p.was.families
	if err := v.s.reindex(ctx, v.tx, v.indexing, e, rec.createdAt, p.was, is); err != nil {
		return err
	}
	return follow(ctx, v.tx, config, e, p.was.families, p.was.data, rec.data)
}

func spreadChanges(e *schema.Entity, p *patch) bool {
	return slices.ContainsFunc(e.Fields, func(f *schema.Field) bool { return spread(f) && p.changed[f.Index] != nil })
}

// drop deletes a record with its shares, its index rows, the records that it
// controls and the references to it. If those are many, it adds what remains to
// left.
func (v *txView) drop(ctx context.Context, r *access.EntityRights, rec *row) error {
	return v.dropRow(ctx, r.Entity, rec)
}

func (v *txView) dropRow(ctx context.Context, e *schema.Entity, rec *row) error {
	tx := v.tx
	shares, err := v.s.principals(ctx, tx, e, rec.id)
	if err != nil {
		return err
	}
	config, was := v.s.viewer.Config(), rec.standing(stored(e, rec.data), shares)
	if was.families, err = families(ctx, tx, config, e, rec.createdAt); err != nil {
		return err
	}
	if err := v.s.reindex(ctx, tx, v.indexing, e, rec.createdAt, was, standing{}); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM shares WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, e.StoredAs(), rec.id)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`, e.StoredAs(), rec.id)
	if err != nil {
		return err
	}
	if err := follow(ctx, tx, config, e, was.families, rec.data, nil); err != nil {
		return err
	}
	for _, from := range config.Schema.Entities {
		for _, f := range from.Fields {
			if f.Type != schema.Reference || f.TargetAs() != e.StoredAs() {
				continue
			}
			clearThem := v.clearReferences
			if f == from.Controller() {
				clearThem = v.dropChildren
			}
			if err := clearThem(ctx, from, f, rec.id); err != nil {
				return err
			}
		}
	}
	return unfitReferences(ctx, tx, config, e.StoredAs(), rec.id)
}

// holdReferences locks the records that values refer to, so that none can be
// deleted before tx ends. One that was deleted meanwhile is VALIDATION.
func holdReferences(ctx context.Context, tx db.Tx, e *schema.Entity, values []jsontext.Value) error {
	for i, f := range e.Fields {
		if !f.Refers() || values[i] == nil || schema.IsNull(values[i]) {
			continue
		}
		found, err := exists(ctx, tx, named{f.TargetAs(), schema.Unquote(values[i])}, tx.Dialect().ForShare)
		if err != nil {
			return err
		}
		if !found {
			return fault.Fields("some fields are not valid", map[string]string{f.Name: noSuch(f)})
		}
	}
	return nil
}

// reindex replaces the index rows and rule matches that before implies with
// those of after. It computes the matching rules of both. It returns errEntries for a
// record that would get too many rows, and errIndexed beyond the bound of a unit.
func (s *Session) reindex(ctx context.Context, tx db.Tx, counted *indexing, e *schema.Entity, createdAt int64, before, after standing) error {
	rules := valueRules(s.viewer.Config(), e.Name)
	before.rules, after.rules = holding(e, rules, before.id, before.values), holding(e, rules, after.id, after.values)
	for _, name := range missing(after.rules, before.rules) {
		if err := setMatch(ctx, tx, name, createdAt, false); err != nil {
			return err
		}
	}
	for _, name := range missing(before.rules, after.rules) {
		if err := setMatch(ctx, tx, name, createdAt, true); err != nil {
			return err
		}
	}
	if err := replaceEntries(ctx, tx, counted, e, createdAt, before.entries(e), after.entries(e)); err != nil {
		return err
	}
	if shape := s.viewer.Config().Shape(e.StoredAs()); shape != nil {
		return followShape(ctx, tx, shape, createdAt, before, after)
	}
	return nil
}

func setMatch(ctx context.Context, tx db.Tx, rule string, createdAt int64, is bool) error {
	if !is {
		_, err := tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id = $2 AND record_created_at = $3`, rule, createdAt)
		return err
	}
	return tx.Later(ctx, `INSERT INTO rule_matches (tenant_id, rule_id, record_created_at) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, rule_id, record_created_at) DO NOTHING`, rule, createdAt)
}

func (v *txView) findUser(ctx context.Context, id user.ID) (*user.User, error) {
	u, err := user.Lock(ctx, v.tx, id)
	return u, unseen(err)
}

func (v *txView) putUser(ctx context.Context, r *access.EntityRights, u *user.User, _ int, members []Member) error {
	if err := user.UpdateProfile(ctx, v.tx, u); err != nil || !managing(r.Entity, members) {
		return err
	}
	return tenant.RaisePeople(ctx, v.tx)
}
