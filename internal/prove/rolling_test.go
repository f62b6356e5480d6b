package prove

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// balancing are the configurations of HAProxy that docs/operators.md shows.
var balancing = []struct{ name, retries string }{
	{"without_retries", "retries 0"},
	{"with_retries", "retries 3\n  option redispatch 1\n  retry-on conn-failure empty-response\n  http-request disable-l7-retry unless METH_GET"},
}

// Two nodes behind a balancer are restarted one after the other under load. No request
// fails, nothing acknowledged is lost, and nothing is done twice.
func TestProveRollingRestart(t *testing.T) {
	asShipped(t)
	together(t)
	for _, b := range balancing {
		t.Run(b.name, func(t *testing.T) {
			together(t)
			haproxy := findTool(t, "haproxy")
			p := begin(t, "ROLL-1-"+b.name, db.Postgres)
			w := fresh(t, db.Postgres)
			r := newRotation(w, scale(1, 2))
			front := r.balance(haproxy, b.retries)
			f := newFleet(p, 12)
			f.pause = 15 * time.Millisecond
			c := front.client(w.token)
			defer c.close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var load sync.WaitGroup
			load.Go(func() { f.load(ctx, c, func() bool { return false }) })
			restarts := 0
			for ; restarts < scale(2, 12) || f.acknowledged() < scale(100, 20_000) && p.sound(); restarts++ {
				r.restart(p, restarts%2, front)
			}
			cancel()
			load.Wait()
			p.tried(f.acknowledged())
			p.add("restarts", restarts)
			verify(p, front, w, f)
		})
	}
}

// sound reports whether nothing has failed yet.
func (p *proof) sound() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures == 0
}

// rotation is two nodes at addresses of their own.
type rotation struct {
	w     *world
	nodes [2]*node
	flags [2][]string
}

// newRotation starts two nodes whose drain delay is so many seconds.
func newRotation(w *world, delay int) *rotation {
	w.t.Helper()
	r := &rotation{w: w}
	for i := range r.nodes {
		r.flags[i] = []string{
			"--listen", fmt.Sprintf("127.0.0.1:%d", freePort(w.t)), "--ops-listen", fmt.Sprintf("127.0.0.1:%d", freePort(w.t)),
			"--drain-delay", fmt.Sprintf("%ds", delay),
		}
		r.nodes[i] = w.start(r.flags[i]...)
	}
	return r
}

// restart stops a node, starts it again at the same addresses, and waits until the
// balancer sends requests to both nodes.
func (r *rotation) restart(p *proof, i int, front *node) {
	p.t.Helper()
	begun := time.Now()
	r.nodes[i].terminate()
	if code := r.nodes[i].end(grace); code != 0 || r.nodes[i].panicked() {
		p.fail("exit %d: %s%s", code, r.nodes[i].stdout(), r.nodes[i].stderr())
	}
	p.most("stopped", time.Since(begun))
	r.nodes[i] = r.w.start(r.flags[i]...)
	awaitBothUp(p.t, front)
}

// balance starts HAProxy before the nodes. Its public address is that of the node that it
// returns, and the page of its state is at the other.
func (r *rotation) balance(program, retries string) *node {
	t := r.w.t
	t.Helper()
	front := &node{w: r.w, exited: make(chan struct{}), errors: filepath.Join(r.w.logs, "haproxy.err"), out: filepath.Join(r.w.logs, "haproxy.out")}
	port, state := freePort(t), freePort(t)
	front.public, front.ops = fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", state)
	var servers strings.Builder
	for i, n := range r.nodes {
		fmt.Fprintf(&servers, "  server node%d %s check port %s\n", i, strings.TrimPrefix(n.public, "http://"), n.ops[strings.LastIndex(n.ops, ":")+1:])
	}
	file := filepath.Join(r.w.logs, "haproxy.cfg")
	err := os.WriteFile(file, fmt.Appendf(nil, `defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 65s
listen public
  bind 127.0.0.1:%d
  balance roundrobin
  %s
  option httpchk GET /readyz
  default-server inter 100ms fall 2 rise 1
%slisten state
  bind 127.0.0.1:%d
  stats enable
  stats uri /
`, port, retries, servers.String(), state), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := os.Create(front.errors)
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	front.cmd = exec.Command(program, "-db", "-f", file)
	front.cmd.Stdout, front.cmd.Stderr = stderr, stderr
	front.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := front.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = front.cmd.Wait() // it ends when it is killed
		close(front.exited)
	}()
	t.Cleanup(front.kill)
	awaitBothUp(t, front)
	return front
}

// awaitBothUp waits until the balancer finds both nodes ready.
func awaitBothUp(t testing.TB, front *node) {
	t.Helper()
	var up int
	var err error
	for begun := time.Now(); time.Since(begun) < patience && front.running(); time.Sleep(20 * time.Millisecond) {
		if up, err = nodesUp(front); up == 2 {
			return
		}
	}
	t.Fatalf("the balancer finds %d nodes ready: %v: %s", up, err, front.stderr())
}

// nodesUp returns how many nodes the balancer finds ready.
func nodesUp(front *node) (up int, err error) {
	res, err := opsClient.Get(front.ops + "/;csv")
	if err != nil {
		return 0, err
	}
	rows, err := csv.NewReader(res.Body).ReadAll()
	if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the balancer's state: %d: %w", res.StatusCode, err)
	}
	status := -1
	for i, name := range rows[0] {
		if name == "status" {
			status = i
		}
	}
	for _, row := range rows {
		if status >= 0 && strings.HasPrefix(row[1], "node") && row[status] == "UP" {
			up++
		}
	}
	return up, nil
}

// findTool returns the path of a program of Debian's, or skips the test if it is not installed.
func findTool(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{name, "/usr/sbin/" + name} { // Debian's place is not in everybody's PATH
		if path, err := exec.LookPath(path); err == nil {
			return path
		}
	}
	t.Skip(name + " is not installed")
	return ""
}
