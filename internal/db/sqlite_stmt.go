package db

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	"zombiezen.com/go/sqlite"
)

// maxPrepared bounds the statements kept open on one connection.
const maxPrepared = 512

// sqliteConn is one connection with its prepared statements. It must not be
// used by several goroutines at once.
type sqliteConn struct {
	*sqlite.Conn
	prepared map[string]*sqliteStmt
	recent   list.List // of *sqliteStmt, the most recently used first

	// Ending a long read needs no goroutine for each call: the connection
	// always listens to kill, and a call only asks its ctx to close it.
	kill      chan struct{}
	killed    chan struct{} // kill has been closed
	interrupt func()
	disarm    func() bool // nil while no call listens to a ctx
}

// sqliteStmt is a prepared statement and its current row.
type sqliteStmt struct {
	*sqlite.Stmt
	text   string
	place  *list.Element // nil: used once, because the prepared one was in use
	busy   bool
	params int
	column []byte
}

func newSQLiteConn(c *sqlite.Conn) *sqliteConn {
	conn := &sqliteConn{Conn: c, prepared: make(map[string]*sqliteStmt), killed: make(chan struct{}, 1)}
	conn.interrupt = func() {
		close(conn.kill)
		conn.killed <- struct{}{}
	}
	conn.listen()
	return conn
}

// listen arms the connection with a new kill channel.
func (c *sqliteConn) listen() {
	c.kill = make(chan struct{})
	c.SetInterrupt(c.kill)
}

// prepare returns the statement for a text and marks it busy.
func (c *sqliteConn) prepare(st *statement) (*sqliteStmt, error) {
	kept := c.prepared[st.text]
	if kept != nil && !kept.busy {
		c.recent.MoveToFront(kept.place)
		kept.busy = true
		return kept, nil
	}
	if kept != nil { // the same text is running in an outer row callback
		raw, rest, err := c.PrepareTransient(st.sqlite)
		if err != nil {
			return nil, err
		}
		if rest != 0 {
			return nil, fmt.Errorf("more than one statement in %q", st.text)
		}
		return &sqliteStmt{Stmt: raw, text: st.text, busy: true, params: raw.BindParamCount()}, nil
	}
	raw, err := c.Prepare(st.sqlite)
	if err != nil {
		return nil, err
	}
	s := &sqliteStmt{Stmt: raw, text: st.text, busy: true, params: raw.BindParamCount()}
	s.place = c.recent.PushFront(s)
	c.prepared[st.text] = s
	c.evict()
	return s, nil
}

// evict closes the least recently used statements when there are too many.
func (c *sqliteConn) evict() {
	for e := c.recent.Back(); e != nil && c.recent.Len() > maxPrepared; {
		s, before := e.Value.(*sqliteStmt), e.Prev()
		if !s.busy {
			c.recent.Remove(e)
			delete(c.prepared, s.text)
			_ = s.Finalize() // it repeats the last error of Step
		}
		e = before
	}
}

// release makes the statement ready for its next use, whatever happened.
func (c *sqliteConn) release(s *sqliteStmt) {
	s.column = nil
	if s.place == nil {
		_ = s.Finalize()
		return
	}
	// Its error repeats the one of Step. Bindings stay: every use binds all of
	// them again, and clearing them would make SQLite plan again (measured: 60
	// to 190 µs a list instead of 5 to 20).
	_ = s.Reset()
	s.busy = false
}

// run executes one statement and calls each for every row.
func (c *sqliteConn) run(ctx context.Context, to scope, st *statement, each func(Row) error, args []any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, err := c.prepare(st)
	if err != nil {
		return classifySQLite(err)
	}
	armed := st.reads && c.arm(ctx)
	defer c.finish(s, armed)
	if err := s.bind(to, args); err != nil {
		return fmt.Errorf("%w in %q", err, st.text)
	}
	for {
		row, err := s.Step()
		if err != nil {
			if ended := ctx.Err(); ended != nil && sqlite.ErrCode(err) == sqlite.ResultInterrupt {
				return ended
			}
			return classifySQLite(err)
		}
		if !row {
			return nil
		}
		if each != nil {
			if err := each(s); err != nil {
				return err
			}
		}
	}
}

// arm lets the end of ctx interrupt the connection. Only reads are armed: an
// interrupted write would roll back the whole transaction, with the writes of
// others.
func (c *sqliteConn) arm(ctx context.Context) bool {
	if ctx.Done() == nil || c.disarm != nil {
		return false
	}
	c.disarm = context.AfterFunc(ctx, c.interrupt)
	return true
}

func (c *sqliteConn) finish(s *sqliteStmt, armed bool) {
	c.release(s)
	if !armed {
		return
	}
	stopped := c.disarm()
	c.disarm = nil
	if !stopped {
		<-c.killed // otherwise it would hit the next user of the connection
		c.listen()
	}
}

func (s *sqliteStmt) bind(to scope, args []any) error {
	first := 1
	if to.bound {
		s.BindText(1, to.tenant)
		first = 2
	}
	if n := len(args) + first - 1; n != s.params {
		return fmt.Errorf("%d arguments for %d parameters", n, s.params)
	}
	for i, arg := range args {
		if err := s.bindOne(first+i, arg); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteStmt) bindOne(i int, arg any) error {
	switch v := arg.(type) {
	case nil:
		s.BindNull(i)
	case string:
		s.BindText(i, v)
	case []byte:
		if v == nil {
			s.BindNull(i)
		} else {
			s.BindBytes(i, v)
		}
	case int:
		s.BindInt64(i, int64(v))
	case int64:
		s.BindInt64(i, v)
	case float64:
		s.BindFloat(i, v)
	case bool:
		s.BindBool(i, v)
	case time.Time:
		s.BindInt64(i, v.UnixMicro())
	default:
		plain, ok := underlying(arg)
		if !ok {
			return fmt.Errorf("argument %d has the unusable type %T", i, arg)
		}
		return s.bindOne(i, plain)
	}
	return nil
}

// underlying converts a value of a named type (an id, say) to its plain type.
func underlying(arg any) (any, bool) {
	switch v := reflect.ValueOf(arg); v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int(), true
	case reflect.Float32, reflect.Float64:
		return v.Float(), true
	case reflect.Bool:
		return v.Bool(), true
	default:
		return nil, false
	}
}

var _ Row = (*sqliteStmt)(nil)

func (s *sqliteStmt) Text(col int) string { return s.ColumnText(col) }
func (s *sqliteStmt) Int(col int) int64   { return s.ColumnInt64(col) }
func (s *sqliteStmt) Bool(col int) bool   { return s.ColumnInt64(col) != 0 }
func (s *sqliteStmt) Null(col int) bool   { return s.ColumnIsNull(col) }

// Bytes returns SQLite's own memory: a ColumnReader writes it in one piece.
func (s *sqliteStmt) Bytes(col int) []byte {
	s.column = nil
	_, _ = s.ColumnReader(col).WriteTo((*columnTaker)(s))
	return s.column
}

type columnTaker sqliteStmt

var _ io.Writer = (*columnTaker)(nil)

func (t *columnTaker) Write(p []byte) (int, error) {
	t.column = p
	return len(p), nil
}
