package records_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
)

// PostgreSQL plans the statements of a write well before the tables are analyzed: it
// looks up what they name and reads no other rows.
func TestPlansWithoutStatistics(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	h := acme(t, d)
	for i := range 300 {
		h.create(h.as("sam"), "contact", fmt.Sprintf(`{"stage":"new","score":%d}`, i%3))
	}
	for _, c := range []struct {
		sql, want string
		args      []any
	}{
		{`SELECT version FROM records WHERE tenant_id = $1 AND entity = $2 AND created_at = $3`, "using records_pkey on records", []any{"contact", 7}},
		{`UPDATE records SET version = version + 1 WHERE tenant_id = $1 AND entity = $2 AND created_at = $3`, "using records_pkey on records", []any{"contact", 7}},
		{records.DeleteOfFour, `(field = 'score'::text) AND (reach = 'd'::text) AND (value = '1'::text) AND (record_created_at = '7'::bigint))`, []any{"contact", 7, "score", "1", "a", "b", "c", "d"}},
	} {
		var plan []string
		err := d.For(h.tenant).Write(t.Context(), func(tx db.Tx) error {
			return tx.Query(t.Context(), "EXPLAIN "+c.sql, func(r db.Row) error { plan = append(plan, r.Text(0)); return nil }, c.args...)
		})
		if text := strings.Join(plan, "\n"); err != nil || !strings.Contains(text, c.want) || strings.Contains(text, "Seq Scan") || strings.Contains(text, "Filter") {
			t.Errorf("%v: %s\n%s\nwant %s", err, c.sql, text, c.want)
		}
	}
}

// Values of unique fields are looked up by their whole keys before the tables are
// analyzed: an upsert among many records reads no others.
func TestUniqueValuesAreLookedUpWithoutStatistics(t *testing.T) {
	d := dbtest.Open(t, db.Postgres)
	h := acme(t, d)
	for i := range 300 {
		h.create(h.as("sam"), "contact", fmt.Sprintf(`{"stage":"new","score":%d}`, i%3))
	}
	q := d.For(h.tenant)
	for sql, n := range map[string]int{records.SelectTaken(q): 1, records.SelectTakenAny(q): records.LookedUp} {
		var plan []string
		args := []any{"contact", "score"}
		for i := range n {
			args = append(args, fmt.Sprint(i))
		}
		err := q.Query(t.Context(), "EXPLAIN "+sql, func(r db.Row) error { plan = append(plan, r.Text(0)); return nil }, args...)
		text := strings.Join(plan, "\n")
		if err != nil || strings.Contains(text, "Join Filter") || strings.Contains(text, "ANY (") {
			t.Errorf("%v: %s\n%s", err, sql, text)
		}
		for _, want := range []string{"AND (value = ", "AND (created_at = "} {
			if !strings.Contains(text, want) {
				t.Errorf("expected an index condition with %s:\n%s", want, text)
			}
		}
	}
}
