package main

import (
	"regexp"
	"strings"
	"testing"

	"gatehouse/internal/custom"
)

func TestAWebhookTokenIsPrintedOnce(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		x.stdin = webhooks
		x.ok("apply", "-f", "-")
		stored := func() string {
			hash, err := custom.TokenHash(x.ctx(), x.open().For("acme"), "hook")
			if err != nil {
				t.Fatal(err)
			}
			return string(hash)
		}
		if stored() != "" {
			t.Error("apply made a token")
		}
		var tokens []string
		for i := range 2 {
			stdout, words := x.ok("endpoint", "token", "--tenant", "acme", "--slug", "hook")
			if stopped := strings.Contains(words, "the one before it has stopped"); stopped != (i > 0) {
				t.Errorf("token %d: %q", i, words)
			}
			if !regexp.MustCompile(`^svc_whk_[0-9a-f]{64}\n$`).MatchString(stdout) {
				t.Fatalf("the token alone is expected: %q", stdout)
			}
			token := strings.TrimSpace(stdout)
			for _, want := range []string{"https://acme.localhost/public/v1/custom/hook", "curl ", "X-Webhook-Token: " + token, `-d '{"name": "text"}'`} {
				if !strings.Contains(words, want) {
					t.Errorf("%q does not say %q", words, want)
				}
			}
			tokens = append(tokens, token)
		}
		if tokens[0] == tokens[1] || stored() == "" || strings.Contains(stored(), tokens[1]) {
			t.Errorf("%q is stored for %q", stored(), tokens)
		}
		before := stored()
		x.fails(1, `there is no endpoint "nothing"`, "endpoint", "token", "--tenant", "acme", "--slug", "nothing")
		x.fails(1, "takes no webhook token", "endpoint", "token", "--tenant", "acme", "--slug", "key")
		x.fails(1, `there is no tenant "globex"`, "endpoint", "token", "--tenant", "globex", "--slug", "hook")
		x.fails(2, "--slug is required", "endpoint", "token", "--tenant", "acme")
		x.ok("apply", "-f", "-") // neither makes a token nor removes one
		if stored() != before {
			t.Error("the token was changed")
		}
	})
}
