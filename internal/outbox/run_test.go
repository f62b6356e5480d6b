package outbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/mail"
)

func TestASlowMailDoesNotHoldUpOthers(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		release := make(chan struct{})
		f.postman.answers(func(ctx context.Context, m mail.Message) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > sendTimeout {
				t.Errorf("a try may take until %v", deadline)
			}
			if strings.HasPrefix(m.To, "slow") {
				<-release
			}
			return nil
		})
		for i := range parallel - 1 {
			f.put("acme", fmt.Sprintf("slow%d@customer.example", i))
		}
		for i := range 40 {
			f.put("acme", fmt.Sprintf("fast%d@customer.example", i))
		}
		f.put("zebra", "fast@customer.example")
		defer f.run()()
		f.until("all fast ones are sent", func() bool { return len(f.postman.recipients()) == 41 })
		close(release)
		f.untilEmpty()
	})
}

func TestAnEndingProcessHandsItsMailsBack(t *testing.T) {
	f := newOffice(t, dbtest.Open(t, db.SQLite))
	began := make(chan struct{}, 1)
	f.postman.answers(func(ctx context.Context, _ mail.Message) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	f.put("acme", "eva@customer.example")
	stop := f.run()
	<-began
	begun := time.Now()
	stop()
	if took := time.Since(begun); took < grace || took > grace+5*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if r := f.rows()[0]; r.attempts != 0 || r.leased.UnixMicro() != 0 || !r.next.Equal(noon) || r.lastError != "" {
		t.Errorf("%+v", r)
	}
	if f.log() != "" || f.Stats().Failed != 0 {
		t.Errorf("%+v: %s", f.Stats(), f.log())
	}
	next := newOffice(t, f.db)
	defer next.run()()
	next.untilEmpty()
}

func TestAMailThatIsOnItsWayArrivesAlthoughTheProcessEnds(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		began, finish := make(chan struct{}, 1), make(chan struct{})
		f.postman.answers(func(ctx context.Context, _ mail.Message) error {
			began <- struct{}{}
			<-finish
			return ctx.Err()
		})
		f.put("acme", "eva@customer.example")
		stop := f.run()
		<-began
		time.AfterFunc(50*time.Millisecond, func() { close(finish) })
		stop()
		if len(f.rows()) != 0 || len(f.postman.recipients()) != 1 {
			t.Errorf("%+v", f.rows())
		}
	})
}

func TestTenantsWithMailAreFoundInOrder(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		find := func() string {
			t.Helper()
			list, err := f.store.tenants(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n, err := f.store.count(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, x := range list {
				fmt.Fprintf(&b, "%s +%v, ", x.name, x.next.Sub(noon))
			}
			return fmt.Sprint(b.String(), n)
		}
		if got := find(); got != "0" {
			t.Error(got)
		}
		f.put("beta", "a@x.example")
		f.put("b-2", "a@x.example")
		f.clock.Advance(time.Second)
		f.put("beta", "a@x.example")
		f.put("alpha", "a@x.example")
		if got := find(); got != "alpha +1s, b-2 +0s, beta +0s, 4" {
			t.Error(got)
		}
	})
}

func TestTheDatabaseIsComplainedAboutOnce(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.put("acme", "eva@customer.example")
		broken := true
		begin := func(waitingMail) error {
			if broken {
				return db.ErrUnavailable
			}
			return nil
		}
		for range 3 {
			if wait := f.round(t.Context(), begin); wait != pollFailed {
				t.Errorf("looks again after %v", wait)
			}
		}
		broken = false
		for range 3 {
			f.round(t.Context(), begin)
		}
		if want := "mail.queue_failed map[error:" + db.ErrUnavailable.Error() + "]\nmail.queue_works_again map[]"; f.log() != want {
			t.Errorf("%s\nwant %s", f.log(), want)
		}
		if f.Stats().Waiting != 1 {
			t.Errorf("%+v", f.Stats())
		}
	})
}

func TestWhenToLookAgain(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		nothing := func(waitingMail) error { t.Error("nothing is due"); return nil }
		look := func(least time.Duration, exactly bool) {
			t.Helper()
			got := f.round(t.Context(), nothing)
			if got < least || exactly && got > least || got > time.Second && got > 40*pollIdle {
				t.Errorf("looks again after %v, want %v", got, least)
			}
		}
		look(pollIdle, false) // longer where a look takes long
		f.clock.Advance(time.Minute)
		f.put("acme", "eva@customer.example")
		f.clock.Set(noon)
		look(pollIdle, false)
		f.clock.Set(noon.Add(time.Minute - 300*time.Millisecond))
		look(300*time.Millisecond, true)
		f.clock.Set(noon.Add(time.Minute - time.Microsecond))
		look(10*time.Millisecond, true)
	})
}

