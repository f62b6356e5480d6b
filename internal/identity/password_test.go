package identity

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

// change changes a password as the server does for the user of an access token.
func (w *world) change(accessToken, current, next string) answer {
	w.t.Helper()
	viewer, err := w.id.Authenticate(w.ctx, w.config(), accessToken)
	w.must(err)
	body := fmt.Sprintf(`{"currentPassword":%q,"newPassword":%q}`, current, next)
	return w.callWith(w.config(), "POST", "password", body, viewer, accessToken)
}

func TestAChangedPasswordEndsAllOtherSessions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		w.join("other@customer.example")
		_, strangers := w.login("other@customer.example")
		_, phone := w.login(eva)
		phone2 := w.refresh(phone).want(200, "").text("refreshToken")
		access, laptop := w.login(eva)
		reset := w.askReset(eva)
		if a := w.change(access, password, "another one").want(200, ""); a.raw != `{"success":true}` {
			t.Errorf("change: %s", a.raw)
		}
		if n := w.rows(`SELECT 1 FROM refresh_tokens WHERE tenant_id = $1 AND revoked_at IS NULL`); n != 2 {
			t.Errorf("%d tokens are not marked revoked, want the user's one and a stranger's", n)
		}
		for _, token := range []string{phone, phone2} {
			w.refresh(token).want(401, fault.Unauthorized)
		}
		w.signIn(eva, password).want(401, fault.InvalidCredentials)
		w.signIn(eva, "another one").want(200, "")
		w.reset(reset, "yet another").want(400, fault.TokenInvalid)
		w.refresh(strangers).want(200, "")

		// The session continues, and its new access token can change the password again.
		a := w.refresh(laptop).want(200, "")
		w.change(a.text("accessToken"), "another one", password).want(200, "")
		w.refresh(a.text("refreshToken")).want(200, "")
		if s := w.id.Stats(); s.Changes != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A refused request changes nothing.
func TestWhatMayNotChangeAPassword(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		access, refreshToken := w.login(eva)
		var verified atomic.Int64
		w.id.hasher.Functions.Verify = func(phc, password string) bool { verified.Add(1); return cheap.Verify(phc, password) }
		a := w.change(access, "wrong", "another one").want(401, fault.InvalidCredentials)
		if a.err.RetryAfter != 0 || verified.Load() != 1 {
			t.Errorf("%+v after %d verifications", a.err, verified.Load())
		}
		fields := func(a answer) string { return fmt.Sprint(a.want(400, fault.Validation).err.Details["fields"]) }
		if got := fields(w.change(access, password, "short")); !strings.Contains(got, "newPassword") {
			t.Error(got)
		}
		if got := fields(w.change(access, "", "")); !strings.Contains(got, "newPassword") || !strings.Contains(got, "currentPassword") {
			t.Error(got)
		}
		if verified.Load() != 1 {
			t.Error("a hash was spent on a body that is refused")
		}
		w.setActive(eva, false) // the access token works until it expires
		a = w.change(access, password, "another one").want(403, fault.AccountNotActive)
		if a.err.Details["reason"] != "deactivated" {
			t.Errorf("%v", a.err.Details)
		}
		w.change(access, "wrong", "another one").want(401, fault.InvalidCredentials)
		w.setActive(eva, true)
		w.refresh(refreshToken).want(401, fault.Unauthorized) // by the deactivation
		w.signIn(eva, password).want(200, "")

		access, _ = w.login(eva)
		viewer := w.viewer(eva)
		w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error {
			u := w.user(eva)
			u.PasswordHash = ""
			return user.Update(w.ctx, tx, u)
		}))
		verified.Store(0)
		w.callWith(w.config(), "POST", "password", `{"currentPassword":"dummy","newPassword":"another one"}`, viewer, access).want(401, fault.InvalidCredentials)
		if verified.Load() != 1 {
			t.Errorf("%d verifications for a user without a password", verified.Load())
		}
	})
}

