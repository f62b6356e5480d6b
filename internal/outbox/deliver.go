package outbox

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
)

// claim leases a mail for us; ok is false when another node was first.
func (o *Outbox) claim(ctx context.Context, m waitingMail) (c claimedMail, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	now := o.clock.Now()
	return o.store.claim(ctx, m, now, now.Add(lease))
}

// deliver tries a mail once and writes down what came of it. It ends early when
// ctx does.
func (o *Outbox) deliver(ctx context.Context, m claimedMail) {
	message, err := o.store.open(m)
	if err == nil && !message.Until.IsZero() && !o.clock.Now().Before(message.Until) {
		o.drop(ctx, m)
		return
	}
	if err == nil {
		keep := o.keepLease(ctx, m)
		try, cancel := context.WithTimeout(ctx, sendTimeout)
		err = o.sender.Send(try, message)
		cancel()
		keep()
	}
	var permanent *mail.Permanent
	switch now := o.clock.Now(); {
	case err == nil:
		o.settle(ctx, m, "delete", func(ctx context.Context) error { return o.store.remove(ctx, m.waitingMail) })
		o.sent.Add(1)
	case ctx.Err() != nil: // we are told to end: the next process tries again
		o.settle(ctx, m, "release", func(ctx context.Context) error { return o.store.release(ctx, m, now) })
	case errors.As(err, &permanent), !now.Add(pause(m.attempts)).Before(m.createdAt.Add(keepTrying)):
		o.giveUp(ctx, m, cause(err))
	default:
		o.again(ctx, m, cause(err), now)
	}
}

// keepLease renews the lease of a mail on its way until the returned function,
// which waits for that to end. A renewal that fails is tried again; the mail is
// sent on, for nobody knows that it will not arrive.
func (o *Outbox) keepLease(ctx context.Context, m claimedMail) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(o.renewEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			attempt, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
			ok, err := o.store.renew(attempt, m, o.clock.Now().Add(lease))
			cancel()
			if err == nil && !ok { // it is somebody else's by now, or gone
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// drop deletes a mail that is worth nothing any more, and says so.
func (o *Outbox) drop(ctx context.Context, m claimedMail) {
	o.expired.Add(1)
	o.settle(ctx, m, "drop", func(ctx context.Context) error { return o.store.remove(ctx, m.waitingMail) })
	o.emit("mail.expired", map[string]any{"mail_id": m.id, "tenant": m.tenant, "attempts": m.attempts - 1})
}

// again lets the mail wait for its next try.
func (o *Outbox) again(ctx context.Context, m claimedMail, cause string, now time.Time) {
	o.failed.Add(1)
	wait := pause(m.attempts)
	o.settle(ctx, m, "postpone", func(ctx context.Context) error {
		return o.store.postpone(ctx, m, now.Add(wait), cause)
	})
	o.emit("mail.delayed", map[string]any{
		"mail_id": m.id, "tenant": m.tenant, "attempts": m.attempts, "cause": cause, "retry_in_seconds": int(wait / time.Second),
	})
}

// giveUp deletes a mail that was not sent and says so, without a word of it.
func (o *Outbox) giveUp(ctx context.Context, m claimedMail, cause string) {
	o.failed.Add(1)
	o.givenUp.Add(1)
	o.settle(ctx, m, "give_up", func(ctx context.Context) error { return o.store.remove(ctx, m.waitingMail) })
	o.emit("mail.given_up", map[string]any{
		"mail_id": m.id, "tenant": m.tenant, "attempts": m.attempts, "cause": cause,
	})
}

// settle writes down what came of a mail, and does not let go at the first
// failure: a mail that was sent and not deleted is sent twice. It goes on for
// a while after ctx has ended, and stops before the lease does; the mail is
// looked at again when that ends.
func (o *Outbox) settle(ctx context.Context, m claimedMail, what string, write func(ctx context.Context) error) {
	within := settleWithin
	if ctx.Err() != nil {
		within = grace
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		err := write(ctx)
		if err == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			o.emit("mail.not_recorded", map[string]any{"mail_id": m.id, "tenant": m.tenant, "what": what, "error": err.Error()})
			return
		}
	}
}

// cause is what may be told of a failure: the text of those that say it is
// fit to be told, and of others only that there was one.
func cause(err error) string {
	var f *mail.Failure
	switch {
	case errors.As(err, &f):
		return f.Error()
	case errors.Is(err, errSealed):
		return errSealed.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "timed out"
	default:
		return "it was not sent"
	}
}

// waitingMail is a mail that is due.
type waitingMail struct {
	tenant tenant.ID
	id     string
	leased int64 // leased_until as it was read
}

// claimedMail is a mail that is ours until its lease ends.
type claimedMail struct {
	waitingMail
	sealed    string
	attempts  int // this one included
	createdAt time.Time
}

var errSealed = errors.New("the sealed mail does not open")
