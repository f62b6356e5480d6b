package db_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// cable is the way to a server. One that is cut passes nothing on and says nothing, as with a
// server that is frozen.
type cable struct {
	cut  atomic.Bool
	slow atomic.Int64 // for how long what the server says is held up, in nanoseconds
	late atomic.Int64 // for how long a request to cancel a statement is held up, in nanoseconds
	mu   sync.Mutex
	ends []io.Closer
}

// end ends the cable and all connections, so that closing the database does not wait for them.
func (k *cable) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.ends {
		_ = c.Close()
	}
}

func (k *cable) keep(ends ...io.Closer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends = append(k.ends, ends...)
}

// newCable returns the configuration of a database behind a cable.
func newCable(t *testing.T, c db.Config) (*cable, db.Config) {
	t.Helper()
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k, to := new(cable), u.Host
	k.keep(l)
	go func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", to)
			if err != nil {
				_ = front.Close()
				continue
			}
			k.keep(front, back)
			go k.pass(front, back, &k.slow)
			go k.pass(back, front, new(atomic.Int64))
		}
	}()
	u.Host = l.Addr().String()
	return k, db.Config{URL: u.String(), Serve: c.Serve}
}

func (k *cable) pass(to io.WriteCloser, from io.ReadCloser, slow *atomic.Int64) {
	defer to.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		if n >= 16 && binary.BigEndian.Uint32(b[4:]) == 80877102 { // CancelRequest
			time.Sleep(time.Duration(k.late.Load()))
		}
		time.Sleep(time.Duration(slow.Load()))
		if n > 0 && !k.cut.Load() {
			_, _ = to.Write(b[:n]) // a side that is gone ends the other's reads
		}
		if err != nil {
			return
		}
	}
}

