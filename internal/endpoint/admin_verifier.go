package endpoint

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/wtf8"
)

// AdminVerifierTry asks whether a verifier accepts a delivery (contract W15).
type AdminVerifierTry struct {
	// Endpoint is the slug of an endpoint in signed mode: its own verifier is tried,
	// with its stored secrets. Then verifier, source and secrets are not given.
	Endpoint *string `json:"endpoint"`
	// Verifier is the name of a stored component, Source that of one that is not
	// saved; Secrets are the webhook's secrets, the current one first.
	Verifier *string  `json:"verifier"`
	Source   *string  `json:"source"`
	Secrets  []string `json:"secrets"`
	// Method is that of the delivery, POST when absent, and Query its query as it was
	// sent, without the question mark.
	Method *string `json:"method"`
	Query  *string `json:"query"`
	// Headers are those of the delivery, Body its body as text, or BodyBase64 in
	// base64 where it is no text.
	Headers    []AdminHeader `json:"headers"`
	Body       string        `json:"body"`
	BodyBase64 *string       `json:"bodyBase64"`
}

// AdminHeader is one header of a delivery.
type AdminHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// AdminVerdict says whether a verifier accepts a delivery.
type AdminVerdict struct {
	Accepted bool `json:"accepted"`
	// Outcome is accepted; reply, when the verifier answers a challenge, and nothing runs;
	// rejected, when the verifier threw or called fail(); result,
	// when what it returned is not what a verifier returns; limits, when it was stopped
	// at a limit; or source, when a source does not compile.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"` // "" when accepted
	// ProviderEventID, EventKind and CanonicalEvent are what the verifier returned.
	ProviderEventID *string         `json:"providerEventId"`
	EventKind       *string         `json:"eventKind"`
	CanonicalEvent  json.RawMessage `json:"canonicalEvent"`
	// Reply is what the verifier answers the challenge with; null for none.
	Reply *AdminReply `json:"reply"`
	// Line and Column are the place of a failure in the source, 0 if unknown or if
	// the stored secret was used.
	Line    int              `json:"line"`
	Column  int              `json:"column"`
	Console []component.Line `json:"console"` // empty if the stored secret was used
}

// AdminReply is a verifier's answer to a challenge.
type AdminReply struct {
	Status      int    `json:"status"`
	ContentType string `json:"contentType"`
	Body        string `json:"body"`
}

const (
	maxVerifierTry = 4 << 20 // bytes of a request
	maxTryHeaders  = 200
	maxTrySecrets  = 2
	// maxTryEvent is the size of the largest event that is shown.
	maxTryEvent = 1 << 20
)

// verifierTry is a try that was checked.
type verifierTry struct {
	component *custom.Component
	program   *component.Program
	config    []byte
	// stored is set if config has the endpoint's own secrets: then the answer must
	// not tell anything of them.
	stored  bool
	secrets []string
	headers []byte
	body    []byte
	request []byte
}

