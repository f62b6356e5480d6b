package db

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockServing takes the folder's serving lock. The system frees it when the
// process ends, however it ends; the file stays.
func lockServing(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "serve.lock"), os.O_CREATE|os.O_RDWR, 0o600)
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