// A server that says nothing any more costs a call no more than a moment, whatever it was
// doing; only a commit leaves the outcome unknown, and nothing else has changed anything.
func TestASilentServerIsLeft(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	sure := dbtest.OpenConfig(t, c)
	type call struct {
		name    string
		before  bool // the cable is cut before the call
		commits bool
		do      func(h db.Handle, cut func() error) error
	}
	calls := []call{{"read", true, false, func(h db.Handle, _ func() error) error {
		return h.Query(t.Context(), `SELECT 1 WHERE $1 <> ''`, func(db.Row) error { return nil })
	}}}
	for i, name := range []string{"write", "ordered write"} {
		calls = append(calls,
			call{name + ", begin", true, false, func(h db.Handle, _ func() error) error {
				return writers(h)[i](t.Context(), adds(t, name+"-begin", nil))
			}},
			call{name + ", statement", false, false, func(h db.Handle, cut func() error) error {
				return writers(h)[i](t.Context(), func(tx db.Tx) error {
					_ = cut()
					return adds(t, name+"-statement", nil)(tx)
				})
			}},
			call{name + ", commit", false, true, func(h db.Handle, cut func() error) error {
				return writers(h)[i](t.Context(), adds(t, name+"-commit", cut))
			}})
	}
	t.Run("all", func(t *testing.T) {
		for _, call := range calls {
			t.Run(call.name, func(t *testing.T) {
				t.Parallel() // each waits
				k, behind := newCable(t, c)
				defer k.end()
				d := dbtest.OpenConfig(t, behind)
				db.Silence(d, 1500*time.Millisecond)
				eventually(t, "a connection is idle", func() bool { return d.Ping(t.Context()) == nil })
				cut := func() error { k.cut.Store(true); return nil }
				if call.before {
					_ = cut()
				}
				err := call.do(d.For("a"), cut)
				if !errors.Is(err, db.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, db.ErrUnknown) != call.commits {
					t.Errorf("err = %v", err)
				}
			})
		}
	})
	if n := countHosts(t, sure); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// A caller whose time ends at a server that answers nothing is told that the server is to blame.
func TestTimeThatEndsAtASilentServer(t *testing.T) {
	k, behind := newCable(t, dbtest.Config(t, db.Postgres))
	defer k.end()
	d := dbtest.OpenConfig(t, behind)
	read(t, d.Unscoped("a connection is idle"), `SELECT 1`, func(db.Row) error { return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	k.cut.Store(true)
	err := d.For("a").Query(ctx, `SELECT 1 WHERE $1 <> ''`, func(db.Row) error { return nil })
	if !errors.Is(err, db.ErrUnavailable) {
		t.Errorf("err = %v", err)
	}
}

// A statement that the server cancels because it takes too long is ErrBusy, and costs no connection;
// Patiently allows it more time.
func TestAStatementThatTakesTooLong(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.URL += "&statement_timeout=100ms&pool_max_conns=1"
	d := dbtest.OpenConfig(t, c)
	pid := func(q db.Querier) (pid int64) {
		read(t, q, `SELECT pg_backend_pid()`, func(r db.Row) error { pid = r.Int(0); return nil })
		return pid
	}
	h := d.Unscoped("test")
	before := pid(h)
	sleeps := func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `SELECT pg_sleep(0.3)`)
		return err
	}
	if err := h.Write(t.Context(), sleeps); !errors.Is(err, db.ErrBusy) {
		t.Errorf("err = %v", err)
	}
	if pid(h) != before {
		t.Error("it cost the connection")
	}
	if err := h.Write(db.Patiently(t.Context(), "test"), sleeps); err != nil {
		t.Error(err)
	}
	if err := h.Write(t.Context(), sleeps); !errors.Is(err, db.ErrBusy) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestALateCancellationMeetsNobodyElse: the request to cancel a statement whose time is over may
// come late, when the connection's next statement runs. Before canceler, that one failed.
func TestALateCancellationMeetsNobodyElse(t *testing.T) {
	for name, c := range map[string]struct {
		late  time.Duration
		keeps bool // the connection
	}{
		"in time":  {0, true},
		"late":     {400 * time.Millisecond, true},
		"too late": {1300 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := dbtest.Config(t, db.Postgres)
			k, config := newCable(t, config)
			config.Readers = 1
			d := dbtest.OpenConfig(t, config)
			h := d.Unscoped("test")
			pid := func(sql string) (pid int64) {
				t.Helper()
				read(t, h, sql, func(r db.Row) error { pid = r.Int(0); return nil })
				return pid
			}
			before := pid(`SELECT pg_backend_pid()`)
			k.late.Store(int64(c.late))
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			err := h.Query(ctx, `SELECT pg_sleep(0.1)`, func(db.Row) error { return nil }) // it may end well, if late
			if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, db.ErrUnavailable) {
				t.Error(err)
			}
			after := pid(`SELECT pg_backend_pid() FROM pg_sleep(1.5)`)
			if (after == before) != c.keeps {
				t.Errorf("connection %d, before %d", after, before)
			}
		})
	}
}

// TestASpoiltConnectionCostsNoOther: the pool's own question whether a connection is alive may be answered
// when its time is over. Before, that connection was handed out, and its loss closed all idle ones.
func TestASpoiltConnectionCostsNoOther(t *testing.T) {
	config := dbtest.Config(t, db.Postgres)
	watcher := dbtest.OpenConfig(t, config)
	k, config := newCable(t, config)
	config.Readers, config.Name = 3, "spoilt"
	config.URL += "&pool_ping_timeout=500ms"
	d := dbtest.OpenConfig(t, config)
	h := d.Unscoped("test")
	pids := func() (all []int64) {
		read(t, watcher.Unscoped("test"), `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'spoilt'`,
			func(r db.Row) error { all = append(all, r.Int(0)); return nil })
		return all
	}
	var three sync.WaitGroup
	for range 3 {
		three.Go(func() { _ = h.Query(t.Context(), `SELECT 1 FROM pg_sleep(0.3)`, func(db.Row) error { return nil }) })
	}
	three.Wait()
	before := pids()
	time.Sleep(1200 * time.Millisecond) // the pool asks what was idle for a second
	k.slow.Store(int64(800 * time.Millisecond))
	k.late.Store(int64(1500 * time.Millisecond))
	time.AfterFunc(750*time.Millisecond, func() { k.slow.Store(0) })
	read(t, h, `SELECT 1`, func(db.Row) error { return nil })
	k.late.Store(0)
	after, left := pids(), 0
	for _, pid := range before {
		if slices.Contains(after, pid) {
			left++
		}
	}
	if len(before) != 3 || left != 2 {
		t.Errorf("connections %v, then %v", before, after)
	}
}

