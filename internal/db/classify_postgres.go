package db

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// classifyPostgres wraps an error of PostgreSQL, or of the connection to it, in
// the package's error for it. The original stays in the chain. Any other error
// is returned unchanged.
func classifyPostgres(err error) error {
	if err == nil || classified(err) {
		return err
	}
	if known := postgresClass(err); known != nil {
		return fmt.Errorf("%w: %w", known, err)
	}
	return err
}

// errReadsOnly is the error of a write that a standby has refused.
var errReadsOnly = fmt.Errorf("%w: the server only reads, as a standby does; give the address of the primary", ErrUnavailable)

func postgresClass(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pg.Code {
		case "23505": // unique_violation
			return ErrUnique
		case "53100": // disk_full
			return ErrFull
		case "40001", "40P01", "55P03", // serialization_failure, deadlock_detected, lock_not_available
			canceled: // after statementTime, unless a ctx ended
			return ErrBusy
		case "25006": // read_only_sql_transaction
			return errReadsOnly
		case "25P03", "42501": // idle_in_transaction_session_timeout, insufficient_privilege
			return ErrUnavailable
		}
		switch {
		case workerLost(pg),
			strings.HasPrefix(pg.Code, "57P"), // admin_shutdown, crash_shutdown, cannot_connect_now, …
			strings.HasPrefix(pg.Code, "08"),  // connection exceptions
			strings.HasPrefix(pg.Code, "53"),  // insufficient resources
			strings.HasPrefix(pg.Code, "58"):  // system errors
			return ErrUnavailable
		}
		return nil
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		pgconn.SafeToRetry(err) {
		return ErrUnavailable
	}
	return nil
}

// canceled is the code of a statement that was canceled (query_canceled).
const canceled = "57014"

// full reports whether the server has refused a connection because it has too many.
func full(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "53300"
}

// lostRace reports whether the same transaction may succeed when run again.
func lostRace(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40001" || pg.Code == "40P01")
}

// standby reports whether the server has become read-only, so that its
// connections are useless.
func standby(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == "25006"
}
