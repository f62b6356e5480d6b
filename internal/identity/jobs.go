package identity

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
	maxJobs      = 1024
	maxJobsOfOne = 256
	jobTry       = 10 * time.Second
	tries        = 4
	// mailDelay is how long a job waits before it starts. A job that ran while the
	// answer is sent would change the time that sending takes.
	mailDelay = 50 * time.Millisecond
)

// queue runs jobs after the answer was sent, one at a time, with turns by tenant: the
// time of an answer must not show whether an address has an account, and gets a mail.
// Waiting jobs are lost if the process is killed; the users must then request the mail
// again. A drain finishes them.
type queue struct {
	wake   chan struct{} // has a buffer of 1
	delay  time.Duration
	ctx    context.Context //nolint:containedctx // ends with the queue
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	jobs   admission.Queue[func(context.Context)]
	busy   bool // a job is running
	closed bool
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1), delay: mailDelay, done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// run runs jobs until the queue is closed and empty.
func (q *queue) run() {
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

func (q *queue) wakeUp() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

var errQueueFull = fault.New(fault.Overloaded, "too many mails wait to be written; try again soon").After(5 * time.Second)

// put adds a job of a tenant. It returns OVERLOADED if too many wait.
func (q *queue) put(tenant tenant.ID, job func(context.Context)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.jobs.Len() >= maxJobs || q.jobs.LenOf(string(tenant)) >= maxJobsOfOne {
		return errQueueFull
	}
	q.jobs.Push(string(tenant), job)
	q.wakeUp()
	return nil
}

// settle waits until no job is left.
func (q *queue) settle(ctx context.Context) error {
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

// close refuses new jobs and waits for those that were put. If ctx ends first, it drops
// the rest and returns an error.
func (q *queue) close(ctx context.Context) error {
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
		return fmt.Errorf("identity: mails were left unwritten: %w", ctx.Err())
	}
}

// enqueue adds a job that runs after the answer was sent, and again if it fails. It
// returns OVERLOADED if too many jobs wait.
func (s *Service) enqueue(tenantID tenant.ID, what string, do func(ctx context.Context) error) error {
	due := time.Now().Add(s.mails.delay)
	return s.mails.put(tenantID, func(ctx context.Context) {
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
				s.emit("identity.mail_failed", map[string]any{"tenant": tenantID, "what": what, "error": err.Error()})
				return
			}
			select {
			case <-time.After(time.Duration(try) * 250 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}
