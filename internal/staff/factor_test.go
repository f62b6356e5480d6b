package staff_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"gatehouse/internal/gatetest"
)

const demands = acme + "staff: {second_factor: required}\n"

// code returns the code of a key at the time of the world.
func code(t *testing.T, w *gatetest.World, key string) string {
	t.Helper()
	c, err := totp.GenerateCode(key, w.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// enrol sets up a second factor for an actor, and returns its key and recovery codes.
func enrol(t *testing.T, w *gatetest.World, a *gatetest.Actor, body string) (key string, codes []string, answer *gatetest.Answer) {
	t.Helper()
	var e struct{ Secret, URI, QR string }
	a.Post("/admin/v1/account/factor", body).Want(200, "").Data(&e)
	u, err := url.Parse(e.URI)
	if err != nil || u.Scheme != "otpauth" || u.Query().Get("secret") != e.Secret || !strings.HasPrefix(e.QR, "data:image/png;base64,") {
		t.Fatalf("the enrolment: %+v", e)
	}
	var r struct{ RecoveryCodes []string }
	answer = a.Post("/admin/v1/account/factor/confirm", fmt.Sprintf(`{"code":%q}`, code(t, w, e.Secret))).Want(200, "")
	answer.Data(&r)
	if len(r.RecoveryCodes) != 10 {
		t.Fatalf("recovery codes: %v", r.RecoveryCodes)
	}
	return e.Secret, r.RecoveryCodes, answer
}

const ownPassword = `{"currentPassword":"` + gatetest.StaffPassword + `"}`

func show(t *testing.T, w *gatetest.World, key string) string {
	return fmt.Sprintf(`{"code":%q}`, code(t, w, key))
}

func TestASecondFactorIsAskedForAtEachSignIn(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Clock.Stop()
		anyone, sam := w.Anyone(), w.Staff("sam@acme.example")
		from(sam, 1).Post("/admin/v1/account/factor", `{"currentPassword":"not mine at all"}`).Want(401, "INVALID_CREDENTIALS")
		from(sam, 1).Post("/admin/v1/account/factor", `{}`).Want(400, "VALIDATION")
		other := with(from(anyone, 2).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone)
		key, codes, _ := enrol(t, w, from(sam, 3), ownPassword)
		sam.Get(session).Want(200, "")
		other.Get(session).Want(401, "UNAUTHORIZED") // it began without a second factor
		if got := sam.Get("/admin/v1/account").Want(200, "").Member("secondFactor"); got != `{"enrolled":true,"required":false,"recoveryCodes":10}` {
			t.Errorf("the account: %s", got)
		}

		w.Clock.Advance(16 * time.Minute) // past the limits of attempts
		waits := from(with(from(anyone, 4).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone), 5)
		if got := waits.Get(session).Want(200, "").Member("stage"); got != `"code"` {
			t.Fatalf("the stage is %s", got)
		}
		if got := waits.Get(session).Member("system"); got != "[]" {
			t.Errorf("before the second factor they may %s", got)
		}
		for _, path := range []string{"account", "account/sessions"} {
			waits.Get("/admin/v1/"+path).Want(403, "FORBIDDEN")
		}
		waits.Post("/admin/v1/account/factor", ownPassword).Want(403, "FORBIDDEN") // no new key instead of the one they lack
		waits.Post("/admin/v1/account/factor/confirm", show(t, w, key)).Want(403, "FORBIDDEN")
		waits.Post("/admin/v1/session/code", `{"code":"000000"}`).Want(401, "INVALID_CREDENTIALS")
		waits.Post("/admin/v1/session/code", `{"code":"","recoveryCode":""}`).Want(400, "VALIDATION")
		done := with(waits.Post("/admin/v1/session/code", show(t, w, key)).Want(200, "").Cookie(), anyone)
		if done.Cookie == waits.Cookie {
			t.Error("the token of the unfinished sign-in is good for the finished one")
		}
		waits.Get(session).Want(401, "UNAUTHORIZED")
		done.Get("/admin/v1/account").Want(200, "")
		done.Post("/admin/v1/session/code", show(t, w, key)).Want(409, "CONFLICT")

		again := from(with(from(anyone, 6).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone), 7)
		again.Post("/admin/v1/session/code", show(t, w, key)).Want(401, "INVALID_CREDENTIALS") // the code was used already
		typed := strings.ToUpper(strings.ReplaceAll(codes[0], "-", " "))
		again.Post("/admin/v1/session/code", fmt.Sprintf(`{"recoveryCode":%q}`, typed)).Want(200, "")
		w.Clock.Advance(15 * time.Minute) // the limit of codes
		again = from(with(from(anyone, 8).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone), 9)
		again.Post("/admin/v1/session/code", fmt.Sprintf(`{"recoveryCode":%q}`, codes[0])).Want(401, "INVALID_CREDENTIALS")
		w.Clock.Advance(15*time.Minute + time.Second)
		again.Post("/admin/v1/session/code", show(t, w, key)).Want(401, "UNAUTHORIZED") // an unfinished sign-in waits a quarter of an hour
		w.Nodes[0].Stop()
		for _, hidden := range append(codes, key) {
			if w.Nodes[0].Log.Contains(hidden) {
				t.Error("the log has a secret of the second factor")
			}
		}
	})
}

