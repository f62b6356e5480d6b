package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The deadlines of PostgreSQL. Nothing sets them for a single statement: the server
// cancels what takes longer than statementTime, and a socket on which the
// server is silent for longer than silence is closed. Both hold for every connection
// from its first byte to its last (see link).
const (
	// lockTime is how long a statement waits for a row that another transaction
	// holds. It then fails with ErrBusy. It is more than the 5 s of a run, whose time is over first.
	lockTime = 5500 * time.Millisecond
	// statementTime is how long a statement may run. The server cancels it then, so that
	// it holds nothing any more, and it fails with ErrBusy.
	statementTime = 6 * time.Second
	// silence is how long the server may send nothing while an answer is due, as a frozen or
	// unreachable one does. The connection is closed then, and the call fails with
	// ErrUnavailable. It is more than statementTime, which spares the connection.
	silence = 7 * time.Second
	// firstAnswer is silence for the first answer on a new connection, which none but a busy server
	// keeps waiting for. A request to cancel what a lost connection did must not hold its place in the pool.
	firstAnswer = 3 * time.Second
	// leastCommit is the least time of a commit, also when its caller's time is nearly over:
	// a commit that is cut off leaves the outcome unknown.
	leastCommit = time.Second
	// cancelTime is how long a statement whose ctx has ended has to end. Then its
	// connection is closed.
	cancelTime = time.Second
	// connectTime bounds a connection's start, for each host of the URL. Behind a
	// delay of 200 ms each way, TLS and a password take 2.5 s.
	connectTime = 5 * time.Second
	// pingTime bounds the question whether a connection that was idle is alive.
	pingTime = 2 * time.Second
	// retryTime is how long after its begin a call is tried again on another
	// connection, or after a lost race.
	retryTime = 3 * time.Second
	// patience is what Patiently allows.
	patience = 10 * time.Minute
)

// ErrUnknown says of a write that whether it was committed is unknown, because the
// database was lost during the commit, or could not sync its log: it is wholly there, or not at all. Such an
// error is an ErrUnavailable, too.
var ErrUnknown = errors.New("whether the change was made is unknown")

// errSilent is the error of a read or write that the server did not answer in time. It is a
// net.Error, so that it is classified as ErrUnavailable. It is no Timeout, after which pgx would
// read again.
type errSilent struct{ limit time.Duration }

func (e errSilent) Error() string {
	return fmt.Sprintf("the database has not answered for %s; the connection is closed", e.limit)
}
func (errSilent) Timeout() bool   { return false }
func (errSilent) Temporary() bool { return false }

type answerKey struct{}

// leastWait is the least time of a wait for a turn or a connection, also when a request is late already, because
// its body was slow or it ran long.
const leastWait = 2 * time.Second

// AnswerBy returns a context for a request that should be answered by an instant: its
// waits for a turn to write and for a connection end then, if not earlier, though
// not before leastWait. What has begun is not ended by it. Work with a deadline of its own, such as
// a run, waits until that.
func AnswerBy(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, answerKey{}, at)
}

// waitEnd returns when a wait that begins now must end.
func waitEnd(ctx context.Context) time.Time {
	now := time.Now()
	end := now.Add(maxWait)
	if _, own := ctx.Deadline(); own {
		return end
	}
	if at, ok := ctx.Value(answerKey{}).(time.Time); ok && at.Before(end) {
		end = now.Add(max(leastWait, at.Sub(now)))
	}
	return end
}

type patientKey struct{}

// Patiently returns a context for a Write whose statements may take minutes, such as
// migrations: on PostgreSQL each may run, and wait for locks, for 10 min. A request must
// never use it. reason says why the work cannot be done in short steps.
func Patiently(ctx context.Context, reason string) context.Context {
	if reason == "" {
		panic("db: Patiently needs a reason")
	}
	return context.WithValue(ctx, patientKey{}, reason)
}

func patient(ctx context.Context) bool { return ctx.Value(patientKey{}) != nil }
