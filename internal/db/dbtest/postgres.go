package dbtest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// server is the PostgreSQL server of this test process.
type server struct {
	base     *url.URL
	template string
	strategy string    // how the template is copied, as words of CREATE DATABASE
	workers  []*server // of Citus, whose coordinator it is
	mu       sync.Mutex
	conn     *pgx.Conn
	lifeline *os.File // closing it, which the system does when the process ends, ends the private server
}

func (s *server) url(database string) string {
	u := *s.base
	u.Path = "/" + database
	return u.String()
}

// postgres starts or finds the server, once.
var postgres = sync.OnceValues(func() (*server, error) {
	s, err := citus()
	switch {
	case err != nil:
	case s != nil:
		err = s.makeDistributed()
	default:
		if s, err = startServer(); err == nil {
			err = s.makeTemplate()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL for tests: %w", err)
	}
	return s, nil
})

func startServer() (*server, error) {
	if given := os.Getenv("GATEHOUSE_TEST_POSTGRES"); given != "" {
		base, err := url.Parse(given)
		return &server{base: base}, err
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	s := &server{}
	for try := 0; ; try++ { // another process may take the port in between
		if err = s.startPrivate(bin); err == nil || try == 2 {
			return s, err
		}
	}
}

// binaries finds the folder of initdb and pg_ctl.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("initdb is not installed; `make test` installs it, or apt-get install postgresql; " +
			"GATEHOUSE_TEST_POSTGRES may name a running server instead")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// startPrivate starts a server in a temporary folder. A watchdog in a session of its own
// waits until this process ends, even if it is killed, stops the server and removes the
// folder.
func (s *server) startPrivate(bin string) error {
	identity, err := unprivileged()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(roomyMemory(), "gatehouse-pg-")
	if err != nil {
		return err
	}
	if identity != nil {
		if err := os.Chown(dir, int(identity.Uid), int(identity.Gid)); err != nil {
			return err
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	watch, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer watch.Close()
	s.lifeline = lifeline
	sh := func(script string) *exec.Cmd {
		c := exec.Command("sh", "-c", script)
		c.Dir = dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: identity, Setsid: true}
		c.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + dir}
		return c
	}
	guard := sh(`read -r _; pg_ctl stop -D data -m immediate -s; cd /; rm -rf ` + dir)
	guard.Stdin = watch
	if err := guard.Start(); err != nil {
		return err
	}
	options := strings.Join([]string{
		"-c listen_addresses=127.0.0.1", "-c port=" + strconv.Itoa(port), "-c unix_socket_directories=" + dir,
		"-c max_connections=200", "-c fsync=off", "-c full_page_writes=off",
		"-c shared_buffers=32MB", "-c autovacuum=off", "-c max_wal_senders=0", "-c wal_level=minimal",
		"-c log_min_messages=fatal",
	}, " ")
	// The output goes to a file, because go test waits for every process that holds its own.
	out, err := sh(`(initdb -D data --no-sync -A trust -U postgres -E UTF8 --locale=C.UTF-8 || ` +
		`{ rm -rf data; initdb -D data --no-sync -A trust -U postgres -E UTF8 --locale=C; }) >init.log 2>&1 && ` +
		`pg_ctl start -w -s -D data -l server.log -o "` + options + `" >start.log 2>&1 || ` +
		`{ tail -n 5 init.log start.log server.log; exit 1; }`).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("start: %w: %s", err, out), lifeline.Close())
	}
	s.base = &url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + strconv.Itoa(port), RawQuery: "sslmode=disable"}
	return nil
}

// unprivileged returns the user to run the server as, nil for the current one. PostgreSQL
// refuses to run as root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("neither user postgres nor nobody exists, and the server refuses to run as root")
}

// roomyMemory returns a folder in memory with space for a server, "" if there is none.
// Making a database there takes a tenth of the time.
func roomyMemory() string {
	const dir, enough = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || fs.Bavail*uint64(fs.Bsize) < enough {
		return ""
	}
	return dir
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
