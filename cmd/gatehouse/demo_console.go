package main

import (
	"context"
	"encoding/base32"
	"strings"

	"gatehouse/examples/demo"
	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// demoSignIn is a staff user of the demo, and what they may try in the console.
type demoSignIn struct {
	who, email string
	password   string // "" if it is not the demo's own any more
}

// demoStaff are the users whose sign-ins the demo prints.
var demoStaff = []demoSignIn{
	{who: "the owner", email: "olivia@demo.example"},
	{who: "a sales rep", email: demoUser},
	{who: "support", email: "uma@demo.example"},
}

// demoPassword returns the password that the demo gives a user: a value that the folder's
// master key decides, so that it is the same after a restart and another in every folder.
func demoPassword(ring *secret.Keyring, email string) string {
	text := strings.ToLower(base32.StdEncoding.EncodeToString(ring.Derive("demo-password/"+email, 10)))
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
}

// demoSignIns gives the demo's staff their passwords, if they have none. One that has
// another by now keeps it, and it is not printed. A user who is gone is left out.
func (f *flags) demoSignIns(ctx context.Context, d *db.DB) ([]demoSignIn, error) {
	ring, err := f.keyring(ctx, d)
	if err != nil {
		return nil, err
	}
	t, err := openTenant(ctx, d, demo.Tenant)
	if err != nil {
		return nil, err
	}
	var list []demoSignIn
	for _, s := range demoStaff {
		u, err := t.user(ctx, s.email)
		if err != nil || !u.Active || u.Type != user.Internal { // the demo's users may have been changed
			continue
		}
		password := demoPassword(ring, s.email)
		if u.PasswordHash == "" {
			u, err = config.SetUserPassword(ctx, t.handle(), clock.System(), config.Operator(actor), config.Login{Email: s.email, Password: password})
			if err != nil {
				return nil, err
			}
		}
		if secret.VerifyPassword(u.PasswordHash, password) {
			s.password = password
		}
		list = append(list, s)
	}
	return list, nil
}

// sayConsole prints the console's address and who may sign in to it.
func (e *env) sayConsole(addr string, signIns []demoSignIn) {
	var b strings.Builder
	for _, s := range signIns {
		password := s.password
		if password == "" {
			password = "(has a password of their own)"
		}
		b.WriteString("\n  " + pad(s.who, 13) + pad(s.email, 24) + password)
	}
	e.say("The console is at http://%s/admin; sign in as%s%s\n", addr, "\n", b.String())
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(1, width-len(s))) }
