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
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// actor is the name under which the change history records changes by commands.
const actor = "operator"

// config returns the database that the flags name.
func (f *flags) config() (db.Config, error) {
	if f.database == "" {
		return db.Config{Dir: f.data}, nil
	}
	if !strings.HasPrefix(f.database, "postgres://") && !strings.HasPrefix(f.database, "postgresql://") {
		return db.Config{}, usagef("--database: expected an address that begins with postgres://")
	}
	return db.Config{URL: f.database}, nil
}

// onDatabase calls do with the database that the flags name. A data folder
// without a database is an error; none is made.
func (f *flags) onDatabase(ctx context.Context, do func(*db.DB) error) error {
	c, err := f.config()
	if err != nil {
		return err
	}
	c.Existing = true
	err = f.with(ctx, c, do)
	switch {
	case errors.Is(err, db.ErrNone) && c.URL != "":
		return fmt.Errorf("there is no gatehouse database at %s; serve, demo and apply make one there", withoutPassword(c.URL))
	case errors.Is(err, db.ErrNone):
		return fmt.Errorf("there is no database in %s; --data names another folder, and serve, demo and apply make one", c.Dir)
	}
	return err
}

// with opens a database, making it if it does not exist, calls do with it and
// closes it. With PostgreSQL the master key must be given, and must be the one that
// the database was set up with.
func (f *flags) with(ctx context.Context, c db.Config, do func(*db.DB) error) (err error) {
	if c.URL != "" { // before a database is made or migrated
		if _, err := f.masterKey(false); err != nil {
			return err
		}
	}
	d, err := db.Open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if c.URL != "" {
		if _, err := f.keyring(ctx, d); err != nil {
			return err
		}
	}
	return do(d)
}

// without is with for what is to leave nothing behind: where the data folder has no
// database, it does not make one there, but in a folder that it removes again.
func (f *flags) without(ctx context.Context, c db.Config, do func(*db.DB) error) (err error) {
	if c.URL != "" {
		return f.with(ctx, c, do)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, db.FileName)); !errors.Is(err, fs.ErrNotExist) {
		return f.with(ctx, c, do)
	}
	if f.data, err = os.MkdirTemp("", "gatehouse-dry-run-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.data)) }()
	c.Dir = f.data
	return f.with(ctx, c, do)
}

// tenantDB is an open database and the configuration of one of its tenants.
type tenantDB struct {
	*db.DB
	directory *access.Directory
	config    *access.Config
}

// onTenant calls do with the database that the flags name and the tenant of
// --tenant. It returns NOT_FOUND when there is no such tenant.
func (f *flags) onTenant(ctx context.Context, do func(*tenantDB) error) error {
	return f.onDatabase(ctx, func(d *db.DB) error {
		t, err := openTenant(ctx, d, f.tenant)
		if err != nil {
			return err
		}
		return do(t)
	})
}

// openTenant returns a tenant with its current configuration, NOT_FOUND when it
// does not exist.
func openTenant(ctx context.Context, d *db.DB, id tenant.ID) (*tenantDB, error) {
	directory := access.NewDirectory(d)
	config, err := directory.Current(ctx, id)
	if err != nil {
		return nil, err
	}
	return &tenantDB{d, directory, config}, nil
}

// handle returns the database bound to the tenant.
func (t *tenantDB) handle() db.Handle { return t.For(t.config.Tenant.ID) }

// user returns the user with an e-mail address, NOT_FOUND when there is none.
func (t *tenantDB) user(ctx context.Context, email string) (*user.User, error) {
	u, err := user.ByEmail(ctx, t.handle(), email)
	if errors.Is(err, user.ErrUnknown) {
		return nil, fault.New(fault.NotFound, "there is no user with the e-mail address %s", strings.TrimSpace(email))
	}
	return u, err
}

// emails returns a function that returns the e-mail address of the user with an
// id. It reads each user once, and returns the id itself for a deleted user.
func (t *tenantDB) emails(ctx context.Context) func(user.ID) (string, error) {
	known := map[user.ID]string{"": ""}
	return func(id user.ID) (string, error) {
		if email, ok := known[id]; ok {
			return email, nil
		}
		switch u, err := user.ByID(ctx, t.handle(), id); {
		case err == nil:
			known[id] = u.Email
		case errors.Is(err, user.ErrUnknown):
			known[id] = string(id)
		default:
			return "", err
		}
		return known[id], nil
	}
}

// engine starts the JavaScript engine, which is compiled in the background. A
// folder that --cache names must be writable; a default one need not be.
func (f *flags) engine(ctx context.Context) (*component.Engine, error) {
	if f.cache != "" {
		if err := writable(f.cache); err != nil {
			return nil, fmt.Errorf("--cache: %w", err)
		}
	}
	return component.NewEngine(ctx, component.Options{CacheDir: f.cacheDir()})
}

// writable makes a folder if it does not exist, and checks that it can be
// written to.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, "writable-")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// cacheDir returns the folder of the compiled engine: --cache, or else a folder
// next to an SQLite database, or else the user's cache; "" when there is none.
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
