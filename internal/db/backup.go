package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// packedPart is the number of bytes of a day's file in one row of a backup.
const packedPart = 1 << 20

// packedDays is the table with the days' files in a backup; a database in use
// does not have it.
const packedDays = `CREATE TABLE packed_days (name TEXT NOT NULL, part INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (name, part))`

// backup copies a snapshot of the database with VACUUM INTO to a temporary file
// next to destFile, calls add with that file, and renames it to destFile once it
// is complete and on disk.
func (e *sqliteEngine) backup(ctx context.Context, destFile string, add func(file string) error) (err error) {
	if _, err := os.Lstat(destFile); err == nil {
		return fmt.Errorf("backup: %s exists already", destFile)
	}
	// VACUUM INTO accepts an existing empty file. Creating it here keeps it
	// unreadable for other users.
	f, err := os.CreateTemp(filepath.Dir(destFile), filepath.Base(destFile)+".part-*")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("backup: %w", err), os.Remove(f.Name()))
			_ = os.Remove(f.Name() + "-journal") // there is one where VACUUM INTO failed
		}
	}()
	err = vacuumInto(ctx, e.path, f.Name())
	if err == nil {
		err = add(f.Name())
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil { // Windows renames no open file
		return err
	}
	if err := os.Rename(f.Name(), destFile); err != nil {
		return err
	}
	return syncPath(filepath.Dir(destFile))
}

// vacuumInto copies a database, which may be in use.
func vacuumInto(ctx context.Context, from, to string) error {
	c, err := (&sqliteEngine{path: from}).open()
	if err != nil {
		return err
	}
	// The statement counts as a read, so the end of ctx interrupts it.
	return errors.Join(c.run(ctx, scope{}, describe("VACUUM INTO $1"), nil, []any{to}), c.Close())
}

// pack adds the days' files to a copy of the main database, each as a snapshot
// of its own. It leaves out the days that cannot be read and returns their
// errors in left.
func (f *dayFiles) pack(ctx context.Context, file string) (left []error, err error) {
	days, err := f.list(ctx)
	if err != nil || len(days) == 0 {
		return nil, err
	}
	c, err := (&sqliteEngine{path: file}).open("journal_mode = OFF", "synchronous = OFF")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.run(ctx, scope{}, describe(packedDays), nil, nil); err != nil {
		return nil, err
	}
	for _, day := range days {
		copied := file + "-" + day.String()
		err := vacuumInto(ctx, f.path(day), copied)
		if err != nil && ctx.Err() == nil && errors.Is(err, ErrUnavailable) {
			left = append(left, fmt.Errorf("%s: %w", f.path(day), err))
			err = nil
		} else if err == nil {
			err = packFile(ctx, c, day.String()+daySuffix, copied)
		}
		if gone := os.Remove(copied); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
		if err != nil {
			return left, err
		}
	}
	return left, nil
}

func packFile(ctx context.Context, c *sqliteConn, name, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, packedPart)
	for part := 0; ; part++ {
		n, err := io.ReadFull(in, buf)
		if n == 0 && errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		err = c.run(ctx, scope{}, describe(`INSERT INTO packed_days (name, part, content) VALUES ($1, $2, $3)`), nil, []any{name, part, buf[:n]})
		if err != nil {
			return err
		}
	}
}

// Unpack moves the days from a copy made by Backup into dir, so that only the
// main database remains in file, and returns the number of days. Nothing else
// may use the file during the call. After an error the file is unusable.
func Unpack(ctx context.Context, file, dir string) (days int, err error) {
	c, err := (&sqliteEngine{path: file}).open("journal_mode = OFF", "synchronous = OFF")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var names []string
	has := false
	err = c.run(ctx, scope{}, describe(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'packed_days'`),
		func(r Row) error { has = r.Bool(0); return nil }, nil)
	if err != nil || !has {
		return 0, err
	}
	err = c.run(ctx, scope{}, describe(`SELECT DISTINCT name FROM packed_days`), func(r Row) error {
		names = append(names, r.Text(0))
		return nil
	}, nil)
	if err != nil {
		return 0, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, err
	}
	for _, name := range names {
		if _, err := time.Parse(dayFormat+daySuffix, name); err != nil {
			return 0, fmt.Errorf("%q is not the file of a day", name)
		}
		if err := unpackFile(ctx, c, name, filepath.Join(dir, name)); err != nil {
			return 0, err
		}
	}
	for _, sql := range []string{`DROP TABLE packed_days`, `VACUUM`} {
		if err := c.run(ctx, scope{}, describe(sql), nil, nil); err != nil {
			return 0, err
		}
	}
	return len(names), errors.Join(syncPath(dir), syncPath(file))
}

func unpackFile(ctx context.Context, c *sqliteConn, name, path string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	err = c.run(ctx, scope{}, describe(`SELECT content FROM packed_days WHERE name = $1 ORDER BY part`), func(r Row) error {
		_, err := out.Write(r.Bytes(0))
		return err
	}, []any{name})
	if err != nil {
		return err
	}
	return out.Sync()
}

// syncPath waits until a folder or file is on disk.
func syncPath(path string) error {
	how := os.O_RDONLY
	if runtime.GOOS == "windows" { // it cannot sync a folder, and syncs a file only for who may write to it
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			return err
		}
		how = os.O_RDWR
	}
	d, err := os.OpenFile(path, how, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (p *postgres) backup(context.Context, string, func(string) error) error {
	return errors.New("backup: this database is PostgreSQL; use pg_dump")
}
