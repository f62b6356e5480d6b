package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
)

func backupCommand(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("backup")
	f.arguments = []string{"FILE"}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.database != "" {
		return f.wrong("it copies an SQLite data folder; use pg_dump for PostgreSQL")
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := d.Backup(ctx, f.Arg(0)); err != nil {
		return err
	}
	e.say("%s is a consistent copy of %s, without the master key: keep a copy of %s elsewhere, "+
		"or the secrets in the backup can never be read.", f.Arg(0), f.data, filepath.Join(f.data, secret.MasterKeyFile))
	return nil
}

func restoreCommand(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("restore")
	f.arguments = []string{"FILE"}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.database != "" {
		return f.wrong("it makes an SQLite data folder; use pg_restore for PostgreSQL")
	}
	if err := restore(ctx, f.Arg(0), f.data); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	key := filepath.Join(f.data, secret.MasterKeyFile)
	e.say("%s holds what was backed up in %s.", f.data, f.Arg(0))
	if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
		e.say("A backup has no master key: put the old one at %s before you serve, or the secrets in it cannot be read.", key)
	}
	return nil
}

// restore makes dir a data folder with the database in file. dir must not
// exist or hold nothing but a master key and a free lock. Whenever it ends, dir
// has the whole database or none.
func restore(ctx context.Context, file, dir string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := vacant(dir); err != nil {
		return err
	}
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := db.Lock(dir) // so that no server starts meanwhile
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, lock.Close())
		if err != nil && missing != nil { // leave what was found
			_ = os.Remove(filepath.Join(dir, db.LockFileName))
			_ = os.Remove(dir)
		}
	}()
	temp, err := os.MkdirTemp(dir, ".restore-*") // on the same file system, for the link
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	copied := filepath.Join(temp, db.FileName)
	if err := copyFile(in, copied); err != nil {
		return err
	}
	if err := db.Check(ctx, copied); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.Link(copied, filepath.Join(dir, db.FileName)); err != nil { // unlike a rename it replaces nothing
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// vacant reports why a folder cannot take a restored database.
func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == db.LockFileName {
			lock, err := db.Lock(dir)
			if err != nil {
				return err
			}
			if err := lock.Close(); err != nil {
				return err
			}
		}
	}
	for _, entry := range entries {
		if !slices.Contains([]string{secret.MasterKeyFile, db.LockFileName}, entry.Name()) {
			return fmt.Errorf("%s is not empty (%s): name another folder with --data, or move this one away", dir, entry.Name())
		}
	}
	return nil
}

// copyFile writes a new file and returns when it is on the disk.
func copyFile(in io.Reader, path string) (err error) {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
