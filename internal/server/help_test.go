package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
)

const (
	me      = "/public/v1/me"
	contact = "/public/v1/data/contact"
	nobody  = contact + "/01890000-0000-7000-8000-000000000000" // a record that does not exist
)

func origins(list ...string) func(*apikey.CreateSpec) {
	return func(s *apikey.CreateSpec) { s.Origins = list }
}

func allowlist(list ...string) func(*apikey.CreateSpec) {
	return func(s *apikey.CreateSpec) { s.Allowlist = list }
}

func expiresAt(at time.Time) func(*apikey.CreateSpec) {
	return func(s *apikey.CreateSpec) { s.ExpiresAt = at.UnixMicro() }
}

// from returns the same caller behind a trusted proxy.
func from(a *gatetest.Actor, hops string) *gatetest.Actor { return a.With("X-Forwarded-For", hops) }

// raw sends the bytes unchanged and reads the answer to the first request in
// them.
func raw(t *testing.T, w *gatetest.World, text string) *gatetest.Answer {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.Nodes[0].URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.WriteString(c, text) }() // the server may answer before it has read all of it
	call := strconv.Quote(text[:min(len(text), 120)])
	method, _, _ := strings.Cut(text, " ")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s: no answer: %v", call, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: the answer broke off: %v", call, err)
	}
	return &gatetest.Answer{T: t, Call: call, Status: res.StatusCode, Header: res.Header, Body: body}
}

var uuid7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// whole fails the test unless the answer has what every response has: the
// envelope, its status, and the headers of contract H7, O5 and L3.
func whole(t *testing.T, a *gatetest.Answer) *gatetest.Answer {
	t.Helper()
	header := func(name string) string {
		if n := len(a.Header.Values(name)); n != 1 {
			t.Errorf("%s: %d headers %s", a.Call, n, name)
		}
		return a.Header.Get(name)
	}
	number := func(name string) int {
		n, err := strconv.Atoi(header(name))
		if err != nil {
			t.Errorf("%s: %s: %v", a.Call, name, err)
		}
		return n
	}
	if id := header("X-Request-Id"); !uuid7.MatchString(id) {
		t.Errorf("%s: X-Request-Id: %q", a.Call, id)
	}
	if got := header("Cache-Control"); got != "no-store" {
		t.Errorf("%s: Cache-Control: %q", a.Call, got)
	}
	if got := header("Vary"); !strings.HasPrefix(got, "Origin") {
		t.Errorf("%s: Vary: %q", a.Call, got)
	}
	limit, left, reset := number("X-RateLimit-Limit"), number("X-RateLimit-Remaining"), number("X-RateLimit-Reset")
	if limit < 1 || left < 0 || left >= limit && a.Status != 403 || reset < 1 || reset > 60 {
		t.Errorf("%s: limit %d, remaining %d, reset %d", a.Call, limit, left, reset)
	}
	if a.Header.Get("Access-Control-Allow-Origin") == "*" || a.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%s: CORS for anybody: %v", a.Call, a.Header)
	}
	if a.Status == http.StatusTooManyRequests {
		if number("Retry-After") != reset || left != 0 {
			t.Errorf("%s: Retry-After %s, reset %d, remaining %d", a.Call, a.Header.Get("Retry-After"), reset, left)
		}
	} else if retry := a.Header.Get("Retry-After") != ""; retry && a.Code() != string(fault.Overloaded) {
		t.Errorf("%s: %d with Retry-After", a.Call, a.Status)
	}
	if a.Status == http.StatusNoContent {
		if len(a.Body) != 0 {
			t.Errorf("%s: 204 with a body", a.Call)
		}
		return a
	}
	if got := header("Content-Type"); got != "application/json" {
		t.Errorf("%s: Content-Type: %q", a.Call, got)
	}
	if len(a.Body) > 0 { // HEAD has none
		enveloped(t, a)
	}
	return a
}

// enveloped checks that the body has exactly the members of the envelope
// (contract H4, H5).
func enveloped(t *testing.T, a *gatetest.Answer) {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal(a.Body, &body); err != nil {
		t.Errorf("%s: %d: no JSON: %q", a.Call, a.Status, a.Body)
		return
	}
	if a.Status < 400 {
		if len(body) != 2 || body["data"] == nil || !bytes.HasPrefix(body["meta"], []byte("{")) {
			t.Errorf("%s: %d: not the envelope of a success: %s", a.Call, a.Status, a.Body)
		}
		return
	}
	var e map[string]json.RawMessage
	var code fault.Code
	var message string
	if len(body) != 1 || json.Unmarshal(body["error"], &e) != nil || len(e) != 3 ||
		json.Unmarshal(e["code"], &code) != nil || json.Unmarshal(e["message"], &message) != nil || message == "" ||
		!bytes.HasPrefix(e["details"], []byte("{")) {
		t.Errorf("%s: %d: not the envelope of an error: %s", a.Call, a.Status, a.Body)
	}
	// net/http's own refusals have other statuses.
	if own := a.Status == 431 || a.Status == 417 || a.Status == 501 || a.Status == 505; !own && fault.Status(code) != a.Status {
		t.Errorf("%s: %s with status %d, want %d", a.Call, code, a.Status, fault.Status(code))
	}
}
