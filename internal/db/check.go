package db

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"zombiezen.com/go/sqlite"
)

var errForeign = errors.New("it is not a gatehouse database")

// Check returns an error if an SQLite file is not a complete database that this
// program can open: it is something else, it is damaged, or a newer program has
// migrated it (ErrTooNew). It reads only the file itself, not the -wal and -shm
// files of a database in use; it migrates nothing and leaves no files. Nothing
// may write to the file during the check.
func Check(ctx context.Context, file string) (err error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return errForeign
	}
	raw, err := sqlite.OpenConn(immutable(path), sqlite.OpenReadOnly, sqlite.OpenURI)
	if err != nil {
		return classifySQLite(err)
	}
	c := newSQLiteConn(raw)
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := check(ctx, &sqliteTx{conn: c}); err != nil {
		switch sqlite.ErrCode(err).ToPrimary() {
		case sqlite.ResultNotADB:
			return errForeign
		case sqlite.ResultCorrupt, sqlite.ResultIOErr:
			return fmt.Errorf("it is damaged: %w", err)
		default:
			return err
		}
	}
	return nil
}

// immutable returns the URI of a file at an absolute path, which SQLite then opens without creating
// its own files next to it.
func immutable(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // a drive of Windows
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: "immutable=1"}).String()
}

func check(ctx context.Context, q Querier) error {
	ours, err := hasSchema(ctx, q)
	if err != nil {
		return err
	}
	if !ours {
		return errForeign
	}
	var problems []string
	err = q.Query(ctx, `PRAGMA integrity_check(3)`, func(r Row) error {
		problems = append(problems, r.Text(0))
		return nil
	})
	if err != nil {
		return err
	}
	if len(problems) != 1 || problems[0] != "ok" {
		return fmt.Errorf("it is damaged: %s", strings.Join(problems, "; "))
	}
	all, err := migrations(mainSteps, SQLite)
	if err != nil {
		return err
	}
	done, err := applied(ctx, q)
	if err != nil {
		return err
	}
	return tooNew(ctx, q, done, all)
}
