package tenant_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/tenant"
)

// old are changes of the configuration, as an example of rows with a time.
var old = tenant.Old{
	Some: `SELECT 1 FROM config_changes WHERE tenant_id = $1 AND changed_at < $2`,
	Delete: []string{`DELETE FROM config_changes WHERE tenant_id = $1 AND change_id IN (SELECT change_id FROM config_changes
		WHERE tenant_id = $1 AND changed_at < $2 ORDER BY changed_at LIMIT 3)`},
	Args: []any{1000},
}

// manyTenants stores 2,100 tenants. Every hundredth has seven old rows and a new one.
func manyTenants(t *testing.T, d *db.DB) (with []tenant.ID) {
	t.Helper()
	err := d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
		for i := range 2100 {
			id := tenant.ID(fmt.Sprintf("t%04d", i))
			if _, err := tx.Exec(t.Context(), `INSERT INTO tenants (tenant_id, display_name, base_url, settings, version, created_at, updated_at)
				VALUES ($1, '', '', '{}', 1, 1, 1)`, string(id)); err != nil {
				return err
			}
			if i%100 != 99 {
				continue
			}
			with = append(with, id)
			for at := range 8 {
				if _, err := tx.Exec(t.Context(), `INSERT INTO config_changes (tenant_id, change_id, changed_at, actor, action, kind, name, before_value, after_value)
					VALUES ($1, $2, $3, '', '', '', '', NULL, '')`, string(id), fmt.Sprint("c", at), 994+at); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return with
}

func TestHavingFindsTheTenants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		with := manyTenants(t, d)
		for _, c := range []struct {
			before int
			want   []tenant.ID
		}{{1000, with}, {994, nil}, {995, with}} {
			got, err := tenant.Having(t.Context(), d, old.Some, c.before)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("before %d: %v, %v; want %v", c.before, got, err, c.want)
			}
		}
		if ids, err := tenant.Having(t.Context(), d, `SELECT 1 FROM config_changes WHERE tenant_id = $1 AND nonsense = $2`, 1); err == nil {
			t.Errorf("a text that fails: %v", ids)
		}
	})
}

// A tenant that takes too long is taken for one that has something, and holds up no other.
func TestHavingGoesOnBehindASlowTenant(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	d := dbtest.OpenConfig(t, c)
	if d.Dialect().Distributed {
		t.Skip("Citus takes no question that names no table")
	}
	manyTenants(t, d)
	c.URL += "&statement_timeout=150ms"
	got, err := tenant.Having(t.Context(), dbtest.OpenConfig(t, c),
		`SELECT CASE WHEN $1 LIKE '%999' THEN 1 ELSE 0 END FROM pg_sleep(CASE WHEN $1 = 't0500' THEN 10 ELSE 0 END)`)
	if want := []tenant.ID{"t0500", "t0999", "t1999"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestExpireDeletesWhatIsOld(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		with := manyTenants(t, d)
		wrong := old
		wrong.Some = strings.Replace(old.Some, "changed_at", "nonsense", 1)
		if err := tenant.Expire(t.Context(), d, wrong, old); err == nil || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("the error of a kind: %v", err)
		}
		left := map[string]int64{}
		err := d.Unscoped("test").Query(t.Context(), `SELECT tenant_id, count(*), min(changed_at) FROM config_changes GROUP BY tenant_id`, func(r db.Row) error {
			if left[r.Text(0)] = r.Int(1); r.Int(2) < 1000 {
				t.Errorf("%s has a row of %d", r.Text(0), r.Int(2))
			}
			return nil
		})
		if err != nil || len(left) != len(with) {
			t.Fatalf("%d of %d tenants have rows: %v", len(left), len(with), err)
		}
		for id, n := range left {
			if n != 2 { // 1000 and 1001
				t.Errorf("%s has %d rows", id, n)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := tenant.Expire(ctx, d, old); err == nil {
			t.Error("an ended context is no error")
		}
	})
}
