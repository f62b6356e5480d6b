package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// TestOneDeliveryAtATime: deliveries of one key run one after another, those of other
// keys at the same time.
func TestOneDeliveryAtATime(t *testing.T) {
	var k keyedMutex
	var running, most, done atomic.Int64
	var wg sync.WaitGroup
	for i := range 90 {
		wg.Go(func() {
			unlock, err := k.lock(t.Context(), "a")
			if err != nil {
				t.Errorf("%d: %v", i, err)
				return
			}
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			other, err := k.lock(t.Context(), fmt.Sprint("other ", i))
			if err != nil {
				t.Error(err)
				return
			}
			done.Add(1)
			time.Sleep(50 * time.Microsecond)
			running.Add(-1)
			other()
			unlock()
		})
	}
	wg.Wait()
	if most.Load() != 1 || done.Load() != 90 {
		t.Errorf("%d at once, %d in all", most.Load(), done.Load())
	}
	if len(k.m) != 0 {
		t.Errorf("%d keys are left", len(k.m))
	}
}

// TestMaxWaiters: maxWaiters deliveries of a key may wait, and one more when one of
// them gave up.
func TestMaxWaiters(t *testing.T) {
	var k keyedMutex
	unlock, err := k.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	results := make(chan error, maxWaiters)
	for range maxWaiters {
		go func() {
			_, err := k.lock(waiting, "a")
			results <- err
		}()
	}
	queue := func() int {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.m["a"].waiters
	}
	for begun := time.Now(); queue() < maxWaiters; time.Sleep(time.Millisecond) {
		if time.Since(begun) > 5*time.Second {
			t.Fatalf("%d wait", queue())
		}
	}
	_, err = k.lock(t.Context(), "a")
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != fault.Overloaded || e.RetryAfter <= 0 {
		t.Errorf("one too many: %v", err)
	}
	if other, err := k.lock(t.Context(), "b"); err != nil {
		t.Errorf("another key: %v", err)
	} else {
		other()
	}
	cancel()
	for range maxWaiters {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
	}
	if n := queue(); n != 0 {
		t.Errorf("%d still wait", n)
	}
	unlock()
	unlock, err = k.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestIdempotencyKeys(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		want   string
		ok     bool
	}{
		{http.Header{}, "", true},
		{http.Header{"Idempotency-Key": {"k"}}, "k", true},
		{http.Header{"Idempotency-Key": {strings.Repeat("é", 255)}}, strings.Repeat("é", 255), true},
		{http.Header{"Idempotency-Key": {strings.Repeat("é", 256)}}, "", false},
		{http.Header{"Idempotency-Key": {""}}, "", false},
		{http.Header{"Idempotency-Key": {}}, "", false},
		{http.Header{"Idempotency-Key": {"a", "a"}}, "", false},
	} {
		got, err := idempotencyKey(c.header)
		if got != c.want || (err == nil) != c.ok || err != nil && fault.CodeOf(err) != fault.Validation {
			t.Errorf("%.40v: %.20q, %v", c.header, got, err)
		}
	}
}

// TestParseVerified (contract W10).
func TestParseVerified(t *testing.T) {
	for text, want := range map[string]*verified{
		`{"providerEventId":"1","eventKind":"k","canonicalEvent":{"a":1}}`:     {id: "1", kind: "k"},
		`{"providerEventId":"\u00e9","canonicalEvent":{}}`:                     {id: "é"},
		`{"providerEventId":"1","eventKind":null,"canonicalEvent":{},"x":[1]}`: {id: "1"},
		`{"providerEventId":"","canonicalEvent":{}}`:                           nil,
		`{"providerEventId":null,"canonicalEvent":{}}`:                         nil,
		`{"providerEventId":["1"],"canonicalEvent":{}}`:                        nil,
		`{"providerEventId":"1","eventKind":{},"canonicalEvent":{}}`:           nil,
		`{"providerEventId":"1","canonicalEvent":"{}"}`:                        nil,
		`{"providerEventId":"1","canonicalEvent":null}`:                        nil,
		`{"providerEventId":"1"}`:                                              nil, `{}`: nil, `[]`: nil, `null`: nil, `true`: nil, `"x"`: nil, ``: nil,
	} {
		v, wrong := parseVerified([]byte(text))
		switch {
		case want == nil && (v != nil || wrong == ""):
			t.Errorf("%s is taken: %v", text, v)
		case want != nil && (v == nil || wrong != "" || v.id != want.id || v.kind != want.kind || v.event == nil):
			t.Errorf("%s: %v, %q", text, v, wrong)
		}
	}
}

// TestVerifierHeaders have names in lower case; repeated ones are joined.
func TestVerifierHeaders(t *testing.T) {
	got := string(verifierHeaders(http.Header{"X-Signature": {"a", "b\"", "\xff"}}, "acme.localhost"))
	if want := `{"host":"acme.localhost","x-signature":"a, b\", ` + "\ufffd" + `"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestFailedDeliveriesAreStoredUnchanged: what is run again is what was sent, lone
// surrogates included.
func TestFailedDeliveriesAreStoredUnchanged(t *testing.T) {
	given := delivery{
		Inputs: inputs.Object{{Name: "a\xed\xa0\x80", Value: jsontext.Value(`{"b":"\ud800<","n":1.50}`)}},
		Event:  event{ID: "1", Kind: "k\xed\xb0\x80\x00", ProviderID: "\xed\xa0\xbd-\xed\xa0\xbe", KeyHash: "h"},
	}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	var again delivery
	if err := json.Unmarshal(text, &again); err != nil || again.Event != given.Event || again.Inputs[0].Name != given.Inputs[0].Name {
		t.Errorf("%q, not %q; %v", again, given, err)
	}
	if err := json.Unmarshal([]byte(`{"Inputs":[],"Event":{"ID":"1","Kind":"","ProviderID":"e","KeyHash":"h"}}`), &again); err != nil || again.Event.ProviderID != "e" {
		t.Errorf("one that was kept before: %q %v", again, err)
	}
}
