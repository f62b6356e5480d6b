package db_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"zombiezen.com/go/sqlite"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

const (
	benchRows = 20000
	insertRow = `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by,
		updated_by, version, data) VALUES ($1, 'contact', $2, 'o', 'r', $3, $3, 'o', 'o', 1, $4)`
	pointRead = `SELECT owner_id, version, data FROM records WHERE tenant_id = $1 AND entity = $2 AND record_id = $3`
	document  = `{"name":"Ana Example","email":"ana@example.com","city":"Lisbon","note":"a note of some length, as notes are","age":42}`
)

func fill(b *testing.B, d *db.DB) {
	b.Helper()
	write(b, d.For("a"), func(tx db.Tx) error {
		for i := range benchRows {
			if _, err := tx.Exec(b.Context(), insertRow, key(i), i, document); err != nil {
				return err
			}
		}
		return nil
	})
	table(b, d, `ANALYZE records`) // the test server does not do it by itself
}

func key(i int) string { return fmt.Sprintf("%020d", i*7919%benchRows) }

// BenchmarkPointRead reads one record by its key: through the handle with a
// plain context and with one that can end, and by the bare driver.
func BenchmarkPointRead(b *testing.B) {
	for _, engine := range dbtest.Engines {
		c := dbtest.Config(b, engine)
		d := dbtest.OpenConfig(b, c)
		h := d.For("a")
		fill(b, d)
		ctx, cancel := context.WithCancel(b.Context())
		for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": ctx} {
			b.Run(fmt.Sprintf("%s/%s", engine, name), func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				each := func(r db.Row) error { n += len(r.Bytes(2)) + int(r.Int(1)); return nil }
				id := key(77)
				for b.Loop() {
					if err := h.Query(ctx, pointRead, each, "contact", id); err != nil || n == 0 {
						b.Fatal(err)
					}
				}
			})
		}
		cancel()
		if engine == db.SQLite {
			b.Run("sqlite/bare", func(b *testing.B) { bare(b, filepath.Join(c.Dir, db.FileName)) })
		}
	}
}

// BenchmarkReadsTogether reads one record for each of many callers of one tenant.
func BenchmarkReadsTogether(b *testing.B) {
	for _, engine := range dbtest.Engines {
		b.Run(string(engine), func(b *testing.B) {
			d := dbtest.Open(b, engine)
			fill(b, d)
			h := d.For("a")
			b.SetParallelism(16)
			b.ResetTimer()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				id := key(77)
				for pb.Next() {
					if err := h.Query(context.Background(), pointRead, func(r db.Row) error { _ = r.Bytes(2); return nil }, "contact", id); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func bare(b *testing.B, file string) {
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	st, err := conn.Prepare(db.SQLiteText(pointRead))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	id := key(77)
	n := 0
	for b.Loop() {
		st.BindText(1, "a")
		st.BindText(2, "contact")
		st.BindText(3, id)
		for {
			row, err := st.Step()
			if err != nil {
				b.Fatal(err)
			}
			if !row {
				break
			}
			n += st.ColumnReader(2).Len() + st.ColumnInt(1)
		}
		_, _ = st.Reset(), st.ClearBindings()
	}
}

// BenchmarkWrite stores one record for each caller.
func BenchmarkWrite(b *testing.B) {
	for _, engine := range dbtest.Engines {
		for _, callers := range []int{1, 8, 32, 64} {
			b.Run(fmt.Sprintf("%s/%d", engine, callers), func(b *testing.B) {
				d := dbtest.Open(b, engine)
				h, before := d.For("a"), d.Stats().Commits
				next := make(chan int, 1024)
				go func() {
					defer close(next)
					for i := range b.N {
						next <- i
					}
				}()
				b.ReportAllocs()
				b.ResetTimer()
				done := make(chan error)
				for range callers {
					go func() {
						var err error
						for i := range next {
							err = h.WriteOrdered(context.Background(), func(tx db.Tx) error {
								_, err := tx.Exec(context.Background(), insertRow, fmt.Sprintf("%020d", i), i, document)
								return err
							})
						}
						done <- err
					}()
				}
				for range callers {
					if err := <-done; err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(d.Stats().Commits-before)/float64(b.N), "commits/op")
			})
		}
	}
}
