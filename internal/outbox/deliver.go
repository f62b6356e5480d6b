package outbox

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/background"
	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
)

// claim leases a mail; ok is false if another node was first.
func (o *Outbox) claim(ctx context.Context, m waitingMail) (c claimedMail, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	now := o.clock.Now()
	return o.store.claim(ctx, m, now, now.Add(lease))
}

// deliver tries to send a mail once, and stores the result. It ends early when
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
	case ctx.Err() != nil: // this process is stopping: the next one tries again
		o.settle(ctx, m, "release", func(ctx context.Context) error { return o.store.release(ctx, m, now) })
	case errors.As(err, &permanent), !now.Add(pause(m.attempts)).Before(m.createdAt.Add(keepTrying)):
		o.giveUp(ctx, m, cause(err))
	default:
		o.again(ctx, m, cause(err), now)
	}
}

// keepLease renews the lease of a mail that is being sent, until stop is called;
// stop waits for a running renewal. A renewal that fails is tried again. Sending
// goes on, because the relay may already have the mail.
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
			if err == nil && !ok { // another node has leased it by now, or it is deleted
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// drop deletes a mail that has become useless, and logs that.
func (o *Outbox) drop(ctx context.Context, m claimedMail) {
	o.expired.Add(1)
	o.settle(ctx, m, "drop", func(ctx context.Context) error { return o.store.remove(ctx, m.waitingMail) })
	o.emit("mail.expired", map[string]any{"mail_id": m.id, "tenant": m.tenant, "attempts": m.attempts - 1})
}

// again schedules the next try of a mail, and logs the failure.
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

// giveUp deletes a mail that could not be sent, and logs that without anything
// from the mail.
func (o *Outbox) giveUp(ctx context.Context, m claimedMail, cause string) {
	o.failed.Add(1)
	o.givenUp.Add(1)
	o.settle(ctx, m, "give_up", func(ctx context.Context) error { return o.store.remove(ctx, m.waitingMail) })
	o.emit("mail.given_up", map[string]any{
		"mail_id": m.id, "tenant": m.tenant, "attempts": m.attempts, "cause": cause,
	})
}

// settle stores the result of a try, and tries again while that fails: a mail
// that was sent and not deleted is sent twice. It goes on for a while after ctx
// has ended, and gives up and logs that before the lease ends. When the lease has
// ended, the mail is tried again.
func (o *Outbox) settle(ctx context.Context, m claimedMail, what string, write func(ctx context.Context) error) {
	within := settleWithin
	if ctx.Err() != nil {
		within = grace
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	pause := background.Backoff{First: 50 * time.Millisecond, Last: settleWithin}
	for {
		err := write(ctx)
		if err == nil {
			return
		}
		if pause.Wait(ctx, nil) != nil {
			o.emit("mail.not_recorded", map[string]any{"mail_id": m.id, "tenant": m.tenant, "what": what, "error": err.Error()})
			return
		}
	}
}

// cause returns an error text that is safe to store and log: that of an error
// which promises to be, a general one for others.
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
		return "unknown error"
	}
}

// waitingMail identifies a mail that is due.
type waitingMail struct {
	tenant tenant.ID
	id     string
	leased int64 // leased_until when it was read
}

// claimedMail is a mail that this process has leased.
type claimedMail struct {
	waitingMail
	sealed    string
	attempts  int // including this one
	createdAt time.Time
}

var errSealed = errors.New("the sealed mail does not open")
