package db

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// backup copies the database as it is at one instant, by VACUUM INTO, to a
// file beside destFile, and gives it that name once it is whole and on disk.
func (e *sqliteEngine) backup(ctx context.Context, destFile string) (err error) {
	if _, err := os.Lstat(destFile); err == nil {
		return fmt.Errorf("backup: %s exists already", destFile)
	}
	// VACUUM INTO takes an empty file; made here, it is nobody else's to read.
	f, err := os.CreateTemp(filepath.Dir(destFile), filepath.Base(destFile)+".part-*")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("backup: %w", err), os.Remove(f.Name()))
		}
	}()
	defer func() { err = errors.Join(err, f.Close()) }()
	c, err := e.open()
	if err != nil {
		return err
	}
	// It counts as a read, so the end of ctx interrupts it.
	if err := errors.Join(c.run(ctx, scope{}, describe("VACUUM INTO $1"), nil, []any{f.Name()}), c.Close()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), destFile); err != nil {
		return err
	}
	return syncDir(filepath.Dir(destFile))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (p *postgres) backup(context.Context, string) error {
	return errors.New("backup: this database is PostgreSQL; use pg_dump")
}
