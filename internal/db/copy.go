package db

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors of copies. Test for them with errors.Is.
var (
	// ErrUnfinished: the database is the target of a copy that has not been verified.
	ErrUnfinished = errors.New("this database is an unfinished copy")
	// ErrOccupied: the target of a copy has data that is not of this copy.
	ErrOccupied = errors.New("the target is not empty")
	// ErrDiffers: source and target of a copy are not equal.
	ErrDiffers = errors.New("the copy is not equal to its source")
	// ErrInUse: another process uses a database that is copied.
	ErrInUse = errors.New("the database is in use")
)

// copyName is the name in the table installation under which the target of a copy says
// what it is. It is not copied.
const copyName = "copy"

// The states of a copy's target.
const (
	copyUnfinished = "unfinished"
	copyVerified   = "verified"
)

// copyMark is the value of copyName, as JSON.
type copyMark struct {
	Source string `json:"source"` // what identifies it
	State  string `json:"state"`
	At     int64  `json:"at"` // microseconds, when the state was written
}

// Copy copies all data of one database to one of the other engine. Nothing else may write
// to either; the source is read as it was at one instant.
//
// The rows of a table are copied in the order of its primary key, in batches, each in a
// transaction. So the target has the first rows of the source at each instant, and a copy
// that was interrupted goes on behind the last of them.
type Copy struct {
	// From is the source. To is the target, opened with Config.Target.
	From, To *DB
	// Restart empties the target of an unfinished copy and begins anew.
	Restart bool
	// Progress is called after each batch. Its error ends the copy.
	Progress func(CopyProgress) error

	batchRows int           // 0 chooses
	wait      time.Duration // instead of copyWait, in tests
	plan      *copyPlan
	source    string
}

// CopyProgress says how far a copy has come.
type CopyProgress struct {
	Table   string // with its day, if it is kept by the day
	Rows    int64  // of this table, those from before an interruption left out
	Resumed bool   // the target had some of its rows
	Done    bool   // the table is complete
	Verify  bool   // the rows are read again and compared
}

// errUnfinished has the remedy.
func errUnfinished() error {
	return fmt.Errorf("%w: give the command again that made it (gatehouse copy …), which goes on where it stopped, "+
		"or with --restart, which begins anew; or serve the database that it is a copy of", ErrUnfinished)
}

// readMark returns the mark of a copy's target; its State is "" if there is none.
func readMark(ctx context.Context, q Querier) (mark copyMark, err error) {
	err = q.Query(ctx, `SELECT value FROM installation WHERE name = $1`, func(r Row) error {
		return json.Unmarshal(r.Bytes(0), &mark)
	}, copyName)
	return mark, err
}

func writeMark(ctx context.Context, tx Tx, mark copyMark) error {
	mark.At = time.Now().UnixMicro()
	text, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
		copyName, string(text))
	return err
}

// whole returns ErrUnfinished if the database is the target of an unfinished copy.
func (d *DB) whole(ctx context.Context) error {
	mark, err := readMark(ctx, d.Unscoped("whether the database is a whole one"))
	if err == nil && mark.State == copyUnfinished {
		err = errUnfinished()
	}
	return err
}