// What another process has put in, as user resend does, is sent within a second:
// nobody wakes this one.
func TestAMailOfAnotherProcessLeavesSoon(t *testing.T) {
	if pollIdle > 900*time.Millisecond {
		t.Errorf("it is found after %v", pollIdle)
	}
	each(t, func(t *testing.T, f *office) {
		defer f.run()()
		f.until("it has looked", func() bool { return f.looks.Load() > 0 })
		f.put("acme", "eva@customer.example")
		before := f.looks.Load()
		f.untilEmpty()
		if n := f.looks.Load() - before; n > 3 {
			t.Errorf("it was found in the look number %d", n)
		}
	})
}

// A mail whose link has expired is dropped, with a line that tells nobody's
// address; one that has not, or never does, is sent.
func TestAMailThatIsWorthNothingAnyMoreIsDropped(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		for to, until := range map[string]time.Time{
			"late@customer.example": noon.Add(time.Hour), "day@customer.example": noon.Add(24 * time.Hour), "never@customer.example": {},
		} {
			m := message(to)
			m.Until = until
			err := f.db.For("acme").Write(t.Context(), func(tx db.Tx) error { return f.Put(t.Context(), tx, m) })
			if err != nil {
				t.Fatal(err)
			}
		}
		f.clock.Advance(time.Hour)
		stop := f.run()
		f.untilEmpty()
		stop() // the log line comes after the mail is gone
		got := f.postman.recipients()
		slices.Sort(got)
		if fmt.Sprint(got) != "[day@customer.example never@customer.example]" {
			t.Errorf("sent to %v", got)
		}
		if log := f.log(); !strings.HasPrefix(log, "mail.expired ") || strings.Count(log, "\n") != 0 || strings.Contains(log, "late@") {
			t.Error(log)
		}
		if s := f.Stats(); s.Expired != 1 || s.GivenUp != 0 || s.Failed != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A server that takes its time gets a mail once: its lease is renewed, so that no
// other node sends it too, and nobody hangs up on it before RFC 5321 allows.
func TestASlowServerGetsAMailOnce(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		began, release := make(chan struct{}), make(chan struct{})
		f.renewEvery = 5 * time.Millisecond
		f.postman.answers(func(ctx context.Context, _ mail.Message) error {
			if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 52*time.Minute {
				t.Errorf("it is given until %v", deadline)
			}
			close(began)
			select {
			case <-release:
				return nil
			case <-ctx.Done(): // the test has failed
				return ctx.Err()
			}
		})
		f.put("acme", "eva@customer.example")
		defer f.run()()
		<-began
		other := newOffice(t, f.db)
		other.clock = f.clock
		other.Outbox.clock = f.clock
		defer other.run()()
		for range 10 { // ten times most of a lease, in which it is renewed
			f.clock.Advance(lease * 2 / 3)
			f.until("the lease is renewed", func() bool { return !f.rows()[0].leased.Before(f.clock.Now().Add(lease)) })
			// As a renewal leaves it that was written while its answer was lost.
			err := f.db.For("acme").Write(t.Context(), func(tx db.Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE outbox SET leased_until = leased_until + 1 WHERE tenant_id = $1`)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		before := other.looks.Load()
		f.until("the other has looked", func() bool { return other.looks.Load() > before+1 })
		close(release)
		f.untilEmpty()
		if n := other.postman.tried(); n != 0 || f.postman.tried() != 1 {
			t.Errorf("sent %d times by the one and %d by the other", f.postman.tried(), n)
		}
	})
}

func TestWhatCameOfAMailIsWrittenUntilTheDatabaseTakesIt(t *testing.T) {
	f := newOffice(t, dbtest.Open(t, db.SQLite))
	m := claimedMail{waitingMail: waitingMail{tenant: "acme", id: "1"}}
	tries := 0
	f.settle(t.Context(), m, "delete", func(context.Context) error {
		if tries++; tries < 4 {
			return db.ErrBusy
		}
		return nil
	})
	if tries != 4 || f.log() != "" {
		t.Errorf("%d tries: %s", tries, f.log())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	f.settle(ended, m, "delete", func(context.Context) error { return db.ErrUnavailable })
	if want := "mail.not_recorded map[error:" + db.ErrUnavailable.Error() + " mail_id:1 tenant:acme what:delete]"; f.log() != want {
		t.Error(f.log())
	}
}
