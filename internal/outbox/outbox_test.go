package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/mail"
	"gatehouse/internal/mail/mailtest"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

var (
	errLater   = &mail.Failure{Step: mail.StepRecipient, Code: 450, Enhanced: "4.2.0"}
	errNever   = &mail.Permanent{Failure: &mail.Failure{Step: mail.StepRecipient, Code: 550, Enhanced: "5.1.1"}}
	errTalking = errors.New("450 eva@customer.example: token " + token + " is grey")
)

func TestAMailIsSentExactlyWhenItsTransactionIsCommitted(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		defer f.run()()
		rollback := errors.New("rolled back")
		err := f.db.For("acme").Write(t.Context(), func(tx db.Tx) error {
			if err := f.Put(t.Context(), tx, message("never@customer.example")); err != nil {
				return err
			}
			return rollback
		})
		if !errors.Is(err, rollback) {
			t.Fatal(err)
		}
		f.Wake()
		f.put("acme", "eva@customer.example")
		begun := time.Now()
		f.Wake()
		f.untilEmpty()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if got := f.postman.recipients(); !slices.Equal(got, []string{"eva@customer.example"}) {
			t.Errorf("sent to %v", got)
		}
		f.until("it is counted", func() bool { return f.Stats() == Stats{Waiting: f.Stats().Waiting, Sent: 1} })
		m := f.postman.sent[0]
		want := message("eva@customer.example")
		want.ID, want.Date = m.ID, noon
		if m != want || len(m.ID) != 36 {
			t.Errorf("sent %+v, want %+v", m, want)
		}
		if f.log() != "" {
			t.Error(f.log())
		}
	})
}

func TestAMailOfADeadProcessIsSentAgainWhenItsLeaseEnds(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.put("acme", "eva@customer.example")
		// Another process claims it, sends it and dies.
		due, err := f.store.due(t.Context(), "acme", noon)
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		first, ok, err := f.claim(t.Context(), due[0])
		if err != nil || !ok || first.attempts != 1 {
			t.Fatal(first, ok, err)
		}
		if _, ok, err := f.claim(t.Context(), due[0]); ok || err != nil {
			t.Fatalf("claimed twice: %v, %v", ok, err)
		}

		defer f.run()()
		f.clock.Advance(lease - time.Microsecond)
		f.Wake()
		time.Sleep(100 * time.Millisecond)
		if n := f.postman.tried(); n != 0 {
			t.Fatalf("tried %d times during the lease", n)
		}
		f.clock.Advance(time.Microsecond) // nobody wakes it: it looks by itself
		f.untilEmpty()
		if m := f.postman.sent[0]; m.ID != first.id || !m.Date.Equal(noon) {
			t.Errorf("the second copy is another mail: %+v", m)
		}
	})
}

func TestWhoLostTheLeaseChangesNothing(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.put("acme", "eva@customer.example")
		claim := func() claimedMail {
			t.Helper()
			due, err := f.store.due(t.Context(), "acme", f.clock.Now())
			if err != nil || len(due) != 1 {
				t.Fatal(due, err)
			}
			c, ok, err := f.claim(t.Context(), due[0])
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			return c
		}
		slow := claim()
		f.clock.Advance(lease)
		claim()
		before := f.rows()
		if err := errors.Join(f.store.postpone(t.Context(), slow, noon, "late"), f.store.release(t.Context(), slow, noon)); err != nil {
			t.Fatal(err)
		}
		if after := f.rows(); !slices.Equal(before, after) || after[0].attempts != 2 {
			t.Errorf("%+v, was %+v", after, before)
		}
	})
}

func TestTwoNodesSendEachMailOnce(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			one := newOffice(t, dbtest.OpenConfig(t, config))
			two := newOffice(t, dbtest.OpenConfig(t, config))
			want := map[string]int{}
			for i := range 200 {
				to := fmt.Sprintf("user%d@customer.example", i)
				want[to] = 1
				if i < 100 {
					one.put(tenant.ID(fmt.Sprint("tenant", i%3)), to)
				}
			}
			atWork(one.postman, two.postman)
			stop := []func(){one.run(), two.run()}
			for i := 100; i < 200; i++ {
				two.put(tenant.ID(fmt.Sprint("tenant", i%5)), fmt.Sprintf("user%d@customer.example", i))
				two.Wake()
			}
			one.Wake()
			one.untilEmpty()
			for _, s := range stop {
				s()
			}
			got := map[string]int{}
			for _, to := range append(one.postman.recipients(), two.postman.recipients()...) {
				got[to]++
			}
			for to, n := range got {
				if n != 1 {
					t.Errorf("%s: sent %d times", to, n)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d of %d mails were sent", len(got), len(want))
			}
			if a, b := one.Stats().Sent, two.Stats().Sent; a+b != 200 || a == 0 || b == 0 {
				t.Errorf("one sent %d, the other %d", a, b)
			}
			if log := one.log() + two.log(); log != "" {
				t.Error(log)
			}
		})
	}
}

// atWork makes each postman wait with its first mails until all have some: a
// node that is quick enough would leave nothing to the others.
func atWork(postmen ...*postman) {
	var all sync.WaitGroup
	all.Add(len(postmen))
	for _, p := range postmen {
		begun := sync.OnceFunc(all.Done)
		p.answers(func(context.Context, mail.Message) error {
			begun()
			all.Wait()
			return nil
		})
	}
}