func TestATenantDemandsASecondFactor(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(demands)
		w.Clock.Stop()
		w.SetPassword("acme", "sam@acme.example")
		anyone := w.Anyone()
		waits := from(with(from(anyone, 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone), 2)
		if got := waits.Get(session).Want(200, "").Member("stage"); got != `"enrolment"` {
			t.Fatalf("the stage is %s", got)
		}
		waits.Get("/admin/v1/account").Want(403, "FORBIDDEN")
		waits.Post("/admin/v1/account/factor/confirm", `{"code":"123456"}`).Want(409, "CONFLICT") // nothing was begun
		_, _, answer := enrol(t, w, waits, "{}")
		sam := with(answer.Cookie(), anyone)
		sam.Get("/admin/v1/account").Want(200, "")
		waits.Get(session).Want(401, "UNAUTHORIZED")
		from(sam, 3).Do("DELETE", "/admin/v1/account/factor", ownPassword).Want(403, "FORBIDDEN")
		w.Apply(acme + "staff: {second_factor: optional}\n")
		from(sam, 3).Do("DELETE", "/admin/v1/account/factor", `{"currentPassword":"not mine at all"}`).Want(401, "INVALID_CREDENTIALS")
		from(sam, 3).Do("DELETE", "/admin/v1/account/factor", ownPassword).Want(200, "")
		if got := from(anyone, 4).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Member("stage"); got != `"full"` {
			t.Errorf("without a second factor the stage is %s", got)
		}
	})
}

func TestCodesAreLimited(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Clock.Stop()
		sam := w.Staff("sam@acme.example")
		key, _, _ := enrol(t, w, from(sam, 1), ownPassword)
		w.Clock.Advance(16 * time.Minute)
		anyone := w.Anyone()
		for i := range 5 {
			waits := with(from(anyone, 10+i).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone)
			from(waits, 20+i).Post("/admin/v1/session/code", `{"code":"000000"}`).Want(401, "INVALID_CREDENTIALS")
			if i == 4 {
				from(waits, 30).Post("/admin/v1/session/code", show(t, w, key)).Want(429, "TOO_MANY_REQUESTS")
			}
		}
	})
}

// TestWhatIsGoodOnceIsGoodOnceAtOnce: of many requests with one code, recovery code or reset
// token at the same time one succeeds.
func TestWhatIsGoodOnceIsGoodOnceAtOnce(t *testing.T) {
	const racers = 8
	race := func(call func(i int) *gatetest.Answer) (won int64) {
		var wins atomic.Int64
		var wait sync.WaitGroup
		for i := range racers {
			wait.Go(func() {
				if call(i).Status == 200 {
					wins.Add(1)
				}
			})
		}
		wait.Wait()
		return wins.Load()
	}
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(strings.Replace(acme, "{enabled: true}\nentities", "{enabled: true, limits: {login_per_email_per_15_minutes: 100, login_per_ip_per_minute: 100}}\nentities", 1))
		w.Clock.Stop()
		key, codes, _ := enrol(t, w, from(w.Staff("sam@acme.example"), 1), ownPassword)
		w.Clock.Advance(time.Minute)
		anyone := w.Anyone()
		waiting := func() (list [racers]*gatetest.Actor) {
			for i := range list {
				list[i] = with(anyone.SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), anyone)
			}
			return list
		}
		for what, body := range map[string]string{"code": show(t, w, key), "recovery code": fmt.Sprintf(`{"recoveryCode":%q}`, codes[3])} {
			list := waiting()
			if won := race(func(i int) *gatetest.Answer { return list[i].Post("/admin/v1/session/code", body) }); won != 1 {
				t.Errorf("one %s completes %d sign-ins", what, won)
			}
		}
		page := anyone.With("Origin", "http://acme.localhost")
		page.Post("/admin/v1/password/forgot", `{"email":"mara@acme.example"}`).Want(200, "")
		token := w.Mails.Token(t, "mara@acme.example", 1)
		if won := race(func(i int) *gatetest.Answer {
			return page.Post("/admin/v1/password/reset", fmt.Sprintf(`{"token":%q,"newPassword":"a good password %d"}`, token, i))
		}); won != 1 {
			t.Errorf("one reset token sets %d passwords", won)
		}
	})
}