// Attempts here and at login are counted together, so that neither evades the other's
// limits.
func TestChangingAPasswordIsNoWayRoundTheLimitsOfLogin(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	access, _ := w.login(eva)
	w.settings(func(e *tenant.ExternalIdentity) { e.Limits.LoginPerEmailPer15Minutes = 4 })
	w.signIn(eva, "wrong").want(401, fault.InvalidCredentials)
	for range 2 {
		w.change(access, "wrong", "another one").want(401, fault.InvalidCredentials)
	}
	if a := w.change(access, "wrong", "another one").want(429, fault.TooManyRequests); a.err.RetryAfter <= 0 || a.limit.Limit != 4 {
		t.Errorf("%v %+v", a.err.RetryAfter, a.limit)
	}
	w.signIn(eva, password).want(429, fault.TooManyRequests)
	w.change(access, password, "another one").want(429, fault.TooManyRequests)

	w.join("b@customer.example")
	access, _ = w.login("b@customer.example")
	w.settings(func(e *tenant.ExternalIdentity) {
		e.Limits.LoginPerIPPerMinute, e.Limits.LoginPerEmailPer15Minutes = 3, 100
	})
	w.ip = "198.51.100.7"
	w.change(access, "wrong", "another one").want(401, fault.InvalidCredentials)
	w.signIn("nobody@customer.example", "wrong").want(401, fault.InvalidCredentials)
	w.change(access, "", "another one").want(400, fault.Validation)
	w.change(access, password, "another one").want(429, fault.TooManyRequests)
	w.signIn("b@customer.example", password).want(429, fault.TooManyRequests)
	w.ip = "198.51.100.8"
	w.change(access, password, "another one").want(200, "")
}

// If the session of the request has ended, or the access token does not name one, all
// sessions end.
func TestAPasswordChangedFromNoSessionEndsThemAll(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := w.join(eva)
		_, phone := w.login(eva)
		access, laptop := w.login(eva)
		w.logout(laptop)
		w.change(access, password, "another one").want(200, "")
		w.refresh(phone).want(401, fault.Unauthorized)
		w.refresh(laptop).want(401, fault.Unauthorized)

		_, tablet := func() (string, string) {
			a := w.signIn(eva, "another one").want(200, "")
			return a.text("accessToken"), a.text("refreshToken")
		}()
		w.change((&forge{w, id}).make(jwt.SigningMethodHS256, nil), "another one", password).want(200, "")
		w.refresh(tablet).want(401, fault.Unauthorized)
		w.login(eva)
	})
}

// A change of the account that is made during a change of the password takes effect.
func TestAChangeThatWasOvertakenDoesNotHold(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		access, _ := w.login(eva)
		meanwhile := func(do func()) answer {
			w.id.hasher.Functions.Hash = func(password string) (string, error) {
				w.id.hasher.Functions.Hash = cheap.Hash
				do()
				return cheap.Hash(password)
			}
			return w.change(access, password, "from the change")
		}
		meanwhile(func() { w.setActive(eva, false) }).want(403, fault.AccountNotActive)
		w.setActive(eva, true)
		reset := w.askReset(eva)
		meanwhile(func() {
			w.must(w.id.store.reset(w.ctx, acme, secret.Hash(reset), "cheap:from the reset"))
		}).want(401, fault.InvalidCredentials)
		w.signIn(eva, "from the reset").want(200, "")
		w.signIn(eva, "from the change").want(401, fault.InvalidCredentials)
	})
}

// If refreshes and logins run at the same time, the session in which the password is
// changed continues and no other does, in whatever order they run.
func TestAPasswordIsChangedDuringRefreshesAndLogins(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			w := newWorld(t, dbtest.Open(t, engine))
			w.join(eva)
			now, next := password, "another one"
			for round := range rounds() {
				sign := func() answer { return w.signIn(eva, now).want(200, "") }
				other, own := sign().text("refreshToken"), sign()
				cfg, access := w.config(), own.text("accessToken")
				results := inParallel(20, func(i int) string {
					switch {
					case i == 7:
						w.change(access, now, next).want(200, "")
						return ""
					case i%3 == 0:
						out, err := w.id.login(context.Background(), cfg, eva, now)
						if err != nil {
							return ""
						}
						return out.RefreshToken
					case i%3 == 1:
						out, err := w.id.refresh(context.Background(), cfg, other, noSessionLimit)
						if err != nil {
							return ""
						}
						return out.RefreshToken
					}
					if _, err := w.id.refresh(context.Background(), cfg, own.text("refreshToken"), noSessionLimit); err != nil {
						t.Errorf("round %d: the session itself: %v", round, err)
					}
					return ""
				})
				for token := range results {
					if token != "" {
						w.refresh(token).want(401, fault.Unauthorized)
					}
				}
				w.refresh(own.text("refreshToken")).want(200, "")
				now, next = next, now
			}
		})
	}
}
