package staff_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/user"
)

// A sign-in is kept with its user. Who only visits the sign-in page leaves no entry, and
// whoever tries a session that is none leaves one.
func TestTheAuditLogNamesWhoSignsIn(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.SetPassword("acme", "sam@acme.example")
		anyone := w.Anyone()
		wrong := from(anyone, 1).SignIn("sam@acme.example", "not the password").Want(401, "INVALID_CREDENTIALS")
		right := from(anyone, 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "")
		visit := anyone.Get(session).Want(401, "UNAUTHORIZED")
		stale := anyone.With("Cookie", "gatehouse_session=of-yesterday").Get(session).Want(401, "UNAUTHORIZED")
		other := anyone.Get("/admin/v1/users").Want(401, "UNAUTHORIZED")
		log := w.AuditLog("acme")
		of := func(a *gatetest.Answer) string {
			e := log[a.Header.Get("X-Request-Id")]
			if e == nil {
				return "no entry"
			}
			return e.User
		}
		for _, c := range []struct {
			what   string
			answer *gatetest.Answer
			want   string
		}{
			{"a wrong password", wrong, ""}, {"a sign-in", right, "sam@acme.example"}, {"a visit", visit, "no entry"},
			{"an ended session", stale, ""}, {"another route", other, ""},
		} {
			if got := of(c.answer); got != c.want {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
	})
}

// A sign-in that began before the enrolment of a second factor ends behind it: its session
// waits for a code, too.
func TestASignInDoesNotPassByAnEnrolment(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.SetPassword("acme", "sam@acme.example")
		id := user.ID(w.UserID("acme", "sam@acme.example"))
		signedIn := make(chan string, 1)
		err := w.DB().For("acme").Write(t.Context(), func(tx db.Tx) error {
			ctx := context.WithoutCancel(t.Context())
			if _, err := user.LockAccount(ctx, tx, id); err != nil {
				return err
			}
			go func() {
				signedIn <- from(w.Anyone(), 1).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Member("stage")
			}()
			// The sign-in waits for the account by now, or comes later: it makes no difference.
			time.Sleep(300 * time.Millisecond)
			_, err := tx.Exec(ctx, `INSERT INTO staff_factors (tenant_id, user_id, sealed, pending, last_step) VALUES ($1, $2, 'sealed', '', 0)`, id)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if stage := <-signedIn; stage != `"code"` {
			t.Errorf("the stage is %s", stage)
		}
	})
}

// A session that waits for a code of a second factor that was removed signs in anew.
func TestASessionWaitsForNoCodeThatIsGone(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Clock.Stop()
		sam := w.Staff("sam@acme.example")
		key, codes, _ := enrol(t, w, from(sam, 1), ownPassword)
		signIn := func(n int) *gatetest.Actor {
			return from(with(from(w.Anyone(), n).SignIn("sam@acme.example", gatetest.StaffPassword).Want(200, "").Cookie(), w.Anyone()), n)
		}
		waits := signIn(2)
		from(sam, 3).Do("DELETE", "/admin/v1/account/factor", ownPassword).Want(200, "")
		waits.Post("/admin/v1/session/code", show(t, w, key)).Want(401, "UNAUTHORIZED")
		waits.Post("/admin/v1/session/code", fmt.Sprintf(`{"recoveryCode":%q}`, codes[0])).Want(401, "UNAUTHORIZED")
		if stage := signIn(4).Get(session).Want(200, "").Member("stage"); stage != `"full"` {
			t.Errorf("the stage is %s", stage)
		}
	})
}
