//go:build !race

package records_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// onPostgres returns how many rows PostgreSQL touches for the statements.
func (h *house) onPostgres(list []statement) (rows int) {
	for _, st := range list {
		err := h.d.For(h.tenant).Query(context.Background(), "EXPLAIN (ANALYZE, TIMING OFF) "+st.sql, func(row db.Row) error {
			line := row.Text(0)
			if m := actualRows.FindStringSubmatch(line); m != nil {
				n, _ := strconv.ParseFloat(m[1], 64)
				loops, _ := strconv.Atoi(m[2])
				rows += int(n * float64(loops))
			}
			if m := removedRows.FindStringSubmatch(line); m != nil {
				n, _ := strconv.Atoi(m[1])
				rows += n
			}
			return nil
		}, st.args...)
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return rows
}

var (
	actualRows  = regexp.MustCompile(`actual rows=([0-9.]+) loops=(\d+)`)
	removedRows = regexp.MustCompile(`Rows Removed by .*: (\d+)`)
	parameter   = regexp.MustCompile(`\$(\d+)`)
)

// rowCounter is a connection to a SQLite file that counts every row that a
// statement looks at: each table is hidden by a view whose only condition is a
// function that counts. SQLite merges the views into the statement, so that it
// uses its indexes as it does without them.
type rowCounter struct {
	t    *testing.T
	conn *sqlite.Conn
	rows int
}

func newRowCounter(t *testing.T, dir string) *rowCounter {
	conn, err := sqlite.OpenConn(filepath.Join(dir, db.FileName), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &rowCounter{t: t, conn: conn}
	err = conn.CreateFunction("looked_at", &sqlite.FunctionImpl{NArgs: 1, Scalar: func(sqlite.Context, []sqlite.Value) (sqlite.Value, error) {
		c.rows++
		return sqlite.IntegerValue(1), nil
	}})
	var views []string
	if err == nil {
		err = sqlitex.Execute(conn, `SELECT name FROM pragma_table_list l WHERE schema = 'main' AND type = 'table'
			AND EXISTS (SELECT 1 FROM pragma_table_info(l.name) WHERE name = 'tenant_id')`, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
			name := s.ColumnText(0)
			views = append(views, "CREATE TEMP VIEW "+name+" AS SELECT * FROM main."+name+" WHERE looked_at(tenant_id)")
			return nil
		}})
	}
	for _, view := range views {
		if err == nil {
			err = sqlitex.Execute(conn, view, nil)
		}
	}
	if err != nil || len(views) == 0 {
		t.Fatalf("%d views, %v", len(views), err)
	}
	return c
}

// count returns how many rows SQLite looks at for a tenant's statements.
func (c *rowCounter) count(tenant tenant.ID, list []statement) int {
	c.rows = 0
	for _, st := range list {
		if err := c.run(st.sql, append([]any{string(tenant)}, st.args...)); err != nil {
			c.t.Fatalf("%v: %s", err, st.sql)
		}
	}
	return c.rows
}

func (c *rowCounter) run(sql string, args []any) error {
	stmt, _, err := c.conn.PrepareTransient(parameter.ReplaceAllString(sql, "?$1"))
	if err != nil {
		return err
	}
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			stmt.BindText(i+1, v)
		case int:
			stmt.BindInt64(i+1, int64(v))
		case int64:
			stmt.BindInt64(i+1, v)
		default:
			err = fmt.Errorf("parameter %d is a %T", i+1, v)
		}
	}
	for more := err == nil; more && err == nil; {
		more, err = stmt.Step()
	}
	return errors.Join(err, stmt.Finalize())
}

// The cost of a filtered list depends on what its viewer sees: with ten
// times as many hidden matches neither engine looks at more rows. Every fourth question is asked, by
// chance which; all with GATEHOUSE_PROVE.
func TestProveAFilterDoesNotTellWhatIsHidden(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			d := dbtest.OpenConfig(t, config)
			few, many := seers(t, d, "few"), seers(t, d, "many")
			few.viewing()
			many.viewing()
			few.scatter(500)
			many.scatter(5_000)
			count := touched(t, d, config)
			filteredCosts(t, few, many, count)
		})
	}
}

