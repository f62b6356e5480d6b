package endpoint

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

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
