//go:build !windows

package db

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed, and reports whether no other process has it
// locked.
func tryLock(f *os.File) (free bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
