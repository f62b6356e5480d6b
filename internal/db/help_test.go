package db_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
)

const addHost = `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, 0)`

func adds(t *testing.T, host string, then func() error) func(db.Tx) error {
	return func(tx db.Tx) error {
		if _, err := tx.Exec(t.Context(), addHost, host); err != nil || then == nil {
			return err
		}
		return then()
	}
}

// writers returns both ways to write.
func writers(h db.Handle) []func(context.Context, func(db.Tx) error) error {
	return []func(context.Context, func(db.Tx) error) error{h.Write, h.WriteOrdered}
}

func write(t testing.TB, h db.Handle, fn func(db.Tx) error) {
	t.Helper()
	if err := h.Write(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, q db.Querier, sql string, each func(db.Row) error, args ...any) {
	t.Helper()
	if err := q.Query(t.Context(), sql, each, args...); err != nil {
		t.Fatal(err)
	}
}

func table(t testing.TB, d *db.DB, sql string) {
	t.Helper()
	write(t, d.Unscoped("test table"), func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), sql)
		return err
	})
}

// countHosts counts the rows of tenant_hosts.
func countHosts(t testing.TB, d *db.DB) (n int64) {
	t.Helper()
	read(t, d.Unscoped("test"), `SELECT count(*) FROM tenant_hosts`, func(r db.Row) error {
		n = r.Int(0)
		return nil
	})
	return n
}

func bytesType(d *db.DB) string {
	if d.Engine() == db.SQLite {
		return "BLOB"
	}
	return "BYTEA"
}

func jsonType(d *db.DB) string {
	if d.Engine() == db.SQLite {
		return "TEXT"
	}
	return "JSONB"
}

func mustPanic(t *testing.T, with string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if p := recover(); !strings.Contains(fmt.Sprint(p), with) {
			t.Errorf("panic %v, want %q", p, with)
		}
	}()
	fn()
}

// eventually waits for a condition that concurrent work brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