// mayBeFilled returns ErrOccupied if a database with a schema cannot be the target of a copy. It
// writes nothing.
func (d *DB) mayBeFilled(ctx context.Context) error {
	h := d.Unscoped("whether a copy may fill the database")
	mark, err := readMark(ctx, h)
	if err != nil || mark.State == copyUnfinished {
		return err
	}
	tenants := 0
	if err := h.Query(ctx, `SELECT 1 FROM tenants LIMIT 1`, func(Row) error { tenants++; return nil }); err != nil || tenants == 0 {
		return err
	}
	if mark.State == copyVerified {
		return fmt.Errorf("%w: it is a copy that was finished and verified at %s", ErrOccupied, time.UnixMicro(mark.At).UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("%w: it has tenants; name another database or folder", ErrOccupied)
}

// mayBeMade returns ErrOccupied if a database without a schema has tables of something else.
func (d *DB) mayBeMade(ctx context.Context) error {
	tables := `SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 1`
	if d.Engine() == Postgres {
		tables = `SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = to_regnamespace(current_schema()) LIMIT 1`
	}
	foreign := ""
	err := d.Unscoped("whether a copy may fill the database").Query(ctx, tables, func(r Row) error { foreign = r.Text(0); return nil })
	if err == nil && foreign != "" {
		err = fmt.Errorf("%w: it has a table %s, which is not gatehouse's; name another database or folder", ErrOccupied, foreign)
	}
	return err
}

// reserve marks a target that was made for a copy, so that nothing serves what no copy has filled.
func (d *DB) reserve(ctx context.Context) error {
	return d.Unscoped("the target of a copy of all tenants").Write(ctx, func(tx Tx) error {
		return writeMark(ctx, tx, copyMark{State: copyUnfinished})
	})
}

// Run copies, compares and marks the target as a whole database. It returns the tables as
// they were compared. Until it has returned nil, Open refuses the target with
// ErrUnfinished. Its other errors are ErrInUse, ErrOccupied, ErrDiffers and those of Handle.
func (c *Copy) Run(ctx context.Context) (tables []CopiedTable, err error) {
	if c.From.Engine() == c.To.Engine() {
		return nil, fmt.Errorf("source and target are both %s: use backup and restore, or the tools of PostgreSQL", c.From.Engine())
	}
	for _, d := range []*DB{c.From, c.To} {
		if err := d.aloneFor(ctx, cmp.Or(c.wait, copyWait)); err != nil {
			return nil, err
		}
	}
	if c.plan, err = planCopy(ctx, c.From, c.To); err != nil {
		return nil, err
	}
	from, err := c.From.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.end()) }()
	if c.source, err = identity(ctx, from); err != nil {
		return nil, err
	}
	if err := c.prepare(ctx, from); err != nil {
		return nil, err
	}
	days, err := c.From.days.List(ctx)
	if err != nil {
		return nil, err
	}
	slices.Reverse(days)
	if err := c.fill(ctx, from, days); err != nil {
		return nil, err
	}
	if tables, err = c.verify(ctx, from, days); err != nil {
		return tables, err
	}
	if err := from.unchanged(ctx); err != nil {
		return tables, err
	}
	if err := c.From.aloneFor(ctx, 0); err != nil {
		return tables, fmt.Errorf("since the copy began, the source has been opened: %w", err)
	}
	return tables, c.finish(ctx)
}

// identity identifies an installation: by the instant at which its schema was made and the
// check value of its master key.
func identity(ctx context.Context, from *snapshot) (id string, err error) {
	err = from.query(ctx, `SELECT applied_at FROM schema_migrations ORDER BY number LIMIT 1`, func(r Row) error {
		id = fmt.Sprintf("%s %d", from.engine, r.Int(0))
		return nil
	})
	if err != nil {
		return "", err
	}
	return id, from.query(ctx, `SELECT value FROM installation WHERE name = 'master_key_check'`, func(r Row) error {
		id += " " + r.Text(0)
		return nil
	})
}

