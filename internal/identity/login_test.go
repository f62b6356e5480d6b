package identity

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

func (w *world) signIn(email, password string) answer {
	w.t.Helper()
	return w.do("login", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
}

func TestLoginAnswersTokens(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := w.join(eva)
		a := w.signIn(" EVA@Customer.Example ", password).want(200, "")
		if a.data["expiresIn"] != 3600.0 || len(a.data) != 3 || len(a.text("refreshToken")) != 43 {
			t.Errorf("login: %s", a.raw)
		}
		v, err := w.id.Authenticate(w.ctx, w.config(), a.text("accessToken"))
		w.must(err)
		if string(v.UserID()) != id || !v.External() {
			t.Errorf("viewer: %q", v.UserID())
		}
		if s := w.id.Stats(); s.Logins != 1 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		for _, body := range []string{`{}`, `{"email":"a@b.example"}`, `{"password":"x"}`, `{"email":1,"password":"x"}`, `{"email":"a","password":"x","more":1}`} {
			w.do("login", body).want(400, fault.Validation)
		}
	})
}

// Logins of staff, with unknown addresses and with wrong passwords get the same bytes,
// after the same work: one verification.
func TestWhoMayNotLogInGetsTheSameAnswer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		w.pending(byEmail, "waits@customer.example")
		w.join("gone@customer.example")
		w.setActive("gone@customer.example", false)
		_, err := config.CreateUser(w.ctx, w.d.For(acme), w.clock, config.Operator("test"), config.UserDraft{Email: "bare@customer.example", Name: "B", Type: user.External})
		w.must(err)
		w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error { // the right password of staff, for the cheap hash function
			u := w.user(sam)
			u.PasswordHash = "cheap:" + password
			return user.Update(w.ctx, tx, u)
		}))
		var verified atomic.Int64
		w.id.hasher.Functions.Verify = func(phc, password string) bool { verified.Add(1); return cheap.Verify(phc, password) }
		answers := map[string]int{}
		list := [][2]string{
			{"nobody@customer.example", password}, {"no address", password}, {sam, password}, {olivia, password},
			{eva, "wrong"}, {"waits@customer.example", "wrong"}, {"gone@customer.example", "wrong"},
			{"bare@customer.example", ""}, {"bare@customer.example", "dummy"}, {eva, strings.Repeat("x", 10_000)},
		}
		for i, c := range list {
			if c[1] == "" {
				verified.Add(1)
				continue
			}
			answers[w.signIn(c[0], c[1]).want(401, fault.InvalidCredentials).raw]++
			if verified.Load() != int64(i+1) {
				t.Errorf("%v: %d verifications", c, verified.Load()-int64(i))
			}
		}
		if len(answers) != 1 {
			t.Errorf("%v", answers)
		}
		for email, reason := range map[string]string{"waits@customer.example": "pending", "gone@customer.example": "deactivated"} {
			if a := w.signIn(email, password).want(403, fault.AccountNotActive); a.err.Details["reason"] != reason {
				t.Errorf("%s: %v, want the reason %s", email, a.err.Details, reason)
			}
		}
		if s := w.id.Stats(); s.Failures != int64(len(list)+1) || s.Logins != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// A change of the account that is made while the password is checked takes effect.
func TestALoginThatWasOvertakenDoesNotHold(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		cfg := w.config()
		meanwhile := func(do func()) answer {
			w.id.hasher.Functions.Verify = func(phc, password string) bool {
				w.id.hasher.Functions.Verify = cheap.Verify
				do()
				return cheap.Verify(phc, password)
			}
			return w.call(cfg, "POST", "login", fmt.Sprintf(`{"email":%q,"password":%q}`, eva, password), access.Viewer{})
		}
		meanwhile(func() { w.setActive(eva, false) }).want(403, fault.AccountNotActive)
		w.setActive(eva, true)
		meanwhile(func() { w.setActive(eva, false); w.setActive(eva, true) }).want(401, fault.InvalidCredentials)
		reset := w.askReset(eva)
		meanwhile(func() { w.must(w.id.store.reset(w.ctx, acme, secret.Hash(reset), "cheap:another one")) }).want(401, fault.InvalidCredentials)
		meanwhile(func() {
			w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error { return user.Delete(w.ctx, tx, w.user(eva).ID) }))
		}).want(401, fault.InvalidCredentials)
	})
}