// adminTryVerifier runs a verifier on a delivery, as an endpoint would, and tells
// what it says. It keeps nothing and runs no target.
func (s *Service) adminTryVerifier(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	given, err := httpapi.Decode[AdminVerifierTry](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	of := string(c.Config.Tenant.ID)
	if err := s.tries.take("verifier/"+of+"/"+string(c.Session.UserID), verifiersPerMinute); err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.tries.take("verifiers/"+of, verifiersOfTenant); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.tries.enter(ctx, of)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	t, verdict, err := s.verifierTry(ctx, c, given)
	if err == nil && verdict == nil {
		verdict, err = s.judge(ctx, c, t)
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, verdict)
}

// verifierTry checks what is given. It returns a verdict for a source that does not
// compile.
func (s *Service) verifierTry(ctx context.Context, c *httpapi.Authed, given AdminVerifierTry) (*verifierTry, *AdminVerdict, error) {
	t := &verifierTry{secrets: given.Secrets}
	var err error
	if t.headers, t.body, err = deliveryOf(c, given); err != nil {
		return nil, nil, err
	}
	catalog, err := s.catalog(ctx, c.Config)
	if err != nil {
		return nil, nil, err
	}
	slug, method := "test-bench", http.MethodPost
	if given.Method != nil {
		if method = *given.Method; method != http.MethodPost && method != http.MethodGet {
			return nil, nil, fault.Fields("the delivery cannot be tried", map[string]string{"method": "expected POST or GET"})
		}
	}
	switch {
	case given.Endpoint != nil:
		if given.Verifier != nil || given.Source != nil || len(given.Secrets) > 0 {
			return nil, nil, fault.Fields("the stored secret goes with the endpoint's own verifier only",
				map[string]string{"endpoint": "expected no verifier, source or secrets beside it"})
		}
		e := catalog.Endpoints[*given.Endpoint]
		if e == nil || e.Auth != custom.Signed {
			return nil, nil, fault.New(fault.NotFound, "there is no endpoint %q with auth: signed", *given.Endpoint)
		}
		if t.secrets, err = s.webhookSecrets(e); err != nil {
			return nil, nil, err
		}
		t.stored, slug, given.Verifier = true, e.Slug, &e.Verifier
		fallthrough
	case given.Verifier != nil:
		if t.component = catalog.Components[*given.Verifier]; t.component == nil || given.Source != nil {
			return nil, nil, fault.Fields("the verifier cannot be tried", map[string]string{"verifier": "expected the name of a logic component, and no source beside it"})
		}
		if t.program, err = s.programs.of(ctx, c.Config.Tenant.ID, catalog.Definitions, t.component); err != nil {
			return nil, nil, err
		}
	case given.Source != nil:
		d := drafter{s: s, cfg: c.Config, catalog: catalog}
		t.component = &custom.Component{Source: *given.Source}
		if t.program, err = d.compile(ctx, t.component, nil); err != nil {
			return nil, nil, err
		}
		if len(d.problems) > 0 {
			p := d.problems[0]
			return nil, &AdminVerdict{Outcome: "source", Reason: p.Message, Line: p.Line, Column: p.Column, Console: []component.Line{}}, nil
		}
	default:
		return nil, nil, fault.Fields("there is no verifier to try", map[string]string{"endpoint": "expected one of endpoint, verifier and source"})
	}
	if len(t.secrets) > maxTrySecrets {
		return nil, nil, fault.Fields("there are too many secrets", map[string]string{"secrets": "expected the current and the previous one"})
	}
	if len(t.secrets) == 0 || t.secrets[0] == "" {
		return nil, &AdminVerdict{Outcome: "rejected", Reason: "the endpoint has no webhook secret", Console: []component.Line{}}, nil
	}
	t.config = verifierConfigOf(slug, t.secrets)
	t.request = verifierRequestOf(method, addressOf(c.Config.Tenant, slug), rawQuery(orEmptyText(given.Query)))
	return t, nil, nil
}

func orEmptyText(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// deliveryOf returns the headers, as a verifier gets them, and the body.
func deliveryOf(c *httpapi.Authed, given AdminVerifierTry) (headers, body []byte, err error) {
	if len(given.Headers) > maxTryHeaders {
		return nil, nil, fault.Fields("there are too many headers", map[string]string{"headers": fmt.Sprintf("expected at most %d", maxTryHeaders)})
	}
	h := http.Header{}
	for i, one := range given.Headers {
		name := strings.TrimSuffix(strings.TrimSpace(one.Name), ":")
		if name == "" || strings.ContainsAny(name, " \t\r\n:") {
			return nil, nil, fault.Fields("a header has no name", map[string]string{fmt.Sprintf("headers.%d.name", i): "expected a name without spaces"})
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		h[name] = append(h[name], strings.TrimSpace(one.Value))
	}
	host := c.Request.Host
	if named := h["Host"]; len(named) > 0 {
		host = named[0]
		delete(h, "Host")
	}
	body = []byte(given.Body)
	if given.BodyBase64 != nil {
		if body, err = base64.StdEncoding.DecodeString(*given.BodyBase64); err != nil || given.Body != "" {
			return nil, nil, fault.Fields("the body cannot be read", map[string]string{"bodyBase64": "expected base64, and no body beside it"})
		}
	}
	return verifierHeaders(h, host), body, nil
}

// judge runs the verifier.
func (s *Service) judge(ctx context.Context, c *httpapi.Authed, t *verifierTry) (*AdminVerdict, error) {
	res, err := t.program.Run(ctx, component.Run{
		Tenant: string(c.Config.Tenant.ID), Verifier: &component.VerifierInput{RawBody: t.body, Headers: t.headers, Config: t.config, Request: t.request},
	})
	if err != nil {
		return nil, err
	}
	v := &AdminVerdict{Console: []component.Line{}}
	if !t.stored {
		v.Console = append(v.Console, res.Console...)
	}
	switch {
	case res.Failed != nil && res.Failed.CutOff:
		v.Outcome, v.Reason = "limits", res.Failed.Message
	case res.Failed != nil:
		v.Outcome, v.Reason = "rejected", t.told(res.Failed.Message)
	default:
		accepted, wrong := parseVerified(res.Value)
		switch {
		case wrong != "":
			v.Outcome, v.Reason = "result", wrong
		case accepted.reply != nil:
			t.reply(v, accepted.reply, res.Value)
		default:
			t.accept(v, accepted, res.Value)
		}
	}
	if res.Failed != nil && !t.stored {
		v.Line, v.Column = res.Failed.Line, res.Failed.Column
	}
	return v, nil
}

// flatReason is what is told of a rejection whose own words may have been made
// with the stored secret.
const flatReason = "the verifier rejected the delivery; the audit log of a real one says why"

// told returns a verifier's own words. Where it had the stored secret they are told
// only if they stand in its source as they are: a text that was put together may
// say what the right signature is.
func (t *verifierTry) told(message string) string {
	if !t.stored || message != "" && strings.Contains(t.component.Source, message) {
		return message
	}
	return flatReason
}

// secretReturned is the reason why something that a verifier returned is not shown.
const secretReturned = "what the verifier returned contains the secret, and is not shown"

// reveals reports whether what the verifier returned contains a stored secret.
func (t *verifierTry) reveals(value []byte) bool {
	return t.stored && slices.ContainsFunc(t.secrets, func(s string) bool {
		return strings.Contains(string(value), strings.Trim(string(wtf8.AppendQuote(nil, s)), `"`))
	})
}

// stands reports whether a text may be shown: with the stored secret only one that stands in
// the delivery as it was given, or in the source. Any other may be a part of the secret, or
// made with it.
func (t *verifierTry) stands(text string) bool {
	if !t.stored || text == "" || strings.Contains(t.component.Source, text) {
		return true
	}
	return slices.ContainsFunc([][]byte{t.body, t.headers, t.request}, func(given []byte) bool { return strings.Contains(string(given), text) })
}

// eventStands is stands for an event: it is the body or a part of it, or the fields of the
// body's form.
func (t *verifierTry) eventStands(event jsontext.Value) bool {
	text, err := normalJSON(event)
	if !t.stored || err == nil && t.stands(text) {
		return true
	}
	if body, wrong := normalJSON(t.body); err == nil && wrong == nil && strings.Contains(body, text) {
		return true
	}
	fields, err := url.ParseQuery(string(t.body))
	if err != nil {
		return false
	}
	given, shown := map[string]any{}, map[string]any{}
	for name, values := range fields {
		given[name] = values[0]
		if len(values) > 1 {
			given[name] = slices.Compact(slices.Sorted(slices.Values(values)))
		}
	}
	return json.Unmarshal(event, &shown) == nil && fmt.Sprintf("%q", given) == fmt.Sprintf("%q", shown)
}

// normalJSON returns a JSON text without spaces, with each text and number written as
// JavaScript does.
func normalJSON(text []byte) (string, error) {
	normal, err := jsontext.AppendFormat(nil, text, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true),
		jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true))
	return string(normal), err
}

// notGiven is the reason why a part of what a verifier returned is not shown.
const notGiven = "with the stored secret only what stands in the delivery or in the source is shown, not "

// reply fills a verdict with the verifier's answer to a challenge, without one that
// contains a stored secret, and without a body that was not given.
func (t *verifierTry) reply(v *AdminVerdict, a *answer, value []byte) {
	v.Outcome = "reply"
	if t.reveals(value) {
		v.Reason = secretReturned
		return
	}
	v.Reply = &AdminReply{Status: a.status, ContentType: a.contentType}
	if !t.stands(string(a.body)) {
		v.Reason = notGiven + fmt.Sprintf("the reply's body of %d bytes", len(a.body))
		return
	}
	v.Reply.Body = string(a.body)
}

// accept fills a verdict with what the verifier returned, without anything that
// contains a stored secret or was not given.
func (t *verifierTry) accept(v *AdminVerdict, accepted *verified, value []byte) {
	v.Accepted, v.Outcome = true, "accepted"
	if t.reveals(value) {
		v.Reason = secretReturned
		return
	}
	id, kind := storedKind(accepted.id), storedKind(accepted.kind)
	var hidden []string
	if t.stands(accepted.id) {
		v.ProviderEventID = &id
	} else {
		hidden = append(hidden, fmt.Sprintf("the providerEventId of %d bytes", len(id)))
	}
	if t.stands(accepted.kind) {
		v.EventKind = &kind
	} else {
		hidden = append(hidden, fmt.Sprintf("the eventKind of %d bytes", len(kind)))
	}
	t.showEvent(v, value, hidden)
}

// showEvent fills a verdict with the event, and says what is not shown.
func (t *verifierTry) showEvent(v *AdminVerdict, value []byte, hidden []string) {
	whole, err := httpapi.ParseEvent(value, httpapi.MaxEventDepth+1)
	if err != nil { // parseVerified has parsed it
		return
	}
	event, _ := whole.Get("canonicalEvent")
	if len(event) > maxTryEvent {
		v.Reason = "the event is larger than 1 MiB, and is not shown"
		return
	}
	if t.eventStands(event) {
		v.CanonicalEvent = json.RawMessage(strings.ToValidUTF8(string(event), "\uFFFD"))
	} else {
		hidden = append(hidden, fmt.Sprintf("the canonicalEvent of %d bytes", len(event)))
	}
	if len(hidden) > 0 {
		v.Reason = notGiven + strings.Join(hidden, ", ")
	}
}
