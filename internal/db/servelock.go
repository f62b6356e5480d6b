package db

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// LockFileName is the file in a data folder that a server keeps locked.
const LockFileName = "serve.lock"

// Lock takes a folder's serving lock until Close; ErrServed when it is taken.
// The system frees it when the process ends, however it ends; the file stays.
func Lock(dir string) (io.Closer, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("%w: %s", ErrServed, dir)
	default:
		err = fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}
