package prove

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// citusWorker is how pg_ctl is called for the last worker of scripts/prove-citus, without "start" or "stop".
const citusWorker = "GATEHOUSE_CITUS_WORKER"

// A filled PostgreSQL becomes a distributed one and nothing is lost; two nodes work on it, and a
// newer version that migrates it (contract S25).
func TestProveCitusDistribute(t *testing.T) {
	config := dbtest.Citus(t)
	asShipped(t)
	p := begin(t, "CITUS-1", db.Postgres)
	w := bare(t, db.SQLite) // no database of the engine: it has its own
	w.engine = db.Postgres
	w.onPostgres(config.URL)
	w.provision()
	f := newFleet(p, 12)
	f.pause = 5 * time.Millisecond
	n := w.start()
	c := n.client(w.token)
	write(t, f, c, scale(200, 2000))
	if _, words, code := w.run("database", "distribute"); code != 1 || !strings.Contains(words, "in use") {
		p.fail("a database that is served: %d %s", code, words)
	}
	n.terminate()
	if code := n.end(grace); code != 0 {
		p.fail("exit %d: %s", code, n.stderr())
	}
	begun := time.Now()
	if _, words, code := w.run("database", "distribute"); code != 0 || !strings.Contains(words, "records: distributed by tenant") {
		t.Fatalf("distribute: %d %s", code, words)
	}
	p.most("distributed", time.Since(begun))
	if _, words, code := w.run("database", "distribute"); code != 0 || strings.Contains(words, "records") {
		p.fail("distribute again: %d %s", code, words)
	}
	nodes := []*node{w.start(), w.start()}
	verify(p, nodes[0], w, f)
	c = nodes[0].client(w.token)
	c.http.Transport = alternating(strings.TrimPrefix(nodes[0].public, "http://"), strings.TrimPrefix(nodes[1].public, "http://"))
	write(t, f, c, scale(500, 10_000))
	verify(p, nodes[1], w, f)
	w.binary = nextProgram(t)
	newer := w.start() // it migrates the database beside the others
	c.http.Transport = alternating(strings.TrimPrefix(nodes[0].public, "http://"), strings.TrimPrefix(newer.public, "http://"))
	write(t, f, c, scale(500, 10_000))
	verify(p, newer, w, f)
	if kind := one(t, config.URL, `SELECT count(*)::text FROM citus_tables WHERE table_name::text = 'next_release' AND citus_table_type = 'distributed'`); kind != "1" {
		p.fail("the table of the newer version is not distributed")
	}
	p.tried(f.acknowledged())
	for _, n := range append(nodes, newer) {
		n.terminate()
		if code := n.end(grace); code != 0 || n.panicked() {
			p.fail("exit %d: %s", code, n.stderr())
		}
	}
}

// write lets the fleet have so many more changes acknowledged.
func write(t *testing.T, f *fleet, c *client, more int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := f.acknowledged()
	var load sync.WaitGroup
	load.Go(func() { f.load(ctx, c, func() bool { return false }) })
	for begun := time.Now(); f.acknowledged() < begin+more && f.p.sound() && time.Since(begun) < 5*time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	load.Wait()
}

// one returns the value of a query on a database.
func one(t *testing.T, url, sql string) (value string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.QueryRow(t.Context(), sql).Scan(&value)
	if err = errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(sql, err)
	}
	return value
}

