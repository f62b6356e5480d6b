package db_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/schema"
)

// The index of values is brought into its order: numbers, rows for what is not set,
// rows of ways for a field that is unique and indexed. What is being prepared begins
// anew.
func TestTheIndexOfValuesIsBroughtIntoOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		exec := func(sql string, args ...any) {
			t.Helper()
			if err := d.Unscoped("test").Write(ctx, func(tx db.Tx) error { _, err := tx.Exec(ctx, sql, args...); return err }); err != nil {
				t.Fatal(sql, err)
			}
		}
		exec(`INSERT INTO entities (tenant_id, name, label, sharing, stored_as, controlled_by, lineage) VALUES
			('t', 'deal', 'd', 'private', 'sale', '', ''), ('t', 'line', 'l', 'private', '', 'deal', 'line#3'), ('u', 'deal', 'd', 'private', '', '', ''), ('v', 'deal', 'd', 'private', '', '', '')`)
		for i, f := range []string{"'t', 'deal', 'amount', 'number', 0, 1, 'amount#7'", "'t', 'deal', 'code', 'text', 1, 1, ''", "'t', 'deal', 'mail', 'text', 1, 0, ''",
			"'t', 'deal', 'note', 'text', 0, 0, ''", "'t', 'line', 'deal', 'reference', 0, 0, ''", "'t', 'line', 'n', 'number', 0, 1, ''", "'u', 'deal', 'amount', 'text', 0, 1, ''", "'v', 'deal', 'name', 'text', 0, 1, ''"} {
			exec(fmt.Sprintf(`INSERT INTO fields (tenant_id, entity, name, type, is_unique, is_indexed, index_name, position, required, options, target) VALUES (%s, %d, 0, '[]', '')`, f, i))
		}
		for _, r := range []string{"'t', 'sale', 'r1', 1, 'ada', 'boss'", "'t', 'sale', 'r2', 2, 'ada', ''", "'t', 'line', 'r3', 3, 'ada', ''", "'u', 'deal', 'r4', 4, 'eva', ''", "'v', 'deal', 'r5', 5, 'eva', ''"} {
			exec(`INSERT INTO records (tenant_id, entity, record_id, created_at, owner_id, owner_role, updated_at, created_by, updated_by, version, data) VALUES (` + r + `, 1, 'x', 'x', 1, '{}')`)
		}
		exec(`INSERT INTO shares (tenant_id, entity, record_id, principal, access, record_created_at, created_at, created_by) VALUES ('t', 'sale', 'r2', 'u:eva', 'read', 2, 1, 'x')`)
		exec(`INSERT INTO rule_matches (tenant_id, rule_id, record_created_at) VALUES ('t', 'rule', 2)`)
		exec(`INSERT INTO builds (tenant_id, build_id, work, walk, after_at, top_at, done, total, started_at, beat_at) VALUES ('t', 'b', '{}', 2, 1, 1, 5, 9, 1, 1)`)
		for _, sql := range []string{`CREATE TABLE field_values_old (tenant_id TEXT NOT NULL, entity TEXT NOT NULL, field TEXT NOT NULL, value TEXT NOT NULL,
			reach TEXT NOT NULL, record_created_at BIGINT NOT NULL, is_unique INTEGER NOT NULL)`, `DROP INDEX field_values_unique`} {
			exec(sql)
		}
		for _, v := range []string{
			"'t', 'sale', 'amount#7', '-1.5', '', 1, 0", "'t', 'sale', 'amount#7', '-1.5', 'o:ada', 1, 0", "'t', 'sale', 'amount#7', '-1.5', 'r:boss', 1, 0",
			"'t', 'sale', 'amount#8', '-1.5', '', 1, 0",                                // being prepared
			"'t', 'sale', 'code', 'c', '', 2, 1", "'t', 'sale', 'mail', 'm', '', 1, 1", // unique
			"'t', 'line', 'deal', 'r1', '', 3, 0", "'t', 'sale', 'line#3', '', '', 1, 0", // lineage
			"'t', 'line', 'n', '10', '', 3, 0", "'t', 'line', 'n', '10', 'p:r1', 3, 0",
			"'u', 'deal', 'amount', '10', '', 4, 0", "'u', 'deal', 'amount', '10', 'o:eva', 4, 0", // a text
			"'v', 'deal', 'name', '\U0010FFFFx', '', 5, 0", "'v', 'deal', 'name', '\U0010FFFFx', 'o:eva', 5, 0",
		} {
			exec(`INSERT INTO field_values_old (tenant_id, entity, field, value, reach, record_created_at, is_unique) VALUES (` + v + `)`)
		}
		if err := d.Unscoped("test").Write(ctx, func(tx db.Tx) error { return db.OrderValues(ctx, tx) }); err != nil {
			t.Fatal(err)
		}
		unset := "\U0010FFFF"
		odd, _ := (&schema.Field{Name: "name", Type: schema.Text}).IndexKey(jsontext.Value(`"` + unset + `x"`))
		want := map[string]bool{}
		for _, row := range []string{
			"sale amount#7 4007ffffffffffff '' 1 0", "sale amount#7 4007ffffffffffff 'o:ada' 1 0", "sale amount#7 4007ffffffffffff 'r:boss' 1 0",
			"sale amount#7 " + unset + " '' 2 0", "sale amount#7 " + unset + " 'o:ada' 2 0", "sale amount#7 " + unset + " 's:u:eva' 2 0", "sale amount#7 " + unset + " 'm:rule' 2 0",
			"sale code c '' 2 1", "sale code c 'o:ada' 2 0", "sale code c 's:u:eva' 2 0", "sale code c 'm:rule' 2 0",
			"sale code " + unset + " '' 1 0", "sale code " + unset + " 'o:ada' 1 0", "sale code " + unset + " 'r:boss' 1 0",
			"sale mail m '' 1 1", "line deal r1 '' 3 0", "sale line#3  '' 1 0", "line n c024000000000000 '' 3 0", "line n c024000000000000 'p:r1' 3 0",
			"deal amount 10 '' 4 0", "deal amount 10 'o:eva' 4 0", "deal name " + odd + " '' 5 0", "deal name " + odd + " 'o:eva' 5 0",
		} {
			want[row] = true
		}
		got := map[string]bool{}
		read(t, d.Unscoped("test"), `SELECT entity, field, value, reach, record_created_at, is_unique FROM field_values`, func(r db.Row) error {
			got[fmt.Sprintf("%s %s %s '%s' %d %d", r.Text(0), r.Text(1), r.Text(2), r.Text(3), r.Int(4), r.Int(5))] = true
			return nil
		})
		if !maps.Equal(got, want) {
			for _, row := range slices.Sorted(maps.Keys(got)) {
				if !want[row] {
					t.Errorf("is there: %q", row)
				}
			}
			for _, row := range slices.Sorted(maps.Keys(want)) {
				if !got[row] {
					t.Errorf("is missing: %q", row)
				}
			}
		}
		read(t, d.Unscoped("test"), `SELECT walk, after_at, top_at, done FROM builds`, func(r db.Row) error {
			if r.Int(0) != 0 || r.Int(1) != 0 || r.Int(2) != 3 || r.Int(3) != 0 {
				t.Errorf("the build stands at walk %d, %d of %d", r.Int(0), r.Int(1), r.Int(2))
			}
			return nil
		})
	})
}
