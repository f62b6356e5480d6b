package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// actor is whom the change history names for what the command line does.
const actor = "operator"

// config says which database the flags name.
func (f *flags) config() (db.Config, error) {
	if f.database == "" {
		return db.Config{Dir: f.data}, nil
	}
	if !strings.HasPrefix(f.database, "postgres://") && !strings.HasPrefix(f.database, "postgresql://") {
		return db.Config{}, usagef("--database: expected an address that begins with postgres://")
	}
	return db.Config{URL: f.database}, nil
}

// open opens the database of a command that works on what is there: a data
// folder without a database is an error, and none is made. The caller closes it.
func (e *env) open(ctx context.Context, f *flags) (*db.DB, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	if c.URL == "" {
		switch _, err := os.Stat(filepath.Join(c.Dir, db.FileName)); {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("there is no database in %s; --data names another folder, and serve, demo and apply make one", c.Dir)
		case err != nil:
			return nil, err
		}
	}
	return e.openConfig(ctx, f, c)
}

// create is open for a command that may be the first: it makes the database.
func (e *env) create(ctx context.Context, f *flags) (*db.DB, error) {
	c, err := f.config()
	if err != nil {
		return nil, err
	}
	return e.openConfig(ctx, f, c)
}

// openConfig opens a database. With PostgreSQL the master key must be given,
// and be the one that the installation began with.
func (e *env) openConfig(ctx context.Context, f *flags, c db.Config) (*db.DB, error) {
	if c.URL != "" { // before a database is made or migrated
		if _, err := e.masterKey(f, false); err != nil {
			return nil, err
		}
	}
	d, err := db.Open(ctx, c)
	if err != nil || c.URL == "" {
		return d, err
	}
	if _, err := e.keyring(ctx, f, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// tenant is a tenant's configuration now; NOT_FOUND when there is no such tenant.
func (e *env) tenant(ctx context.Context, d *db.DB, id tenant.ID) (*access.Directory, *access.Config, error) {
	dir := access.NewDirectory(d)
	c, err := dir.Current(ctx, id)
	return dir, c, err
}

// onTenant opens the database that the flags name and runs do with it and the
// configuration of a tenant; NOT_FOUND when there is no such tenant.
func (e *env) onTenant(ctx context.Context, f *flags, id tenant.ID, do func(*db.DB, *access.Config) error) (err error) {
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	_, config, err := e.tenant(ctx, d, id)
	if err != nil {
		return err
	}
	return do(d, config)
}

// engine starts the JavaScript engine, which is compiled in the background. The
// folder of --cache must be usable; one that nobody named may be missing.
func (e *env) engine(ctx context.Context, f *flags) (*component.Engine, error) {
	if f.cache != "" {
		if err := usable(f.cache); err != nil {
			return nil, fmt.Errorf("--cache: %w", err)
		}
	}
	return component.NewEngine(ctx, component.Options{CacheDir: f.cacheDir()})
}

// usable makes the folder dir unless it is there, and writes to it.
func usable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "writable-")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// cacheDir is where the compiled engine is kept, "" for nowhere: --cache, or
// else beside an SQLite database, or else in the user's own cache.
func (f *flags) cacheDir() string {
	if f.cache != "" {
		return f.cache
	}
	if f.database == "" {
		return filepath.Join(f.data, "cache", "engine")
	}
	dir, err := os.UserCacheDir()
	if err != nil { // a user without a home
		return ""
	}
	return filepath.Join(dir, "gatehouse", "engine")
}
