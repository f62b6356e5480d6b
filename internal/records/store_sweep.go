package records

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/background"
	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
)

// Sweep removes, in short transactions, what the tenant's configuration no
// longer names and no reader can still use. Its errors are db's.
func Sweep(ctx context.Context, h db.Handle) error {
	left, err := access.Leftovers(ctx, h)
	if err != nil {
		return err
	}
	for _, l := range left {
		if l.Due {
			if err := sweep(ctx, h, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func sweep(ctx context.Context, h db.Handle, l access.Leftover) error {
	var config *access.Config
	write := func(fn func(tx db.Tx) (bool, error)) (more bool, err error) {
		begun := time.Now()
		for range MaxRenewals {
			err = fenced(ctx, h, config, func(tx db.Tx) error {
				there, err := access.LockLeftover(ctx, tx, l)
				if err != nil {
					return err
				}
				if !there { // another node has removed it
					return ErrGone
				}
				more, err = fn(tx)
				return err
			})
			if !errors.Is(err, errStale) {
				break
			}
			if config, err = access.Load(ctx, h); err != nil {
				return false, err
			}
		}
		failpoint.At("build.swept")
		return more, errors.Join(err, background.Rest(ctx, time.Since(begun)))
	}
	var err error
	var left []access.Leftover // what this one leaves in turn
	if l.Kind == access.LeftMatches {
		err = sweepRule(ctx, h, l, write)
	} else {
		after := int64(0)
		for more := true; more && err == nil; {
			last, below := int64(0), []access.Leftover(nil) // of the committed part
			more, err = write(func(tx db.Tx) (more bool, err error) {
				switch l.Kind {
				case access.LeftRole:
					return renamePage(ctx, tx, config, l)
				case access.LeftShares:
					return unsharePage(ctx, tx, config, l)
				case access.LeftReferences:
					last, err = clearPage(ctx, tx, config, l, after)
					return last > 0, err
				case access.LeftChildren:
					last, below, err = dropLeft(ctx, tx, config, l, after)
					return last > 0, err
				}
				return sweepValues(ctx, tx, l)
			})
			after, left = last, append(left, below...)
		}
	}
	if err == nil {
		_, err = write(func(tx db.Tx) (bool, error) { return false, access.DeleteLeftover(ctx, tx, l) })
	}
	if errors.Is(err, ErrGone) {
		return nil
	}
	for _, below := range left {
		if err == nil {
			err = sweep(ctx, h, below)
		}
	}
	return err
}

// sweepAll removes a leftover in one transaction.
func sweepAll(ctx context.Context, tx db.Tx, l access.Leftover) error {
	if l.Kind == access.LeftMatches {
		return sweepRule(ctx, tx, l, func(fn func(tx db.Tx) (bool, error)) (bool, error) { return fn(tx) })
	}
	for more := true; more; {
		var err error
		if more, err = sweepValues(ctx, tx, l); err != nil {
			return err
		}
	}
	return nil
}

// sweepValues removes one range of the index: up to the row at the limit.
func sweepValues(ctx context.Context, tx db.Tx, l access.Leftover) (more bool, err error) {
	var value, reach string
	var at int64
	err = tx.Query(ctx, `SELECT reach, value, record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3
		ORDER BY reach, value, record_created_at LIMIT 1 OFFSET `+strconv.Itoa(sweepRows), func(r db.Row) error {
		reach, value, at, more = r.Text(0), r.Text(1), r.Int(2), true
		return nil
	}, l.Entity, l.Name)
	if err != nil {
		return false, err
	}
	if !more {
		_, err = tx.Exec(ctx, `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3`, l.Entity, l.Name)
		return false, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM field_values WHERE tenant_id = $1 AND entity = $2 AND field = $3
		AND (reach, value, record_created_at) < ($4, $5, $6)`, l.Entity, l.Name, reach, value, at)
	return true, err
}

// sweepRule removes the matches of a rule and of its members, and the index rows of the records
// that it made visible. Such rows may be anywhere in the entity type's index,
// even under values that their records no longer have. So it reads the whole
// index, outside the transactions that delete. No row may remain, because a
// rule with the same name may be created again.
func sweepRule(ctx context.Context, q db.Querier, l access.Leftover, write func(func(tx db.Tx) (bool, error)) (bool, error)) error {
	reach := ways[access.ByRule].reach(l.Name)
	type key struct {
		field, reach, value string
		at                  int64
	}
	for after, n := (key{}), sweepScan; n == sweepScan; {
		var found []key
		n = 0
		err := q.Query(ctx, `SELECT field, reach, value, record_created_at FROM field_values WHERE tenant_id = $1 AND entity = $2
			AND (field, reach, value, record_created_at) > ($3, $4, $5, $6)
			ORDER BY field, reach, value, record_created_at LIMIT `+strconv.Itoa(sweepScan), func(r db.Row) error {
			n++
			after = key{r.Text(0), r.Text(1), r.Text(2), r.Int(3)}
			if access.IsOf(after.reach, reach) {
				found = append(found, after)
			}
			return nil
		}, l.Entity, after.field, after.reach, after.value, after.at)
		if err != nil {
			return err
		}
		for chunk := range slices.Chunk(found, sweepRows/4) {
			_, err := write(func(tx db.Tx) (bool, error) {
				for _, k := range chunk {
					if err := deleteEntries(ctx, tx, l.Entity, k.at, []entry{{k.field, k.value, k.reach, false}}); err != nil {
						return false, err
					}
				}
				return false, nil
			})
			if err != nil {
				return err
			}
		}
	}
	for _, span := range access.Spans(l.Name) {
		for more := true; more; {
			var err error
			if more, err = write(func(tx db.Tx) (bool, error) { return sweepMatches(ctx, tx, span) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweepMatches removes matches in a range of names, up to the one at the limit.
func sweepMatches(ctx context.Context, tx db.Tx, span access.Span) (more bool, err error) {
	var name string
	var at int64
	err = tx.Query(ctx, `SELECT rule_id, record_created_at FROM rule_matches WHERE tenant_id = $1 AND rule_id >= $2 AND rule_id < $3
		ORDER BY rule_id, record_created_at LIMIT 1 OFFSET `+strconv.Itoa(sweepRows), func(r db.Row) error {
		name, at, more = r.Text(0), r.Int(1), true
		return nil
	}, span.From, span.To)
	if err != nil {
		return false, err
	}
	if !more {
		_, err = tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id >= $2 AND rule_id < $3`, span.From, span.To)
		return false, err
	}
	_, err = tx.Exec(ctx, `DELETE FROM rule_matches WHERE tenant_id = $1 AND rule_id >= $2 AND (rule_id, record_created_at) < ($3, $4)`, span.From, name, at)
	return true, err
}

// renamePage replaces a token of a role in some records with the role's own
// name.
func renamePage(ctx context.Context, tx db.Tx, c *access.Config, l access.Leftover) (more bool, err error) {
	for _, e := range c.Schema.Entities {
		last, _, err := rolePage(ctx, tx, c, e, `owner_role = $5`, l.Name, l.Becomes, 0, everAfter, upTo(renameRows))
		if err != nil || last > 0 {
			return true, err
		}
	}
	return false, nil
}

// unsharePage removes some shares with a role that no longer exists, and locks
// their records.
func unsharePage(ctx context.Context, tx db.Tx, c *access.Config, l access.Leftover) (more bool, err error) {
	for _, e := range c.Schema.Entities {
		args := []any{e.StoredAs()}
		err := tx.Query(ctx, `SELECT record_created_at FROM shares WHERE tenant_id = $1 AND entity = $2 AND principal = $3
			ORDER BY record_created_at LIMIT `+strconv.Itoa(clearRows), func(r db.Row) error { args = append(args, r.Int(0)); return nil }, e.StoredAs(), l.Name)
		if err != nil {
			return false, err
		}
		if len(args) == 1 {
			continue
		}
		top := args[len(args)-1].(int64)
		for len(args) < 1+clearRows { // so that one statement is prepared for any number
			args = append(args, top)
		}
		list, last, err := page(ctx, tx, clearing, 0, top, upTo(clearRows), tx.Dialect().ForUpdate, args...)
		if err != nil {
			return false, err
		}
		if last == 0 {
			last = top // these records were deleted meanwhile
		}
		for i := range list {
			below, err := families(ctx, tx, c, e, list[i].createdAt)
			if err != nil {
				return false, err
			}
			if err := deleteEntries(ctx, tx, e.StoredAs(), list[i].createdAt, entriesOf(c, e, list[i].data, below, access.ByShare, l.Name)); err != nil {
				return false, err
			}
		}
		_, err = tx.Exec(ctx, `DELETE FROM shares WHERE tenant_id = $1 AND entity = $2 AND principal = $3 AND record_created_at <= $4`,
			e.StoredAs(), l.Name, last)
		return true, err
	}
	return false, nil
}

const (
	sweepRows  = 1000 // removed by one transaction
	sweepScan  = 5000 // read by one statement
	renameRows = 100
)
