package db_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func TestOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, value := range []string{"first", "second"} {
			stored, err := d.Once(t.Context(), "key", value)
			if err != nil || stored != "first" {
				t.Fatalf("Once(%q) = %q, %v", value, stored, err)
			}
		}
	})
}

func TestNowIsTheClock(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now, err := d.Now(t.Context())
		if err != nil || time.Since(now).Abs() > 5*time.Second || now.Location() != time.UTC {
			t.Fatalf("Now = %v, %v", now, err)
		}
	})
}

func TestTenantIsBound(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, tenant := range []string{"a", "b"} {
			write(t, d.For(db.TenantID(tenant)), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, 0)`, tenant+".example")
				return err
			})
		}
		var hosts []string
		read(t, d.For("b"), `SELECT host FROM tenant_hosts WHERE tenant_id = $1`, func(r db.Row) error {
			hosts = append(hosts, r.Text(0))
			return nil
		})
		if !slices.Equal(hosts, []string{"b.example"}) {
			t.Errorf("b sees %v", hosts)
		}
		mustPanic(t, "not bound to its tenant", func() {
			_ = d.For("b").Query(t.Context(), `SELECT host FROM tenant_hosts`, func(db.Row) error { return nil })
		})
		mustPanic(t, "not bound to its tenant", func() {
			_ = d.For("b").Write(t.Context(), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `DELETE FROM tenant_hosts`)
				return err
			})
		})
		mustPanic(t, "only reads", func() {
			_ = d.For("b").Query(t.Context(), `DELETE FROM tenant_hosts WHERE tenant_id = $1 RETURNING host`, nil)
		})
		mustPanic(t, "reason", func() { d.Unscoped("") })
		mustPanic(t, "tenant id", func() { d.For("") })
	})
}

func TestUnique(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.For("a").Write(t.Context(), func(tx db.Tx) error {
			var err error
			for range 2 {
				_, err = tx.Exec(t.Context(), `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, 'h', 0)`)
			}
			return err
		})
		if !errors.Is(err, db.ErrUnique) {
			t.Fatalf("err = %v", err)
		}
		if n := countHosts(t, d); n != 0 {
			t.Errorf("%d rows left", n)
		}
	})
}

// The settings that make an acknowledged write durable.
func TestSQLiteIsDurable(t *testing.T) {
	d := dbtest.Open(t, db.SQLite)
	write(t, d.Unscoped("test"), func(tx db.Tx) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal"} {
			if err := tx.Query(t.Context(), `PRAGMA `+pragma, func(r db.Row) error {
				if r.Text(0) != want {
					t.Errorf("%s is %s", pragma, r.Text(0))
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close waits for a write that has begun, and starts no other.
func TestCloseWaits(t *testing.T) {
	for _, engine := range dbtest.Engines {
		for i, name := range []string{"Write", "WriteOrdered"} {
			t.Run(string(engine)+"/"+name, func(t *testing.T) {
				c := dbtest.Config(t, engine)
				d, err := db.Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				closed := make(chan error)
				err = writers(d.For("a"))[i](t.Context(), func(tx db.Tx) error {
					go func() { closed <- d.Close() }()
					select {
					case err := <-closed:
						t.Errorf("closed under a write: %v", err)
					case <-time.After(50 * time.Millisecond):
					}
					return adds(t, "h", nil)(tx)
				})
				if err := errors.Join(err, <-closed); err != nil {
					t.Fatal(err)
				}
				if n := countHosts(t, dbtest.OpenConfig(t, c)); n != 1 {
					t.Errorf("%d rows", n)
				}
			})
		}
	}
}

func TestClosed(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			d, err := db.Open(t.Context(), dbtest.Config(t, engine))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.Close(), d.Close()); err != nil {
				t.Fatal(err)
			}
			for _, writer := range writers(d.For("a")) {
				if err := writer(t.Context(), func(db.Tx) error { return nil }); !errors.Is(err, db.ErrUnavailable) {
					t.Errorf("write: %v", err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := d.Ping(ctx); !errors.Is(err, db.ErrUnavailable) {
				t.Errorf("read: %v", err)
			}
		})
	}
}
