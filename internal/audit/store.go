package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// NewRecorder starts a recorder over a database. Close must be called before
// the database is closed.
func NewRecorder(d *db.DB, clk clock.Clock, opts Options) *Recorder {
	return newRecorder(dbStore{d, clock.NewID(clk.Now())}, clk, opts)
}

type dbStore struct {
	d      *db.DB
	writer string // identifies this recorder among those of all processes
}

func (dbStore) lasting(err error) bool {
	return errors.Is(err, db.ErrFull) || errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrBusy) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (s dbStore) written() <-chan struct{} { return s.d.Written() }

func (s dbStore) write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error {
	return s.d.Days().Write(ctx, tenant, db.Day(day), func(tx db.Tx) error {
		for i := range blocks {
			if err := insertBlock(ctx, tx, &blocks[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

func insertBlock(ctx context.Context, tx db.Tx, b *packed) error {
	n, err := tx.Exec(ctx, `INSERT INTO audit_blocks (tenant_id, day, last_id, first_id, head, bodies) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id, day, last_id) DO NOTHING`, b.day, b.last, b.first, b.head, b.bodies)
	if err != nil || n == 0 { // an earlier write was committed, and its answer lost
		return err
	}
	marks := slices.Collect(maps.Keys(b.marks))
	var args []any
	for _, in := range markInserts {
		for ; len(marks) >= in.rows; marks = marks[in.rows:] {
			args = args[:0]
			for _, m := range marks[:in.rows] {
				args = append(args, b.day, m.kind, m.value, b.last, b.first, b.marks[m])
			}
			if _, err := tx.Exec(ctx, in.sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// count adds usage unless the batch, or a later one, was added before: a write
// is repeated when the answer to its commit was lost.
func (s dbStore) count(ctx context.Context, tenant tenant.ID, batch int64, usage []usageRow) error {
	return s.d.For(tenant).Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(ctx, `INSERT INTO usage_writers (tenant_id, writer, batch, at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (tenant_id, writer) DO UPDATE SET batch = excluded.batch, at = excluded.at
			WHERE usage_writers.batch < excluded.batch`, s.writer, batch, usage[len(usage)-1].minute)
		if err != nil || n == 0 {
			return err
		}
		return addUsage(ctx, tx, usage)
	})
}

// Many marks are written with one statement. There are few row counts, so that
// every statement is prepared once.
var (
	markInserts = []insert{newInsert(32, 6, insertMark), newInsert(4, 6, insertMark), newInsert(1, 6, insertMark)}
)

func insertMark(values string) string {
	return `INSERT INTO audit_marks (tenant_id, day, kind, value, last_id, first_id, errors) VALUES ` + values
}

// insert is a statement that writes a number of rows.
type insert struct {
	rows int
	sql  string
}

// newInsert returns the statement for a number of rows with the given number of
// arguments each.
func newInsert(rows, args int, text func(values string) string) insert {
	var b strings.Builder
	n := 2
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("($1")
		for range args {
			b.WriteString(",$" + strconv.Itoa(n))
			n++
		}
		b.WriteByte(')')
	}
	return insert{rows, text(b.String())}
}

func (s dbStore) remember(ctx context.Context, tenant tenant.ID, users []string, at int64) error {
	h := s.d.For(tenant)
	type named struct{ id, email string }
	var found []named
	for _, id := range users {
		u, err := user.ByID(ctx, h, user.ID(id))
		if errors.Is(err, user.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		found = append(found, named{string(u.ID), u.Email})
	}
	if len(found) == 0 {
		return nil
	}
	return h.Write(ctx, func(tx db.Tx) error {
		for _, u := range found {
			_, err := tx.Exec(ctx, `INSERT INTO audit_users (tenant_id, email_key, user_id, email, seen_at)
				VALUES ($1, $2, $3, $4, $5)
				ON CONFLICT (tenant_id, email_key, user_id) DO UPDATE SET email = excluded.email, seen_at = excluded.seen_at`,
				user.EmailKey(u.email), u.id, u.email, at)
			if err != nil {
				return err
			}
		}
		return nil
	})
}
