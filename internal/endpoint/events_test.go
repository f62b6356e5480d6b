package endpoint_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// TestLogs: for both toggles, each mode and every outcome, what the audit log keeps
// and with which label (contract G5, G6), and that the request log has all of it
// (contract G1).
func TestLogs(t *testing.T) {
	var lines []string
	for _, own := range []bool{true, false} {
		log := fmt.Sprintf(", log_requests: %v", own)
		for _, more := range []struct{ name, rate string }{{"act", ""}, {"spent", ", rate_limit_per_minute: 1"}} {
			slug := fmt.Sprintf("-%s-%v", more.name, own)
			lines = append(lines, "{slug: key"+slug+", target: {component: act}"+log+"}",
				"{slug: token"+slug+", target: {component: act}, auth: token"+log+more.rate+"}",
				signed("signed"+slug, "component: act", log+more.rate))
		}
	}
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(lines...))
		l := &logged{t: t, w: w, secrets: []string{shopSecret}}
		for _, tenant := range []bool{true, false} {
			w.Apply(fmt.Sprintf("tenant: acme\npublic_api: {enabled: true, log_standard_requests: %v}\n", tenant))
			l.tenant = tenant
			l.newCredentials()
			for _, mode := range modes {
				for _, own := range []bool{true, false} {
					l.outcomes(mode, own)
				}
			}
			// A switched-off API is an early failure; the credential is not checked.
			w.Apply(fmt.Sprintf("tenant: acme\npublic_api: {enabled: false, log_standard_requests: %v}\n", tenant))
			for _, mode := range modes {
				l.expect(mode, l.post(mode, "act-true", ok), 503, "", tenant)
				l.expect(mode, l.post(mode, "act-false", ok), 503, "", tenant)
			}
			w.Clock.Advance(time.Minute + time.Second) // to renew the limits
		}
		l.check()
		noSecrets(t, w, l.secrets)
	})
}

// logged is a call, and what the logs must have of it.
type logged struct {
	t         *testing.T
	w         *gatetest.World
	tenant    bool // the tenant's toggle
	sam, once *gatetest.Actor
	hooks     map[string]*gatetest.Actor
	all       []loggedCall
	secrets   []string // which no log may contain
}

type loggedCall struct {
	answer *gatetest.Answer
	mode   string
	label  string // "" without a valid credential
	kept   bool
}

var labels = map[string]string{"key": "KEY", "token": "TOKEN", "signed": "SIGNED"}

func (l *logged) newCredentials() {
	l.sam, l.once = l.w.Key("sam@acme.example"), l.w.Key("sam@acme.example", gatetest.RateLimit(1))
	l.hooks = map[string]*gatetest.Actor{}
	for _, name := range []string{"act-true", "act-false", "spent-true", "spent-false"} {
		l.hooks[name] = l.w.Webhook("token-" + name)
		l.secrets = append(l.secrets, l.hooks[name].Token[12:])
	}
	l.secrets = append(l.secrets, l.sam.Token[12:], l.once.Token[12:])
}

// post calls an endpoint with a valid credential.
func (l *logged) post(mode, name, body string) *gatetest.Answer {
	l.t.Helper()
	switch mode {
	case "token":
		return l.hooks[name].Post(custom+"token-"+name, body)
	case "signed":
		body = with(body, `"id": "`+names.next("l")+`"`)
		l.secrets = append(l.secrets, hmacHex(shopSecret, body))
		return provider{l.w.Anyone()}.Post(custom+"signed-"+name, body)
	}
	if strings.HasPrefix(name, "spent") {
		return l.once.Post(custom+"key-"+name, body)
	}
	return l.sam.Post(custom+"key-"+name, body)
}

func (l *logged) expect(mode string, a *gatetest.Answer, status int, label string, kept bool) {
	l.t.Helper()
	if a.Status != status {
		l.t.Errorf("%s: %d %s, want %d", a.Call, a.Status, a.Body, status)
	}
	l.all = append(l.all, loggedCall{a, mode, label, kept})
}

// outcomes calls an endpoint with the toggle own so that each outcome occurs. Its own
// toggle decides for successes, the tenant's for all others.
func (l *logged) outcomes(mode string, own bool) {
	l.t.Helper()
	label, success := labels[mode], map[string]int{"key": 200, "token": 200, "signed": 202}[mode]
	act, spent := fmt.Sprintf("act-%v", own), fmt.Sprintf("spent-%v", own)
	l.expect(mode, l.post(mode, act, ok), success, label, own)
	l.expect(mode, l.w.Anyone().Post(custom+mode+"-"+act, with(ok, `"id": "1"`)), 401, "", l.tenant)
	for _, status := range []int{401, 403, 404, 409, 429, 500, 503, 599} {
		l.expect(mode, l.post(mode, act, fmt.Sprintf(`{"do": "fail", "status": %d}`, status)), status, label, l.tenant)
	}
	l.expect(mode, l.post(mode, act, `{}`), 422, label, l.tenant)
	if own { // it is slow
		l.w.Apply(actWithin(300))
		l.expect(mode, l.post(mode, act, `{"do": "loop"}`), 504, label, l.tenant)
		l.w.Apply(actWithin(20_000))
	}
	if mode == "key" {
		l.expect(mode, l.sam.With("Origin", "https://evil.example").Post(custom+"key-"+act, ok), 403, label, l.tenant)
	}
	if mode != "key" || own { // a key has one limit for all that it calls
		l.expect(mode, l.post(mode, spent, ok), success, label, own)
	}
	if mode == "signed" { // the rate is checked before the signature
		label = ""
	}
	l.expect(mode, l.post(mode, spent, ok), 429, label, l.tenant)
}

