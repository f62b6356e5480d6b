package db_test

import (
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// notByTenant are the keys and indexes that do not begin with tenant_id, with the reason.
var notByTenant = map[string]string{
	"schema_migrations pkey": "tells of the database, not of a tenant",
	"installation pkey":      "as schema_migrations",
	"housekeeping pkey":      "nodes agree on work for all tenants",
	"tenant_hosts pkey":      "the host is what the tenant is found by, and belongs to one tenant",
}

// TestEachKeyBeginsWithTheTenant checks, on both engines, the keys and indexes
// that the migrations created, including those of a day's database (lock 4).
func TestEachKeyBeginsWithTheTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := 0
		used := map[string]bool{}
		look := func(d *db.DB) {
			keys, err := db.Keys(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				seen++
				if len(k.Columns) > 0 && k.Columns[0] == "tenant_id" {
					continue
				}
				name := k.Table + " pkey"
				if !k.Primary {
					name = k.Name + " (" + strings.Join(k.Columns, ", ") + ")"
				}
				if notByTenant[name] == "" {
					t.Errorf("%s of table %s: the first column is not tenant_id: %v", name, k.Table, k.Columns)
				}
				used[name] = true
			}
		}
		look(d)
		if d.Engine() == db.SQLite {
			if err := db.OfDay(t.Context(), d, day, func(of *db.DB) error { look(of); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if seen < 30 {
			t.Errorf("only %d keys were found", seen)
		}
		for name := range notByTenant {
			if !used[name] {
				t.Errorf("%s is on the list and not there", name)
			}
		}
	})
}
