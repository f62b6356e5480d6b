package db_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"gatehouse/internal/db"
)

// The messages are those of Citus 13.2.2 with a worker that was stopped.
func TestALostWorkerIsToldFromOtherErrors(t *testing.T) {
	for _, c := range []struct {
		code, message string
		lost          bool
	}{
		{"08006", "connection to the remote node postgres@127.0.0.1:9702 failed with the following error: Connection refused", true},
		{"XX000", "failure on connection marked as essential: 127.0.0.1:9702", true},
		{"XX000", "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore or while processing the request.", true},
		{"XX000", "cache lookup failed for relation 16385", false},
		{"23505", "duplicate key value violates unique constraint \"connection\"", false},
		{"0A000", "non-IMMUTABLE functions are not allowed in the RETURNING clause", false},
	} {
		if got := db.WorkerLost(&pgconn.PgError{Severity: "ERROR", Code: c.code, Message: c.message}); got != c.lost {
			t.Errorf("%s %s: %v", c.code, c.message, got)
		}
	}
}