func TestTriesHaveGrowingPausesUntilTheMailIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.postman.answers(func(context.Context, mail.Message) error { return errTalking })
		f.put("acme", "eva@customer.example")
		id := f.rows()[0].id
		defer f.run()()
		want := []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}
		tries := 0
		for f.clock.Now().Before(noon.Add(72 * time.Hour)) {
			tries++
			f.Wake()
			var rows []row
			f.until("a try", func() bool {
				rows = f.rows()
				return len(rows) == 0 || rows[0].attempts == tries && rows[0].leased.UnixMicro() == 0
			})
			if n := f.postman.tried(); n != tries {
				t.Fatalf("tried %d times, want %d", n, tries)
			}
			if len(rows) == 0 {
				break
			}
			pause := time.Hour
			if tries <= len(want) {
				pause = want[tries-1]
			}
			r := rows[0]
			if r.next.Sub(f.clock.Now()) != pause || r.attempts != tries || r.lastError != "it was not sent" || !r.created.Equal(noon) {
				t.Fatalf("after try %d: %+v at %v, want a pause of %v", tries, r, f.clock.Now(), pause)
			}
			f.clock.Advance(pause)
		}
		// 5 short pauses make 42 min 40 s; 47 hours fit in after that.
		if age := f.clock.Now().Sub(noon); tries != 53 || age != 47*time.Hour+42*time.Minute+40*time.Second {
			t.Errorf("given up after %d tries in %v", tries, age)
		}
		f.until("it is said", func() bool { return strings.Contains(f.log(), "mail.given_up") })
		line := f.log()[strings.LastIndex(f.log(), "\n")+1:]
		if line != "mail.given_up map[attempts:53 cause:it was not sent mail_id:"+id+" tenant:acme]" {
			t.Error(line)
		}
		if s := f.Stats(); s.Failed != 53 || s.GivenUp != 1 || s.Sent != 0 {
			t.Errorf("%+v", s)
		}
		for _, private := range []string{"eva", token, "customer"} {
			if strings.Contains(f.log(), private) {
				t.Errorf("the log tells %q", private)
			}
		}
	})
}

func TestARefusalForGoodIsNotTriedAgain(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.postman.answers(func(_ context.Context, m mail.Message) error {
			if m.To == "nobody@customer.example" {
				return fmt.Errorf("x: %w", errNever)
			}
			return errLater
		})
		f.put("acme", "nobody@customer.example")
		f.put("acme", "grey@customer.example")
		defer f.run()()
		f.until("both are tried", func() bool { rows := f.rows(); return len(rows) == 1 && rows[0].lastError != "" })
		if r := f.rows()[0]; r.lastError != "recipient: 450 4.2.0" {
			t.Errorf("%+v", r)
		}
		f.until("it is said", func() bool {
			return strings.Contains(f.log(), "mail.given_up map[attempts:1 cause:recipient: 550 5.1.1 mail_id:") &&
				strings.Contains(f.log(), "mail.delayed map[attempts:1 cause:recipient: 450 4.2.0 mail_id:")
		})
		if s := f.Stats(); s.GivenUp != 1 || s.Failed != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAWaitingMailIsSealed(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		f.postman.answers(func(context.Context, mail.Message) error { return errTalking })
		f.put("acme", "eva@customer.example")
		defer f.run()()
		f.until("it failed once", func() bool { return f.rows()[0].lastError != "" })
		r := f.rows()[0]
		all := fmt.Sprintf("%+v", r)
		for _, private := range []string{"eva", "customer", "acme.example", token, "Confirm", "verify"} {
			if strings.Contains(all, private) {
				t.Errorf("%q is in the row: %s", private, all)
			}
		}
		plain, err := newKeyring(t).Open("waiting mail", r.sealed)
		if err != nil || !strings.Contains(string(plain), token) {
			t.Errorf("%s, %v", plain, err)
		}
	})
}

func TestAMailThatDoesNotOpenHoldsUpNoOther(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		other, err := secret.NewKeyring([]byte(strings.Repeat("o", 32)))
		if err != nil {
			t.Fatal(err)
		}
		stranger := newOffice(t, f.db)
		stranger.Outbox = New(Options{DB: f.db, Keyring: other, Clock: f.clock, Sender: f.postman})
		stranger.put("acme", "sealed@customer.example")
		f.put("acme", "eva@customer.example")
		defer f.run()()
		f.until("the other is sent", func() bool { rows := f.rows(); return len(rows) == 1 && rows[0].lastError != "" })
		if r := f.rows()[0]; r.lastError != "the sealed mail does not open" || f.postman.tried() != 1 {
			t.Errorf("%+v", r)
		}
	})
}

func TestThroughARealServer(t *testing.T) {
	each(t, func(t *testing.T, f *office) {
		server, err := mailtest.Start(mailtest.Config{Fail: map[string]string{"content": "451 4.3.0 later"}})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		sender, err := mail.SMTP("smtp://" + server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		f.Outbox = New(Options{DB: f.db, Keyring: newKeyring(t), Clock: f.clock, Sender: sender, Emit: f.note})
		f.put("acme", "eva@customer.example")
		f.put("acme", "not an address")
		defer f.run()()
		f.until("one is delayed", func() bool { rows := f.rows(); return len(rows) == 1 && rows[0].lastError == "content: 451 4.3.0" })
		f.until("one is given up", func() bool { return strings.Contains(f.log(), "cause:message: To is not one plain address") })
		id := f.rows()[0].id
		server.Fail(nil)
		f.clock.Advance(pause(1))
		f.Wake()
		f.untilEmpty()
		d := server.Deliveries()
		if len(d) != 1 || d[0].To != "<eva@customer.example>" || !strings.Contains(d[0].Content, "<"+id+"@acme.example>") ||
			!strings.Contains(d[0].Content, noon.Format(time.RFC1123Z)) {
			t.Errorf("%+v", d)
		}
	})
}
