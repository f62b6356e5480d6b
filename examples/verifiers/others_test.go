package verifiers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/component"
)

// otherDelivery is a delivery of signers/others.mjs.
type otherDelivery struct {
	delivery
	Name   string `json:"name"`
	File   string `json:"file"`
	Other  string `json:"other"`  // another secret
	Reject string `json:"reject"` // a part of the message; "" for one that must be accepted
}

// TestOtherSchemes: Discord, SendGrid and Twilio, by deliveries that their libraries judge the same,
// and Mailgun, as its documentation says.
func TestOtherSchemes(t *testing.T) {
	install(t)
	compiled := compileAll(t, "discord.js", "sendgrid.js", "twilio.js", "mailgun.js")
	clock.Store(now)
	command := exec.CommandContext(t.Context(), "node", "signers/others.mjs", strconv.Itoa(now))
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("signers/others.mjs: %v", err)
	}
	accepted, rejected := map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		d := &otherDelivery{}
		if err := json.Unmarshal(lines.Bytes(), d); err != nil {
			t.Fatal(err)
		}
		judge := func(how string, accept bool, message string, secrets ...any) {
			c := verdictCase{name: d.Name, d: &d.delivery, file: d.File, config: config(secrets...), accept: accept, id: d.ID, message: message}
			result, err := verify(t.Context(), compiled[d.File], &d.delivery, c.config)
			if err == nil {
				err = c.judge(result)
			}
			if err != nil {
				t.Errorf("%s: %s, %s: %v", d.File, d.Name, how, err)
			}
		}
		judge("by its secret", d.Reject == "", d.Reject, d.Secret)
		if d.Reject != "" {
			rejected[d.File]++
			continue
		}
		accepted[d.File]++
		judge("by the previous of two secrets", true, "", d.Other, d.Secret)
		judge("by the first of two secrets", true, "", d.Secret, d.Other)
		judge("with an empty previous secret", true, "", d.Secret, "")
		judge("by another secret", false, "missing or wrong", d.Other)
		judge("with an empty secret, and a previous one that fits", false, "the endpoint has no webhook secret", "", d.Secret)
		judge("with no secrets", false, "the endpoint has no webhook secret")
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, file := range sortedKeys(compiled) {
		t.Logf("%-12s %2d accepted, %2d rejected", file, accepted[file], rejected[file])
		if accepted[file] < 2 || rejected[file] < 8 {
			t.Errorf("%s was not put to the test", file)
		}
	}
}

// TestPublishedSignatures checks an example of Twilio's documentation: the address, fields and
// token of "Validating Requests are coming from Twilio".
func TestPublishedSignatures(t *testing.T) {
	compiled := compileAll(t, "twilio.js")
	d := &delivery{Headers: map[string]string{"x-twilio-signature": "RSOYDt4T1cUTdK1PDd93/VVr8B8="},
		Request: json.RawMessage(`{"method":"POST","query":{},"url":"https://mycompany.com/myapp.php?foo=1&bar=2"}`),
		Body:    []byte("Digits=1234&To=%2B18005551212&From=%2B14158675309&Caller=%2B14158675309&CallSid=CA1234567890ABCDE")}
	if got := outcome(t, compiled["twilio.js"], d, "12345"); !strings.HasPrefix(got, `{"providerEventId":"RSOYDt4T1cUTdK1PDd93/VVr8B8="`) {
		t.Error(got)
	}
}

// TestUnsignedFormsCostLittle: a form with a signature of the right form, which nobody made, is
// judged within a part of what a verifier may take, whatever its fields are.
func TestUnsignedFormsCostLittle(t *testing.T) {
	compiled := compileAll(t, "twilio.js")
	for name, body := range map[string]string{
		"one name, again and again": strings.Repeat("a=&", 3_000), "one name with values": strings.Repeat("a=b&", 16_000), "long values": strings.Repeat("a="+strings.Repeat("%41", 20)+"&", 999),
		"many names": manyNames(65_000), "as many names as are read": manyNames(999),
	} {
		d := &delivery{Headers: map[string]string{"x-twilio-signature": strings.Repeat("A", 27) + "="}, Body: []byte(body),
			Request: json.RawMessage(`{"method":"POST","query":{},"url":"https://acme.example/hook"}`)}
		result, err := verify(t.Context(), compiled["twilio.js"], d, config("12345"))
		if err != nil {
			t.Fatal(err)
		}
		if result.Failed == nil || !result.Failed.Chosen || result.CPU > component.VerifierCPU/2 {
			t.Errorf("%s: %+v after %s", name, result.Failed, result.CPU)
		}
	}
}

func manyNames(n int) string {
	var form strings.Builder
	for i := range n {
		fmt.Fprintf(&form, "%x=&", i)
	}
	return form.String()
}

// TestMetaChallenge: GET with the right token is answered with the challenge, whatever else is wrong
// is rejected.
func TestMetaChallenge(t *testing.T) {
	compiled := compileAll(t, "meta.js")
	ask := func(query, secret string) string {
		d := &delivery{Headers: map[string]string{}, Request: json.RawMessage(fmt.Sprintf(`{"method":"GET","query":%s,"url":"https://acme.example/"}`, query))}
		return outcome(t, compiled["meta.js"], d, secret)
	}
	const secret, asked = "0123456789abcdef:the:token", `{"hub.mode":"subscribe","hub.verify_token":"the:token","hub.challenge":"1158201444"}`
	if got, want := ask(asked, secret), `{"reply":{"status":200,"contentType":"text/plain","body":"1158201444"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	const wrong = "hub.verify_token is missing or wrong"
	for query, want := range map[string]string{
		`{}`: wrong, strings.Replace(asked, "the:token", "the:tokens", 1): wrong, strings.Replace(asked, "subscribe", "other", 1): wrong,
		strings.Replace(asked, `"the:token"`, `["the:token","the:token"]`, 1): wrong, strings.Replace(asked, `"1158201444"`, `["1","2"]`, 1): wrong,
		strings.Replace(asked, "the:token", "", 1): wrong,
	} {
		if got := ask(query, secret); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	for _, bad := range []string{"0123456789abcdef", "0123456789abcdef:", ":the:token"} {
		if got := ask(asked, bad); got != "the webhook secret is not APP_SECRET:VERIFY_TOKEN" {
			t.Errorf("%s: %s", bad, got)
		}
	}
}