// When a worker is lost, its tenants are answered 503 in time, the others go on as if nothing had
// happened, and what was acknowledged is there when it is back (contract S25).
func TestProveCitusLosesAWorker(t *testing.T) {
	pgCtl := strings.Fields(os.Getenv(citusWorker))
	if len(pgCtl) == 0 {
		t.Skip("it needs Citus: scripts/prove-citus")
	}
	config := dbtest.Citus(t)
	asShipped(t)
	p := begin(t, "CITUS-2", db.Postgres)
	w := bare(t, db.SQLite)
	w.engine = db.Postgres
	w.onPostgres(config.URL)
	w.must("database", "distribute")
	servers := strings.Fields(os.Getenv("GATEHOUSE_TEST_CITUS"))
	worker, err := url.Parse(servers[len(servers)-1])
	if err != nil {
		t.Fatal(err)
	}
	// Tenants are put somewhere by their names: one that is on the worker, and one that is not.
	tenants := map[bool]*onWorker{}
	for i := 0; len(tenants) < 2 && i < 40; i++ {
		name := fmt.Sprint("tenant", i)
		port := one(t, config.URL, `SELECT nodeport::text FROM citus_shards WHERE table_name::text = 'tenants' AND shardid = get_shard_id_for_distribution_column('tenants', '`+name+`'::text)`)
		if lost := port == worker.Port(); tenants[lost] == nil {
			w.apply(strings.NewReplacer("tenant: acme", "tenant: "+name, "acme.localhost", name+".localhost").Replace(manifest))
			token := w.must("key", "create", "--tenant", name, "--user", owner, "--name", "prove", "--rate-limit", "100000000")
			tenants[lost] = &onWorker{name: name, host: name + ".localhost", token: strings.TrimSpace(token)}
		}
	}
	if len(tenants) < 2 {
		t.Fatal("all tenants are on one worker")
	}
	n := w.start()
	control := func(what string) {
		if out, err := exec.Command(pgCtl[0], append(pgCtl[1:], what, "-m", "immediate")...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v %s", what, err, out)
		}
	}
	for range scale(1, 5) {
		p.tried(1)
		ctx, cancel := context.WithCancel(t.Context())
		var load sync.WaitGroup
		for _, o := range tenants {
			o.made, o.failed = 0, nil
			for range 4 {
				load.Go(func() { o.create(ctx, p, n) })
			}
		}
		time.Sleep(time.Second)
		control("stop")
		down := time.Now()
		time.Sleep(3 * time.Second)
		control("start")
		back := time.Now()
		for tenants[true].last().Before(back) && time.Since(back) < 20*time.Second {
			time.Sleep(5 * time.Millisecond)
		}
		p.most("recovered", tenants[true].last().Sub(back))
		cancel()
		load.Wait()
		for lost, o := range tenants {
			for _, a := range o.failed {
				if !lost || a.status != http.StatusServiceUnavailable || a.at.Before(down.Add(-5*time.Second)) {
					p.fail("lost %v: %v", lost, a)
				}
			}
			if got := one(t, config.URL, `SELECT count(*)::text FROM records WHERE tenant_id = '`+o.name+`'`); atoi(t, got) < o.all {
				p.fail("%d records were acknowledged, %s are there", o.all, got)
			}
		}
		if len(tenants[true].failed) == 0 {
			p.fail("the worker was lost, and nobody noticed")
		}
	}
	for line := range strings.Lines(n.stdout()) {
		if strings.Contains(line, "server.error") {
			p.fail("%s", line)
		}
	}
	if n.panicked() {
		p.fail("%s", n.stderr())
	}
}

// onWorker is a tenant and what came of creating its records.
type onWorker struct {
	name, host, token string

	mu     sync.Mutex
	all    int // acknowledged, ever
	made   int
	latest time.Time
	failed []*answer
}

func (o *onWorker) last() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// create creates records until ctx ends.
func (o *onWorker) create(ctx context.Context, p *proof, n *node) {
	c := &http.Client{Timeout: patience}
	defer c.CloseIdleConnections()
	for ctx.Err() == nil {
		a, err := o.do(c, n, "POST", contact, `{"first_name":"Ada"}`)
		if err != nil {
			p.fail("%s: %v", o.host, err)
			return
		}
		p.most("slowest", a.at.Sub(a.sent))
		o.mu.Lock()
		if a.status == http.StatusCreated {
			o.all, o.made, o.latest = o.all+1, o.made+1, a.at
		} else {
			o.failed = append(o.failed, a)
		}
		o.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
	}
}

func (o *onWorker) do(c *http.Client, n *node, method, path, body string) (*answer, error) {
	r, err := http.NewRequest(method, n.public+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = o.host
	r.Header.Set("Authorization", "Bearer "+o.token)
	r.Header.Set("Content-Type", "application/json")
	return exchange(c, r)
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
