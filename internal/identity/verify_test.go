package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

const eva = "eva@customer.example"

// pending registers a pending user, and returns the id and token.
func (w *world) pending(mode, email string) (id, token string) {
	w.t.Helper()
	w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = mode })
	a := w.do("register", registering(email)).want(201, "")
	if mode == byApp {
		return a.text("userId"), a.text("activationToken")
	}
	_, token = w.lastMail(email)
	return a.text("userId"), token
}

func (w *world) verify(token string) answer {
	w.t.Helper()
	return w.do("verify", fmt.Sprintf(`{"token":%q}`, token))
}

// activate calls the route as an internal user who may activate.
func (w *world) activate(id, token string) answer {
	w.t.Helper()
	return w.call(w.config(), "POST", "users/"+id+"/activate", fmt.Sprintf(`{"activationToken":%q}`, token), w.viewer(sam))
}

func TestVerifyActivatesAndGreetsWhereTheTenantWants(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for i, greet := range []bool{false, true} {
			w.settings(func(e *tenant.ExternalIdentity) { e.WelcomeEmail = greet })
			email := fmt.Sprintf("u%d@customer.example", i)
			id, token := w.pending(byEmail, email)
			w.signIn(email, password).want(403, fault.AccountNotActive)
			before := w.post.count()
			if a := w.verify(token).want(200, ""); a.raw != `{"userId":"`+id+`","status":"active"}` {
				t.Errorf("verify: %s", a.raw)
			}
			if u := w.user(email); !u.Active || !u.EmailVerified || u.Pending {
				t.Errorf("%+v", u)
			}
			if got := w.post.count() - before; got != map[bool]int{false: 0, true: 1}[greet] {
				t.Errorf("%d mails", got)
			}
			w.verify(token).want(400, fault.TokenInvalid)
		}
		m, _ := w.lastMail("u1@customer.example")
		want, _ := mail.Default(mail.Welcome)
		if subject := want.Render(mail.Values{TenantName: "Acme GmbH"}).Subject; m.Subject != subject || !strings.Contains(m.Text, "https://portal.acme.example") {
			t.Errorf("%+v", m)
		}
	})
}

func TestAOneTimeTokenHoldsForItsTimeAndPurpose(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.verify("unknown").want(400, fault.TokenInvalid)
		w.do("verify", `{}`).want(400, fault.Validation)
		w.do("verify", `{"token":7}`).want(400, fault.Validation)

		id, activation := w.pending(byApp, "app@customer.example")
		w.verify(activation).want(400, fault.TokenInvalid)
		mailID, verification := w.pending(byEmail, eva)
		w.activate(mailID, verification).want(400, fault.TokenInvalid)
		w.do("password-reset", fmt.Sprintf(`{"token":%q,"newPassword":"another one"}`, verification)).want(400, fault.TokenInvalid)

		w.clock.advance(24*time.Hour - time.Minute)
		w.activate(mailID, verification).want(400, fault.TokenInvalid)
		w.clock.advance(2 * time.Minute)
		w.verify(verification).want(400, fault.TokenExpired)
		w.verify(activation).want(400, fault.TokenExpired)
		w.activate(id, activation).want(400, fault.TokenExpired)
		w.activate(mailID, verification).want(400, fault.TokenInvalid)
		if w.user(eva).Active || w.user("app@customer.example").Active {
			t.Error("active by an old token")
		}
		w.do("resend-verification", `{"email":"EVA@customer.example"}`).want(200, "")
		_, again := w.lastMail(eva)
		w.verify(again).want(200, "")
		w.verify(verification).want(400, fault.TokenExpired)
	})
}

func TestActivateNeedsThePermissionTheUserAndTheirToken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id, token := w.pending(byApp, eva)
		other, _ := w.pending(byApp, "other@customer.example")
		body := fmt.Sprintf(`{"activationToken":%q}`, token)
		for _, viewer := range []access.Viewer{{}, w.viewer(eva)} {
			w.call(w.config(), "POST", "users/"+id+"/activate", body, viewer).want(403, fault.Forbidden)
		}
		w.activate(other, token).want(400, fault.TokenInvalid)
		w.activate("no-such-id", token).want(400, fault.TokenInvalid)
		w.activate(id, "unknown").want(400, fault.TokenInvalid)
		if a := w.activate(id, token).want(200, ""); a.raw != `{"userId":"`+id+`","status":"active"}` {
			t.Errorf("activate: %s", a.raw)
		}
		if u := w.user(eva); !u.Active || !u.EmailVerified {
			t.Errorf("%+v", u)
		}
		w.activate(id, token).want(400, fault.TokenInvalid)
		if w.call(w.config(), "POST", "users/"+other+"/activate", `{"activationToken":"x"}`, w.viewer(olivia)).code != fault.TokenInvalid {
			t.Error("the owner may not activate")
		}
	})
}