func TestALoginStormIsShed(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	var running, most atomic.Int64
	release := make(chan struct{})
	w.id.hasher.Functions.Verify = func(phc, password string) bool {
		if now := running.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer running.Add(-1)
		<-release
		return cheap.Verify(phc, password)
	}
	cfg := w.config()
	slots := max(1, runtime.GOMAXPROCS(0)-1)
	total := slots + signin.MaxQueuedOfOne + 10
	var wg sync.WaitGroup
	codes := make(chan answer, total)
	for range total {
		wg.Go(func() {
			codes <- w.call(cfg, "POST", "login", fmt.Sprintf(`{"email":%q,"password":%q}`, eva, password), access.Viewer{})
		})
	}
	for range 10 { // requests that exceed the queue are answered at once
		a := <-codes
		if a.code != fault.Overloaded || a.err.RetryAfter <= 0 {
			t.Errorf("%s, want OVERLOADED", a.code)
		}
	}
	close(release)
	wg.Wait()
	close(codes)
	for a := range codes {
		a.want(200, "")
	}
	if most.Load() > int64(slots) || w.id.Stats().Overloads != 10 {
		t.Errorf("%d at once, %+v", most.Load(), w.id.Stats())
	}
}

// TestALoginStormLeavesTurnsToOthers: when one tenant's queue is full, another tenant's login
// is the next one or the one after.
func TestALoginStormLeavesTurnsToOthers(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	slots := max(1, runtime.GOMAXPROCS(0)-1)
	var leaves []func()
	for range slots {
		leave, err := w.id.hasher.Admit(t.Context(), acme)
		w.must(err)
		leaves = append(leaves, leave)
	}
	var wg sync.WaitGroup
	var before atomic.Int64
	for range signin.MaxQueuedOfOne {
		wg.Go(func() {
			leave, err := w.id.hasher.Admit(t.Context(), acme)
			if err != nil {
				t.Error(err)
				return
			}
			before.Add(1)
			time.Sleep(time.Millisecond)
			leave()
		})
	}
	for w.id.hasher.Waiting() < signin.MaxQueuedOfOne {
		time.Sleep(time.Millisecond)
	}
	if _, err := w.id.hasher.Admit(t.Context(), acme); fault.CodeOf(err) != fault.Overloaded {
		t.Errorf("one more of the storm: %v", err)
	}
	seen := make(chan int64, 1)
	wg.Go(func() {
		leave, err := w.id.hasher.Admit(t.Context(), "globex")
		if err != nil {
			t.Error(err)
			seen <- 0
			return
		}
		seen <- before.Load()
		leave()
	})
	for w.id.hasher.Waiting() < signin.MaxQueuedOfOne+1 {
		time.Sleep(time.Millisecond)
	}
	for _, leave := range leaves {
		leave()
	}
	if n := <-seen; n > int64(2*slots+2) {
		t.Errorf("%d of the storm went before", n)
	}
	wg.Wait()
}

// TestAttemptsThatAreShedBlockNobody: if more logins of one address than its limit wait for a
// place and are refused with OVERLOADED, none of them counts, and the next login with the
// right password succeeds.
func TestAttemptsThatAreShedBlockNobody(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	var leaves []func()
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		leave, err := w.id.hasher.Admit(t.Context(), "globex")
		w.must(err)
		leaves = append(leaves, leave)
	}
	cfg, body := w.config(), fmt.Sprintf(`{"email":%q,"password":%q}`, eva, password)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() { w.call(cfg, "POST", "login", body, access.Viewer{}).want(503, fault.Overloaded) })
	}
	wg.Wait()
	for _, leave := range leaves {
		leave()
	}
	w.do("login", body).want(200, "")
}

