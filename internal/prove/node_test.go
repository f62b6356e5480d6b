package prove

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
)

// manifest is the manifest of the tenant of these tests, with the audit log on.
const manifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: true}
unauthenticated_per_ip_per_minute: 1000000
entities:
  - name: contact
    fields:
      - {name: first_name, type: text, required: true}
      - {name: email, type: text, unique: true}
      - {name: score, type: number, indexed: true}
      - {name: extra, type: json}
roles: [{name: sales}]
permission_sets:
  - name: sales
    entities:
      contact: {create: true, read: true, update: true, delete: true}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [sales]}
  - {email: rita@acme.example, name: Rita Reader, permission_sets: [sales]}
`

const (
	host    = "acme.localhost"
	owner   = "olivia@acme.example"
	contact = "/public/v1/data/contact"
)

// world is a database and the settings for starting the program on it.
type world struct {
	t      testing.TB
	engine db.Engine
	dir    string // the data folder, unused on PostgreSQL
	url    string
	env    []string
	binary string          // the program
	under  func(*exec.Cmd) // if set, changes a command before it starts
	token  string          // of the tenant's owner
	nodes  atomic.Int64
	logs   string
}

// bare returns a world with an empty database.
func bare(t testing.TB, engine db.Engine) *world {
	t.Helper()
	w := &world{
		t: t, engine: engine, dir: filepath.Join(t.TempDir(), "data"), logs: t.TempDir(), binary: program(t),
		env: append(os.Environ(), "GORACE=atexit_sleep_ms=0", "GATEHOUSE_DRAIN_DELAY=0s", "GATEHOUSE_CACHE="+enginecache.Dir()),
	}
	if engine == db.Postgres {
		w.onPostgres(dbtest.Config(t, engine).URL)
	}
	return w
}

func (w *world) onPostgres(url string) {
	w.url = url
	w.env = append(w.env, "GATEHOUSE_MASTER_KEY="+strings.Repeat("5e", 32))
}

// fresh returns a world with the tenant and a key of its owner.
func fresh(t testing.TB, engine db.Engine) *world {
	t.Helper()
	w := bare(t, engine)
	w.provision()
	return w
}

func (w *world) provision() {
	w.t.Helper()
	w.apply(manifest)
	w.token = w.key(owner)
}

func (w *world) apply(text string) {
	w.t.Helper()
	file := filepath.Join(w.logs, "manifest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.must("apply", "-f", file)
}

func (w *world) key(email string) string {
	w.t.Helper()
	return strings.TrimSpace(w.must("key", "create", "--tenant", "acme", "--user", email, "--name", "prove", "--rate-limit", "100000000"))
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	if w.url != "" {
		args = append(args, "--database", w.url)
	} else {
		args = append(args, "--data", w.dir)
	}
	c := exec.CommandContext(ctx, w.binary, args...)
	c.Env = w.env
	if w.under != nil {
		w.under(c)
	}
	return c
}

// run runs a command of the program to its end.
func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := w.command(ctx, args...)
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("%s: %v", args, err)
	}
	return out.String(), words.String(), c.ProcessState.ExitCode()
}

func (w *world) must(args ...string) string {
	w.t.Helper()
	out, words, code := w.run(args...)
	if code != 0 {
		w.t.Fatalf("%s: exit %d: %s", args, code, words)
	}
	return out
}

// fill writes the records first to last of acme's owner directly into the database, because there are many. data is a
// record's, in which # stands for its number. Their fields must not be indexed.
func (w *world) fill(entity string, first, last int, data string) {
	t := w.t
	t.Helper()
	d, err := db.Open(t.Context(), db.Config{Dir: w.dir, URL: w.url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	value := `replace(CAST($4 AS TEXT), '#', CAST(i AS TEXT))`
	column := value
	if d.Engine() == db.Postgres {
		column = "CAST(" + value + " AS JSONB)"
	}
	const some = 50_000 // in one transaction
	for from := first; from <= last; from += some {
		err := d.For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `WITH RECURSIVE n(i) AS (SELECT CAST($5 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < CAST($3 AS BIGINT))
				INSERT INTO records (tenant_id, entity, record_id, owner_id, owner_role, created_at, updated_at, created_by, updated_by, version, data_bytes, data)
				SELECT $1, $2, $2 || i, u.user_id, '', 1000000 + i, 1000000 + i, u.user_id, u.user_id, 1, length(`+value+`), `+column+`
				FROM n, users u WHERE u.tenant_id = $1 AND u.email = '`+owner+`'`, entity, min(last, from+some-1), data, from)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// node is a serving process.
type node struct {
	w       *world
	cmd     *exec.Cmd
	public  string // http://address
	ops     string
	started time.Time
	ready   time.Duration // from its start
	exited  chan struct{}
	out     string // the file of its standard output
	errors  string
}

// launch starts a server and does not wait for it.
func (w *world) launch(args ...string) *node {
	w.t.Helper()
	base := filepath.Join(w.logs, "node"+string(rune('a'+w.nodes.Add(1)%26)))
	n := &node{w: w, exited: make(chan struct{}), out: base + ".out", errors: base + ".err"}
	n.cmd = w.command(context.Background(),
		append([]string{"serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"}, args...)...)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err1 := os.Create(n.out)
	stderr, err2 := os.Create(n.errors)
	if err := errors.Join(err1, err2); err != nil {
		w.t.Fatal(err)
	}
	defer stdout.Close()
	defer stderr.Close()
	n.cmd.Stdout, n.cmd.Stderr = stdout, stderr
	n.started = time.Now()
	if err := n.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait() // ProcessState has the outcome
		close(n.exited)
	}()
	w.t.Cleanup(n.kill)
	return n
}

// start starts a server and waits until it is ready.
func (w *world) start(args ...string) *node {
	w.t.Helper()
	n := w.launch(args...)
	if !n.await(time.Minute) {
		w.t.Fatalf("the server is not ready; it says: %s%s", n.stdout(), n.stderr())
	}
	return n
}

// await waits until the server is ready, and reports whether it became so in time.
func (n *node) await(limit time.Duration) bool {
	for time.Since(n.started) < limit {
		if n.ops == "" {
			n.readAddresses()
		}
		if n.ops != "" && n.readyz() == http.StatusOK {
			n.ready = time.Since(n.started)
			return true
		}
		select {
		case <-n.exited:
			return false
		case <-time.After(3 * time.Millisecond):
		}
	}
	return false
}

func (n *node) readAddresses() {
	f, err := os.Open(n.out)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct {
			Event string `json:"event"`
			Addr  string `json:"addr"`
			Ops   string `json:"ops_addr"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "server.listening" {
			n.public, n.ops = "http://"+line.Addr, "http://"+line.Ops
			return
		}
	}
}

