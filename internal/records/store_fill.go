package records

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// walkPage is how many records a walk holds in memory at once, and the most
// that one short transaction visits.
const walkPage = 500

// walkBytes is the size at which a page of a walk ends early, because its
// records are in memory at once.
const walkBytes = 4 << 20

// extent is the size of a page of records, or what it may be: so many records, and so many bytes of their data.
type extent struct {
	records int
	bytes   int64
}

// upTo is the extent of a page of so many records that are in memory at once.
func upTo(records int) extent { return extent{records, walkBytes} }

func extentOf(list []row) extent {
	x := extent{records: len(list)}
	for i := range list {
		x.bytes += int64(len(list[i].data))
	}
	return x
}

// atMost counts records up to a limit.
func atMost(ctx context.Context, q db.Querier, limit int, where string, args ...any) (n int, err error) {
	err = q.Query(ctx, `SELECT count(*) FROM (SELECT 1 FROM records WHERE tenant_id = $1 AND `+where+` LIMIT `+strconv.Itoa(limit)+`) n`,
		func(r db.Row) error { n = int(r.Int(0)); return nil }, args...)
	return n, err
}

// page reads records in order, after one and up to top, as many as the limit allows but at least one, and locks
// them with suffix until tx ends. A record without a stored size counts as a 64th of the bytes. With a lock it
// reads them in the order of their ids, in which all transactions lock records.
func page(ctx context.Context, tx db.Tx, where string, after, top int64, limit extent, suffix string, args ...any) (list []row, last int64, err error) {
	args = append([]any{after, top}, args...)
	where = ` FROM records WHERE tenant_id = $1 AND created_at > $2 AND created_at <= $3 AND ` + where
	n, size := 0, int64(0)
	err = tx.Query(ctx, `SELECT created_at, data_bytes`+where+` ORDER BY created_at LIMIT `+strconv.Itoa(limit.records), func(r db.Row) error {
		if size += cmp.Or(r.Int(1), limit.bytes/64); n > 0 && size > limit.bytes {
			return errEnough
		}
		last = r.Int(0)
		n++
		return nil
	}, args...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	if err != nil || n == 0 {
		return nil, 0, err
	}
	order := "created_at"
	if suffix != "" {
		order = "record_id"
	}
	args[1] = last
	err = tx.Query(ctx, `SELECT created_at, record_id, owner_id, owner_role, `+tx.Dialect().JSONText("data", "data_bytes")+where+` ORDER BY `+order+suffix, func(r db.Row) error {
		list = append(list, rowOf(r))
		return nil
	}, args...)
	return list, last, err
}

func rowOf(r db.Row) row {
	return row{createdAt: r.Int(0), id: r.Text(1), owner: user.ID(r.Text(2)), ownerRole: r.Text(3), data: jsontext.Value(r.Text(4))}
}

// walkShape visits every record of an entity type in one transaction.
func walkShape(ctx context.Context, tx db.Tx, c *access.Config, s *access.Shape) error {
	for after := int64(0); ; {
		last, _, err := shapePage(ctx, tx, c, s, after, math.MaxInt64, upTo(walkPage))
		if err != nil || last == 0 {
			return err
		}
		after = last
	}
}

// shapePage visits the next records of an entity type; last is 0 when there
// were none. c is the configuration that writers use. The locks order it with
// concurrent writers of these records.
func shapePage(ctx context.Context, tx db.Tx, c *access.Config, s *access.Shape, after, top int64, limit extent) (last int64, visited extent, err error) {
	list, last, err := page(ctx, tx, `entity = $4`, after, top, limit, tx.Dialect().ForShare, s.Entity.StoredAs())
	if err != nil || len(list) == 0 {
		return last, extent{}, err
	}
	shares, err := pageShares(ctx, tx, s.Entity, after, last)
	if err != nil {
		return 0, extent{}, err
	}
	below, err := pageFamilies(ctx, tx, c, s.Entity, after, last)
	if err != nil {
		return 0, extent{}, err
	}
	var rows batch
	for i := range list {
		rec := &list[i]
		made := newShaped(s, &standing{id: rec.id, data: rec.data, owner: rec.owner, ownerRole: rec.ownerRole, shares: shares[rec.id], families: below[rec.createdAt]})
		if err := made.match(ctx, tx, rec.createdAt, nil); err != nil {
			return 0, extent{}, err
		}
		if err := made.insert(ctx, tx, rec.createdAt, &rows); err != nil {
			return 0, extent{}, err
		}
	}
	return last, extentOf(list), rows.insert(ctx, tx, s.Entity.StoredAs())
}

// pageShares returns the principals that the records of a page are shared with,
// by record id, if index rows depend on them.
func pageShares(ctx context.Context, tx db.Tx, e *schema.Entity, after, last int64) (map[string][]string, error) {
	m := map[string][]string{}
	if !hasSpread(e) {
		return m, nil
	}
	err := tx.Query(ctx, `SELECT s.record_id, s.principal FROM records r CROSS JOIN shares s WHERE r.tenant_id = $1 AND r.entity = $2
		AND r.created_at > $3 AND r.created_at <= $4 AND s.tenant_id = $1 AND s.entity = $2 AND s.record_id = r.record_id
		ORDER BY s.record_id, s.principal`, func(r db.Row) error {
		m[r.Text(0)] = append(m[r.Text(0)], r.Text(1))
		return nil
	}, e.StoredAs(), after, last)
	return m, err
}

// rolePage sets the owner's role of the next records of a user, or of those
// with an owner's role.
func rolePage(ctx context.Context, tx db.Tx, c *access.Config, e *schema.Entity, where string, arg any, role string, after, top int64, limit extent) (last int64, visited extent, err error) {
	list, last, err := page(ctx, tx, `entity = $4 AND `+where, after, top, limit, tx.Dialect().ForUpdate, e.StoredAs(), arg)
	if err != nil || last == 0 {
		return 0, extent{}, err
	}
	below, err := pageFamilies(ctx, tx, c, e, after, last)
	if err != nil {
		return 0, extent{}, err
	}
	var rows batch
	for i := range list {
		if err := moveEntries(ctx, tx, c, e, &list[i], below[list[i].createdAt], role, &rows); err != nil {
			return 0, extent{}, err
		}
	}
	if err := rows.insert(ctx, tx, e.StoredAs()); err != nil {
		return 0, extent{}, err
	}
	_, err = tx.Exec(ctx, `UPDATE records SET owner_role = $6 WHERE tenant_id = $1 AND created_at > $2 AND created_at <= $3 AND entity = $4 AND `+where,
		after, last, e.StoredAs(), arg, role)
	return last, extentOf(list), err
}

// moveEntries replaces the index rows of a locked record for its owner's role:
// it deletes those of the old role and appends those of the new one to the
// batch. It may be repeated.
func moveEntries(ctx context.Context, tx db.Tx, c *access.Config, e *schema.Entity, rec *row, below []access.Place, role string, b *batch) error {
	if rec.ownerRole == role {
		return nil
	}
	of := func(role string) []entry {
		if role == "" {
			return nil
		}
		return entriesOf(c, e, rec.data, below, access.ByOwnerRole, role)
	}
	for _, en := range of(role) {
		*b = append(*b, placed{en, rec.createdAt})
	}
	return deleteEntries(ctx, tx, e.StoredAs(), rec.createdAt, of(rec.ownerRole))
}

// reassignRole updates the records of a user to the user's new role, in the
// transaction that changes it. config is the tenant's configuration before the
// change.
func reassignRole(ctx context.Context, tx db.Tx, config *access.Config, userID user.ID, role string) error {
	for _, e := range config.Schema.Entities {
		for after := int64(0); ; {
			last, _, err := rolePage(ctx, tx, config, e, `owner_id = $5`, userID, role, after, math.MaxInt64, upTo(walkPage))
			if err != nil {
				return err
			}
			if last == 0 {
				break
			}
			after = last
		}
	}
	return nil
}