// tableOfLimits has the limits of contract L7; call makes the i-th request of a kind.
var tableOfLimits = []struct {
	name   string
	set    func(*tenant.IdentityLimits)
	limit  int
	window time.Duration
	call   func(w *world, i int) answer
}{
	{"register per address", func(l *tenant.IdentityLimits) { l.RegisterPerIPPerHour = 5 }, 5, time.Hour,
		func(w *world, i int) answer { return w.do("register", registering(fmt.Sprintf("u%d@b.example", i))) }},
	{"register per address, whatever is sent", func(l *tenant.IdentityLimits) { l.RegisterPerIPPerHour = 5 }, 5, time.Hour,
		func(w *world, _ int) answer { return w.do("register", `{}`) }},
	{"register per tenant", func(l *tenant.IdentityLimits) { l.RegisterPerTenantPerHour = 30 }, 30, time.Hour,
		func(w *world, i int) answer {
			w.ip = fmt.Sprintf("198.51.100.%d", i)
			return w.do("register", registering(fmt.Sprintf("u%d@b.example", i)))
		}},
	{"login per address", func(l *tenant.IdentityLimits) { l.LoginPerIPPerMinute = 10 }, 10, time.Minute,
		func(w *world, i int) answer { return w.signIn(fmt.Sprintf("u%d@b.example", i), "wrong") }},
	{"login per address counts successes", func(l *tenant.IdentityLimits) { l.LoginPerIPPerMinute = 10 }, 10, time.Minute,
		func(w *world, _ int) answer { return w.signIn(eva, password) }},
	{"reset per e-mail", func(l *tenant.IdentityLimits) { l.ResetPerEmailPerHour = 3 }, 3, time.Hour,
		func(w *world, i int) answer {
			w.ip = fmt.Sprintf("198.51.100.%d", i)
			return w.do("request-password-reset", `{"email":" NOBODY@b.example"}`)
		}},
	{"reset per tenant", func(l *tenant.IdentityLimits) { l.ResetPerTenantPerHour = 30 }, 30, time.Hour,
		func(w *world, i int) answer {
			return w.do("request-password-reset", fmt.Sprintf(`{"email":"u%d@b.example"}`, i))
		}},
	{"resend per e-mail", func(l *tenant.IdentityLimits) { l.ResetPerEmailPerHour = 3 }, 3, time.Hour,
		func(w *world, _ int) answer { return w.do("resend-verification", `{"email":"nobody@b.example"}`) }},
	{"refresh per token", func(l *tenant.IdentityLimits) { l.RefreshPerTokenPerMinute = 60 }, 60, time.Minute,
		func(w *world, _ int) answer { return w.refresh("unknown") }},
	{"verify per address", func(l *tenant.IdentityLimits) { l.VerifyPerIPPerMinute = 30 }, 30, time.Minute,
		func(w *world, i int) answer { return w.verify(fmt.Sprint(i)) }},
	{"password-reset per address", func(l *tenant.IdentityLimits) { l.PasswordResetPerIPPerMinute = 30 }, 30, time.Minute,
		func(w *world, i int) answer { return w.reset(fmt.Sprint(i), "another one") }},
}

// Each limit of the table is tested at its edge and in the next window.
func TestEachLimitHolds(t *testing.T) {
	for _, c := range tableOfLimits {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, dbtest.Open(t, db.SQLite))
			w.join(eva)
			w.clock.advance(time.Hour)
			w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = noProof; c.set(&e.Limits) })
			for range 2 {
				for i := range c.limit {
					a := c.call(w, i)
					if a.code == fault.TooManyRequests {
						t.Fatalf("request %d is refused", i+1)
					}
					if a.limit == nil || a.limit.Limit != c.limit || a.limit.Remaining != c.limit-i-1 {
						t.Fatalf("request %d tells %+v", i+1, a.limit)
					}
				}
				a := c.call(w, 200).want(429, fault.TooManyRequests)
				if a.err.RetryAfter <= 0 || a.err.RetryAfter > c.window || a.limit.Remaining != 0 || a.limit.Limit != c.limit {
					t.Errorf("%v %+v", a.err.RetryAfter, a.limit)
				}
				w.clock.advance(c.window)
				w.settle()
			}
		})
	}
}

func TestTooManyLoginsBlockTheAddress(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, email := range []string{eva, "nobody@customer.example"} {
			if email == eva {
				w.join(eva)
			}
			w.settings(func(e *tenant.ExternalIdentity) {
				e.Limits.LoginPerEmailPer15Minutes = 5
				e.Limits.LoginBlockMinutes = 30
			})
			for i := range 5 {
				w.ip = fmt.Sprintf("198.51.100.%d", i)
				a := w.signIn(email, "wrong").want(401, fault.InvalidCredentials)
				if a.limit.Limit != 5 || a.limit.Remaining != 4-i {
					t.Errorf("tells %+v", a.limit)
				}
			}
			w.ip = "198.51.100.9"
			a := w.signIn(" "+strings.ToUpper(email), password).want(429, fault.TooManyRequests)
			if a.err.RetryAfter != 30*time.Minute || a.limit.Remaining != 0 {
				t.Errorf("%v %+v", a.err.RetryAfter, a.limit)
			}
			w.clock.advance(29 * time.Minute)
			if a = w.signIn(email, password).want(429, fault.TooManyRequests); a.err.RetryAfter > time.Minute {
				t.Errorf("still %v", a.err.RetryAfter)
			}
			w.signIn("other@customer.example", "wrong").want(401, fault.InvalidCredentials)
			w.clock.advance(time.Minute)
			if want := map[bool]int{true: 200, false: 401}[email == eva]; w.signIn(email, password).status != want {
				t.Errorf("%s: the block does not end", email)
			}
		}
		if w.id.Stats().Blocks != 2 {
			t.Errorf("%+v", w.id.Stats())
		}
	})
}

