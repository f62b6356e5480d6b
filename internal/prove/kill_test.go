package prove

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/db"
)

// A server that is killed at any moment has every change that it acknowledged when it is
// started again, and no partial change.
func TestProveKill9(t *testing.T) {
	asShipped(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "DUR-1", engine)
		const fleetAge = 15 // trials of one database, so that listing it stays quick
		var w *world
		var f *fleet
		for trial := range scale(6, 200) {
			if trial%fleetAge == 0 {
				w = fresh(t, engine)
				f = newFleetOfAllKinds(p, w)
			}
			killOnce(t, p, w, f)
		}
	})
}

func killOnce(t *testing.T, p *proof, w *world, f *fleet) {
	t.Helper()
	p.tried(1)
	n := w.start()
	p.most("ready", n.ready)
	if n.ready > strictly(2*time.Second) {
		p.fail("ready after %s", n.ready)
	}
	before := f.acks
	c := n.client(w.token)
	var killed atomic.Bool
	at := p.between(30*time.Millisecond, time.Duration(scale(500, 1200))*time.Millisecond)
	time.AfterFunc(at, func() { killed.Store(true); n.kill() })
	f.load(context.Background(), c, killed.Load)
	<-n.exited
	c.close()
	p.add("acknowledged", f.acks-before)
	for _, changes := range f.mark(true) {
		p.add("changes", changes)
	}
	if n.panicked() {
		p.fail("panic: %s%s", n.stdout(), n.stderr())
	}
	left := backends(t, w)
	if p.rand.IntN(4) == 0 { // and once more while it starts
		early := w.launch()
		time.Sleep(p.between(0, 60*time.Millisecond))
		early.kill()
	}
	n = w.start()
	p.most("ready", n.ready)
	gone(t, w, left)
	verify(p, n, w, f)
	n.kill()
	if w.engine == db.SQLite {
		integrity(p, filepath.Join(w.dir, db.FileName))
	}
}

// verify compares everything that a node serves with the journals, and makes it the
// writers' new base.
func verify(p *proof, n *node, w *world, f *fleet) {
	p.t.Helper()
	if seen, ids, ok := verifyAt(p, n, w, f, f.mark(true), f.mark(false)); ok {
		f.adopt(seen, ids)
	}
}

// verifyAt compares everything that a node serves with the journals, of which each writer's first low changes
// must be there, and none after high. It returns false if the node does not serve.
func verifyAt(p *proof, n *node, w *world, f *fleet, low, high []int) (seen []state, ids map[string]string, ok bool) {
	p.t.Helper()
	c := n.client(w.token)
	defer c.close()
	list, err := c.all()
	if err != nil {
		p.fail("list: %v", err)
		return nil, nil, false
	}
	seen, ids = f.compare(list, low, high)
	for _, ch := range f.touched(high, 4) {
		agree(p, c, seen, ids, ch.email)
		if ch.number != 0 {
			byScore(p, c, seen, ch)
		}
	}
	return seen, ids, true
}

// agree checks that a record, its unique index and the list agree.
func agree(p *proof, c *client, seen []state, ids map[string]string, email string) {
	p.t.Helper()
	number, there := numberOf(seen, email)
	found, err := c.filtered("email", email)
	if err != nil {
		p.fail("%v", err)
		return
	}
	if there != (len(found) == 1) || len(found) > 1 || there && (*found[0].Score != number || found[0].ID != ids[email]) {
		p.fail("%s: listed %v, by its unique value %v", email, there, found)
	}
	if !there {
		// Its unique value must be free: create a record with it, and delete it again.
		a, err := c.do("POST", contact, values(email, 1))
		if err != nil || a.status != http.StatusCreated {
			p.fail("%s is not there, but making it says %v %v", email, a, err)
			return
		}
		r, _ := a.record() // without an id the DELETE fails
		if a, err = c.do("DELETE", contact+"/"+r.ID, ""); err != nil || a.status != http.StatusOK {
			p.fail("%v %v", a, err)
		}
		return
	}
	a, err := c.do("GET", contact+"/"+ids[email], "")
	if err != nil || a.status != http.StatusOK {
		p.fail("%s is listed, but %v %v", email, a, err)
	}
}

// byScore checks that the index of a plain field finds the record by its present value
// and by no other.
func byScore(p *proof, c *client, seen []state, ch change) {
	p.t.Helper()
	number, there := numberOf(seen, ch.email)
	found, err := c.filtered("score", strconv.FormatInt(ch.number, 10))
	if err != nil {
		p.fail("%v", err)
		return
	}
	if (len(found) == 1) != (there && number == ch.number) {
		p.fail("%s is %d (there: %v), the index has at %d: %v", ch.email, number, there, ch.number, found)
	}
}

func numberOf(seen []state, email string) (int64, bool) {
	for _, s := range seen {
		if n, ok := s[email]; ok {
			return n, true
		}
	}
	return 0, false
}

// backends returns the PostgreSQL server processes that work for the world's database.
// After kill -9 of a node they may still be executing the last request.
func backends(t testing.TB, w *world) (pids []int64) {
	t.Helper()
	if w.url == "" {
		return nil
	}
	ask(t, w.url, `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`, func(n int64) {
		pids = append(pids, n)
	})
	return pids
}

// gone waits until the server processes have ended.
func gone(t testing.TB, w *world, pids []int64) {
	t.Helper()
	for begun := time.Now(); len(pids) > 0 && time.Since(begun) < 10*time.Second; time.Sleep(5 * time.Millisecond) {
		var left int64
		ask(t, w.url, `SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)`, func(n int64) { left = n }, pids)
		if left == 0 {
			return
		}
	}
	if len(pids) > 0 {
		t.Error("PostgreSQL goes on working for a killed node")
	}
}

// ask queries PostgreSQL for numbers.
func ask(t testing.TB, url, sql string, each func(int64), args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, n := range numbers {
		each(n)
	}
}

// integrity runs SQLite's integrity check on a file.
func integrity(p *proof, file string) {
	p.t.Helper()
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		p.fail("open %s: %v", file, err)
		return
	}
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	err = sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check", &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		if line := s.ColumnText(0); line != "ok" {
			p.fail("integrity: %s", line)
		}
		return nil
	}})
	if err != nil {
		p.fail("integrity: %v", err)
	}
}