// touched returns a function that counts the rows that statements of a tenant touch.
func touched(t *testing.T, d *db.DB, config db.Config) func(h *house, list []statement) int {
	t.Helper()
	if config.URL == "" {
		counter := newRowCounter(t, config.Dir)
		return func(h *house, list []statement) int { return counter.count(h.tenant, list) }
	}
	err := d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error { // the test server does not do it by itself
		_, err := tx.Exec(t.Context(), `ANALYZE`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(h *house, list []statement) int { return h.onPostgres(list) }
}

// A sorted page costs the same wherever it is in the list, also among many records
// with one value.
func TestASortedPageCostsTheSameEverywhere(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			d := dbtest.OpenConfig(t, config)
			h := acme(t, d)
			for i := range 2_000 {
				h.create(h.as("sam"), "contact", fmt.Sprintf(`{"name":"a","stage":"new","score":%d}`, i%3))
			}
			count := touched(t, d, config)
			for _, by := range []string{"score", "-score", "created_at"} {
				for _, name := range []string{"sam", "olivia"} { // one way, and all records
					q, least, most := records.Query{Limit: 50, Sort: sortedBy(by)}, math.MaxInt, 0
					for range 30 {
						n := count(h, h.read(name, func(s *records.Session) {
							p, err := s.List(t.Context(), "contact", q)
							if err != nil || p.Count != 50 {
								t.Fatal(p.Count, err)
							}
							q.Cursor = p.Next
						}))
						least, most = min(least, n), max(most, n)
					}
					if most > 2*least {
						t.Errorf("%s by %s: pages touch from %d to %d rows", name, by, least, most)
					}
				}
			}
		})
	}
}

// filteredCosts compares the costs of lists in two tenants for viewers who see
// the same records.
func filteredCosts(t *testing.T, few, many *house, count func(h *house, list []statement) int) {
	won, one := records.Filter{Field: "stage", Value: "won"}, records.Filter{Field: "score", Value: "1"}
	some := []records.Filter{{Field: "stage", Op: "in", List: []string{"won", "lost"}}}
	named := records.Filter{Field: "name", Op: "ne", Value: "nobody"}
	for _, name := range append(slices.Clone(seenBy), "vera") {
		for about, q := range map[string]records.Query{
			"no filter": {}, "one filter": {Filter: []records.Filter{won}}, "two filters": {Filter: []records.Filter{won, one}}, "a list of values": {Filter: some},
			"a range": {Filter: []records.Filter{{Field: "score", Op: "gte", Value: "1"}}}, "an index and a test": {Filter: []records.Filter{won, named}},
			"since":  {Filter: []records.Filter{{Field: "created_at", Op: "gt", Value: "2020-01-01T00:00:00Z"}}},
			"groups": {Or: [][]records.Filter{{won, named}, {one}}},
			"sorted": {Sort: []records.Sort{{Field: "score", Desc: true}}}, "sorted by two": {Sort: []records.Sort{{Field: "stage"}, {Field: "score", Desc: true}}},
			"oldest first": {Sort: []records.Sort{{Field: "created_at"}}}, "sorted without an index": {Sort: []records.Sort{{Field: "name"}}},
			"filtered and sorted": {Filter: []records.Filter{won}, Sort: []records.Sort{{Field: "score"}}},
			"a word":              {Search: "pump"}, "words": {Search: "pump north"}, "the beginning of a word": {Search: "pum*"}, "a word and a filter": {Search: "pump", Filter: []records.Filter{one}},
			"a word, sorted": {Search: "pump", Sort: []records.Sort{{Field: "score"}}}, "the beginning of a word, sorted": {Search: "pum*", Sort: []records.Sort{{Field: "score"}}},
			"a word, oldest first": {Search: "north", Sort: []records.Sort{{Field: "created_at"}}}, "a word, sorted without an index": {Search: "north", Sort: []records.Sort{{Field: "name"}}},
			"a range, sorted": {Filter: []records.Filter{{Field: "score", Op: "lte", Value: "1"}}, Sort: []records.Sort{{Field: "score"}}},
		} {

			for _, limit := range []int{7, 50, 0} {
				if os.Getenv("GATEHOUSE_PROVE") == "" && rand.IntN(4) > 0 {
					continue
				}
				list := func(s *records.Session) {
					q.Limit = limit
					page, err := s.List(t.Context(), "contact", q)
					if err != nil || page.Count != min(limit, 20) {
						t.Fatalf("%s, %s: %d records, %v", name, about, page.Count, err)
					}
				}
				if limit == 0 {
					list = func(s *records.Session) {
						if n, err := s.Count(t.Context(), "contact", q); err != nil || n != (records.Count{N: 20}) {
							t.Fatalf("%s, %s: counts %v, %v", name, about, n, err)
						}
					}
				}
				a, b := count(few, few.read(name, list)), count(many, many.read(name, list))
				slack := a / 4
				if name == "wanda" && (limit == 0 || q.Sort != nil) { // a count, and a list that is put in order, first looks at some hundred records in order, of which 1,000 hidden ones may have fewer
					slack += 5 * records.MaxLimit
				}
				if a < min(limit, 20) || b > a+slack {
					t.Errorf("%s, %s by %d: %d rows among 1,000 hidden, %d among 20,000", name, about, limit, a, b)
				}
			}
		}
	}
}
