package db_test

import (
	"bytes"
	"context"
	"encoding/binary"
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

// likeAPooler listens before a server. It loses the setting by which a connection to the server
// itself is known, as a pooler does, and counts the requests to cancel a statement.
type likeAPooler struct {
	net.Listener
	server  string
	cancels atomic.Int64
	open    sync.WaitGroup
}

func newLikeAPooler(t *testing.T, c *db.Config) *likeAPooler {
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &likeAPooler{Listener: l, server: u.Host}
	u.Host = l.Addr().String()
	c.URL = u.String()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.open.Go(func() { p.serve(t, conn) })
		}
	}()
	return p
}

func (p *likeAPooler) serve(t *testing.T, client net.Conn) {
	defer client.Close()
	head := make([]byte, 8)
	if _, err := io.ReadFull(client, head); err != nil {
		return // it was given up
	}
	if binary.BigEndian.Uint32(head[4:]) == 80877102 {
		p.cancels.Add(1)
	}
	rest := make([]byte, binary.BigEndian.Uint32(head)-8)
	server, err := net.Dial("tcp", p.server)
	if err == nil {
		_, err = io.ReadFull(client, rest)
	}
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		defer server.Close()
		_, _ = server.Write(slices.Concat(head, bytes.Replace(rest, []byte("gatehouse.direct"), []byte("gatehouse.forgot"), 1)))
		_, _ = io.Copy(server, client) // until the client leaves
	}()
	_, _ = io.Copy(client, server)
}

// TestNoRequestToCancelGoesThroughAPooler: PgBouncer 1.18 dies of some, and pgx sends one when it
// gives a connection up.
func TestNoRequestToCancelGoesThroughAPooler(t *testing.T) {
	c := dbtest.Config(t, db.Postgres)
	pooler := newLikeAPooler(t, &c)
	d := dbtest.OpenConfig(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := d.Unscoped("test").Query(ctx, `SELECT 1 FROM pg_sleep(20)`, func(db.Row) error { return nil }); err == nil {
		t.Fatal("a statement of 20 s ended in time")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	pooler.open.Wait() // the request would come before the end of the connection
	if n := pooler.cancels.Load(); n > 0 {
		t.Errorf("%d requests to cancel", n)
	}
}

// TestBytesOfStatementsThatAreNotPrepared: what is stored as bytes is read as bytes through a pooler, too. Before,
// it was read as its hexadecimal text: a copy of the audit log through PgBouncer was damaged.
func TestBytesOfStatementsThatAreNotPrepared(t *testing.T) {
	through := func(t *testing.T, c db.Config) db.Config {
		newLikeAPooler(t, &c)
		return c
	}
	mode := func(name string) func(*testing.T, db.Config) db.Config {
		return func(_ *testing.T, c db.Config) db.Config {
			c.URL += "&default_query_exec_mode=" + name
			return c
		}
	}
	for name, config := range map[string]func(*testing.T, db.Config) db.Config{
		"pooler": through, "exec": mode("exec"), "simple": mode("simple_protocol"), "prepared": mode("cache_statement"),
	} {
		t.Run(name, func(t *testing.T) {
			d := dbtest.OpenConfig(t, config(t, dbtest.Config(t, db.Postgres)))
			table(t, d, `CREATE TABLE t (n INTEGER PRIMARY KEY, content BYTEA)`)
			all := [][]byte{{0, 1, 0xff, '\\', 'x', '"'}, []byte(`\x00`), {}, nil, bytes.Repeat([]byte{0xe3, 0}, 100_000)}
			write(t, d.Unscoped("test"), func(tx db.Tx) error {
				for n, content := range all {
					if _, err := tx.Exec(t.Context(), `INSERT INTO t (n, content) VALUES ($1, $2)`, n, content); err != nil {
						return err
					}
				}
				return nil
			})
			seen := 0
			see := func(r db.Row) error {
				want := all[r.Int(0)]
				if !bytes.Equal(r.Bytes(1), want) || r.Null(1) != (want == nil) {
					t.Errorf("%d: %.40q, want %.40q", r.Int(0), r.Bytes(1), want)
				}
				seen++
				return nil
			}
			read(t, d.Unscoped("test"), `SELECT n, content FROM t ORDER BY n`, see)
			write(t, d.Unscoped("test"), func(tx db.Tx) error {
				return tx.Query(t.Context(), `SELECT n, content FROM t ORDER BY n`, see)
			})
			if seen != 2*len(all) {
				t.Errorf("%d rows", seen)
			}
		})
	}
}
