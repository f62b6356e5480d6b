package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func registering(email string) string {
	return fmt.Sprintf(`{"email":%q,"password":%q,"name":"Eva"}`, email, password)
}

// The test covers the rows of "External user activation" that begin with (none).
func TestEachActivationModeBeginsInItsState(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for mode, want := range map[string]struct {
			active, pending, verified bool
			mails                     int
			token                     bool
		}{
			byEmail: {pending: true, mails: 1},
			byApp:   {pending: true, token: true},
			noProof: {active: true, verified: true},
		} {
			w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = mode; e.WelcomeEmail = true })
			before := w.post.count()
			email := mode + "@customer.example"
			a := w.do("register", registering(email)).want(201, "")
			u := w.user(email)
			if a.text("userId") != string(u.ID) || a.text("activationMode") != mode || (a.data["activationToken"] != nil) != want.token {
				t.Errorf("%s answers %s", mode, a.raw)
			}
			if u.Active != want.active || u.Pending != want.pending || u.EmailVerified != want.verified || u.Type != user.External || u.Owner {
				t.Errorf("%s: %+v", mode, u)
			}
			if !slices.Equal(u.Sets, []string{"portal"}) || u.Role != "" {
				t.Errorf("%s: sets %v, role %q", mode, u.Sets, u.Role)
			}
			if got := w.post.count() - before; got != want.mails {
				t.Errorf("%s: %d mails", mode, got)
			}
		}
		if w.id.Stats().Registrations != 3 {
			t.Errorf("%+v", w.id.Stats())
		}
	})
}

func TestTheVerificationMailLeadsToTheTenantsApp(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.do("register", registering("Eva@Customer.example")).want(201, "")
		m, token := w.lastMail("Eva@Customer.example")
		link := "https://portal.acme.example/verify?token=" + token
		if !strings.Contains(m.Text, link) || !strings.Contains(m.HTML, link) || len(token) != 43 {
			t.Errorf("mail: %+v", m)
		}
		if m.From != `"Acme GmbH" <no-reply@acme.example>` || w.post.woken != 1 {
			t.Errorf("from %s, woken %d", m.From, w.post.woken)
		}
		w.configure(func(t *tenant.Tenant) {
			t.Settings.ExternalIdentity.AppURL = ""
			t.Settings.EmailTemplates = map[string]tenant.EmailTemplate{
				"external-user-email-verification": {Subject: "Own {{tenant_name}}", Text: "{{name}} {{app_url}} {{verify_url}}", HTML: "<p>{{reset_url}}</p>"},
			}
		})
		w.do("register", registering("b@customer.example")).want(201, "")
		m, token = w.lastMail("b@customer.example")
		if m.Subject != "Own Acme GmbH" || m.Text != "Eva https://acme.example https://acme.example/verify?token="+token || m.HTML != "<p></p>" {
			t.Errorf("own template: %+v", m)
		}
	})
}

func TestWhatRegisterTakesFromTheBody(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.do("register", `{"email":" Eva@Customer.example ","password":"correct horse","name":" Eva ","locale":"de-AT",
			"company":"ACME","score":1.50,"extra":{"a": [1, true]},"Company":"x","unknown":1,
			"id":"me","user_id":"me","userType":"internal","user_type":"internal","isOwner":true,"is_owner":true,"owner":true,"active":true,
			"email_verified":true,"pending":false,"role":"ceo","permission_sets":["managers"],"custom_data":{"company":"y"},
			"password_hash":"x","session_epoch":7,"created_at":"2020-01-01T00:00:00Z","tenant_id":"other"}`).want(201, "")
		u := w.user("eva@customer.example")
		if u.Email != "Eva@Customer.example" || u.Name != "Eva" || u.Locale != "de-AT" || u.PasswordHash != "cheap:"+password {
			t.Errorf("%+v", u)
		}
		if u.Type != user.External || u.Owner || u.Active || u.EmailVerified || !u.Pending || u.Role != "" || !slices.Equal(u.Sets, []string{"portal"}) {
			t.Errorf("more than an end-user: %+v", u)
		}
		var custom map[string]any
		w.must(json.Unmarshal(u.Custom, &custom))
		if len(custom) != 3 || custom["company"] != "ACME" || custom["score"] != "1.50" || custom["extra"] != `{"a":[1,true]}` {
			t.Errorf("custom: %s", u.Custom)
		}
		w.do("register", `{"email":"b@customer.example","password":"correct horse","name":"B","company":null,"score":true}`).want(201, "")
		w.must(json.Unmarshal(w.user("b@customer.example").Custom, &custom))
		if custom["score"] != "true" {
			t.Errorf("a boolean became %v", custom["score"])
		}
	})
}

