package audit

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// NewRecorder starts a recorder over a database; Close ends it, and must come
// before the database's own Close.
func NewRecorder(d *db.DB, clk clock.Clock, opts Options) *Recorder {
	return newRecorder(dbStore{d}, clk, opts)
}

type dbStore struct{ d *db.DB }

func (dbStore) lasting(err error) bool {
	return errors.Is(err, db.ErrFull) || errors.Is(err, db.ErrUnavailable) || errors.Is(err, db.ErrBusy) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (s dbStore) write(ctx context.Context, tenant string, entries []row, usage []usageRow, retry bool) error {
	if len(entries) == 0 && len(usage) == 0 {
		return nil
	}
	return s.d.For(tenant).Write(ctx, func(tx db.Tx) error {
		added, err := insertEntries(ctx, tx, entries)
		if err != nil {
			return err
		}
		if retry && len(entries) > 0 && added == 0 {
			return nil // the first write was committed, and its answer lost
		}
		return addUsage(ctx, tx, usage)
	})
}

// Entries and usage rows are written many to a statement. The counts are few,
// so that every statement is prepared once.
var (
	entryInserts = []insert{newInsert(64, 13, insertEntry), newInsert(8, 13, insertEntry), newInsert(1, 13, insertEntry)}
	usageInserts = []insert{newInsert(16, 11, upsertUsage), newInsert(1, 11, upsertUsage)}
)

func insertEntry(values string) string {
	return `INSERT INTO audit_log (tenant_id, entry_id, at, user_id, auth, method, path, endpoint, status, ip,
		duration_us, request_id, request, response) VALUES ` + values + ` ON CONFLICT (tenant_id, entry_id) DO NOTHING`
}

func upsertUsage(values string) string {
	return `INSERT INTO usage_minutes (tenant_id, minute, endpoint, requests, errors, latency_us,
		le_5, le_25, le_100, le_500, le_2500, slower) VALUES ` + values + `
		ON CONFLICT (tenant_id, minute, endpoint) DO UPDATE SET
		requests = usage_minutes.requests + excluded.requests, errors = usage_minutes.errors + excluded.errors,
		latency_us = usage_minutes.latency_us + excluded.latency_us,
		le_5 = usage_minutes.le_5 + excluded.le_5, le_25 = usage_minutes.le_25 + excluded.le_25,
		le_100 = usage_minutes.le_100 + excluded.le_100, le_500 = usage_minutes.le_500 + excluded.le_500,
		le_2500 = usage_minutes.le_2500 + excluded.le_2500, slower = usage_minutes.slower + excluded.slower`
}

// insert is a statement that writes a number of rows.
type insert struct {
	rows int
	sql  string
}

// newInsert makes the statement for a number of rows of some arguments each.
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

func insertEntries(ctx context.Context, tx db.Tx, entries []row) (added int64, err error) {
	var args []any
	for _, in := range entryInserts {
		for ; len(entries) >= in.rows; entries = entries[in.rows:] {
			args = args[:0]
			for i := range entries[:in.rows] {
				e := &entries[i]
				args = append(args, e.id, e.at, e.user, e.auth, e.method, e.path, e.endpoint, e.status, e.ip,
					e.durationMicros, e.requestID, e.request, e.response)
			}
			n, err := tx.Exec(ctx, in.sql, args...)
			if err != nil {
				return 0, err
			}
			added += n
		}
	}
	return added, nil
}

func addUsage(ctx context.Context, tx db.Tx, usage []usageRow) error {
	var args []any
	for _, in := range usageInserts {
		for ; len(usage) >= in.rows; usage = usage[in.rows:] {
			args = args[:0]
			for i := range usage[:in.rows] {
				u := &usage[i]
				args = append(args, u.minute, u.endpoint, u.requests, u.errors, u.latencyMicros)
				for _, n := range u.buckets {
					args = append(args, n)
				}
			}
			if _, err := tx.Exec(ctx, in.sql, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s dbStore) remember(ctx context.Context, tenant string, users []string, at int64) error {
	h := s.d.For(tenant)
	type named struct{ id, email string }
	var found []named
	for _, id := range users {
		u, err := user.ByID(ctx, h, id)
		if errors.Is(err, user.ErrUnknown) {
			continue
		}
		if err != nil {
			return err
		}
		found = append(found, named{u.ID, u.Email})
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
