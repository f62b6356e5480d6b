// Package outbox sends mails that a transaction has put into the database.
//
// Put writes the mail inside the caller's transaction, so it exists exactly
// when what it tells of was committed. It waits sealed: no column shows an
// address or a word of it. Run sends it, tries again with growing pauses for
// up to 48 hours, and then gives it up with a line in the log. A mail that is
// worth nothing any more, for its link has expired, is dropped with a line.
//
// The promise is at least once. Whoever sends a mail leases it for a minute at a
// time; if it dies between the server's answer and the deletion of the row, the mail
// is sent again when the lease is over, with the same Message-ID. Any number of
// nodes may run an outbox on one database: one mail is leased by one of them.
package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/mail"
)

const (
	lease        = time.Minute      // how long a mail belongs to who sends it, unless they renew it
	renewEvery   = 15 * time.Second // while the mail is on its way
	sendTimeout  = time.Hour        // for one try; a mail server has its own time for each step
	settleWithin = 15 * time.Second // for the database to take what came of a mail
	claimTimeout = 10 * time.Second // for the database to give a lease
	parallel     = 4                // mails on their way at once
	keepTrying   = 48 * time.Hour   // from when the mail was put in

	pollFailed = time.Second
	pollIdle   = 500 * time.Millisecond // finds what other processes have put in
	pollRest   = 20                     // times as long as a look took, it rests at least
	countAll   = 10 * time.Second       // how old Stats.Waiting may be while there is work

	// grace is how long mails on their way may take when Run is told to end.
	grace = 5 * time.Second
)

// pauses are those between tries; the last one repeats.
var pauses = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// pause is how long a mail waits after its try with the given number, from 1.
func pause(attempt int) time.Duration {
	return pauses[min(max(attempt, 1), len(pauses))-1]
}

// Outbox is the queue of one process. Make it with New.
type Outbox struct {
	store  *store
	clock  clock.Clock
	sender mail.Sender
	emit   func(event string, fields map[string]any)
	wake   chan struct{}

	renewEvery time.Duration

	waiting, sent, failed, givenUp, expired atomic.Int64
	looks                                   atomic.Int64 // that have ended
	counted                                 time.Time    // when waiting was last read; Run's own
	failing                                 bool         // the database did not answer; Run's own
}

// Wake makes Run look at once. It is called after the transaction of Put has
// been committed, and never waits. Without it the mail is found within a second.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// Stats are counts for an operator. Waiting is of the whole database, some
// seconds old; the others are of this process since it began. Failed counts
// tries, not mails.
type Stats struct{ Waiting, Sent, Failed, GivenUp, Expired int64 }

// Stats costs nothing.
func (o *Outbox) Stats() Stats {
	return Stats{Waiting: o.waiting.Load(), Sent: o.sent.Load(), Failed: o.failed.Load(), GivenUp: o.givenUp.Load(), Expired: o.expired.Load()}
}

// Run sends until ctx ends; then mails on their way have 5 s to get there, and
// the others stay for the next process. Call it once.
func (o *Outbox) Run(ctx context.Context) {
	sending, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var wait sync.WaitGroup
	slots := make(chan struct{}, parallel)
	begin := func(m waitingMail) error {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		claimed, ok, err := o.claim(sending, m)
		if !ok {
			<-slots
			return err
		}
		wait.Go(func() {
			defer func() { <-slots }()
			o.deliver(sending, claimed)
		})
		return nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-timer.C:
		case <-o.wake:
		case <-ctx.Done():
			continue
		}
		timer.Reset(o.round(ctx, begin))
	}
	defer time.AfterFunc(grace, stop).Stop()
	wait.Wait()
}

// round begins every mail that is due, and says when to look again.
func (o *Outbox) round(ctx context.Context, begin func(waitingMail) error) time.Duration {
	for {
		begun := time.Now()
		next, more, err := o.look(ctx, begin)
		rest := max(pollIdle, pollRest*time.Since(begun))
		o.looks.Add(1)
		o.complain(ctx, err)
		switch {
		case err != nil:
			return pollFailed
		case more && ctx.Err() == nil:
			continue
		case next.IsZero():
			return rest
		}
		return min(max(next.Sub(o.clock.Now()), 10*time.Millisecond), rest)
	}
}

// look goes once through the tenants that have mail, a share of each. next is
// when the earliest of the rest is due, zero when nothing waits; more says that
// there is more to do right now.
func (o *Outbox) look(ctx context.Context, begin func(waitingMail) error) (next time.Time, more bool, err error) {
	if err := o.count(ctx); err != nil {
		return next, false, err
	}
	tenants, err := o.store.tenants(ctx)
	if err != nil {
		return next, false, err
	}
	for _, t := range tenants {
		now := o.clock.Now()
		if t.next.After(now) {
			next = earlier(next, t.next)
			continue
		}
		due, err := o.store.due(ctx, t.name, now)
		if err != nil {
			return next, false, err
		}
		for _, m := range due {
			if err := begin(m); err != nil {
				return next, false, err
			}
		}
		// What was just begun is due again when its pause or its lease ends;
		// 10 s is the shortest of these.
		next = earlier(next, now.Add(pauses[0]))
		more = more || len(due) == share
	}
	return next, more, nil
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// count refreshes Stats.Waiting, now and then.
func (o *Outbox) count(ctx context.Context) error {
	if !o.counted.IsZero() && time.Since(o.counted) < countAll {
		return nil
	}
	n, err := o.store.count(ctx)
	if err != nil {
		return err
	}
	o.waiting.Store(n)
	o.counted = time.Now()
	return nil
}

// complain says once that the database does not answer, and once that it does
// again.
func (o *Outbox) complain(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil || (err != nil) == o.failing:
		return
	case err != nil:
		o.emit("mail.queue_failed", map[string]any{"error": err.Error()})
	default:
		o.emit("mail.queue_works_again", map[string]any{})
	}
	o.failing = err != nil
}
