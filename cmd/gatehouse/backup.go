package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
)

func backupCommand(f *flags) action {
	f.arguments = []string{"FILE"}
	withoutLogs := f.Bool("without-logs", false, "leave the audit log out")
	return func(ctx context.Context) error {
		if f.database != "" {
			return f.wrong("it copies an SQLite data folder; use pg_dump for PostgreSQL")
		}
		return f.onDatabase(ctx, func(d *db.DB) error { return f.backup(ctx, d, !*withoutLogs) })
	}
}

func (f *flags) backup(ctx context.Context, d *db.DB, withLogs bool) error {
	left, err := d.Backup(ctx, f.Arg(0), withLogs)
	if err != nil {
		return err
	}
	for _, day := range left {
		f.say("The backup is without a day of the audit log that cannot be read: %v", day)
	}
	logs := "with"
	if !withLogs {
		logs = "without"
	}
	f.say("%s is a consistent copy of %s, %s the audit log, and without the master key: keep a copy of %s elsewhere, "+
		"or the secrets in the backup can never be read.", f.Arg(0), f.data, logs, filepath.Join(f.data, secret.MasterKeyFile))
	return nil
}

func restoreCommand(f *flags) action {
	f.arguments = []string{"FILE"}
	return func(ctx context.Context) error {
		if f.database != "" {
			return f.wrong("it makes an SQLite data folder; use pg_restore for PostgreSQL")
		}
		days, err := restore(ctx, f.Arg(0), f.data)
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		key := filepath.Join(f.data, secret.MasterKeyFile)
		f.say("%s holds what was backed up in %s; days of the audit log: %d.", f.data, f.Arg(0), days)
		if _, err := os.Stat(key); errors.Is(err, fs.ErrNotExist) {
			f.say("A backup has no master key: put the old one at %s. Until then serve and apply refuse this folder; no other key reads the secrets in it.", key)
		}
		return nil
	}
}

// restore makes dir a data folder with the database and the audit log of a backup,
// and returns how many days the audit log has. dir must not exist, or must contain
// only a master key and a free lock. Even if the process is killed, dir has the
// whole database or none.
func restore(ctx context.Context, file, dir string) (days int, err error) {
	in, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if err := isBackup(file); err != nil {
		return 0, err
	}
	if err := vacant(dir); err != nil {
		return 0, err
	}
	_, missing := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	lock, err := db.Lock(dir) // so that no server can start meanwhile
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, lock.Close())
		if err != nil && missing != nil { // leave dir as it was
			_ = os.Remove(filepath.Join(dir, db.LockFileName))
			_ = os.Remove(dir)
		}
	}()
	temp, err := os.MkdirTemp(dir, ".restore-*") // on the same file system, for the link
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	copied := filepath.Join(temp, db.FileName)
	if err := copyFile(in, copied); err != nil {
		return 0, err
	}
	if err := db.Check(ctx, copied); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	unpacked := filepath.Join(temp, db.DaysFolder)
	if days, err = db.Unpack(ctx, copied, unpacked); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	logs := ""
	if days > 0 {
		logs = unpacked
	}
	return days, restored{database: copied, logs: logs}.place(dir)
}

// isBackup returns an error for what backup cannot have made: a folder, or a database that is in use or was
// not closed, whose last changes are in a file beside it.
func isBackup(file string) error {
	switch info, err := os.Stat(file); {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name the file that gatehouse backup made", file)
	}
	if info, err := os.Stat(file + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("%[1]s is in use or was not closed, and has changes in %[1]s-wal: make a backup of it with gatehouse backup", file)
	}
	return nil
}

// restored are the database and the folder of the audit log, or "", of a backup.
type restored struct{ database, logs string }

// place moves what is restored into dir. The database comes last, because a folder
// without it cannot be served.
func (r restored) place(dir string) (err error) {
	if r.logs != "" {
		if err := os.Rename(r.logs, filepath.Join(dir, db.DaysFolder)); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, db.DaysFolder)))
			}
		}()
	}
	if err := os.Link(r.database, filepath.Join(dir, db.FileName)); err != nil { // unlike a rename, it replaces nothing
		return err
	}
	if runtime.GOOS == "windows" { // it cannot sync a folder
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// vacant returns an error that says why a folder cannot take a restored database.
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

// copyFile writes a new file and returns once it is on disk.
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
