package endpoint_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// recipe is the source of a verifier of examples/verifiers as a component of a manifest.
func recipe(t *testing.T, name string) string {
	t.Helper()
	source, err := os.ReadFile("../../examples/verifiers/" + name + ".js")
	if err != nil {
		t.Fatal(err)
	}
	return "\n  - name: " + name + "\n    source: |\n      " + strings.ReplaceAll(string(source), "\n", "\n      ")
}

// TestRecipesAnswerProviders: the recipes' challenges and signatures as providers send them, by HTTP.
func TestRecipesAnswerProviders(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		line := func(name, secret, more string) string {
			return fmt.Sprintf("{slug: %s, target: {component: twiml}, auth: signed, verifier: %s, webhook_secret: %q%s}", name, name, secret, more)
		}
		w.Apply(strings.Replace(also(recipe(t, "slack")+recipe(t, "discord")+recipe(t, "meta")+recipe(t, "twilio")+`
  - name: twiml
    source: |
      export default (inputs) => inputs.Body ? respond({headers: {"Content-Type": "text/xml"}, body: "<Response><Message>" + inputs.Body.length + "</Message></Response>"}) : {ignored: true}
`), "hosts: [acme.localhost]", "hosts: [acme.localhost]\nbase_url: https://hooks.acme.example", 1) + endpoints(
			line("slack", shopSecret, ""), line("discord", hex.EncodeToString(public), ""), line("meta", shopSecret+":the-verify-word", ", allow_get: true"),
			line("twilio", shopSecret, ", reply: result")))
		now := fmt.Sprint(w.Clock.Now().Unix())
		want := func(what string, a *gatetest.Answer, status int, kind, body string) {
			t.Helper()
			if got := fmt.Sprint(a.Status, " ", a.Header.Get("Content-Type"), " ", string(a.Body)); got != fmt.Sprint(status, " ", kind, " ", body) {
				t.Errorf("%s: %s", what, got)
			}
		}
		slack := func(body, secret string) *gatetest.Answer {
			return w.Anyone().With("X-Slack-Request-Timestamp", now).With("X-Slack-Signature", "v0="+hmacHex(secret, "v0:"+now+":"+body)).Post(custom+"slack", body)
		}
		const challenge = `{"token": "Jhj5dZrVaK7ZwHHjRyZWjbDl", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", "type": "url_verification"}`
		want("Slack", slack(challenge, shopSecret), 200, "text/plain; charset=utf-8", "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")
		slack(challenge, "another secret").Want(401, "UNAUTHORIZED")

		discord := func(body string, change byte) *gatetest.Answer {
			signature := ed25519.Sign(private, []byte(now+body))
			signature[0] ^= change
			return w.Anyone().With("X-Signature-Timestamp", now).With("X-Signature-Ed25519", hex.EncodeToString(signature)).Post(custom+"discord", body)
		}
		want("Discord", discord(`{"type": 1}`, 0), 200, "application/json", `{"type":1}`)
		want("Discord's events", discord(`{"version": 1, "type": 0}`, 0), 204, "", "")
		discord(`{"type": 1}`, 1).Want(401, "UNAUTHORIZED")

		const asked = custom + "meta?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
		want("Meta", w.Anyone().Get(asked+"the-verify-word"), 200, "text/plain; charset=utf-8", "1158201444")
		w.Anyone().Get(asked+"the-verify-wort").Want(401, "UNAUTHORIZED")
		w.Settle()
		if n, runs := kept(t, w), count(t, w, "runs"); n != "0 records, 0 events, 0 keys" || runs != 0 {
			t.Errorf("%s, %d runs", n, runs)
		}

		twilio := func(query, body, text string) *gatetest.Answer {
			mac := hmac.New(sha1.New, []byte(shopSecret))
			mac.Write([]byte("https://hooks.acme.example" + custom + "twilio" + query + text))
			return w.Anyone().With("Content-Type", "application/x-www-form-urlencoded").
				With("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil))).Post(custom+"twilio"+query, body)
		}
		const sid = "MessageSid=SM1&Body=Gr%C3%B6%C3%9Fe&SmsStatus=received"
		const signed = "BodyGrößeMessageSidSM1SmsStatusreceived"
		want("Twilio", twilio("?shop=1", sid, signed), 200, "text/xml; charset=utf-8", "<Response><Message>5</Message></Response>")
		want("Twilio again", twilio("?shop=1", sid, signed), 200, "application/json", `{"duplicate":true}`)
		want("Twilio without a text", twilio("", "MessageSid=SM1", "MessageSidSM1"), 200, "application/json", `{"data":{"ignored":true},"meta":{}}`)
		twilio("?shop=2", sid, signed+" ").Want(401, "UNAUTHORIZED")
		if n := kept(t, w); n != "0 records, 2 events, 2 keys" {
			t.Error(n)
		}
	})
}

// TestSignedEndpointsAnswerReceipts unless they say otherwise, also where they were stored before there
// was a choice.
func TestSignedEndpointsAnswerReceipts(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(signed("plain", "component: act", ""), signed("receipt", "component: act", ", reply: receipt"), signed("result", "component: act", ", reply: result")))
		for slug, want := range map[string]int{"plain": 202, "receipt": 202, "result": 200} {
			a := provider{w.Anyone()}.Post(custom+slug, with(ok, `"id": "`+slug+`"`))
			if a.Status != want || a.Header.Get("X-Event-Id") == "" || want == 200 && string(a.Body) != `{"data":null,"meta":{}}` {
				t.Errorf("%s: %d %s", slug, a.Status, a.Body)
			}
			if a = (provider{w.Anyone()}).Post(custom+slug, with(ok, `"id": "`+slug+`"`)); a.Status != 200 || string(a.Body) != `{"duplicate":true}` {
				t.Errorf("%s again: %d %s", slug, a.Status, a.Body)
			}
		}
	})
}
