package verifiers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/internal/component"
)

// TestPublishedExamples checks the examples in the providers' documentation.
func TestPublishedExamples(t *testing.T) {
	compiled := programs(t)
	// Slack's example is a slash command of 2018.
	slack := &delivery{Scheme: "slack", Headers: map[string]string{
		"x-slack-request-timestamp": "1531420618",
		"x-slack-signature":         "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
	}, Body: []byte("token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&" +
		"command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&" +
		"trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c")}
	clock.Store(1531420618)
	got := outcome(t, compiled["slack.js"], slack, "8f742231b10e8888abcd99yyyzzz85a5")
	if !strings.HasPrefix(got, `{"providerEventId":"a2114d57`) || !strings.Contains(got, `"eventKind":"/webhook-collect"`) || !strings.Contains(got, `"user_name":"roadrunner"`) {
		t.Error("Slack:", got)
	}
	clock.Store(now)
	if got = outcome(t, compiled["slack.js"], slack, "8f742231b10e8888abcd99yyyzzz85a5"); !strings.Contains(got, "not within 300 seconds") {
		t.Error("Slack, years later:", got)
	}
	// The body of GitHub's example is not JSON, so the verifier rejects it for lack of an
	// event.
	github := &delivery{Scheme: "github", Body: []byte("Hello, World!"), Headers: map[string]string{
		"x-github-delivery": "1", "x-github-event": "ping",
		"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
	}}
	if got = outcome(t, compiled["github.js"], github, "It's a Secret to Everybody"); got != "the body is not a JSON object" {
		t.Error("GitHub:", got)
	}
}

// TestUnusualEvents checks texts that not every parser accepts as JSON, and bodies near the
// size that a handler may return.
func TestUnusualEvents(t *testing.T) {
	compiled := programs(t)
	clock.Store(now)
	simple := func(body string) string {
		d := &delivery{Scheme: "simple", Secret: "0123456789abcdef", Headers: map[string]string{}, Body: []byte(body)}
		return outcome(t, compiled["simple.js"], d.signed(), d.Secret)
	}
	for body, want := range map[string]string{
		`{"id":"1","a":"\ud800"}`:             `{"providerEventId":"1","eventKind":"","canonicalEvent":{"id":"1","a":"\ud800"}}`,
		`{"id":"1","__proto__":{"type":"a"}}`: `{"providerEventId":"1","eventKind":"","canonicalEvent":{"id":"1","__proto__":{"type":"a"}}}`,
		`{"id":"0","id":"1","type":["a"]}`:    `{"providerEventId":"1","eventKind":"","canonicalEvent":{"id":"1","type":["a"]}}`,
		`{"id":7,"type":"a"}`:                 `{"providerEventId":"7","eventKind":"a","canonicalEvent":{"id":7,"type":"a"}}`,
		"{\n\"id\":\t\"1\"}\r\n":              `{"providerEventId":"1","eventKind":"","canonicalEvent":{"id":"1"}}`,
		`{"a":1}NaN`:                          "the body is not a JSON object",
		`{"a":01}`:                            "the body is not a JSON object",
	} {
		if got := simple(body); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	line := `{"sku":"A-1","text":"Größe","n":1},`
	big := `{"id":"big","lines":[` + strings.Repeat(line, component.MaxOutput*11/10/len(line)) + `0]}`
	if got := simple(big); !strings.HasPrefix(got, `{"providerEventId":"big"`) {
		t.Errorf("a body of %d bytes: %.200s", len(big), got)
	}
}

// outcome returns what a verifier returned, or the message of its rejection.
func outcome(t *testing.T, p *component.Program, d *delivery, secret string) string {
	t.Helper()
	result, err := verify(t.Context(), p, d, config(secret))
	if err != nil {
		t.Fatal(err)
	}
	if result.Failed != nil {
		return result.Failed.Message
	}
	if !json.Valid(result.Value) {
		t.Fatalf("no JSON: %.200s", result.Value)
	}
	return string(result.Value)
}
