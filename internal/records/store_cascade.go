package records

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
)

// Whoever deletes a record deletes those below it (contract A22): in the same
// transaction if they are few, else in short ones after it. That transaction
// stores what remains (access.LeftChildren), so that a server completes it if
// the deleting process does not. Nobody sees a record without its parent
// meanwhile, whatever they may do (statement.parent, statement.parented).

const (
	// maxDropped is how many records one transaction deletes with a parent.
	maxDropped = 100
	// dropRows is how many each later transaction deletes before those below
	// them.
	dropRows = 50
)

// dropChildren deletes the records that a deleted one controlled through the
// field f, with those below them. If there are many, it leaves them to short
// transactions after this one. No new ones appear, because whoever creates one
// holds its parent.
func (v *txView) dropChildren(ctx context.Context, from *schema.Entity, f *schema.Field, id string) error {
	few, err := v.fewBelow(ctx, from, f, id)
	if err != nil {
		return err
	}
	if !few {
		return v.leave(ctx, access.LeftChildren, from, f, id)
	}
	for after, more := int64(0), true; more; {
		if after, err = v.dropPage(ctx, from, f, id, after, maxDropped); err != nil {
			return err
		}
		more = after > 0
	}
	return nil
}

// load is a number of records, and their bytes.
type load struct {
	n    int
	size int64
}

// fewBelow reports whether the records that one controls are so few that this
// transaction deletes them, with those that it has deleted so far.
func (v *txView) fewBelow(ctx context.Context, from *schema.Entity, f *schema.Field, id string) (bool, error) {
	is := v.dropped
	err := v.tx.Query(ctx, `SELECT r.data_bytes FROM field_values v`+lookUp(v.tx, "v.record_created_at")+` WHERE v.tenant_id = $1 AND v.entity = $2 AND v.field = $3
		AND v.value = $4 AND v.reach = '' LIMIT `+strconv.Itoa(maxDropped+1), func(r db.Row) error {
		is.n++
		is.size += r.Int(0)
		return nil
	}, from.StoredAs(), f.StoredAs(), id)
	return is.n <= maxDropped && is.size <= walkBytes/4, err
}

// dropPage deletes up to limit of the records that refer to id through f,
// starting after one, with those below them; last is 0 when there are no more.
func (v *txView) dropPage(ctx context.Context, e *schema.Entity, f *schema.Field, id string, after int64, limit int) (last int64, err error) {
	var at []int64
	err = v.tx.Query(ctx, `SELECT record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3 AND value = $4
		AND reach = '' AND record_created_at > $5 ORDER BY record_created_at LIMIT `+strconv.Itoa(limit),
		func(r db.Row) error { at = append(at, r.Int(0)); return nil }, e.StoredAs(), f.StoredAs(), id, after)
	if err != nil || len(at) == 0 {
		return 0, err
	}
	for part := range slices.Chunk(at, clearRows) {
		args, top := []any{e.StoredAs()}, part[len(part)-1]
		for i := range clearRows { // so that one statement is prepared for any number
			args = append(args, part[min(i, len(part)-1)])
		}
		list, reached, err := page(ctx, v.tx, clearing, after, top, upTo(clearRows), v.tx.Dialect().ForUpdate, args...)
		if err != nil {
			return 0, err
		}
		for i := range list {
			if parentID(e, list[i].data) != id { // moved while this waited for it
				continue
			}
			v.dropped.n++
			v.dropped.size += int64(len(list[i].data))
			if err := v.dropRow(ctx, e, &list[i]); err != nil {
				return 0, err
			}
		}
		if last = top; reached > 0 && reached < top { // they are large: the page ended early
			return reached, nil
		}
		after = top
	}
	return last, nil
}

// dropLeft deletes some of the records of a leftover.
func dropLeft(ctx context.Context, tx db.Tx, config *access.Config, l access.Leftover, after int64) (last int64, below []access.Leftover, err error) {
	name, id, _ := strings.Cut(l.Name, "=")
	e := config.Schema.StoredAs(l.Entity)
	if e == nil || e.Controller() == nil || e.Controller().MemberName() != name {
		return 0, nil, nil // Transition refuses such a change while there is a leftover
	}
	by, err := parseDeletion(l.Becomes)
	if err != nil {
		return 0, nil, err
	}
	v := &txView{s: &Session{viewer: access.System(config, "deletes records with their parent")}, tx: tx, by: &by}
	last, err = v.dropPage(ctx, e, e.Controller(), id, after, dropRows)
	return last, v.left, err
}
