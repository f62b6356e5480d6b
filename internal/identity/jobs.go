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

// What waits at most, altogether and of one tenant, how often a job is tried,
// and how long one try may take.
const (
	maxJobs      = 1024
	maxJobsOfOne = 256
	jobTry       = 10 * time.Second
	tries        = 4
	// aside is how long a job waits: begun while the answer is on its way, it
	// would be seen in the time that takes.
	aside = 50 * time.Millisecond
)

// queue runs what is done after the answer, one job at a time, in turns by
// tenant: looking whether
// an address has an account, and writing to it, must not be seen in the time an
// answer takes. What waits in it is lost when the process is killed; whoever
// asked for a mail asks again. A drain finishes it.
type queue struct {
	wake   chan struct{} // has room for one
	aside  time.Duration
	ctx    context.Context //nolint:containedctx // it ends with the queue
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	jobs   admission.Queue[func(context.Context)]
	busy   bool // with a job
	closed bool
}

func newQueue() *queue {
	q := &queue{wake: make(chan struct{}, 1), aside: aside, done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// run does the jobs until the queue is closed and empty.
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

// put takes a job of a tenant, or answers OVERLOADED.
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

// settle waits until nothing is left of what was put before.
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

// later runs do after the answer, again when it fails.
func (s *Service) later(tenantID tenant.ID, what string, do func(ctx context.Context) error) error {
	due := time.Now().Add(s.after.aside)
	return s.after.put(tenantID, func(ctx context.Context) {
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done(): // it is tried all the same, once
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
