package db_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

const aDay = db.Day(20779) // 2026-11-22

func TestADayIsADayInUTC(t *testing.T) {
	midnight := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]db.Day{
		midnight: aDay, midnight.Add(-1): aDay - 1, midnight.Add(24*time.Hour - 1): aDay,
		midnight.In(time.FixedZone("east", 3600)): aDay, time.Unix(-1, 0): -1, time.Unix(0, 0): 0,
	} {
		if got := db.DayOf(at); got != want {
			t.Errorf("%v is of day %d, want %d", at, got, want)
		}
	}
	if aDay.String() != "2026-11-22" || !aDay.Start().Equal(midnight) {
		t.Errorf("%v begins at %v", aDay, aDay.Start())
	}
}

// putMark adds a row of a tenant to a day.
func putMark(ctx context.Context, d *db.DB, tenant db.TenantID, day db.Day, value string) error {
	return d.Days().Write(ctx, tenant, day, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO audit_marks (tenant_id, day, kind, value, last_id, first_id, errors)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`, int64(day), "k", value, "z", "a", 0)
		return err
	})
}

// marked returns the values that a tenant has in a day.
func marked(t testing.TB, d *db.DB, tenant db.TenantID, day db.Day) (list []string) {
	t.Helper()
	if err := readMarks(t.Context(), d, tenant, day, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func readMarks(ctx context.Context, d *db.DB, tenant db.TenantID, day db.Day, into *[]string) error {
	return d.Days().Read(ctx, tenant, day, func(q db.Querier) error {
		return q.Query(ctx, `SELECT value FROM audit_marks WHERE tenant_id = $1 AND day = $2 ORDER BY value`, func(r db.Row) error {
			*into = append(*into, r.Text(0))
			return nil
		}, int64(day))
	})
}

func put(t testing.TB, d *db.DB, tenant db.TenantID, day db.Day, value string) {
	t.Helper()
	if err := putMark(t.Context(), d, tenant, day, value); err != nil {
		t.Fatal(err)
	}
}

func days(t testing.TB, d *db.DB) []db.Day {
	t.Helper()
	list, err := d.Days().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestDaysAreApartFromOneAnotherAndTenantsToo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if list := days(t, d); len(list) != 0 {
			t.Errorf("a fresh database has %v", list)
		}
		if got := marked(t, d, "a", aDay); got != nil {
			t.Errorf("a day that is not there has %v", got)
		}
		for n := range db.Day(6) { // more than are kept open
			put(t, d, "a", aDay+n, fmt.Sprint("a", int(n)))
			put(t, d, "b", aDay+n, fmt.Sprint("b", int(n)))
		}
		put(t, d, "a", aDay, "again")
		if got := marked(t, d, "a", aDay); !slices.Equal(got, []string{"a0", "again"}) {
			t.Errorf("%v", got)
		}
		if list := days(t, d); len(list) != 6 || list[0] != aDay+5 || list[5] != aDay {
			t.Errorf("%v", list)
		}
		if err := d.Days().Drop(t.Context(), aDay+1); err != nil {
			t.Fatal(err)
		}
		if err := d.Days().Drop(t.Context(), aDay+100); err != nil {
			t.Errorf("a day that is not there: %v", err)
		}
		if list := days(t, d); len(list) != 5 || slices.Contains(list, aDay+1) {
			t.Errorf("%v", list)
		}
		for n := range db.Day(6) {
			want := 1
			if n == 1 {
				want = 0
			}
			if got := marked(t, d, "b", aDay+n); len(got) != want {
				t.Errorf("day %d has %v", n, got)
			}
		}
		put(t, d, "a", aDay+1, "anew") // a dropped day can be created again
		if got := marked(t, d, "a", aDay+1); !slices.Equal(got, []string{"anew"}) {
			t.Errorf("%v", got)
		}
		failed := errors.New("no")
		err := d.Days().Write(t.Context(), "a", aDay, func(tx db.Tx) error {
			if _, err := tx.Exec(t.Context(), `DELETE FROM audit_marks WHERE tenant_id = $1 AND day = $2`, int64(aDay)); err != nil {
				return err
			}
			return failed
		})
		if got := marked(t, d, "a", aDay); !errors.Is(err, failed) || len(got) != 2 {
			t.Errorf("%v: %v", err, got)
		}
	})
}

// Several nodes create a day at the same time, and drop one while others write.
func TestManyNodesMakeAndDropDaysAtOnce(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	var nodes []*db.DB
	for range 4 {
		nodes = append(nodes, dbtest.OpenConfig(t, c))
	}
	for round := range db.Day(5) {
		day := aDay + round
		var wait sync.WaitGroup
		for n, d := range nodes {
			for i := range 4 {
				wait.Go(func() {
					if err := putMark(t.Context(), d, "a", day, fmt.Sprint(n, i)); err != nil {
						t.Error(err)
					}
				})
			}
			if round > 1 {
				wait.Go(func() {
					if err := d.Days().Drop(t.Context(), day-2); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wait.Wait()
		if got := marked(t, nodes[0], "a", day); len(got) != 16 {
			t.Errorf("%v", got)
		}
	}
	if list := days(t, nodes[0]); len(list) != 2 {
		t.Errorf("left: %v", list)
	}
	// This node still assumes that the dropped day exists: its first write may
	// return ErrBusy, and the next one creates the day again.
	if err := putMark(t.Context(), nodes[1], "a", aDay, "late"); err != nil && !errors.Is(err, db.ErrBusy) {
		t.Error(err)
	}
	put(t, nodes[1], "a", aDay, "later")
}

// Several nodes drop the same day at the same time. PostgreSQL looks up the
// parent of a partition before it locks it, so drops that are not kept apart
// fail with "could not find tuple for parent of relation".
func TestManyNodesDropADayAtOnce(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	var nodes []*db.DB
	for range 4 {
		nodes = append(nodes, dbtest.OpenConfig(t, c))
	}
	for round := range db.Day(40) {
		day := aDay + round
		put(t, nodes[0], "a", day, "m")
		start := make(chan struct{})
		var wait sync.WaitGroup
		for _, d := range nodes {
			wait.Go(func() {
				<-start
				if err := d.Days().Drop(t.Context(), day); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wait.Wait()
	}
	if list := days(t, nodes[0]); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// Drop never waits long for the lock on the tables, because other statements
// queue behind it. If a reader holds the lock, the drop gives up and nothing
// else does.
func TestADropKeepsNobodyWaiting(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	d, other := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	put(t, d, "a", aDay, "old")
	put(t, d, "a", aDay+1, "new")
	reading, end := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		err := other.Days().Write(t.Context(), "a", aDay+1, func(tx db.Tx) error { // it holds the lock until it ends
			var list []string
			err := tx.Query(t.Context(), `SELECT value FROM audit_marks WHERE tenant_id = $1`, func(r db.Row) error {
				list = append(list, r.Text(0))
				return nil
			})
			close(reading)
			<-end
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-reading
	dropping := make(chan error)
	go func() { dropping <- d.Days().Drop(t.Context(), aDay) }()
	for i := range 20 {
		put(t, d, "a", aDay+1, fmt.Sprint("meanwhile", i)) // would take up to the lock's timeout of 10 s if the drop waited for it
	}
	if err := <-dropping; !errors.Is(err, db.ErrBusy) {
		t.Errorf("the drop ended with %v", err)
	}
	close(end)
	wait.Wait()
	if err := d.Days().Drop(t.Context(), aDay); err != nil || len(days(t, d)) != 1 {
		t.Errorf("%v", err)
	}
}

func TestADamagedDayIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"garbage": func(file string) error {
			return os.WriteFile(file, []byte(strings.Repeat("garbage ", 5000)), 0o600)
		},
		"cut": func(file string) error { return os.Truncate(file, 5000) },
	} {
		t.Run(name, func(t *testing.T) {
			c := dbtest.Config(t, db.SQLite)
			file := filepath.Join(c.Dir, db.DaysFolder, aDay.String()+".db")
			begun := dbtest.OpenConfig(t, c)
			put(t, begun, "a", aDay, "lost")
			put(t, begun, "a", aDay-1, "kept")
			if err := begun.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(file); err != nil {
				t.Fatal(err)
			}
			d := dbtest.OpenConfig(t, c)
			var list []string
			if err := readMarks(t.Context(), d, "a", aDay, &list); err == nil {
				t.Errorf("a damaged day reads as %v", list)
			}
			if err := putMark(t.Context(), d, "a", aDay, "new"); !errors.Is(err, db.ErrUnavailable) || !strings.Contains(err.Error(), aDay.String()) {
				t.Errorf("the first write: %v", err)
			}
			put(t, d, "a", aDay, "new")
			if got := marked(t, d, "a", aDay); !slices.Equal(got, []string{"new"}) {
				t.Errorf("%v", got)
			}
			if got := marked(t, d, "a", aDay-1); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("%v", got)
			}
			if aside, _ := filepath.Glob(file + ".damaged-*"); len(aside) != 1 {
				t.Errorf("set aside: %v", aside)
			}
			if list := days(t, d); len(list) != 2 {
				t.Errorf("%v", list)
			}
			if err := d.Days().Drop(t.Context(), aDay); err != nil {
				t.Fatal(err)
			}
			if left, _ := filepath.Glob(file + "*"); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A day's file that is deleted or replaced while a server runs is created again:
// other processes can read what is written from then on.
func TestAMissingDayIsBegunAnew(t *testing.T) {
	c := dbtest.Config(t, db.SQLite)
	d, reader := dbtest.OpenConfig(t, c), dbtest.OpenConfig(t, c)
	put(t, d, "a", aDay, "before")
	if got := marked(t, reader, "a", aDay); len(got) != 1 { // while it is open for writing elsewhere
		t.Errorf("%v", got)
	}
	if err := os.Remove(filepath.Join(c.Dir, db.DaysFolder, aDay.String()+".db")); err != nil {
		t.Fatal(err)
	}
	if got := marked(t, reader, "a", aDay); len(got) != 0 {
		t.Errorf("%v", got)
	}
	put(t, d, "a", aDay, "after")
	if got := marked(t, reader, "a", aDay); !slices.Equal(got, []string{"after"}) {
		t.Errorf("%v", got)
	}
}

func TestABackupHasTheDaysOrNot(t *testing.T) {
	c := dbtest.Config(t, db.SQLite)
	d := dbtest.OpenConfig(t, c)
	put(t, d, "a", aDay, "one")
	put(t, d, "a", aDay+1, strings.Repeat("x", 3<<20)) // packed in several parts
	put(t, d, "a", aDay+2, "damaged")
	if err := os.WriteFile(filepath.Join(c.Dir, db.DaysFolder, (aDay+3).String()+".db"), []byte(strings.Repeat("garbage ", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	with, without := filepath.Join(dir, "with"), filepath.Join(dir, "without")
	left, err := d.Backup(t.Context(), with, true)
	if err != nil || len(left) != 1 || !strings.Contains(left[0].Error(), (aDay+3).String()) {
		t.Errorf("%v %v", left, err)
	}
	if _, err := d.Backup(t.Context(), without, false); err != nil {
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 2 {
		t.Errorf("beside the backups: %v", names)
	}
	for file, want := range map[string]int{with: 3, without: 0} {
		if err := db.Check(t.Context(), file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		to := filepath.Join(t.TempDir(), "data")
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		main := filepath.Join(to, db.FileName)
		if err := os.WriteFile(main, content, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := db.Unpack(t.Context(), main, filepath.Join(to, db.DaysFolder))
		if err != nil || n != want {
			t.Errorf("%s: %d days, %v", file, n, err)
		}
		if info, err := os.Stat(main); err != nil || info.Size() > 1<<20 {
			t.Errorf("the main file is as large as the days: %d", info.Size())
		}
		restored := dbtest.OpenConfig(t, db.Config{Dir: to})
		if got := days(t, restored); len(got) != want {
			t.Errorf("%v", got)
		}
		if got := marked(t, restored, "a", aDay); want > 0 && !slices.Equal(got, []string{"one"}) {
			t.Errorf("%v", got)
		}
		if got := marked(t, restored, "a", aDay+1); want > 0 && (len(got) != 1 || len(got[0]) != 3<<20) {
			t.Errorf("%d values", len(got))
		}
	}
}
