package prove

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// inMemory is the folder for servers whose faults have nothing to do with the disk, which would only
// add its own delays.
const inMemory = "/dev/shm"

// processes returns the ids of the server's processes, its first one first; none if it does
// not run.
func (s *postgresServer) processes() (pids []int) {
	b, err := os.ReadFile(filepath.Join(s.dir, "data", "postmaster.pid"))
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(string(b), "\n")
	first, err := strconv.Atoi(line)
	if err != nil || !runs(first) {
		return nil
	}
	pids = append(pids, first)
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(b), ") ") // after the name come state and parent
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(first) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }

// signal sends a signal to all of the server's processes.
func (s *postgresServer) signal(sig syscall.Signal) {
	for _, pid := range s.processes() {
		_ = syscall.Kill(pid, sig) // it may have ended
	}
}

// freeze stops all of the server's processes, those that it starts meanwhile too: its
// sockets stay open, and nobody answers.
func (s *postgresServer) freeze() {
	s.signal(syscall.SIGSTOP) // the first one is stopped first and starts no more
	s.signal(syscall.SIGSTOP)
}

func (s *postgresServer) thaw() { s.signal(syscall.SIGCONT) }

// kill is kill -9 of the whole server. It returns when nothing of it is left.
func (s *postgresServer) kill() {
	pids := s.processes()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(time.Millisecond) {
		left := false
		for _, pid := range pids {
			left = left || runs(pid)
		}
		if !left {
			return
		}
	}
}

// start starts the server again, and returns when it takes connections.
func (s *postgresServer) start(t testing.TB) {
	t.Helper()
	if out, err := s.control("start"); err != nil {
		t.Fatalf("start PostgreSQL: %v: %s", err, out)
	}
}

// standby makes a standby of the server, without which the server then acknowledges no commit.
func (s *postgresServer) standby(t *testing.T) *postgresServer {
	t.Helper()
	b := newPostgres(t, inMemory)
	if out, err := b.run("pg_basebackup", "-D", "data", "-R", "-X", "stream", "-c", "fast", "-d",
		fmt.Sprintf("host=127.0.0.1 port=%d user=postgres application_name=standby", s.port)); err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	b.start(t)
	s.sql(t, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`, `SELECT pg_reload_conf()`)
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if s.ask(t, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) == 1 {
			return b
		}
		if time.Since(begun) > patience {
			t.Fatal("the standby does not follow")
		}
	}
}

// sql runs statements as the superuser.
func (s *postgresServer) sql(t testing.TB, statements ...string) {
	t.Helper()
	c := s.connect(t)
	defer c.Close(context.Background())
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// ask returns a number.
func (s *postgresServer) ask(t testing.TB, sql string) (n int) {
	t.Helper()
	c := s.connect(t)
	defer c.Close(context.Background())
	if err := c.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

func (s *postgresServer) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tcpProxy stands between a node and its database. It delays what the database answers, and can
// swallow everything, as a cable does that was pulled out.
type tcpProxy struct {
	listener net.Listener
	to       string
	delay    atomic.Int64
	swallows atomic.Bool
	mu       sync.Mutex
	open     map[net.Conn]bool
}

func newProxy(t testing.TB, to string) *tcpProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &tcpProxy{listener: l, to: to, open: map[net.Conn]bool{}}
	go p.serve()
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
	})
	return p
}

func (p *tcpProxy) address() string { return p.listener.Addr().String() }

func (p *tcpProxy) serve() {
	for {
		front, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(front)
	}
}

// join connects a client with the database.
func (p *tcpProxy) join(front net.Conn) {
	back, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = front.Close()
		return
	}
	p.mu.Lock()
	p.open[front], p.open[back] = true, true
	p.mu.Unlock()
	go p.pass(back, front, false)
	p.pass(front, back, true)
}

// cut ends all connections.
func (p *tcpProxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

// pass passes on what comes from one end, each piece after the delay; pieces may be on their
// way at once.
func (p *tcpProxy) pass(to, from net.Conn, delayed bool) {
	type piece struct {
		data []byte
		due  time.Time
	}
	way := make(chan piece, 4096)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 && !p.swallows.Load() {
				due := time.Now()
				if delayed {
					due = due.Add(time.Duration(p.delay.Load()))
				}
				way <- piece{b[:n], due}
			}
			if err != nil {
				return
			}
		}
	}()
	var failed error
	for piece := range way {
		time.Sleep(time.Until(piece.due))
		if _, err := to.Write(piece.data); err != nil && failed == nil {
			failed = errors.Join(from.Close(), err)
		}
	}
	if p.swallows.Load() { // not even the end is passed on
		return
	}
	_, _ = to.Close(), from.Close()
}
