package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// LockFileName is the file in a data folder that a server keeps locked.
const LockFileName = "serve.lock"

// ErrLost means that a folder that was served has no database any more.
var ErrLost = errors.New("the database file is missing or empty")

// servedMark is the content of the lock file once a database was served.
const servedMark = "served\n"

// markServed records that the folder has a database: from now on an empty or
// missing file is a loss, not a new folder.
func markServed(dir string) error {
	path := filepath.Join(dir, LockFileName)
	if info, err := os.Stat(path); err != nil || info.Size() > 0 {
		return err
	}
	return os.WriteFile(path, []byte(servedMark), 0o600)
}

// notLost returns ErrLost if the folder had a database that is now missing or
// empty, so that no empty one is created in its place.
func notLost(dir string) error {
	size := func(name string) int64 {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	if size(FileName) > 0 || size(FileName+"-wal") == 0 && size(LockFileName) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s was in use; restore a backup (gatehouse restore FILE --data OTHER-FOLDER), or, to begin anew, remove %s and %s-wal",
		ErrLost, filepath.Join(dir, FileName), LockFileName, FileName)
}

// Lock takes a folder's serving lock until Close. It returns ErrServed when the
// lock is taken. The kernel releases it when the process ends, however it ends;
// the file stays.
func Lock(dir string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	switch free, e := tryLock(f); {
	case e != nil:
		err = fmt.Errorf("lock %s: %w", f.Name(), e)
	case free:
		return f, nil
	default:
		err = fmt.Errorf("%w: %s", ErrServed, dir)
	}
	return nil, errors.Join(err, f.Close())
}
