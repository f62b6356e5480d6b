package prove

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// poolings are the ways in which PgBouncer lends the connections of the server, as it comes and as
// an operator may have told it before.
var poolings = []struct {
	name, mode string
	size       int // connections to the server; of sessions one for each connection of the nodes
	more       string
}{
	{"session", "session", 40, ""},
	{"transaction", "transaction", 6, ""},
	{"transaction_ignoring", "transaction", 6, "ignore_startup_parameters = extra_float_digits,statement_timeout,lock_timeout,idle_in_transaction_session_timeout,plan_cache_mode,default_transaction_isolation,enable_seqscan,jit"},
}

// Two nodes work through PgBouncer, of transactions with fewer connections to the server than they
// have to it: nothing acknowledged is lost, and commands work.
func TestProvePooler(t *testing.T) {
	asShipped(t)
	together(t)
	program := findTool(t, "pgbouncer")
	s := startPostgresIn(t, inMemory)
	s.sql(t, `CREATE ROLE gate LOGIN`)
	for _, pooling := range poolings {
		t.Run(pooling.name, func(t *testing.T) {
			p := begin(t, "POOL-1-"+pooling.name, db.Postgres)
			s.sql(t, `CREATE DATABASE `+pooling.name+` OWNER gate`)
			w := bare(t, db.Postgres)
			w.onPostgres(fmt.Sprintf("postgres://gate@127.0.0.1:%d/%s?sslmode=disable", s.pool(t, program, fmt.Sprintf("pool_mode = %s\ndefault_pool_size = %d\n%s", pooling.mode, pooling.size, pooling.more)), pooling.name))
			w.provision()
			nodes := []*node{w.start(), w.start()}
			f := newFleet(p, 12)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(scale(1, 20))*time.Second)
			defer cancel()
			var load sync.WaitGroup
			var changes atomic.Int64
			for i, n := range nodes {
				load.Go(func() {
					c := n.client(w.token)
					defer c.close()
					half := &fleet{p: p, writers: f.writers[6*i : 6*i+6]}
					half.load(ctx, c, func() bool { return false })
					p.tried(half.acknowledged())
					changes.Add(int64(half.acknowledged()))
				})
			}
			load.Wait()
			verify(p, nodes[1], w, f)
			for _, n := range nodes {
				n.terminate()
				if code := n.end(grace); code != 0 || n.panicked() {
					p.fail("exit %d: %s", code, n.stderr())
				}
			}
			out, words, code := w.run("audit", "--tenant", "acme", "--limit", "0") // its blocks are bytes
			if code != 0 || words != "" || int64(strings.Count(out, "\n")) < changes.Load() {
				p.fail("audit: exit %d, %d lines for %d changes: %.300s", code, strings.Count(out, "\n"), changes.Load(), words)
			}
			if out := w.must("export", "--tenant", "acme"); !strings.Contains(out, "tenant: acme") {
				p.fail("export: %s", out)
			}
		})
	}
}

// pool starts PgBouncer before the server until the test ends, and returns its port.
func (s *postgresServer) pool(t *testing.T, program, how string) int {
	t.Helper()
	dir, port := filepath.Join(s.dir, "pool-"+t.Name()[strings.LastIndex(t.Name(), "/")+1:]), freePort(t)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file, users := filepath.Join(dir, "pgbouncer.ini"), filepath.Join(dir, "users")
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
max_client_conn = 200
%s
`, s.port, port, users, how)
	for name, text := range map[string]string{file: config, users: "\"gate\" \"\"\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(context.Background(), program, file)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.identity, Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	c.Stderr = &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
			return port
		}
		if time.Since(begun) > patience {
			t.Fatal(err)
		}
	}
}