var opsClient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// readyz returns the status of /readyz, 0 without an answer.
func (n *node) readyz() int {
	status, _ := n.readiness()
	return status
}

// readiness returns the status of /readyz, 0 without an answer, and its word.
func (n *node) readiness() (status int, word string) {
	r, err := opsClient.Get(n.ops + "/readyz")
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	var said struct {
		Status string `json:"status"`
	}
	if err := json.NewDecoder(r.Body).Decode(&said); err != nil {
		return r.StatusCode, err.Error()
	}
	return r.StatusCode, said.Status
}

// kill is kill -9.
func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	<-n.exited
}

func (n *node) terminate() { _ = n.cmd.Process.Signal(syscall.SIGTERM) }

// end waits for the process to end and returns its exit status, -1 if it does not end in
// time.
func (n *node) end(limit time.Duration) int {
	select {
	case <-n.exited:
		return n.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		return -1
	}
}

func (n *node) running() bool {
	select {
	case <-n.exited:
		return false
	default:
		return true
	}
}

// stdout returns its standard output without the request log.
func (n *node) stdout() string {
	b, _ := os.ReadFile(n.out)
	var other []string
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, `"public_api.request"`) {
			other = append(other, line)
		}
	}
	return strings.Join(other, "")
}

// metric returns a figure without labels from /metrics.
func (n *node) metric(name string) (value float64, err error) {
	res, err := opsClient.Get(n.ops + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), name+" %g", &value); err == nil {
			return value, nil
		}
	}
	return 0, fmt.Errorf("/metrics has no %s", name)
}

// stderr returns its standard error.
func (n *node) stderr() string {
	b, _ := os.ReadFile(n.errors)
	return string(b)
}

// panicked reports whether the output has a panic, contained or not.
func (n *node) panicked() bool {
	all := n.stderr() + n.stdout()
	return strings.Contains(all, "panic:") || strings.Contains(all, "goroutine ") || strings.Contains(all, "server.panic") ||
		strings.Contains(all, "DATA RACE") || strings.Contains(all, "SIGSEGV") || strings.Contains(all, "SIGBUS")
}