// prepare marks the target as unfinished and stores the values of the installation. A target
// without a mark must be empty.
func (c *Copy) prepare(ctx context.Context, from *snapshot) error {
	h := c.To.Unscoped("the target of a copy of all tenants")
	mark, err := readMark(ctx, h)
	if err != nil {
		return err
	}
	begun := mark.State == copyUnfinished && mark.Source != ""
	switch {
	case begun && c.Restart:
		if err := c.empty(ctx); err != nil {
			return err
		}
	case begun && mark.Source != c.source:
		return fmt.Errorf("%w: it is the unfinished copy of another database; --restart replaces it", ErrOccupied)
	case !begun:
		if err := c.mustBeEmpty(ctx, h); err != nil {
			return err
		}
	}
	names, err := installation(ctx, from)
	if err != nil {
		return err
	}
	return h.Write(ctx, func(tx Tx) error {
		for _, v := range names {
			_, err := tx.Exec(ctx, `INSERT INTO installation (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
				v[0], v[1])
			if err != nil {
				return err
			}
		}
		return writeMark(ctx, tx, copyMark{Source: c.source, State: copyUnfinished})
	})
}

// installation returns names and values of the installation, in their order, without
// what says that a database is a copy.
func installation(ctx context.Context, s *snapshot) (list [][2]string, err error) {
	err = s.query(ctx, `SELECT name, value FROM installation WHERE name <> $1 ORDER BY name`, func(r Row) error {
		list = append(list, [2]string{r.Text(0), r.Text(1)})
		return nil
	}, copyName)
	return list, err
}

func (c *Copy) mustBeEmpty(ctx context.Context, h Handle) error {
	for _, t := range c.plan.tables {
		rows := 0
		if err := h.Query(ctx, `SELECT 1 FROM `+t.name+` LIMIT 1`, func(Row) error { rows++; return nil }); err != nil {
			return err
		}
		if rows > 0 {
			return fmt.Errorf("%w: it has rows in %s; name another database or folder", ErrOccupied, t.name)
		}
	}
	switch days, err := c.To.days.List(ctx); {
	case err != nil:
		return err
	case len(days) > 0:
		return fmt.Errorf("%w: it has an audit log; name another database or folder", ErrOccupied)
	}
	return nil
}

// empty deletes what an unfinished copy has stored.
func (c *Copy) empty(ctx context.Context) error {
	days, err := c.To.days.List(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		if err := c.To.days.Drop(ctx, day); err != nil {
			return err
		}
	}
	return c.To.Unscoped("the target of a copy of all tenants").Write(Patiently(ctx, "a table is emptied at once"), func(tx Tx) error {
		for _, t := range c.plan.tables {
			sql := `DELETE FROM ` + t.name // SQLite drops the pages
			if c.To.Engine() == Postgres {
				sql = `TRUNCATE ` + t.name
			}
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill copies all tables, the days last, the earliest day first.
func (c *Copy) fill(ctx context.Context, from *snapshot, days []Day) error {
	for _, t := range c.plan.tables {
		if err := c.fillTable(ctx, from, c.To, t, t.name, nil); err != nil {
			return fmt.Errorf("copy %s: %w", t.name, err)
		}
	}
	for _, day := range days {
		err := withDay(ctx, c.From, from, day, func(from *snapshot) error {
			return c.writeDay(ctx, day, func(to *DB) error {
				for _, t := range c.plan.byDay {
					if err := c.fillTable(ctx, from, to, t, t.name+" "+day.String(), &day); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("copy the audit log of %s: %w", day, err)
		}
	}
	return nil
}

// withDay calls fn with a snapshot of a day: that of the main database, on PostgreSQL.
func withDay(ctx context.Context, d *DB, main *snapshot, day Day, fn func(*snapshot) error) (err error) {
	if d.Engine() == Postgres {
		return fn(main)
	}
	of, done, err := d.days.store.open(ctx, day, false)
	if err != nil {
		return err
	}
	if of == nil {
		return fmt.Errorf("%w: the file of the day is gone", ErrInUse)
	}
	defer func() { err = done(err) }()
	s, err := of.snapshot(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	return fn(s)
}

// writeDay calls fn with the database that takes a day. On SQLite the day is on disk
// when writeDay returns nil.
func (c *Copy) writeDay(ctx context.Context, day Day, fn func(*DB) error) error {
	to, done, err := c.To.days.store.open(ctx, day, true)
	if err != nil {
		return err
	}
	if err = fn(to); err == nil {
		err = to.checkpoint(ctx)
	}
	return done(err)
}

// checkpoint moves what was committed from the log of an SQLite file to the file, and waits until it is on disk.
func (d *DB) checkpoint(context.Context) error {
	e, ok := d.engine.(*sqliteEngine)
	if !ok {
		return nil
	}
	conn, err := e.open()
	if err != nil {
		return err
	}
	busy := true
	err = conn.run(context.Background(), scope{}, describe(`PRAGMA wal_checkpoint(FULL)`), func(r Row) error {
		busy = r.Bool(0)
		return nil
	}, nil)
	if err == nil && busy {
		err = fmt.Errorf("%w: its log could not be written back", ErrBusy)
	}
	return errors.Join(err, conn.Close())
}

// fillTable copies the rows of a table that the target lacks.
func (c *Copy) fillTable(ctx context.Context, from *snapshot, to *DB, t copyTable, name string, day *Day) error {
	after, err := t.last(ctx, to, day)
	if err != nil {
		return err
	}
	resumed, rows := after != nil, int64(0)
	err = t.batches(ctx, from, day, after, c.batchRows, func(b *copyBatch) error {
		err := to.Unscoped("a copy of all tenants").Write(Patiently(ctx, "a batch of rows with all their indexes"), func(tx Tx) error {
			return t.insert(ctx, tx, b)
		})
		if err != nil {
			return err
		}
		rows += int64(b.rows)
		return c.progress(CopyProgress{Table: name, Rows: rows, Resumed: resumed})
	})
	if err != nil {
		return err
	}
	return c.progress(CopyProgress{Table: name, Rows: rows, Resumed: resumed, Done: true})
}

func (c *Copy) progress(p CopyProgress) error {
	if c.Progress == nil {
		return nil
	}
	return c.Progress(p)
}

// finish marks the target as a whole database.
func (c *Copy) finish(ctx context.Context) error {
	h := c.To.Unscoped("the target of a copy of all tenants")
	if c.To.Engine() == Postgres { // or its plans are made for empty tables until it is analyzed by itself
		err := h.Write(Patiently(ctx, "statistics of all tables"), func(tx Tx) error {
			for _, t := range append(slices.Clone(c.plan.tables), c.plan.byDay...) {
				if err := script(ctx, tx, `ANALYZE `+t.name); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return h.Write(ctx, func(tx Tx) error {
		return writeMark(ctx, tx, copyMark{Source: c.source, State: copyVerified})
	})
}
