package db

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedAt is the place of the locked byte, behind everything that is written: on Windows a
// lock keeps others from reading and writing what it covers.
const lockedAt = 1 << 30

// tryLock locks a file until it is closed, and reports whether no other process has it
// locked.
func tryLock(f *os.File) (free bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockedAt})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}
