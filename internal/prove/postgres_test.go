package prove

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// When PostgreSQL crashes and restarts under load, acknowledged changes are there, no
// request waits for ever, and the node recovers by itself.
func TestProvePostgresRestart(t *testing.T) {
	asShipped(t)
	together(t)
	p := begin(t, "DUR-7", db.Postgres)
	s := startPostgres(t)
	w := bare(t, db.Postgres)
	w.onPostgres(s.url)
	w.provision()
	f := newFleet(p, 12)
	f.settles = true
	n := w.start()
	for range scale(1, 20) {
		p.tried(1)
		acks, cut, busy := f.acks, f.cut, f.busy
		restartOnce(t, p, s, n, w.token, f)
		p.add("acknowledged", f.acks-acks)
		p.add("cut_off", f.cut-cut)
		p.add("answered_503", f.busy-busy)
		verify(p, n, w, f)
	}
	if !n.running() || n.panicked() {
		p.fail("the node did not stay: %s%s", n.stdout(), n.stderr())
	}
}

func restartOnce(t *testing.T, p *proof, s *postgresServer, n *node, token string, f *fleet) {
	t.Helper()
	c := n.client(token)
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last atomic.Int64 // when the latest change was acknowledged
	var slowest atomic.Int64
	c.note = func(a *answer) {
		if a.status/100 == 2 && a.method != "GET" {
			last.Store(a.at.UnixNano())
		}
		slowest.Store(max(slowest.Load(), int64(a.at.Sub(a.sent))))
	}
	var wait sync.WaitGroup
	wait.Go(func() { f.load(ctx, c, func() bool { return false }) })
	time.Sleep(p.between(300*time.Millisecond, 700*time.Millisecond))
	out, err := s.control("restart", "-m", "immediate")
	if err != nil {
		t.Fatalf("restart PostgreSQL: %v: %s", err, out)
	}
	back := time.Now()
	for last.Load() < back.UnixNano() && time.Since(back) < patience {
		time.Sleep(5 * time.Millisecond)
	}
	recovered := time.Since(back)
	p.most("recovered", recovered)
	if recovered > strictly(5*time.Second) {
		p.fail("no change was acknowledged for %s after PostgreSQL was back", recovered)
	}
	time.Sleep(200 * time.Millisecond)
	cancel()
	wait.Wait()
	p.most("slowest_answer", time.Duration(slowest.Load()))
	if status := n.readyz(); status != 200 {
		p.fail("/readyz says %d after PostgreSQL is back", status)
	}
}

// postgresServer is a server of the test's own with fsync on.
type postgresServer struct {
	dir, bin, url string
	port          int
	options       string
	identity      *syscall.Credential
}

// startPostgres starts a server on the disk, or skips the test if PostgreSQL is not installed.
func startPostgres(t *testing.T) *postgresServer {
	t.Helper()
	return startPostgresIn(t, "")
}

// startPostgresIn starts a server in a folder, "" for one on the disk.
func startPostgresIn(t *testing.T, folder string) *postgresServer {
	t.Helper()
	s := newPostgres(t, folder)
	if out, err := s.run("initdb", "--no-sync", "-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	if out, err := s.control("start"); err != nil {
		t.Fatalf("start PostgreSQL: %v: %s", err, out)
	}
	return s
}

// newPostgres makes an empty folder for a server, which ends with the test.
func newPostgres(t *testing.T, folder string) *postgresServer {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		t.Skip("initdb is not installed: nothing to restart")
	}
	dir, err := os.MkdirTemp(folder, "gatehouse-prove-pg-")
	if err != nil {
		t.Fatal(err)
	}
	s := &postgresServer{dir: dir, bin: filepath.Dir(found[len(found)-1])}
	t.Cleanup(func() {
		s.signal(syscall.SIGCONT)                   // a test may have failed while it was frozen
		_, _ = s.control("stop", "-m", "immediate") // it may not be running
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 {
		s.identity = postgresUser(t)
		if err := os.Chown(dir, int(s.identity.Uid), int(s.identity.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.port = freePort(t)
	s.url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
	s.options = fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories=%s "+
		"-c fsync=on -c synchronous_commit=on -c shared_buffers=32MB -c max_connections=100", s.port, dir)
	return s
}

func (s *postgresServer) run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=" + s.bin + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + s.dir}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.identity}
	// To a file, because the server that pg_ctl starts would keep a pipe open.
	file, err := os.CreateTemp("", "gatehouse-prove-out-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	c.Stdout, c.Stderr = file, file
	err = c.Run()
	out, _ := os.ReadFile(file.Name()) // for the error only
	return strings.TrimSpace(string(out)), err
}

// control runs pg_ctl and waits for it.
func (s *postgresServer) control(verb string, args ...string) (string, error) {
	args = append([]string{verb, "-w", "-s", "-D", "data", "-l", "server.log"}, args...)
	if verb != "stop" {
		args = append(args, "-o", s.options)
	}
	return s.run("pg_ctl", args...)
}

func postgresUser(t *testing.T) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Skip("PostgreSQL refuses to run as root, and there is no user postgres or nobody")
	return nil
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
