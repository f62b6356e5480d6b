package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// cluster is a private PostgreSQL with the distribution's default settings,
// fsync and synchronous_commit included.
type cluster struct {
	*server
	dir, bin string
	port     string
	cred     *syscall.Credential
}

// onPostgres measures, on PostgreSQL, the flat lists, the traversal, the queries, and,
// for information, reads, lists and creates.
func onPostgres(ctx context.Context, c *config, rep *report) error {
	pg, err := startCluster(ctx)
	if err != nil {
		return err
	}
	defer pg.close()
	open := func(ctx context.Context, name string) (*instance, error) { return pg.instance(ctx, c, name) }
	if c.wants("flat") || c.wants("traversal") {
		if err := flat(ctx, c, rep, "PostgreSQL", open); err != nil {
			return err
		}
	}
	if c.wants("queries") {
		if err := queriesPostgres(ctx, c, rep, open); err != nil {
			return err
		}
	}
	if len(c.only) > 0 && !c.wants("read") && !c.wants("list") && !c.wants("create") {
		return nil
	}
	return postgresThroughput(ctx, c, rep, open)
}

func postgresThroughput(ctx context.Context, c *config, rep *report, open func(context.Context, string) (*instance, error)) error {
	g, err := open(ctx, "throughput")
	if err != nil {
		return err
	}
	token, ids, err := g.prepareThroughput(ctx, false)
	if err != nil {
		return err
	}
	workloads := []workload{}
	for _, q := range []struct {
		part, row string
		lines     []string
	}{
		{"read", rowRead, gets(prefixed(contacts, ids)...)},
		{"list", rowList, gets(contacts + "?limit=50")},
	} {
		if !c.wants(q.part) {
			continue
		}
		l, err := prepareLoad(c, "postgres-"+q.part, token, q.lines)
		if err != nil {
			return err
		}
		workloads = append(workloads, workload{q.row, l})
	}
	if c.wants("create") {
		l, err := createLoad(c, "postgres-create", token, contacts, nil)
		if err != nil {
			return err
		}
		workloads = append(workloads, workload{rowCreate, l})
	}
	who := contestant{name: pgPlainName, start: g.start, workloads: workloads}
	for round := range c.rounds {
		if err := who.measure(ctx, c, rep, round); err != nil {
			return err
		}
	}
	if c.profile {
		return who.saveProfiles(ctx, c)
	}
	return nil
}

// startCluster makes and starts a cluster in a temporary folder. PostgreSQL
// refuses to run as root, so root runs it as the user postgres.
func startCluster(ctx context.Context) (*cluster, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gatehouse-bench-pg-")
	if err != nil {
		return nil, err
	}
	pg := &cluster{dir: dir, bin: bin}
	if os.Getuid() == 0 {
		if pg.cred, err = postgresUser(); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(pg.cred.Uid), int(pg.cred.Gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	if err := pg.command(ctx, "initdb", "-D", data, "-U", "gatehouse", "--auth=trust", "--encoding=UTF8", "--no-locale"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	_, pg.port, _ = net.SplitHostPort(addr)
	argv := []string{filepath.Join(bin, "postgres"), "-D", data, "-p", pg.port, "-k", dir, "-c", "listen_addresses=127.0.0.1"}
	pg.server, err = launch{name: "postgres", cores: anyCore, logs: filepath.Join(dir, "log"), cred: pg.cred, argv: argv}.start(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range 100 {
		if pg.command(ctx, "pg_isready", "-h", "127.0.0.1", "-p", pg.port) == nil {
			return pg, nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			break
		}
	}
	err = fmt.Errorf("PostgreSQL did not start:\n%s", tail(filepath.Join(dir, "log", "postgres.err")))
	pg.close()
	return nil, err
}

// close ends the cluster and removes it.
func (pg *cluster) close() {
	pg.stop(syscall.SIGINT)
	if err := os.RemoveAll(pg.dir); err != nil {
		log.Printf("left behind: %v", err)
	}
}

// command runs one of PostgreSQL's programs.
func (pg *cluster) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(pg.bin, name), args...)
	cmd.Env, cmd.Dir = cleanEnv(), pg.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: pg.cred}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// instance makes a database of its own for an installation.
func (pg *cluster) instance(ctx context.Context, c *config, name string) (*instance, error) {
	if err := pg.command(ctx, "createdb", "-h", "127.0.0.1", "-p", pg.port, "-U", "gatehouse", name); err != nil {
		return nil, err
	}
	dir := filepath.Join(c.work, "postgres-"+name)
	keyFile, err := masterKey(ctx, c, filepath.Join("postgres-"+name, "key"))
	if err != nil {
		return nil, err
	}
	dsn := fmt.Sprintf("postgres://gatehouse@127.0.0.1:%s/%s?sslmode=disable", pg.port, name)
	// Autovacuum would do this a minute later.
	settle := func(ctx context.Context) error {
		return pg.command(ctx, "vacuumdb", "-h", "127.0.0.1", "-p", pg.port, "-U", "gatehouse", "--analyze", "--quiet", name)
	}
	store := []string{"--database", dsn, "--master-key-file", keyFile}
	return &instance{c: c, name: "postgres-" + name, dir: dir, store: store, settle: settle}, nil
}

// masterKey makes a key file, which --database needs. It uses the key that a data folder
// gets at its first start, and so does not depend on the format.
func masterKey(ctx context.Context, c *config, name string) (string, error) {
	g := sqliteInstance(c, name)
	s, err := g.serve(ctx, anyCore)
	if err != nil {
		return "", err
	}
	s.stop(syscall.SIGTERM)
	file := filepath.Join(g.dir, "data", "master.key")
	_, err = os.Stat(file)
	return file, err
}

// postgresBin returns the folder of initdb: on the PATH, or where Debian puts it.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		return filepath.Dir(found[len(found)-1]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is not installed: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

func postgresUser() (*syscall.Credential, error) {
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
