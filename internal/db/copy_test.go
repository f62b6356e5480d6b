package db_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// awkward are texts that one of the forms in between could change.
var awkward = []string{"", " ", `\`, `\N`, `\.`, "a\tb\nc\rd\be\ff\vg", `\x00`, `"'`, "é 𝒳 \U0010FFFF", "NULL", "\x01\x7f"}

// filled returns a configuration of an SQLite database with rows in every table, also in
// those that are added later.
func filled(t *testing.T) db.Config {
	t.Helper()
	c := db.Config{Dir: t.TempDir()} // not of the template, whose copies have one identity
	d, err := db.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []db.TenantID{"acme", "umbrella"} {
		fillTables(t, d, tenant, 23)
		for _, day := range []db.Day{day, day + 3} {
			err := db.OfDay(t.Context(), d, day, func(of *db.DB) error {
				fillDay(t, of, tenant, day)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	err = d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
		for _, sql := range []string{`UPDATE records SET data = '{}'`, `UPDATE users SET custom_data = '{}'`} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(t.Context(), `INSERT INTO installation (name, value) VALUES ('master_key_check', $1)`, rand.Text())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = d.For("acme").Write(t.Context(), func(tx db.Tx) error {
		for i, text := range awkward {
			_, err := tx.Exec(t.Context(), `INSERT INTO config_changes (tenant_id, change_id, changed_at, actor, action, kind, name, before_value, after_value)
				VALUES ($1, $2, $3, $4, $4, $4, $4, $5, $4)`, fmt.Sprint("w", i, text), int64(-1)<<63+int64(i), text, nil)
			if err != nil {
				return err
			}
		}
		for i, doc := range []string{
			`{}`, `{"b":1,"a":[1,2.5,-0.000001,true,null,{"x":"\u00e9\n\t\\\"/"}],"":"","Zz":9007199254740992}`, `{"n":100000000000000000000}`, `{"k": "spaces  stay", "t":"\u007f"}`,
		} {
			_, err := tx.Exec(t.Context(), `INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by, updated_by, version, data)
				VALUES ($1, 'doc', $2, '', '', $3, 0, '', '', 1, $4)`, fmt.Sprint("r", i), i, doc)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err = errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}

// fillDay stores blocks and marks of a day, among them bytes of every value.
func fillDay(t *testing.T, of *db.DB, tenant db.TenantID, day db.Day) {
	t.Helper()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	err := of.For(tenant).Write(t.Context(), func(tx db.Tx) error {
		for i := range 9 {
			_, err := tx.Exec(t.Context(), `INSERT INTO audit_blocks (tenant_id, day, last_id, first_id, head, bodies) VALUES ($1, $2, $3, $3, $4, $5)`,
				int64(day), fmt.Sprint("b", i), all[:i], all)
			if err != nil {
				return err
			}
			_, err = tx.Exec(t.Context(), `INSERT INTO audit_marks (tenant_id, day, kind, value, last_id, first_id, errors) VALUES ($1, $2, 'u', $3, $3, $3, 1)`,
				int64(day), fmt.Sprint("b", i))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dump returns all rows of an SQLite database and its days as lines, by another way than
// the copy reads them.
func dump(t *testing.T, c db.Config) (lines []string) {
	t.Helper()
	d, err := db.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	of := func(d *db.DB) {
		h := d.Unscoped("test")
		tables := map[string][]string{}
		err := h.Query(t.Context(), `SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
			func(r db.Row) error { tables[r.Text(0)] = append(tables[r.Text(0)], r.Text(1)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			if table == "schema_migrations" {
				continue // the instants of the migrations
			}
			var parts []string
			for _, column := range tables[table] {
				if table == "records" && column == "data" || table == "users" && column == "custom_data" {
					column = `(SELECT group_concat(fullkey || '=' || type || quote(atom), ';') FROM (SELECT * FROM json_tree(` + column + `) ORDER BY fullkey))`
				}
				parts = append(parts, `typeof(`+column+`) || quote(`+column+`)`)
			}
			where := ""
			if table == "installation" {
				where = ` WHERE name <> 'copy'`
			}
			err := h.Query(t.Context(), `SELECT `+strings.Join(parts, ` || ' ' || `)+` FROM `+table+where+` ORDER BY 1`, func(r db.Row) error {
				lines = append(lines, table+": "+r.Text(0))
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	of(d)
	days, err := d.Days().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, day := range days {
		lines = append(lines, day.String())
		if err := db.OfDay(t.Context(), d, day, func(d *db.DB) error { of(d); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return lines
}

// copies copies from one configuration to another.
func copies(t *testing.T, from, to db.Config, restart bool, progress func(db.CopyProgress) error) (tables []db.CopiedTable, err error) {
	t.Helper()
	from.Name, to.Name, to.Target = "gatehouse copy of a test", "gatehouse copy of a test", true
	from.Serve, to.Serve = from.URL == "", to.URL == ""
	source, err := db.Open(t.Context(), from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := db.Open(t.Context(), to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	c := &db.Copy{From: source, To: target, Restart: restart, Progress: progress}
	db.SmallCopy(c, 10)
	return c.Run(t.Context())
}

func TestACopyThereAndBackIsEqual(t *testing.T) {
	first, second, third := filled(t), dbtest.Empty(t), db.Config{Dir: t.TempDir()}
	there, err := copies(t, first, second, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	back, err := copies(t, second, third, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range there {
		if !c.Equal() || c != back[i] {
			t.Errorf("%+v became %+v", c, back[i])
		}
		if c.Rows == 0 {
			t.Errorf("%s has no rows: the test does not show that they are copied", c.Table)
		}
	}
	want, got := dump(t, first), dump(t, third)
	if len(want) < 1000 {
		t.Fatalf("only %d rows", len(want))
	}
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			t.Fatalf("line %d: %.300q, want %.300q", i, got[min(i, len(got)-1)], want[min(i, len(want)-1)])
		}
	}
	spaced := 0 // JSON has no spaces, as the program stores it
	err = dbtest.OpenConfig(t, third).Unscoped("test").Query(t.Context(), `SELECT 1 FROM records WHERE data <> json(data)`, func(db.Row) error { spaced++; return nil })
	if err != nil || spaced > 0 {
		t.Errorf("%d records have JSON with spaces, %v", spaced, err)
	}
	if _, err := copies(t, first, second, false, nil); !errors.Is(err, db.ErrOccupied) || !strings.Contains(err.Error(), "finished and verified") {
		t.Errorf("once more: %v", err)
	}
	if _, err := copies(t, first, second, true, nil); !errors.Is(err, db.ErrOccupied) {
		t.Errorf("once more, with --restart: %v", err)
	}
}

// A copy that ends after any batch goes on behind it, and until it has ended no server opens
// the target.
func TestAnInterruptedCopyGoesOn(t *testing.T) {
	lite, post := filled(t), dbtest.Empty(t)
	for _, way := range []struct{ from, to db.Config }{{lite, post}, {post, db.Config{Dir: t.TempDir()}}} {
		stop := errors.New("stop")
		copied, seen, interruptions := map[string]int64{}, map[string]bool{}, 0
		for after := 1; ; after = after*3/2 + 1 {
			batches, latest := 0, map[string]int64{}
			tables, err := copies(t, way.from, way.to, false, func(p db.CopyProgress) error {
				if p.Verify {
					seen["verify"] = true
					return nil
				}
				latest[p.Table] = p.Rows
				if seen[p.Table] = seen[p.Table] || p.Resumed; !p.Done {
					if batches++; batches == after {
						return stop
					}
				}
				return nil
			})
			for table, rows := range latest {
				copied[table] += rows
			}
			if err == nil {
				for _, c := range tables {
					if c.Table != "installation" && copied[c.Table] != c.Rows {
						t.Errorf("%s: %d rows were copied in all, it has %d", c.Table, copied[c.Table], c.Rows)
					}
				}
				break
			}
			if !errors.Is(err, stop) {
				t.Fatal(err)
			}
			interruptions++
			if d, err := db.Open(t.Context(), way.to); !errors.Is(err, db.ErrUnfinished) || d != nil {
				t.Fatalf("a target that is unfinished is opened: %v", err)
			}
		}
		if interruptions < 5 || !seen["records"] || !seen["verify"] {
			t.Errorf("%d interruptions, resumed %v", interruptions, seen)
		}
		d, err := db.Open(t.Context(), way.to)
		if err != nil {
			t.Fatalf("a finished copy: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// What differs is named, and the target stays closed until the copy is made anew.
func TestACopyThatDiffersIsRefused(t *testing.T) {
	lite, post := filled(t), dbtest.Empty(t)
	breaks := func(sql string) func(db.CopyProgress) error {
		done := false
		return func(p db.CopyProgress) error {
			if !p.Verify || done {
				return nil
			}
			done = true
			d, err := db.Open(t.Context(), db.Config{URL: post.URL, Target: true})
			if err != nil {
				return err
			}
			return errors.Join(d.Unscoped("test").Write(t.Context(), func(tx db.Tx) error {
				n, err := tx.Exec(t.Context(), sql)
				if err == nil && n == 0 {
					err = errors.New("nothing was broken")
				}
				return err
			}), d.Close())
		}
	}
	// The verification's snapshot is older than its first batch, so what is broken is found by the next run.
	for i, sql := range []string{
		`UPDATE api_keys SET expires_at = expires_at + 1 WHERE tenant_id = 'acme' AND key_id = (SELECT max(key_id) FROM api_keys WHERE tenant_id = 'acme')`,
		`DELETE FROM shares WHERE tenant_id = 'acme' AND record_id = (SELECT min(record_id) FROM shares WHERE tenant_id = 'acme')`,
		`UPDATE audit_blocks SET bodies = head WHERE last_id = 'b3'`,
		`UPDATE records SET data = '{"b":2}' WHERE entity = 'doc'`,
	} {
		stop := errors.New("stop")
		spoil := breaks(sql)
		_, err := copies(t, lite, post, i > 0, func(p db.CopyProgress) error {
			if err := spoil(p); err != nil {
				return err
			}
			if p.Verify {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		table := strings.Fields(strings.NewReplacer("UPDATE ", "", "DELETE FROM ", "").Replace(sql))[0]
		tables, err := copies(t, lite, post, false, nil)
		if !errors.Is(err, db.ErrDiffers) || !strings.Contains(err.Error(), table) {
			t.Errorf("%s: %v", table, err)
		}
		for _, c := range tables {
			if c.Equal() == strings.HasPrefix(c.Table, table) {
				t.Errorf("%s is broken: %+v", table, c)
			}
		}
		if d, err := db.Open(t.Context(), post); !errors.Is(err, db.ErrUnfinished) || d != nil {
			t.Fatalf("a target that differs is opened: %v", err)
		}
	}
	if _, err := copies(t, lite, post, true, nil); err != nil {
		t.Errorf("made anew: %v", err)
	}
}

func TestACopyRefuses(t *testing.T) {
	lite := filled(t)
	stop := errors.New("stop")
	t.Run("a target with tenants", func(t *testing.T) {
		post := dbtest.Config(t, db.Postgres)
		d := dbtest.OpenConfig(t, db.Config{URL: post.URL, Name: "another program"})
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO tenants (tenant_id, display_name, base_url, settings, version, created_at, updated_at) VALUES ($1, '', '', '', 1, 1, 1)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := copies(t, lite, post, true, nil); !errors.Is(err, db.ErrOccupied) {
			t.Error(err)
		}
	})
	t.Run("a target with other rows", func(t *testing.T) {
		post := dbtest.Config(t, db.Postgres)
		d := dbtest.OpenConfig(t, db.Config{URL: post.URL, Name: "another program"})
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO tenant_people (tenant_id, version) VALUES ($1, 1)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := copies(t, lite, post, false, nil); !errors.Is(err, db.ErrOccupied) || !strings.Contains(err.Error(), "tenant_people") {
			t.Error(err)
		}
	})
	t.Run("the unfinished copy of another database", func(t *testing.T) {
		post := dbtest.Empty(t)
		if _, err := copies(t, lite, post, false, func(db.CopyProgress) error { return stop }); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if _, err := copies(t, filled(t), post, false, nil); !errors.Is(err, db.ErrOccupied) || !strings.Contains(err.Error(), "of another database") {
			t.Error(err)
		}
	})
	t.Run("a source that is served", func(t *testing.T) {
		c := lite
		c.Serve = true
		dbtest.OpenConfig(t, c)
		if _, err := copies(t, lite, dbtest.Empty(t), false, nil); !errors.Is(err, db.ErrServed) {
			t.Error(err)
		}
	})
	t.Run("a PostgreSQL that others use", func(t *testing.T) {
		post := dbtest.Empty(t)
		d := dbtest.OpenConfig(t, post)
		if err := d.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := copies(t, lite, post, false, nil); !errors.Is(err, db.ErrInUse) {
			t.Errorf("a target: %v", err)
		}
		if _, err := copies(t, post, db.Config{Dir: t.TempDir()}, false, nil); !errors.Is(err, db.ErrInUse) {
			t.Errorf("a source: %v", err)
		}
	})
	t.Run("a source that is written to", func(t *testing.T) {
		c := filled(t)
		wrote := false
		_, err := copies(t, c, dbtest.Empty(t), false, func(p db.CopyProgress) error {
			if wrote {
				return nil
			}
			wrote = true
			d, err := db.Open(t.Context(), c) // as a command does, which takes no lock
			if err != nil {
				return err
			}
			return errors.Join(d.For("late").Write(t.Context(), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `INSERT INTO tenant_people (tenant_id, version) VALUES ($1, 1)`)
				return err
			}), d.Close())
		})
		if !errors.Is(err, db.ErrInUse) || !strings.Contains(err.Error(), "written to") {
			t.Error(err)
		}
	})
	t.Run("two of one engine", func(t *testing.T) {
		if _, err := copies(t, lite, db.Config{Dir: t.TempDir()}, false, nil); err == nil || !strings.Contains(err.Error(), "both sqlite") {
			t.Error(err)
		}
	})
}

// TestACopyTakesEveryTable compares the tables of a copy with those of each engine.
func TestACopyTakesEveryTable(t *testing.T) {
	lite, post := dbtest.Open(t, db.SQLite), dbtest.Open(t, db.Postgres)
	names, err := db.PlannedTables(t.Context(), lite, post)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, d := range []*db.DB{lite, post} {
		columns, err := db.TenantColumns(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for table := range columns {
			want[table] = true
		}
	}
	err = db.OfDay(t.Context(), lite, day, func(of *db.DB) error {
		columns, err := db.TenantColumns(t.Context(), of)
		for table := range columns {
			want[table] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Sort(names); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("copied are %v, the databases have %v", names, slices.Sorted(maps.Keys(want)))
	}
}

func TestCanonicalJSON(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":2}`, `{"b": 2, "a": 1}`, `{"a":3,"b":2,"a":1}`},
		{`[100, -1.50, 0]`, `[1e2,-1.5,-0.0]`, `[1.00E+2, -15e-1, 0e9]`},
		{`"\u00e9\/"`, `"é/"`},
		{`[0.001]`, `[1e-3]`},
	} {
		for _, text := range same[1:] {
			a, err1 := db.CanonicalJSON(same[0])
			b, err2 := db.CanonicalJSON(text)
			if a != b || err1 != nil || err2 != nil {
				t.Errorf("%s: %s, %s: %s", same[0], a, text, b)
			}
		}
	}
	seen := map[string]string{}
	for _, text := range []string{`1`, `-1`, `10`, `0.1`, `0`, `null`, `true`, `false`, `"1"`, `"null"`, `[]`, `{}`, `[1]`, `{"":1}`, `[1,2]`, `[2,1]`, `[[1],2]`, `9007199254740993`, `9007199254740992`} {
		form, err := db.CanonicalJSON(text)
		if err != nil || seen[form] != "" {
			t.Errorf("%s and %s have the form %s, %v", text, seen[form], form, err)
		}
		seen[form] = text
	}
}