func TestAHardColumnIsNoCustomField(t *testing.T) {
	body, err := httpapi.ParseObject([]byte(`{"password":"correct horse","name":"N","company":"C"}`))
	if err != nil {
		t.Fatal(err)
	}
	users := (&schema.Entity{Fields: []*schema.Field{{Name: "password"}, {Name: "name"}, {Name: "company"}}}).Index()
	if custom, err := customFields(body, users); err != nil || string(custom) != `{"company":"C"}` {
		t.Errorf("%s %v", custom, err)
	}
}

func TestARegistrationThatIsNotValidNamesEveryField(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		long := strings.Repeat("ż", 129)
		for body, fields := range map[string]string{
			`{}`: "email name password",
			`{"email":"x","password":"short","name":" "}`:                                             "email name password",
			`{"email":1,"password":[],"name":{},"locale":true}`:                                       "email locale name password",
			`{"email":"a@b.example","password":"` + long + `","name":"N"}`:                            "password",
			`{"email":"a@b.example","password":"12345678","name":"N\u0007"}`:                          "name",
			`{"email":"a b@b.example","password":"12345678","name":"N"}`:                              "email",
			`{"email":"a@b.example","password":"12345678","name":"N","locale":"` + long[:40] + `"}`:   "locale",
			`{"email":"a@b.example","password":"12345678","name":"` + strings.Repeat("n", 201) + `"}`: "name",
			`{"Email":"a@b.example","PASSWORD":"12345678","Name":"N"}`:                                "email name password",
		} {
			a := w.do("register", body).want(400, fault.Validation)
			got := []string{}
			for name := range a.err.Details["fields"].(map[string]string) {
				got = append(got, name)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != fields {
				t.Errorf("%s: %v, want %s", body, got, fields)
			}
		}
		for _, body := range []string{
			``, `[]`, `{"email":"a@b.example","email":"c@b.example","password":"12345678","name":"N"}`,
			`{"email":"a@b.example","password":"12345678","name":"N","company":"a","company":"b"}`,
			`{"email":"a@b.example","password":"12345678","name":"N"} x`,
			`{"email":"a@b.example","password":"12345678","name":"N","x":{"y":1,"y":2}}`,
		} {
			want := fault.Validation
			status := 400
			if body == "" {
				status, want = 415, fault.UnsupportedMediaType
			}
			w.do("register", body).want(status, want)
		}
		if w.rows(`SELECT 1 FROM users WHERE tenant_id = $1`) != 2 {
			t.Error("a user was made")
		}
	})
}

func TestATakenAddressIsToldByKind(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join("eva@customer.example")
		hashes := 0
		w.id.hasher.Functions.Hash = func(string) (string, error) { hashes++; return "x", nil }
		a := w.do("register", registering(" EVA@Customer.Example")).want(409, fault.EmailTaken)
		if !strings.Contains(a.err.Message, "log in") {
			t.Errorf("external: %s", a.err.Message)
		}
		a = w.do("register", registering(sam)).want(409, fault.EmailTaken)
		if !strings.Contains(a.err.Message, "administrator") || strings.Contains(a.err.Message, "log in") {
			t.Errorf("internal: %s", a.err.Message)
		}
		if hashes != 0 {
			t.Error("a hash was spent on it")
		}
	})
}

func TestOfManyRegistrationsOfOneAddressOneWins(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		cfg := w.config()
		codes := inParallel(20, func(int) fault.Code {
			return w.call(cfg, "POST", "register", registering("eva@customer.example"), access.Viewer{}).code
		})
		if codes[""] != 1 || codes[fault.EmailTaken] != 19 {
			t.Errorf("%v", codes)
		}
	})
}

