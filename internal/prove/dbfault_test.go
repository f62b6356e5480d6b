package prove

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// The bounds of what a node does when its database fails.
const (
	mostHang     = 10 * time.Second // of a request
	mostRecovery = 2 * time.Second  // from the database's return to an acknowledged change
	mostUntruth  = time.Second      // of /readyz
)

// dbFault is one way in which the database fails.
type dbFault struct {
	name   string
	strike func() // returns when the database has failed
	heal   func() // returns when it is back
	lasts  time.Duration
	ready  int    // what /readyz must say meanwhile; 0: whatever it likes, if the fault is an instant
	word   string // that /readyz says, "" for any
	reads  bool   // must succeed meanwhile
	writes bool   // must succeed meanwhile
	short  bool   // "make test" has it
}

// When the database fails, no request hangs, nothing that was acknowledged is lost, what is said not
// to have been done was not done, /readyz tells the truth, and the node recovers by itself.
func TestProveDatabaseFaults(t *testing.T) {
	asShipped(t)
	together(t)
	s := startPostgresIn(t, inMemory)
	s.sql(t, `CREATE ROLE gate LOGIN`, `CREATE DATABASE gate OWNER gate`)
	proxy := newProxy(t, fmt.Sprintf("127.0.0.1:%d", s.port))
	w := bare(t, db.Postgres)
	w.onPostgres("postgres://gate@" + proxy.address() + "/gate?sslmode=disable")
	w.provision()
	n := w.start()
	long := time.Duration(scale(1500, 12_000)) * time.Millisecond
	short := time.Duration(scale(500, 3000)) * time.Millisecond
	cutOff := func() {
		s.sql(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'gate'`)
	}
	for _, f := range []dbFault{
		{name: "frozen", strike: s.freeze, heal: s.thaw, lasts: long, ready: 503, short: true},
		{name: "killed", strike: s.kill, heal: func() { s.start(t) }, lasts: short, ready: 503},
		{name: "terminated", strike: cutOff, heal: func() {}, ready: 0},
		{
			name:   "read-only",
			strike: func() { s.sql(t, `ALTER SYSTEM SET default_transaction_read_only = on`, `SELECT pg_reload_conf()`) },
			heal: func() {
				s.sql(t, `SET default_transaction_read_only = off`, `ALTER SYSTEM RESET default_transaction_read_only`, `SELECT pg_reload_conf()`)
			},
			lasts: short, ready: 200, word: "ready, database read-only", reads: true, short: true,
		},
		{
			name: "full", strike: func() { s.sql(t, `ALTER ROLE gate CONNECTION LIMIT 0`) },
			heal: func() { s.sql(t, `ALTER ROLE gate CONNECTION LIMIT -1`) }, lasts: short, ready: 200, word: "ready", reads: true, writes: true,
		},
		{
			name: "full, none left", strike: func() { s.sql(t, `ALTER ROLE gate CONNECTION LIMIT 0`); cutOff() },
			heal: func() { s.sql(t, `ALTER ROLE gate CONNECTION LIMIT -1`) }, lasts: short, ready: 503, short: true,
		},
		{
			name: "delayed", strike: func() { proxy.delay.Store(int64(200 * time.Millisecond)) }, heal: func() { proxy.delay.Store(0) },
			lasts: long, ready: 200, word: "ready", reads: true, writes: true,
		},
		{
			name: "cut off", strike: func() { proxy.swallows.Store(true) }, heal: func() { proxy.swallows.Store(false); proxy.cut() },
			lasts: long, ready: 503,
		},
	} {
		if !proving && !f.short {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			p := begin(t, "DB-"+strings.ReplaceAll(f.name, " ", "-"), db.Postgres)
			fleet := newFleet(p, 12)
			fleet.trusts = true
			empty(t, n, w)
			for range scale(1, 5) {
				p.tried(1)
				f.once(t, p, n, w, fleet)
				verify(p, n, w, fleet)
			}
		})
	}
	if !n.running() || n.panicked() {
		t.Errorf("the node did not stay: %s%s", n.stdout(), n.stderr())
	}
}

// empty deletes the records of other fleets, whose writers have the same names.
func empty(t *testing.T, n *node, w *world) {
	t.Helper()
	c := n.client(w.token)
	defer c.close()
	list, err := c.all()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if a, err := c.do("DELETE", contact+"/"+r.ID, ""); err != nil || a.status != http.StatusOK {
			t.Fatalf("%v %v", a, err)
		}
	}
}

// once has the database fail under load.
func (f *dbFault) once(t *testing.T, p *proof, n *node, w *world, fleet *fleet) {
	t.Helper()
	acks, busy, unknown := fleet.acks, fleet.busy, fleet.open
	l := loadDatabase(t, p, n, w, fleet)
	time.Sleep(p.between(300*time.Millisecond, 500*time.Millisecond))
	f.strike()
	struck := time.Now()
	if f.ready != 0 {
		l.expect(f.ready, f.word, struck, "truth")
	}
	l.reads.Store(0)
	l.writes.Store(0)
	time.Sleep(time.Until(struck.Add(f.lasts)))
	for f.reads && l.reads.Load() == 0 || f.writes && l.writes.Load() == 0 {
		if time.Since(struck) > patience {
			p.fail("%s: %d reads and %d writes succeeded in %s", f.name, l.reads.Load(), l.writes.Load(), patience)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.heal()
	healed := time.Now()
	l.recovered(healed)
	l.expect(200, "ready", healed, "ready")
	time.Sleep(200 * time.Millisecond)
	l.end()
	p.add("acknowledged", fleet.acks-acks)
	p.add("answered_503", fleet.busy-busy)
	p.add("unknown", fleet.open-unknown)
}

// databaseLoad is what uses a node while its database fails.
type databaseLoad struct {
	p             *proof
	n             *node
	reads, writes atomic.Int64 // that succeeded
	last          atomic.Int64 // when the latest acknowledged change was sent
	end           func()
}

func loadDatabase(t *testing.T, p *proof, n *node, w *world, fleet *fleet) *databaseLoad {
	t.Helper()
	l := &databaseLoad{p: p, n: n}
	c := n.client(w.token)
	c.note = l.note
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { fleet.load(ctx, c, func() bool { return false }) })
	for i := range 4 {
		path := []string{contact + "?limit=5", "/public/v1/me"}[i%2]
		wait.Go(func() {
			for ctx.Err() == nil {
				if a, err := c.do("GET", path, ""); err != nil {
					p.fail("GET %s: %v", path, err)
				} else if a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
					p.fail("%s", a)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	l.end = func() {
		cancel()
		wait.Wait()
		c.close()
	}
	return l
}

func (l *databaseLoad) note(a *answer) {
	took := a.at.Sub(a.sent)
	l.p.most("slowest", took)
	if took > strictly(mostHang) {
		l.p.fail("after %s: %s", took, a)
	}
	switch {
	case a.status/100 == 2 && a.method == http.MethodGet:
		l.reads.Add(1)
	case a.status/100 == 2:
		l.writes.Add(1)
		l.last.Store(max(l.last.Load(), a.sent.UnixNano()))
	case a.status == http.StatusServiceUnavailable && (a.code() != "OVERLOADED" || a.header.Get("Retry-After") == ""):
		l.p.fail("Retry-After %q: %s", a.header.Get("Retry-After"), a)
	}
}

// expect waits until /readyz says what is true since an instant.
func (l *databaseLoad) expect(status int, word string, since time.Time, figure string) {
	for {
		got, said := l.n.readiness()
		took := time.Since(since)
		if got == status && (word == "" || said == word) {
			l.p.most(figure, took)
			if took > strictly(mostUntruth) {
				l.p.fail("/readyz says %d %s only after %s", status, word, took)
			}
			return
		}
		if took > patience {
			l.p.fail("/readyz says %d %q for %s, expected %d %q", got, said, took, status, word)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// recovered waits for a change that was sent after the database was back.
func (l *databaseLoad) recovered(back time.Time) {
	for l.last.Load() < back.UnixNano() && time.Since(back) < patience {
		time.Sleep(2 * time.Millisecond)
	}
	took := time.Since(back)
	l.p.most("recovered", took)
	if took > strictly(mostRecovery) {
		l.p.fail("no change was acknowledged for %s after the database was back", took)
	}
}

// When the primary is killed or frozen and its standby takes its place, nodes whose URL names
// both follow; commands that only read run against the standby before.
func TestProvePromotion(t *testing.T) {
	asShipped(t)
	together(t)
	how := []string{"frozen", "killed"}
	if !proving {
		how = how[:1]
	}
	for _, how := range how {
		t.Run(how, func(t *testing.T) {
			p := begin(t, "DB-promoted-"+how, db.Postgres)
			for range scale(1, 3) {
				p.tried(1)
				promoteOnce(t, p, how)
			}
		})
	}
}

func promoteOnce(t *testing.T, p *proof, how string) {
	t.Helper()
	first := startPostgresIn(t, inMemory)
	second := first.standby(t)
	w := bare(t, db.Postgres)
	w.onPostgres(fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable&target_session_attrs=read-write", first.port, second.port))
	w.provision()
	onStandby(t, p, w, second)
	n := w.start()
	defer n.kill()
	fleet := newFleet(p, 12)
	fleet.trusts = true
	l := loadDatabase(t, p, n, w, fleet)
	time.Sleep(p.between(300*time.Millisecond, 500*time.Millisecond))
	if how == "frozen" {
		first.freeze()
	} else {
		first.kill()
	}
	struck := time.Now()
	l.expect(503, "database unavailable", struck, "truth")
	time.Sleep(time.Until(struck.Add(time.Duration(scale(500, 3000)) * time.Millisecond)))
	// As with any promotion, the standby must not wait for one of its own.
	second.sql(t, `ALTER SYSTEM SET synchronous_standby_names = ''`, `SELECT pg_reload_conf()`)
	if out, err := second.run("pg_ctl", "promote", "-w", "-s", "-D", "data"); err != nil {
		t.Fatalf("promote: %v: %s", err, out)
	}
	back := time.Now()
	l.recovered(back)
	l.expect(200, "ready", back, "ready")
	time.Sleep(200 * time.Millisecond)
	l.end()
	p.add("acknowledged", fleet.acks)
	p.add("answered_503", fleet.busy)
	p.add("unknown", fleet.open)
	verify(p, n, w, fleet)
	if !n.running() || n.panicked() {
		p.fail("the node did not stay: %s%s", n.stdout(), n.stderr())
	}
	first.kill()
}

// onStandby runs commands that only read against the standby.
func onStandby(t *testing.T, p *proof, w *world, s *postgresServer) {
	t.Helper()
	url := w.url
	w.url = s.url
	defer func() { w.url = url }()
	for _, args := range [][]string{{"tenant", "list"}, {"export", "--tenant", "acme"}, {"records", "export", "--tenant", "acme", "--entity", "contact"}} {
		if _, words, code := w.run(args...); code != 0 {
			p.fail("%s against a standby: exit %d: %s", args, code, words)
		}
	}
	if _, words, code := w.run("key", "create", "--tenant", "acme", "--user", owner, "--name", "x"); code != 1 || !strings.Contains(words, "read-only") {
		p.fail("key create against a standby: exit %d: %s", code, words)
	}
}
