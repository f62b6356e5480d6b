package signin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
)

// How many jobs may wait, in total and per tenant; how long one attempt may take; and
// how often a job is tried.
const (
	maxJobs = 1024
	// maxJobsOfOne is of one tenant.
	maxJobsOfOne = 256
	jobTry       = 10 * time.Second
	tries        = 4
	// laterDelay is how long a job waits before it starts. A job that ran while the
	// answer is sent would change the time that sending takes.
	laterDelay = 50 * time.Millisecond
)

// Later runs jobs after the answer was sent, one at a time, with turns by tenant: the
// time of an answer must not show whether an address has an account, and gets a mail.
// Waiting jobs are lost if the process is killed; the users must then request the mail
// again. A drain finishes them.
type Later struct {
	// Delay may be changed before the first job, by tests.
	Delay  time.Duration
	wake   chan struct{}   // has a buffer of 1
	ctx    context.Context //nolint:containedctx // ends with the queue
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	jobs   admission.Queue[func(context.Context)]
	busy   bool // a job is running
	closed bool
}

// NewLater returns a queue without jobs. Close must be called to end it.
func NewLater() *Later {
	q := &Later{wake: make(chan struct{}, 1), Delay: laterDelay, done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// run runs jobs until the queue is closed and empty.
func (q *Later) run() {
	defer close(q.done)
	for {
		q.mu.Lock()
		_, job, ok := q.jobs.Pop(nil)
		q.busy = ok
		closed := q.closed
		q.mu.Unlock()
		switch {
		case ok:
			job(q.ctx)
		case closed:
			return
		default:
			<-q.wake
		}
	}
}

func (q *Later) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

var errQueueFull = fault.New(fault.Overloaded, "too many mails wait to be written; try again soon").After(5 * time.Second)

// put adds a job of a tenant. It returns OVERLOADED if too many wait.
func (q *Later) put(tenant tenant.ID, job func(context.Context)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.jobs.Len() >= maxJobs || q.jobs.LenOf(string(tenant)) >= maxJobsOfOne {
		return errQueueFull
	}
	q.jobs.Push(string(tenant), job)
	q.wakeUp()
	return nil
}

// Settle waits until no job is left.
func (q *Later) Settle(ctx context.Context) error {
	for {
		q.mu.Lock()
		idle := q.jobs.Len() == 0 && !q.busy
		q.mu.Unlock()
		if idle {
			return nil
		}
		select {
		case <-q.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// Close refuses new jobs and waits for those that were put. If ctx ends first, it drops
// the rest and returns an error.
func (q *Later) Close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		q.wakeUp()
	}
	q.mu.Unlock()
	defer q.cancel()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		q.cancel()
		<-q.done
		return fmt.Errorf("signin: mails were left unwritten: %w", ctx.Err())
	}
}

// Do adds a job that runs after the answer was sent, and again if it fails. If it fails
// every time, failed gets its error. Do returns OVERLOADED if too many jobs wait.
func (q *Later) Do(tenantID tenant.ID, do func(ctx context.Context) error, failed func(error)) error {
	due := time.Now().Add(q.Delay)
	return q.put(tenantID, func(ctx context.Context) {
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done(): // try once nevertheless
		}
		for try := 1; ; try++ {
			attempt, cancel := context.WithTimeout(ctx, jobTry)
			err := do(attempt)
			cancel()
			if err == nil {
				return
			}
			if try == tries || ctx.Err() != nil {
				failed(err)
				return
			}
			select {
			case <-time.After(time.Duration(try) * 250 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}