func TestRegistrationThatCannotBe(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings(func(e *tenant.ExternalIdentity) { e.OpenRegistration = false })
		if a := w.do("register", registering("eva@customer.example")).want(403, fault.Forbidden); a.limit == nil {
			t.Error("no limit is told")
		}
		w.settings(func(e *tenant.ExternalIdentity) { e.OpenRegistration = true; e.DefaultPermissionSet = "gone" })
		w.do("register", registering("eva@customer.example")).want(503, fault.ServiceUnavailable)
		w.settings(func(e *tenant.ExternalIdentity) { e.DefaultPermissionSet = "portal" })
		w.post.fails = errors.New("disk")
		if _, err := w.id.register(w.ctx, w.config(), &registration{email: "eva@customer.example", password: password, name: "E", custom: []byte("{}")}); err == nil {
			t.Error("registered without its mail")
		}
		if w.rows(`SELECT 1 FROM users WHERE tenant_id = $1`) != 2 || w.rows(`SELECT 1 FROM one_time_tokens WHERE tenant_id = $1`) != 0 {
			t.Error("something was kept")
		}
		w.settings(func(e *tenant.ExternalIdentity) { e.DefaultPermissionSet = "" })
		w.post.fails = nil
		w.do("register", registering("eva@customer.example")).want(201, "")
		if sets := w.user("eva@customer.example").Sets; len(sets) != 0 {
			t.Errorf("sets: %v", sets)
		}
	})
}

// A node that has not noticed a change of configuration still registers users under the
// new one.
func TestRegisterGoesByTheConfigurationThatIs(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		stale := w.config()
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = noProof; e.DefaultPermissionSet = "managers" })
		a := w.call(stale, "POST", "register", registering("eva@customer.example"), access.Viewer{}).want(201, "")
		u := w.user("eva@customer.example")
		if a.text("activationMode") != noProof || !u.Active || !slices.Equal(u.Sets, []string{"managers"}) {
			t.Errorf("%s %+v", a.raw, u)
		}
		w.must(tenant.Configure(w.ctx, w.d.For(acme), "test", w.clock, func(tx tenant.ConfigTx, log *tenant.History) error {
			log.Record("set", "managers", 1, nil)
			_, err := tx.Exec(w.ctx, `DELETE FROM permission_sets WHERE tenant_id = $1 AND name = 'managers'`)
			return err
		}))
		w.call(stale, "POST", "register", registering("b@customer.example"), access.Viewer{}).want(503, fault.ServiceUnavailable)
		w.settings(func(e *tenant.ExternalIdentity) { e.OpenRegistration = false })
		w.call(stale, "POST", "register", registering("c@customer.example"), access.Viewer{}).want(403, fault.Forbidden)
	})
}

// inParallel runs fn n times at once and counts what it returned.
func inParallel[T comparable](n int, fn func(i int) T) map[T]int {
	got := map[T]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			r := fn(i)
			mu.Lock()
			defer mu.Unlock()
			got[r]++
		})
	}
	time.Sleep(time.Millisecond)
	close(start)
	wg.Wait()
	return got
}

// TestAShedRegistrationTellsNothing: a request that is refused with OVERLOADED is not
// charged, so it must not show whether an address is taken.
func TestAShedRegistrationTellsNothing(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	w.join(eva)
	for range max(1, runtime.GOMAXPROCS(0)-1) {
		leave, err := w.id.hasher.Admit(t.Context(), "globex")
		w.must(err)
		t.Cleanup(leave)
	}
	cfg := w.config()
	var wg sync.WaitGroup
	for _, email := range []string{eva, sam, "free@customer.example"} {
		body := fmt.Sprintf(`{"email":%q,"password":%q,"name":"E"}`, email, password)
		wg.Go(func() { w.call(cfg, "POST", "register", body, access.Viewer{}).want(503, fault.Overloaded) })
	}
	wg.Wait()
}

// All forms of one address are one account, and each of them logs in to it.
func TestAnAddressInAnotherFormIsTaken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.settings(func(e *tenant.ExternalIdentity) { e.ActivationMode = noProof })
		for _, forms := range [][]string{
			{"eva@bücher.example", "eva@xn--bcher-kva.example", "EVA@BÜCHER.example"},
			{"σοφος@x.example", "ΣΟΦΟΣ@x.example"},
		} {
			w.join(forms[0])
			for _, form := range forms {
				w.do("register", registering(form)).want(409, fault.EmailTaken)
				w.login(form)
			}
		}
		w.do("request-password-reset", `{"email":"EVA@bücher.example"}`).want(200, "")
		w.lastMail("eva@xn--bcher-kva.example") // in the form that every server accepts
	})
}

func TestAnAddressThatNoMailReachesIsRefused(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	for _, email := range []string{"a..b@x", "a\u00a0b@x.example", "a\u200bb@x.example", "a\u202eb@x.example", "a@x\u200b.example", "a@-x.example"} {
		a := w.do("register", registering(email)).want(400, fault.Validation)
		if got := fmt.Sprint(a.err.Details["fields"]); !strings.Contains(got, "email:expected an e-mail address") {
			t.Errorf("%q: %s", email, got)
		}
	}
}