func TestWhomAnOperatorDecidedOverWaitsNoMore(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, token := w.pending(byEmail, eva)
		w.setActive(eva, false)
		if u := w.user(eva); u.Active || u.Pending {
			t.Errorf("%+v", u)
		}
		w.verify(token).want(400, fault.TokenInvalid)
		w.do("resend-verification", `{"email":"eva@customer.example"}`).want(200, "")
		w.settle()
		if w.post.count() != 1 {
			t.Error("a deactivated user was sent a mail")
		}
		w.setActive(eva, true)
		if u := w.user(eva); !u.Active || !u.EmailVerified {
			t.Errorf("%+v", u)
		}
		w.verify(token).want(400, fault.TokenInvalid)

		_, first := w.pending(byEmail, "b@customer.example")
		w.do("resend-verification", `{"email":"b@customer.example"}`).want(200, "")
		_, second := w.lastMail("b@customer.example")
		w.verify(second).want(200, "")
		w.setActive("b@customer.example", false)
		w.verify(first).want(400, fault.TokenInvalid)
		if w.user("b@customer.example").Active {
			t.Error("an old mail brought a deactivated user back")
		}
	})
}

func TestResendVerificationTellsNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join("active@customer.example")
		w.pending(byApp, "app@customer.example")
		w.pending(byEmail, eva)
		before := w.post.count()
		for _, email := range []string{"nobody@customer.example", "active@customer.example", sam, "not an address", eva, " EVA@CUSTOMER.example"} {
			a := w.do("resend-verification", fmt.Sprintf(`{"email":%q}`, email)).want(200, "")
			if a.raw != `{"success":true}` {
				t.Errorf("%s: %s", email, a.raw)
			}
		}
		w.settle()
		if got := w.post.count() - before; got != 2 {
			t.Errorf("%d mails", got)
		}
		w.do("resend-verification", `{}`).want(400, fault.Validation)
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = byApp })
		w.do("resend-verification", `{"email":"app@customer.example"}`).want(200, "")
		w.settle()
		if got := w.post.count() - before; got != 2 {
			t.Error("a mail would activate where the app decides")
		}
	})
}

func TestAnOperatorResends(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, _ = w.pending(byApp, eva)
		err := w.id.Resend(w.ctx, acme, eva)
		if fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "/activation-token") {
			t.Errorf("in mode app_managed: %v", err)
		}
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = byEmail })
		w.must(w.id.Resend(w.ctx, acme, "EVA@customer.example"))
		_, token := w.lastMail(eva)
		w.verify(token).want(200, "")
		for email, want := range map[string]fault.Code{
			eva: fault.Conflict, sam: fault.NotFound, "nobody@customer.example": fault.NotFound,
		} {
			if got := fault.CodeOf(w.id.Resend(w.ctx, acme, email)); got != want {
				t.Errorf("%s: %s, want %s", email, got, want)
			}
		}
		w.setActive(eva, false)
		if got := fault.CodeOf(w.id.Resend(w.ctx, acme, eva)); got != fault.Conflict {
			t.Errorf("deactivated: %s", got)
		}
		if got := fault.CodeOf(w.id.Resend(w.ctx, "nowhere", eva)); got != fault.NotFound {
			t.Errorf("no tenant: %s", got)
		}
	})
}

