package gatetest

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// StaffPassword is the password of users that Staff signs in.
const StaffPassword = "staff password of tests"

// staffHash is a hash of StaffPassword. It is computed once: a hash is slow by design.
var staffHash = sync.OnceValue(func() string {
	hash, err := secret.HashPassword(StaffPassword)
	if err != nil {
		panic(err)
	}
	return hash
})

// staffSessions are the session cookies of a World's users, by tenant and address.
type staffSessions struct {
	mu      sync.Mutex
	cookies map[[2]string]string
	count   int
}

// Staff returns an Actor that is signed in to the administration of the tenant acme as a
// user, whom it gives a password first. Later calls for the same user use the same
// session. The actor sends the cookie, and the header Origin as a browser does:
//
//	w.Staff("olivia@acme.example").Post("/admin/v1/keys", `{…}`).Want(201, "")
func (w *World) Staff(email string) *Actor {
	w.T.Helper()
	return w.StaffOf("acme", Host, email)
}

// StaffOf is Staff for any tenant, at one of its hosts with the administration.
func (w *World) StaffOf(of tenant.ID, host, email string) *Actor {
	w.T.Helper()
	w.staff.mu.Lock()
	defer w.staff.mu.Unlock()
	key := [2]string{string(of), user.EmailKey(email)}
	a := w.Anyone()
	a.Host = host
	if a.Cookie = w.staff.cookies[key]; a.Cookie != "" {
		return a
	}
	w.SetPassword(of, email)
	// An address of its own for each, because sign-ins are limited by address.
	w.staff.count++
	signIn := a.With("X-Forwarded-For", fmt.Sprintf("198.18.%d.%d", w.staff.count/250, w.staff.count%250+1))
	a.Cookie = signIn.SignIn(email, StaffPassword).Want(200, "").Cookie()
	if w.staff.cookies == nil {
		w.staff.cookies = map[[2]string]string{}
	}
	w.staff.cookies[key] = a.Cookie
	return a
}

// SetPassword gives a user StaffPassword, which ends their sessions.
func (w *World) SetPassword(of tenant.ID, email string) {
	w.T.Helper()
	ctx := context.Background()
	err := tenant.Configure(ctx, w.DB().For(of), "test", w.Clock, func(tx tenant.ConfigTx, log *tenant.History) error {
		u, err := user.ByEmail(ctx, tx, email)
		if err != nil {
			return err
		}
		log.Keep()
		u.PasswordHash = staffHash()
		return user.Update(ctx, tx, u)
	})
	if err != nil {
		w.T.Fatalf("user %s: %v", email, err)
	}
	w.Settle()
}

// SignIn signs in to the administration. The Answer's Cookie is the session.
func (a *Actor) SignIn(email, password string) *Answer {
	a.T.Helper()
	return a.With("Origin", "http://"+a.Host).Post("/admin/v1/session", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
}

// asBrowser adds to a request what a browser sends from a page of the administration.
func (a *Actor) asBrowser(r *http.Request) {
	r.Header.Add("Cookie", a.Cookie)
	if r.Method != http.MethodGet && r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Site") == "" {
		r.Header.Set("Origin", "http://"+a.Host)
	}
}

// Cookie returns the session cookie that an answer sets, as a request sends it.
func (a *Answer) Cookie() string {
	a.T.Helper()
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.MaxAge > 0 {
			return c.Name + "=" + c.Value
		}
	}
	a.T.Fatalf("%s: sets no cookie", a.Call)
	return ""
}
