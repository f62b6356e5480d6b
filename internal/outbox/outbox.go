// Package outbox sends mails that a transaction has put into the database.
//
// Put stores the mail in the caller's transaction, so the mail exists exactly if
// that transaction was committed. It is stored encrypted, with its address. Run
// sends it, tries again with growing pauses for up to 48 hours, and then gives up
// and logs that. A mail that has become useless, because its link has expired, is
// deleted, which is logged as well (contract M5).
//
// A mail is sent at least once. The node that sends it leases it for a minute at
// a time. If that node is killed after the relay accepted the mail and before the
// row is deleted, the mail is sent again when the lease ends, with the same
// Message-ID. Any number of nodes may run an outbox on one database: each mail is
// leased by one of them.
package outbox

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/clock"
	"gatehouse/internal/mail"
)

const (
	lease        = time.Minute      // how long a mail belongs to the node that sends it, unless that renews the lease
	renewEvery   = 15 * time.Second // while the mail is being sent
	sendTimeout  = time.Hour        // of one try; package mail bounds each step of it
	settleWithin = 15 * time.Second // how long the result of a try is written again and again
	claimTimeout = 10 * time.Second // of the write that takes or renews a lease
	parallel     = 4                // mails that are sent at once
	keepTrying   = 48 * time.Hour   // since Put

	pollFailed = time.Second
	pollIdle   = 500 * time.Millisecond // finds what other processes have put
	pollRest   = 20                     // between two looks, at least so many times what the first one took
	countAll   = 10 * time.Second       // how old Stats.Waiting may be while there is work

	// grace is how long the mails that are being sent may take once Run's
	// context has ended.
	grace = 5 * time.Second
)

// pauses are the pauses between tries; the last one repeats.
var pauses = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour}

// pause returns how long a mail waits after a try. Tries count from 1.
func pause(attempt int) time.Duration {
	return pauses[min(max(attempt, 1), len(pauses))-1]
}

// Outbox sends the mails of a database; New makes one. An Outbox is safe for
// concurrent use.
type Outbox struct {
	store  *store
	clock  clock.Clock
	sender mail.Sender
	emit   func(event string, fields map[string]any)
	wake   chan struct{}

	renewEvery time.Duration

	waiting, sent, failed, givenUp, expired atomic.Int64
	looks                                   atomic.Int64 // for tests: how often the database was asked for mails
	counted                                 time.Time    // when waiting was last read; only Run uses it
	failing                                 bool         // the last look failed; only Run uses it
}

// Wake makes Run look for mails at once. It should be called when the transaction
// of Put was committed; without it the mail is found within a second. Wake does
// not block.
func (o *Outbox) Wake() { background.Signal(o.wake) }

// Stats are the values for metrics. Waiting counts the mails of the whole
// database, some seconds ago; the others count what this process has done.
// Failed counts tries, not mails.
type Stats struct{ Waiting, Sent, Failed, GivenUp, Expired int64 }

// Stats returns the current values. It does not ask the database.
func (o *Outbox) Stats() Stats {
	return Stats{Waiting: o.waiting.Load(), Sent: o.sent.Load(), Failed: o.failed.Load(), GivenUp: o.givenUp.Load(), Expired: o.expired.Load()}
}

// Run sends mails until ctx ends. Those that are being sent then have 5 s to
// finish; the others stay stored for the next process. Failures are logged, or
// lead to another try. Run must be called once at most.
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

// round begins to send every mail that is due, and returns how long Run should
// wait before it looks again.
func (o *Outbox) round(ctx context.Context, begin func(waitingMail) error) time.Duration {
	for {
		begun := time.Now()
		next, more, err := o.look(ctx, begin)
		rest := max(pollIdle, pollRest*time.Since(begun))
		o.looks.Add(1)
		o.report(ctx, err)
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

// look begins to send mails that are due, of each tenant at most share. It
// returns when the next one is due, zero if none is waiting, and whether there is
// more to do now.
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
		// A mail that was just begun is due again when its pause or its lease
		// ends; the shortest of these is 10 s.
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

// count updates Stats.Waiting if it is older than countAll.
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

// report logs when looking for mails begins to fail, and when it works again.
func (o *Outbox) report(ctx context.Context, err error) {
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
