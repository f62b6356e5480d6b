package prove

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/db"
)

const (
	window = 250 * time.Millisecond // how much of the audit log kill -9 may lose
)

// requestJournal has the answers that a client got, by request id.
type requestJournal struct {
	mu      sync.Mutex
	answers map[string]*answer
}

func (j *requestJournal) note(a *answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answers[a.header.Get("X-Request-Id")] = a
}

// auditEntry is an entry in the form that the command prints.
type auditEntry struct {
	Time      time.Time       `json:"time"`
	User      string          `json:"user"`
	Auth      string          `json:"auth"`
	Method    string          `json:"method"`
	Path      string          `json:"path"`
	Status    int             `json:"status"`
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
}

// entries reads the audit log. An incomplete entry is a failure.
func (p *proof) entries(w *world) map[string]*auditEntry {
	p.t.Helper()
	all := map[string]*auditEntry{}
	for line := range strings.Lines(w.must("audit", "--tenant", "acme", "--json")) {
		e := &auditEntry{}
		if err := json.Unmarshal([]byte(line), e); err != nil {
			p.fail("an entry is torn: %v: %.200s", err, line)
			continue
		}
		if e.RequestID == "" || e.Status == 0 || e.Method == "" || len(e.Request) < 2 || len(e.Response) < 2 || e.User != owner {
			p.fail("an entry is not whole: %.300s", line)
		}
		if all[e.RequestID] != nil {
			p.fail("two entries of %s", e.RequestID)
		}
		all[e.RequestID] = e
	}
	return all
}

// After SIGTERM, the audit log and the usage figures include every answered request; after
// kill -9, all but those of the last moments.
func TestProveAuditOnSIGTERM(t *testing.T) {
	asShipped(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "LOG-1-term", engine)
		for range scale(2, 20) {
			p.tried(1)
			w, f := fresh(t, engine), newFleet(p, 12)
			n := w.start()
			j := auditedLoad(p, w, n, f, (*node).terminate)
			if code := n.end(grace); code != 0 {
				p.fail("exit %d: %s", code, n.stderr())
			}
			entries := p.entries(w)
			for id, a := range j.answers {
				if e := entries[id]; e == nil {
					p.fail("no entry of %s", a)
				} else if e.Status != a.status || e.Method != a.method || e.Path != a.path {
					p.fail("%s has the entry %s %s %d", a, e.Method, e.Path, e.Status)
				}
			}
			if extra := len(entries) - len(j.answers); extra > f.cut {
				p.fail("%d entries for %d answers and %d requests cut off", len(entries), len(j.answers), f.cut)
			}
			if counted := usage(t, w); counted != int64(len(entries)) {
				p.fail("usage counts %d requests, there are %d", counted, len(entries))
			}
			p.add("answered", len(j.answers))
			p.add("cut_off", f.cut)
		}
	})
}

func TestProveAuditOnKill9(t *testing.T) {
	asShipped(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "LOG-1-kill", engine)
		answered, lost := 0, 0
		for trial := range scale(2, 40) {
			p.tried(1)
			w, f := fresh(t, engine), newFleet(p, 12)
			if trial%2 == 1 { // few requests, so that no full batch is written early
				f = newFleet(p, 2)
				f.pause = 10 * time.Millisecond
			}
			n := w.start()
			var at atomic.Int64
			j := auditedLoad(p, w, n, f, func(n *node) { at.Store(time.Now().UnixNano()); n.kill() })
			gone(t, w, backends(t, w))
			entries := p.entries(w)
			killed := time.Unix(0, at.Load())
			missing := 0
			for id, a := range j.answers {
				if entries[id] != nil {
					continue
				}
				missing++
				age := killed.Sub(a.at)
				p.most("oldest_missing", age)
				if age > strictly(window) {
					p.fail("answered %s before the kill, and no entry: %s", age, a)
				}
			}
			answered, lost = answered+len(j.answers), lost+missing
		}
		p.add("answered", answered)
		p.add("missing", lost)
		if lost == answered {
			p.fail("none of %d answered requests has an entry", answered)
		}
	})
}

// auditedLoad runs a load that ends a random while later, and returns its journal.
func auditedLoad(p *proof, w *world, n *node, f *fleet, end func(*node)) *requestJournal {
	p.t.Helper()
	c := n.client(w.token)
	defer c.close()
	j := &requestJournal{answers: map[string]*answer{}}
	c.note = j.note
	var ending atomic.Bool
	time.AfterFunc(p.between(500*time.Millisecond, 1200*time.Millisecond), func() { ending.Store(true); end(n) })
	f.load(context.Background(), c, ending.Load)
	n.end(grace)
	if n.panicked() {
		p.fail("panic: %s%s", n.stdout(), n.stderr())
	}
	return j
}

// usage returns the number of requests in the rollups.
func usage(t *testing.T, w *world) (total int64) {
	t.Helper()
	const sql = `SELECT CAST(coalesce(sum(requests), 0) AS BIGINT) FROM usage_minutes WHERE tenant_id = 'acme'`
	if w.engine == db.Postgres {
		ask(t, w.url, sql, func(n int64) { total = n })
		return total
	}
	conn, err := sqlite.OpenConn(filepath.Join(w.dir, db.FileName), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		total = s.ColumnInt64(0)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return total
}
