package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
)

func TestKeysAreCreatedListedAndDeleted(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		stdout, words := x.ok("key", "create", "--tenant", "acme", "--user", "SAM@acme.example", "--name", "portal", "--rate-limit", "50",
			"--cors-origin", "https://portal.example", "--cors-origin", "https://b.example", "--ip-allow", "10.0.0.0/8", "--expires", "720h")
		if !regexp.MustCompile(`^svc_api_[0-9a-f]{64}\n$`).MatchString(stdout) {
			t.Fatalf("the token alone is expected: %q", stdout)
		}
		token := strings.TrimSpace(stdout)
		if strings.Contains(words, token) || strings.Count(words, "\n") != 1 {
			t.Errorf("words: %q", words)
		}
		d := x.open()
		dir := access.NewDirectory(d)
		resolve := func() error {
			c, err := dir.Current(x.ctx(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			_, err = apikey.New(d, clock.System(), dir).Resolve(x.ctx(), c, token)
			return err
		}
		if err := resolve(); err != nil {
			t.Fatal(err)
		}
		x.ok("key", "create", "--tenant", "acme", "--user", "olivia@acme.example", "--name", "second")

		list := x.lines("key", "list", "--tenant", "acme")
		const members = "cors_allowed_origins created_at expires_at id ip_allowlist last_used_at name prefix rate_limit_per_minute user"
		if len(list) != 2 || keysOf(list[0]) != members {
			t.Fatalf("%v", list)
		}
		a, b := list[0], list[1]
		expires, err := time.Parse(time.RFC3339Nano, a["expires_at"].(string))
		if err != nil || time.Until(expires).Round(time.Hour) != 720*time.Hour {
			t.Errorf("expires at %v", a["expires_at"])
		}
		if a["user"] != "sam@acme.example" || a["prefix"] != token[:12] || a["rate_limit_per_minute"] != 50. || a["last_used_at"] != nil {
			t.Errorf("%v", a)
		}
		if b["rate_limit_per_minute"] != 1000. || b["expires_at"] != nil || len(b["ip_allowlist"].([]any)) != 0 || b["cors_allowed_origins"] == nil {
			t.Errorf("%v", b)
		}
		table, _ := x.ok("key", "list", "--tenant", "acme")
		if strings.Count(table, "\n") != 3 || strings.Contains(table, token) || !strings.Contains(table, "https://portal.example,https://b.example") {
			t.Errorf("%s", table)
		}

		x.ok("key", "delete", "--tenant", "acme", "--id", a["id"].(string))
		if err := resolve(); err == nil {
			t.Error("the deleted key still works")
		}
		x.fails(1, "there is no API key with the id", "key", "delete", "--tenant", "acme", "--id", a["id"].(string))
		if list := x.lines("key", "list", "--tenant", "acme"); len(list) != 1 {
			t.Errorf("%v", list)
		}
	})
}

func TestWhatIsWrongWithAKeyIsNamed(t *testing.T) {
	each(t, func(x *cli) {
		create := func(more ...string) []string {
			return append([]string{"key", "create", "--tenant", "acme", "--user", "sam@acme.example", "--name", "n"}, more...)
		}
		x.fails(1, "rate_limit_per_minute: expected 1 to", create("--rate-limit", "0")...)
		x.fails(1, "cors_allowed_origins: ", create("--cors-origin", "*")...)
		x.fails(1, "ip_allowlist: ", create("--ip-allow", "2001:db8::/32")...)
		x.fails(1, "expires_at: expected a time in the future", create("--expires", "0s")...)
		x.fails(1, "expires_at: expected a time in the future", create("--expires=-1h")...)
		x.fails(1, "user: there is no user with the e-mail address nobody@acme.example", create("--user", "nobody@acme.example")...)
		x.fails(1, "ip_allowlist: ", create("--ip-allow", "x", "--rate-limit", "0")...)
		x.fails(2, "--expires 30d: expected a duration such as 90s, 15m or 720h", create("--expires", "30d")...)
		x.fails(2, "--rate-limit many: expected a whole number", create("--rate-limit", "many")...)
		x.fails(2, "--name is required", "key", "create", "--tenant", "acme", "--user", "sam@acme.example")
		for _, command := range [][]string{
			{"key", "create", "--user", "a@b", "--name", "n"}, {"key", "list"}, {"key", "delete", "--id", "x"}, {"user", "list"},
			{"user", "create", "--email", "a@b", "--name", "n"}, {"user", "reactivate", "--email", "a@b"},
			{"share", "list", "--entity", "contact", "--record", "x"}, {"share", "add", "--entity", "contact", "--record", "x", "--role", "ceo"},
		} {
			x.fails(1, `there is no tenant "globex"`, append(command, "--tenant", "globex")...)
		}
		if list := x.lines("tenant", "list"); len(list) != 1 {
			x.t.Errorf("a tenant came into being: %v", list)
		}
	})
}
