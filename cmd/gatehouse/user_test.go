package main

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

func TestUsersAreCreatedAndListed(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		x.stdin = "correct horse\r\nand more\n"
		stdout, words := x.ok("user", "create", "--tenant", "acme", "--email", " Eva@Customer.example ", "--name", "Eva", "--type", "external",
			"--role", "sales", "--permission-set", "sales", "--password-stdin")
		if words != "" {
			t.Errorf("words: %q", words)
		}
		u, err := user.ByEmail(x.ctx(), x.open().For("acme"), "eva@customer.example")
		if err != nil || string(u.ID) != strings.TrimSpace(stdout) {
			t.Fatalf("%q, %v", stdout, err)
		}
		if u.Type != user.External || !u.Active || !u.EmailVerified || u.Role != "sales" || len(u.Sets) != 1 || u.Owner ||
			!secret.VerifyPassword(u.PasswordHash, "correct horse") || u.Email != "Eva@Customer.example" {
			t.Errorf("%+v", u)
		}
		_, words = x.ok("user", "create", "--tenant", "acme", "--email", "otto@acme.example", "--name", "Otto", "--owner")
		if !strings.Contains(words, "has no password") {
			t.Errorf("words: %q", words)
		}
		list := x.lines("user", "list", "--tenant", "acme")
		if len(list) != 4 || keysOf(list[0]) != "active created_at email emailVerified id isOwner locale name permission_sets role userType" {
			t.Fatalf("%v", list)
		}
		if last := list[3]; last["email"] != "otto@acme.example" || last["isOwner"] != true || last["role"] != nil {
			t.Errorf("%v", last)
		}
		if list := x.lines("user", "list", "--tenant", "acme", "--email", "EVA@customer.example"); len(list) != 1 || list[0]["userType"] != "external" {
			t.Errorf("%v", list)
		}
		table, _ := x.ok("user", "list", "--tenant", "acme")
		if strings.Count(table, "\n") != 5 || strings.Contains(table, "argon2") {
			t.Errorf("%s", table)
		}
		changes, err := tenant.Changes(x.ctx(), x.open().For("acme"), 1)
		if err != nil || changes[0].Kind != "user" || changes[0].Actor != "operator" || changes[0].Name != "otto@acme.example" {
			t.Errorf("history: %+v, %v", changes, err)
		}
	})
}

func TestWhatIsWrongWithAUserIsNamed(t *testing.T) {
	each(t, func(x *cli) {
		create := func(more ...string) []string {
			return append([]string{"user", "create", "--tenant", "acme", "--email", "new@acme.example", "--name", "New"}, more...)
		}
		x.stdin = "short\n"
		x.fails(1, "password: the password must have at least 8", create("--password-stdin")...)
		x.stdin = "\nsecond line\n"
		x.fails(1, "no password on its first line", create("--password-stdin")...)
		x.fails(1, `role: there is no role "boss"`, create("--role", "boss")...)
		x.fails(1, `permission_sets: there is no permission set "all"`, create("--permission-set", "all")...)
		x.fails(1, "type: expected internal or external", create("--type", "robot")...)
		x.fails(1, "owner: an external user cannot", create("--type", "external", "--owner")...)
		x.fails(1, "email: expected an e-mail address like eva@example.com; role: ", create("--email", "new", "--role", "boss")...)
		x.fails(1, "name: expected text without control", create("--name", "a\x1b[31mb")...)
		x.fails(1, "exists already", create("--email", "SAM@acme.example", "--type", "external")...)
		if list := x.lines("user", "list", "--tenant", "acme"); len(list) != 2 {
			x.t.Errorf("%v", list)
		}
	})
}

func TestUsersAreDeactivatedAndReactivated(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		at := []string{"--tenant", "acme", "--email", "SAM@acme.example"}
		active := func() any { return x.lines(append([]string{"user", "list"}, at...)...)[0]["active"] }
		history := func() int {
			changes, err := tenant.Changes(x.ctx(), x.open().For("acme"), 100)
			if err != nil {
				t.Fatal(err)
			}
			return len(changes)
		}
		before := history()
		for _, step := range []struct {
			command string
			active  bool
			says    string
			changes int
		}{
			{"deactivate", false, "sam@acme.example is deactivated.\n", 1},
			{"deactivate", false, "sam@acme.example is deactivated already.\n", 1},
			{"reactivate", true, "sam@acme.example is active.\n", 2},
			{"reactivate", true, "sam@acme.example is active already.\n", 2},
		} {
			stdout, words := x.ok(append([]string{"user", step.command}, at...)...)
			if stdout != "" || words != step.says || active() != step.active || history() != before+step.changes {
				t.Errorf("%s: %q, active %v, %d changes", step.command, words, active(), history()-before)
			}
		}
		u, err := user.ByEmail(x.ctx(), x.open().For("acme"), "sam@acme.example")
		if err != nil || len(u.Sets) != 1 || u.Role != "sales" {
			t.Errorf("something was lost: %+v, %v", u, err)
		}
		x.fails(1, "there is no user with the e-mail address nobody@acme.example", "user", "deactivate", "--tenant", "acme", "--email", "nobody@acme.example")
	})
}

