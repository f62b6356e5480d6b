package outbox

import (
	"context"
	"fmt"
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
			if wait := f.round(t.Context(), begin); wait != pollSoon {
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
		look := func(want time.Duration) {
			t.Helper()
			if got := f.round(t.Context(), nothing); got != want {
				t.Errorf("looks again after %v, want %v", got, want)
			}
		}
		look(pollIdle)
		f.clock.Advance(time.Minute)
		f.put("acme", "eva@customer.example")
		f.clock.Set(noon)
		look(pollIdle)
		f.clock.Set(noon.Add(50 * time.Second))
		look(pollSoon)
		f.clock.Set(noon.Add(time.Minute - 300*time.Millisecond))
		look(300 * time.Millisecond)
		f.clock.Set(noon.Add(time.Minute - time.Microsecond))
		look(10 * time.Millisecond)
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
