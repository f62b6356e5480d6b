package db

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// classifySQLite wraps an error of SQLite in the package's error for it. The
// original stays in the chain. Any other error is returned unchanged.
func classifySQLite(err error) error {
	if err == nil || classified(err) {
		return err
	}
	code := sqlite.ErrCode(err)
	if code == sqlite.ResultConstraintUnique || code == sqlite.ResultConstraintPrimaryKey {
		return fmt.Errorf("%w: %w", ErrUnique, err)
	}
	switch code.ToPrimary() {
	case sqlite.ResultFull, sqlite.ResultReadOnly:
		return fmt.Errorf("%w: %w", ErrFull, err)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fmt.Errorf("%w: %w", ErrBusy, err)
	case sqlite.ResultIOErr, sqlite.ResultCantOpen, sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultNoMem,
		sqlite.ResultInterrupt:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	default:
		return err
	}
}

// unsynced reports whether the error of a COMMIT leaves its outcome unknown: the transaction was written
// to the log as a whole, and then the log could not be synced. It is undone now, but if the
// server dies before it writes again, the next one finds it in the log and counts it.
func unsynced(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultIOErr }

// classified reports whether err is already classified, or is a context's
// error.
func classified(err error) bool {
	for _, known := range []error{ErrUnique, ErrFull, ErrUnavailable, ErrBusy, ErrServed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}