// user password sets a password of staff and end-users, says nothing of it anywhere and
// ends the user's sessions.
func TestUserPassword(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		h := x.open().For("acme")
		x.stdin = "correct horse\n"
		x.failsRaw(2, "--password-stdin", append([]string{"user", "password", "--tenant", "acme", "--email", "sam@acme.example"}, x.place...)...)
		x.fails(1, "there is no user nobody@acme.example", "user", "password", "--tenant", "acme", "--email", "nobody@acme.example", "--password-stdin")
		x.stdin = "short\n"
		x.fails(1, "at least 8", "user", "password", "--tenant", "acme", "--email", "sam@acme.example", "--password-stdin")
		x.stdin = "\n"
		x.fails(1, "no password on its first line", "user", "password", "--tenant", "acme", "--email", "sam@acme.example", "--password-stdin")
		before, err := user.AccountByEmail(x.ctx(), h, "sam@acme.example")
		if err != nil || before.PasswordHash != "" {
			t.Fatalf("%+v, %v", before, err)
		}
		for _, password := range []string{"correct horse", "battery staple"} {
			x.stdin = password + "\r\nmore\n"
			stdout, words := x.ok("user", "password", "--tenant", "acme", "--email", " SAM@acme.example", "--password-stdin")
			if stdout != "" || words != "sam@acme.example has the new password; their sessions have ended.\n" {
				t.Errorf("%q, %q", stdout, words)
			}
			acc, err := user.AccountByEmail(x.ctx(), h, "sam@acme.example")
			if err != nil || !secret.VerifyPassword(acc.PasswordHash, password) || acc.Epoch <= before.Epoch {
				t.Errorf("%s: epoch %d after %d, %v", password, acc.Epoch, before.Epoch, err)
			}
			before = acc
			changes, err := tenant.Changes(x.ctx(), h, 1)
			if err != nil || changes[0].Actor != "operator" || changes[0].Kind != "user" || strings.Contains(fmt.Sprintf("%s%s", changes[0].Before, changes[0].After), "argon2") {
				t.Errorf("%+v, %v", changes, err)
			}
		}
	})
}

// user reset-factor removes the second factor with its recovery codes, of that user alone,
// and ends their sessions.
func TestUserResetFactor(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		count := func(sql string) (n int) {
			t.Helper()
			if err := x.open().For("acme").Query(x.ctx(), sql, func(r db.Row) error { n = int(r.Int(0)); return nil }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		reset := []string{"user", "reset-factor", "--tenant", "acme", "--email", "Sam@acme.example"}
		if _, words := x.ok(reset...); words != "sam@acme.example has no second factor.\n" {
			t.Errorf("%q", words)
		}
		x.exec(`INSERT INTO staff_factors (tenant_id, user_id, sealed, pending, last_step) SELECT $1, user_id, 'sealed', '', 0 FROM users WHERE tenant_id = $1`)
		x.exec(`INSERT INTO staff_recovery_codes (tenant_id, user_id, code_hash) SELECT $1, user_id, 'hash' FROM users WHERE tenant_id = $1`)
		x.exec(`INSERT INTO staff_sessions (tenant_id, session_id, token_hash, user_id, session_epoch, stage, acting_as, started_at, used_at, expires_at, ip, agent)
			SELECT $1, user_id, user_id, user_id, session_epoch, 'full', '', 1, 1, 9000000000000000, '', '' FROM users WHERE tenant_id = $1`)
		stdout, words := x.ok(reset...)
		if stdout != "" || words != "sam@acme.example has no second factor any more; their sessions in the console have ended.\n" {
			t.Errorf("%q, %q", stdout, words)
		}
		f, c := count(`SELECT count(*) FROM staff_factors WHERE tenant_id = $1`), count(`SELECT count(*) FROM staff_recovery_codes WHERE tenant_id = $1`)
		if s := count(`SELECT count(*) FROM staff_sessions WHERE tenant_id = $1`); f != 1 || c != 1 || s != 1 {
			t.Errorf("%d second factors, %d with recovery codes and %d sessions are left, want those of the other user", f, c, s)
		}
		x.fails(1, "nobody@acme.example", "user", "reset-factor", "--tenant", "acme", "--email", "nobody@acme.example")
	})
}

// exec writes with a statement that takes the tenant and args.
func (x *cli) exec(sql string, args ...any) {
	x.t.Helper()
	err := x.open().For("acme").Write(x.ctx(), func(tx db.Tx) error {
		_, err := tx.Exec(x.ctx(), sql, args...)
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
}
