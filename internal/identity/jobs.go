package identity

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gatehouse/internal/fault"
)

// What waits at most, how often a job is tried, and how long one try may take.
const (
	maxJobs = 256
	jobTry  = 10 * time.Second
	tries   = 4
	// aside is how long a job waits: begun while the answer is on its way, it
	// would be seen in the time that takes.
	aside = 50 * time.Millisecond
)

// queue runs what is done after the answer, one job at a time: looking whether
// an address has an account, and writing to it, must not be seen in the time an
// answer takes. What waits in it is lost when the process is killed; whoever
// asked for a mail asks again. A drain finishes it.
type queue struct {
	jobs   chan func(context.Context)
	aside  time.Duration
	ctx    context.Context //nolint:containedctx // it ends with the queue
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.RWMutex
	closed bool
}

func newQueue() *queue {
	q := &queue{jobs: make(chan func(context.Context), maxJobs), aside: aside, done: make(chan struct{})}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(q.done)
		for job := range q.jobs {
			job(q.ctx)
		}
	}()
	return q
}

var errQueueFull = fault.New(fault.Overloaded, "too many mails wait to be written; try again soon").After(5 * time.Second)

// put takes a job, or answers OVERLOADED.
func (q *queue) put(job func(context.Context)) error {
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return errQueueFull
	}
	select {
	case q.jobs <- job:
		return nil
	default:
		return errQueueFull
	}
}

func (q *queue) settle(ctx context.Context) error {
	reached := make(chan struct{})
	for q.put(func(context.Context) { close(reached) }) != nil {
		select {
		case <-q.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.jobs)
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
func (s *Service) later(tenantID, what string, do func(ctx context.Context) error) error {
	due := time.Now().Add(s.after.aside)
	return s.after.put(func(ctx context.Context) {
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
