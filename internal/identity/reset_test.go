package identity

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
)

func (w *world) askReset(email string) (token string) {
	w.t.Helper()
	w.do("request-password-reset", fmt.Sprintf(`{"email":%q}`, email)).want(200, "")
	_, token = w.lastMail(email)
	return token
}

func (w *world) reset(token, password string) answer {
	w.t.Helper()
	return w.do("password-reset", fmt.Sprintf(`{"token":%q,"newPassword":%q}`, token, password))
}

func TestAResetChangesThePasswordAndEndsEverySession(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		_, laptop := w.login(eva)
		_, phone := w.login(eva)
		phone2 := w.refresh(phone).want(200, "").text("refreshToken")
		first, second := w.askReset(eva), w.askReset(eva)
		m, _ := w.lastMail(eva)
		if !strings.Contains(m.Text, "https://portal.acme.example/reset-password?token="+second) {
			t.Errorf("%+v", m)
		}
		if a := w.reset(second, "another one").want(200, ""); a.raw != `{"success":true}` {
			t.Errorf("reset: %s", a.raw)
		}
		for _, token := range []string{laptop, phone, phone2} {
			w.refresh(token).want(401, fault.Unauthorized)
		}
		if w.rows(`SELECT 1 FROM refresh_tokens WHERE tenant_id = $1 AND revoked_at IS NULL`) != 0 {
			t.Error("a token is not marked revoked")
		}
		w.do("login", fmt.Sprintf(`{"email":%q,"password":%q}`, eva, password)).want(401, fault.InvalidCredentials)
		w.do("login", fmt.Sprintf(`{"email":%q,"password":"another one"}`, eva)).want(200, "")
		w.reset(second, "yet another").want(400, fault.TokenInvalid)
		w.reset(first, "yet another").want(400, fault.TokenInvalid)
	})
}

func TestAResetTokenLivesAnHour(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		young, old := w.askReset(eva), w.askReset(eva)
		w.clock.advance(time.Hour - time.Minute)
		w.reset(young, "short").want(400, fault.Validation)
		w.reset(young, "another one").want(200, "")
		w.reset("unknown", "another one").want(400, fault.TokenInvalid)
		w.do("password-reset", `{"token":"x"}`).want(400, fault.Validation)
		w.clock.advance(2 * time.Minute)
		w.reset(old, "another one").want(400, fault.TokenExpired)
	})
}

// A reset requires the conditions of contract I11: the user exists, is external, is active
// and is verified.
func TestAResetIsForActiveVerifiedEndUsersAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join("gone@customer.example")
		w.setActive("gone@customer.example", false)
		w.pending(byEmail, "waits@customer.example")
		w.join(eva)
		before, hashes := w.post.count(), w.rows(`SELECT 1 FROM one_time_tokens WHERE tenant_id = $1`)
		for _, email := range []string{"nobody@customer.example", "gone@customer.example", "waits@customer.example", sam, "x"} {
			if a := w.do("request-password-reset", fmt.Sprintf(`{"email":%q}`, email)).want(200, ""); a.raw != `{"success":true}` {
				t.Errorf("%s: %s", email, a.raw)
			}
		}
		w.settle()
		if w.post.count() != before || w.rows(`SELECT 1 FROM one_time_tokens WHERE tenant_id = $1`) != hashes {
			t.Error("somebody was sent a mail")
		}
		token := w.askReset(eva)
		w.setActive(eva, false)
		w.reset(token, "another one").want(400, fault.TokenInvalid)
		w.setActive(eva, true)
		w.reset(token, "another one").want(400, fault.TokenInvalid)
	})
}

func TestAMailThatCannotBeQueuedIsTriedAgainAndThenReported(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	before := w.post.count()
	w.post.mu.Lock()
	w.post.fails = errors.New("disk")
	w.post.mu.Unlock()
	w.do("request-password-reset", `{"email":"eva@customer.example"}`).want(200, "")
	time.Sleep(50 * time.Millisecond)
	w.post.mu.Lock()
	w.post.fails = nil
	w.post.mu.Unlock()
	w.settle()
	if w.post.count() != before+1 {
		t.Error("it was not tried again")
	}
	w.post.mu.Lock()
	w.post.fails = errors.New("disk")
	w.post.mu.Unlock()
	w.do("request-password-reset", `{"email":"eva@customer.example"}`).want(200, "")
	w.settle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.events) != 1 || !strings.HasPrefix(w.events[0], "identity.mail_failed") || strings.Contains(w.events[0], eva) {
		t.Errorf("%v", w.events)
	}
}

func TestPasswordsAreHashedForReal(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.id.hasher.Functions = signin.Functions{Hash: secret.HashPassword, Verify: secret.VerifyPassword, Dummy: secret.DummyHash}
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = noProof })
		w.join(eva)
		if hash := w.user(eva).PasswordHash; !strings.HasPrefix(hash, "$argon2id$") {
			t.Error(hash)
		}
		w.login(eva)
		w.reset(w.askReset(eva), "another one").want(200, "")
		w.do("login", fmt.Sprintf(`{"email":%q,"password":%q}`, eva, password)).want(401, fault.InvalidCredentials)
		w.do("login", fmt.Sprintf(`{"email":%q,"password":"another one"}`, eva)).want(200, "")
	})
}