// check compares both logs with what is expected.
func (l *logged) check() {
	t := l.t
	log := l.w.AuditLog("acme")
	requests := map[string]map[string]any{}
	for _, line := range l.w.Nodes[0].Log.Lines(t) {
		if line["event"] == "public_api.request" {
			requests[fmt.Sprint(line["request_id"])] = line
		}
	}
	for _, x := range l.all {
		id := x.answer.Header.Get("X-Request-Id")
		e, line := log[id], requests[id]
		what := fmt.Sprintf("%s: %d", x.answer.Call, x.answer.Status)
		if (e != nil) != x.kept {
			t.Errorf("%s: kept %v, want %v", what, e != nil, x.kept)
		}
		endpoint := strings.TrimPrefix(x.answer.Call, "POST /public/v1")
		if e != nil && (e.Auth != x.label || e.Status != x.answer.Status || e.Endpoint != endpoint) {
			t.Errorf("%s: kept as %s %d %q, want %s %q", what, e.Auth, e.Status, e.Endpoint, x.label, endpoint)
		}
		auth := "none"
		if x.label != "" {
			auth = x.mode
		}
		if line == nil || line["auth"] != auth || line["status"] != float64(x.answer.Status) || line["tenant"] != "acme" {
			t.Errorf("%s: its line is %v, want auth %s", what, line, auth)
		}
		delete(log, id)
	}
	if len(log) > 0 {
		t.Errorf("%d entries of no request", len(log))
	}
}

// noSecrets fails the test if a log line, an audit entry or a run contains a secret.
func noSecrets(t *testing.T, w *gatetest.World, secrets []string) {
	t.Helper()
	var texts []string
	for _, e := range w.AuditLog("acme") {
		texts = append(texts, string(e.AppendJSON(nil)))
	}
	if len(texts) == 0 {
		t.Error("the audit log is empty")
	}
	stored := strings.Join(texts, "\n")
	for _, secret := range secrets {
		if strings.Contains(stored, secret) {
			t.Errorf("an audit entry holds %s", secret)
		}
		if w.Nodes[0].Log.Contains(secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

// TestWrongTokensAreLoggedByPrefix (contract G1).
func TestWrongTokensAreLoggedByPrefix(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes)
		wrong := "svc_whk_" + strings.Repeat("0123456789abcdef", 4)
		hook := w.Webhook("token-act")
		want := map[string]any{}
		for prefix, a := range map[any]*gatetest.Actor{
			"svc_whk_0123": w.Anyone().With("X-Webhook-Token", wrong), nil: w.Anyone(), "s": w.Anyone().With("X-Webhook-Token", "short"),
			"bearer-t": w.Anyone().With("Authorization", "Bearer bearer-token-that-is-wrong"),
		} {
			want[header(t, a.Post(custom+"token-act", ok).Want(401, "UNAUTHORIZED"), "X-Request-Id")] = prefix
		}
		want[header(t, hook.Post(custom+"token-act", ok).Want(200, ""), "X-Request-Id")] = nil
		w.Nodes[0].Stop()
		n := 0
		for _, line := range w.Nodes[0].Log.Lines(t) {
			if prefix, ok := want[fmt.Sprint(line["request_id"])]; ok {
				n++
				if line["api_key_id"] != nil || line["api_key_prefix"] != prefix {
					t.Errorf("%v %v, want null and %v", line["api_key_id"], line["api_key_prefix"], prefix)
				}
			}
		}
		if n != len(want) {
			t.Errorf("%d lines", n)
		}
		if w.Nodes[0].Log.Contains(wrong) || w.Nodes[0].Log.Contains("that-is-wrong") {
			t.Error("a token is in the log")
		}
	})
}

// TestRejectionsAreLogged for the author of the verifier, without anything of the
// delivery, and not once for each.
func TestRejectionsAreLogged(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	w.Apply(echoes)
	for range 20 {
		w.Anyone().With("X-Signature", "a-signature").Post(custom+"signed-act", `{"id": "a-delivery"}`).Want(401, "UNAUTHORIZED")
	}
	w.Nodes[0].Stop()
	n := 0
	for _, line := range w.Nodes[0].Log.Lines(t) {
		if line["event"] == "endpoint.signature_rejected" {
			n++
			if line["reason"] != "bad signature" || line["endpoint"] != "signed-act" || line["tenant"] != "acme" {
				t.Errorf("%v", line)
			}
		}
	}
	if n == 0 || n > 5 {
		t.Errorf("%d lines for 20 rejections at once", n)
	}
	if w.Nodes[0].Log.Contains("a-signature") || w.Nodes[0].Log.Contains("a-delivery") {
		t.Error("the log contains the delivery")
	}
}