// In mode app_managed a token that was lost or has expired is replaced.
func TestAnotherActivationToken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id, first := w.pending(byApp, eva)
		again := func(id string, viewer access.Viewer) answer {
			return w.call(w.config(), "POST", "users/"+id+"/activation-token", "", viewer)
		}
		for _, viewer := range []access.Viewer{{}, w.viewer(eva)} {
			again(id, viewer).want(403, fault.Forbidden)
		}
		w.clock.advance(25 * time.Hour)
		w.activate(id, first).want(400, fault.TokenExpired)
		a := again(id, w.viewer(sam)).want(200, "")
		if len(a.data) != 1 || a.text("activationToken") == first {
			t.Errorf("%s", a.raw)
		}
		second, mails := again(id, w.viewer(olivia)).want(200, "").text("activationToken"), w.post.count()
		w.verify(second).want(400, fault.TokenInvalid)
		w.activate(id, a.text("activationToken")).want(200, "")
		w.activate(id, second).want(400, fault.TokenInvalid)
		w.signIn(eva, password).want(200, "")
		again(id, w.viewer(sam)).want(409, fault.Conflict) // active
		w.setActive(eva, false)
		again(id, w.viewer(sam)).want(409, fault.Conflict) // deactivated
		for _, unknown := range []string{"no-such-id", string(w.user(sam).ID)} {
			again(unknown, w.viewer(sam)).want(404, fault.NotFound)
		}
		other, _ := w.pending(byEmail, "b@customer.example")
		if a := again(other, w.viewer(sam)).want(409, fault.Conflict); !strings.Contains(a.raw, "svc_email") {
			t.Errorf("%s", a.raw)
		}
		if w.post.count() != mails+1 { // the verification of b
			t.Error("a mail was sent")
		}
	})
}

func TestOfManyUsesOfAOneTimeTokenOneSucceeds(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id, activation := w.pending(byApp, "app@customer.example")
		_, verification := w.pending(byEmail, eva)
		w.join("reset@customer.example")
		w.do("request-password-reset", `{"email":"reset@customer.example"}`).want(200, "")
		_, reset := w.lastMail("reset@customer.example")
		cfg, staff := w.config(), w.viewer(sam)
		for name, use := range map[string]func() fault.Code{
			"verify": func() fault.Code {
				return w.call(cfg, "POST", "verify", fmt.Sprintf(`{"token":%q}`, verification), access.Viewer{}).code
			},
			"activate": func() fault.Code {
				return w.call(cfg, "POST", "users/"+id+"/activate", fmt.Sprintf(`{"activationToken":%q}`, activation), staff).code
			},
			"reset": func() fault.Code {
				return w.call(cfg, "POST", "password-reset", fmt.Sprintf(`{"token":%q,"newPassword":"another one"}`, reset), access.Viewer{}).code
			},
		} {
			codes := inParallel(100, func(int) fault.Code {
				code := use()
				for code == fault.Overloaded { // hashes wait for admission
					code = use()
				}
				return code
			})
			if codes[""] != 1 || codes[fault.TokenInvalid] != 99 {
				t.Errorf("%s: %v", name, codes)
			}
		}
	})
}

// A token can be used once, even without the other checks of a second use.
func TestATokenIsSpentOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id, token := w.pending(byEmail, eva)
		for _, want := range []fault.Code{"", fault.TokenInvalid} {
			err := w.d.For(acme).Write(w.ctx, func(tx db.Tx) error {
				got, _, err := w.id.store.spend(w.ctx, tx, secret.Hash(token), forVerify, "")
				if err == nil && string(got) != id {
					t.Errorf("it is %s's", got)
				}
				return err
			})
			if fault.CodeOf(err) != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}

func TestOnlyHashesOfTokensAreStored(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, activation := w.pending(byApp, "app@customer.example")
		_, verification := w.pending(byEmail, eva)
		w.verify(verification)
		_, refreshToken := w.login(eva)
		next := w.refresh(refreshToken).want(200, "").text("refreshToken")
		var stored strings.Builder
		for table, columns := range map[string]int{"refresh_tokens": 10, "refresh_chains": 8, "one_time_tokens": 8, "jwt_keys": 5} {
			w.must(w.d.For(acme).Query(w.ctx, "SELECT * FROM "+table+" WHERE tenant_id = $1", func(r db.Row) error {
				for i := range columns {
					if !r.Null(i) {
						fmt.Fprintln(&stored, table, r.Text(i))
					}
				}
				return nil
			}))
		}
		for _, token := range []string{activation, verification, refreshToken, next} {
			if strings.Contains(stored.String(), token) {
				t.Error("a token is stored")
			}
		}
		if strings.Count(stored.String(), "\n") < 30 {
			t.Errorf("the test read too little:\n%s", stored.String())
		}
	})
}