// TestAPanicLeavesTheRest: where a row callback panics, the rest of the result is not read. Before, it was, until the
// statement's time was over.
func TestAPanicLeavesTheRest(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.Readers = 1
	h := dbtest.OpenConfig(t, c).Unscoped("test")
	begun := time.Now()
	mustPanic(t, "a bug", func() { // the rest would take 200 s
		_ = h.Query(t.Context(), `SELECT repeat('x', 400000), pg_sleep(0.01) FROM generate_series(1, 20000)`, func(db.Row) error { panic("a bug") })
	})
	read(t, h, `SELECT 1`, func(db.Row) error { return nil })
	if took := time.Since(begun); took > 5*time.Second { // after 6 s the server ends the statement by itself
		t.Errorf("it took %s", took)
	}
}

// TestACanceledWriteCostsNoOther: a write whose ctx ends may cost the connection, if the request to cancel its
// statement comes too late. Those that shared its transaction are run again. Before, they failed.
func TestACanceledWriteCostsNoOther(t *testing.T) {
	config := dbtest.Config(t, db.Postgres)
	sure := dbtest.OpenConfig(t, config)
	k, config := newCable(t, config)
	d := dbtest.OpenConfig(t, config)
	h := d.For("a")
	begun, goOn := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(begun); <-goOn })
	var all sync.WaitGroup
	all.Go(func() {
		err := h.WriteOrdered(t.Context(), adds(t, "one", func() error { first(); return nil }))
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
	all.Go(func() {
		if err := h.WriteOrdered(t.Context(), adds(t, "two", nil)); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "queued", func() bool { return d.Stats().WritesQueued == 1 })
	k.late.Store(int64(1300 * time.Millisecond))
	all.Go(func() {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_ = h.WriteOrdered(ctx, func(tx db.Tx) error { // whose outcome is its own
			time.AfterFunc(50*time.Millisecond, cancel)
			return tx.Query(ctx, `SELECT 1 FROM pg_sleep(0.3) WHERE $1 <> ''`, func(db.Row) error { return nil })
		})
	})
	eventually(t, "queued", func() bool { return d.Stats().WritesQueued == 2 })
	close(goOn)
	all.Wait()
	if n := countHosts(t, sure); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// Health says within a moment what the watched server is good for.
func TestHealth(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	c.Serve = true
	k, behind := newCable(t, c)
	defer k.end()
	d := dbtest.OpenConfig(t, behind)
	says := func(what string, ok func(readsOnly bool, err error) bool) {
		t.Helper()
		eventually(t, what, func() bool { return ok(d.Health(t.Context())) })
	}
	fine := func(readsOnly bool, err error) bool { return err == nil && !readsOnly }
	says("fine", fine)
	k.cut.Store(true)
	says("silent", func(_ bool, err error) bool { return errors.Is(err, db.ErrUnavailable) })
	k.cut.Store(false)
	says("fine again", fine)
	behind.URL += "&default_transaction_read_only=on"
	d = dbtest.OpenConfig(t, behind)
	says("read-only", func(readsOnly bool, err error) bool { return err == nil && readsOnly })
}

// New connections go to the server that can be written to, wherever the URL names it, and those to
// another are left.
func TestTheWritableServerIsPreferred(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	one, first := newCable(t, c)
	defer one.end()
	two, second := newCable(t, c)
	defer two.end()
	u, err := url.Parse(first.URL)
	if err != nil {
		t.Fatal(err)
	}
	v, err := url.Parse(second.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + v.Host
	d := dbtest.OpenConfig(t, db.Config{URL: u.String(), Serve: true})
	one.cut.Store(true)
	begun := time.Now()
	eventually(t, "the second answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return d.Ping(ctx) == nil
	})
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