// A block that is shorter than the window ends in time, and the address then has all its
// attempts again.
func TestAShortBlockEndsWhenItSays(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	w.settings(func(e *tenant.ExternalIdentity) {
		e.Limits.LoginPerEmailPer15Minutes, e.Limits.LoginBlockMinutes = 3, 2
	})
	for round := range 2 {
		for range 3 {
			w.signIn(eva, "wrong").want(401, fault.InvalidCredentials)
		}
		if a := w.signIn(eva, password).want(429, fault.TooManyRequests); a.err.RetryAfter != 2*time.Minute {
			t.Errorf("round %d: blocked for %v", round, a.err.RetryAfter)
		}
		w.clock.advance(2*time.Minute - time.Second)
		w.signIn(eva, password).want(429, fault.TooManyRequests)
		w.clock.advance(time.Second)
	}
	w.signIn(eva, password).want(200, "")
	if n := w.id.Stats().Blocks; n != 2 {
		t.Errorf("%d blocks", n)
	}
}

// A new password ends the block of its own account, on every node, and of no
// other address.
func TestAResetEndsTheBlockOfItsAddress(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			w := newWorld(t, dbtest.OpenConfig(t, config))
			nodes := []*world{w}
			if engine == db.Postgres {
				nodes = append(nodes, node(t, dbtest.OpenConfig(t, config), w.clock))
			}
			w.join(eva)
			w.settings(func(e *tenant.ExternalIdentity) { e.Limits.LoginPerEmailPer15Minutes = 2 })
			for _, n := range nodes {
				n.dir.Forget()
				for _, email := range []string{eva, "nobody@customer.example"} {
					for range 2 {
						n.signIn(email, "wrong").want(401, fault.InvalidCredentials)
					}
					n.signIn(email, password).want(429, fault.TooManyRequests)
				}
			}
			w.reset(w.askReset(eva), "another one").want(200, "")
			for _, n := range nodes {
				n.signIn(eva, "wrong").want(401, fault.InvalidCredentials)
				n.signIn(eva, "another one").want(200, "")
				n.signIn(eva, "another one").want(429, fault.TooManyRequests)
				n.signIn("nobody@customer.example", "wrong").want(429, fault.TooManyRequests)
			}
		})
	}
}

// A caller whose own budget is used up cannot use up a shared one.
func TestARefusedRequestIsChargedToNobodyElse(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.settings(func(e *tenant.ExternalIdentity) {
		e.ActivationMode = noProof
		e.Limits.RegisterPerIPPerHour, e.Limits.RegisterPerTenantPerHour = 2, 4
		e.Limits.ResetPerEmailPerHour, e.Limits.ResetPerTenantPerHour = 2, 4
		e.Limits.LoginPerIPPerMinute, e.Limits.LoginPerEmailPer15Minutes = 2, 4
	})
	for i := range 20 {
		w.do("register", registering(fmt.Sprintf("a%d@b.example", i)))
		w.do("request-password-reset", `{"email":"a@b.example"}`)
		w.signIn(eva, "wrong")
	}
	w.ip = "198.51.100.1"
	for i := range 2 {
		w.do("register", registering(fmt.Sprintf("b%d@b.example", i))).want(201, "")
		w.do("request-password-reset", fmt.Sprintf(`{"email":"b%d@b.example"}`, i)).want(200, "")
		w.signIn(eva, "wrong").want(401, fault.InvalidCredentials)
	}
	// The tenant's budget is used up now. Refused requests are not charged to an IP
	// address or an e-mail address.
	w.ip = "198.51.100.2"
	w.do("register", registering("c@b.example")).want(429, fault.TooManyRequests)
	w.do("request-password-reset", `{"email":"c@b.example"}`).want(429, fault.TooManyRequests)
	for _, key := range []string{"identity/acme/register/address/198.51.100.2", "identity/acme/reset/email/c@b.example"} {
		if r := w.id.limits.Limiter.Peek(key, 2, time.Hour); r.Remaining != 2 {
			t.Errorf("%s: %+v", key, r)
		}
	}
}
