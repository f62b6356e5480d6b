package endpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/admission"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/tenant"
	"gatehouse/internal/wtf8"
)

// errSignature is the answer to each delivery that the verifier rejects.
var errSignature = fault.New(fault.Unauthorized, "the signature was rejected")

// verified is what a verifier returned for a delivery (contract W10).
type verified struct {
	id    string // providerEventId in WTF-8, so that distinct ids stay distinct
	kind  string // eventKind, WTF-8
	event *httpapi.Object
	// reply answers a challenge: then the others are empty, and there is no event
	// (contract W17).
	reply *answer
}

// errVerifierStopped is the answer to a delivery whose verifier was stopped at
// one of its limits. The signature may be right, so the answer must not say that
// it is wrong: the provider would give up. It counts against the address like a
// rejected one, because it cost the most that one can (contract W12).
var errVerifierStopped = &fault.Error{
	Code: fault.Overloaded, Message: "the delivery could not be checked within the verifier's limits; try again later", RetryAfter: 5 * time.Second, Charged: true,
}

// verifierLimits bounds the verifications that run and wait at one endpoint, and
// those of one address at it (contract W8). All verifications of a tenant run
// within its share of the engine's places.
var verifierLimits = admission.Limits{Running: 6, PerKey: 2, Waiting: 256, WaitingPerKey: 64, MaxWait: 2 * time.Second}

// errVerifierBusy is the answer to a delivery that gets no place in time.
var errVerifierBusy = fault.New(fault.Overloaded, "too many deliveries wait to be checked; try again soon").After(time.Second)

// verifierGates has an admission.Gate for each endpoint at which deliveries are
// being verified.
type verifierGates struct {
	mu sync.Mutex
	m  map[string]*gateInUse
}

type gateInUse struct {
	*admission.Gate
	users int
}

// enter waits for a place among an endpoint's verifications. The caller must call
// leave. It returns OVERLOADED when there is none in time, and ctx's error.
func (g *verifierGates) enter(ctx context.Context, endpoint, address string) (leave func(), err error) {
	g.mu.Lock()
	if g.m == nil {
		g.m = map[string]*gateInUse{}
	}
	own := g.m[endpoint]
	if own == nil {
		own = &gateInUse{Gate: admission.NewGate(verifierLimits)}
		g.m[endpoint] = own
	}
	own.users++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if own.users--; own.users == 0 {
			delete(g.m, endpoint)
		}
	}
	out, err := own.Enter(ctx, address)
	if err != nil {
		done()
		if errors.Is(err, admission.ErrFull) {
			err = errVerifierBusy
		}
		return nil, err
	}
	return func() { out(); done() }, nil
}

// verify runs the endpoint's verifier. It returns UNAUTHORIZED when the verifier
// rejects the delivery, also by failing, and OVERLOADED when it cannot run now or
// was stopped at a limit of its own; the latter it counts against the address, and
// returns RATE_LIMITED when that has used up its budget.
func (r *request) verify(ctx context.Context, body []byte) (*verified, error) {
	c := r.catalog.Components[r.endpoint.Verifier]
	if c == nil {
		return nil, errNoTarget(custom.Target{Kind: custom.ToComponent, Name: r.endpoint.Verifier})
	}
	config, err := r.verifierConfig()
	if err != nil {
		return nil, err
	}
	program, err := r.s.programs.of(ctx, r.call.Config.Tenant.ID, r.catalog.Definitions, c)
	if err != nil {
		return nil, err
	}
	leave, err := r.s.verifiers.enter(ctx, string(r.call.Config.Tenant.ID)+"/"+r.endpoint.Slug, httpapi.AddressKey(r.call.IP))
	if err != nil {
		return nil, err
	}
	defer leave()
	res, err := program.Run(ctx, component.Run{
		Tenant:   string(r.call.Config.Tenant.ID),
		Verifier: &component.VerifierInput{RawBody: body, Headers: verifierHeaders(r.call.Request.Header, r.call.Request.Host), Config: config, Request: r.verifierRequest()},
	})
	if err != nil {
		return nil, err
	}
	if res.Failed != nil && res.Failed.CutOff {
		r.s.logRejection("endpoint.delivery_unjudged", r.call.Config.Tenant.ID, r.endpoint.Slug, res.Failed.Message)
		return nil, r.checks.Refuse(errVerifierStopped.Because(res.Failed.Message))
	}
	if res.Failed != nil {
		return nil, r.rejected(res.Failed.Message)
	}
	if err := r.call.Keep(len(res.Value)); err != nil { // it may be larger than the delivery
		return nil, err
	}
	v, wrong := parseVerified(res.Value)
	if wrong != "" {
		return nil, r.rejected(wrong)
	}
	if v.reply != nil {
		return v, r.call.Hold(len(v.reply.body))
	}
	// An event may have any number of members, and is held while it waits for its turn.
	if err := r.call.Keep(len(res.Value) + memberOverhead*len(v.event.Members)); err != nil {
		return nil, err
	}
	return v, nil
}

// verifierRequest returns {method, query, url} for a verifier (contract W9). The URL
// is the endpoint's as the tenant's base_url has it, which providers sign, with the
// query as it was sent.
func (r *request) verifierRequest() []byte {
	return verifierRequestOf(r.call.Request.Method, addressOf(r.call.Config.Tenant, r.endpoint.Slug), rawQuery(r.call.Request.URL.RawQuery))
}

// addressOf returns the address of an endpoint under its tenant's base_url.
func addressOf(t *tenant.Tenant, slug string) string {
	return strings.TrimSuffix(t.BaseURL, "/") + "/public/v1/custom/" + slug
}

// rawQuery is a query as it was sent.
type rawQuery string

func verifierRequestOf(method, address string, sent rawQuery) []byte {
	if sent != "" {
		address += "?" + string(sent)
	}
	text := wtf8.AppendUTF8([]byte(`{"method":`), method)
	text = wtf8.AppendUTF8(append(text, `,"url":`...), address)
	text = append(text, `,"query":{`...)
	query, _ := url.ParseQuery(string(sent)) // what cannot be read is left out
	for i, name := range slices.Sorted(maps.Keys(query)) {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(wtf8.AppendUTF8(text, name), ':')
		text = append(text, inputs.FormValue(query[name])...)
	}
	return append(text, "}}"...)
}

// memberOverhead is about how many bytes one member of an event takes besides its
// text: in the object, in its index and among the inputs.
const memberOverhead = 160

// rejected returns the answer to a delivery that the verifier rejects, and logs
// why. The reason is the author's text and must not be sent: the sender is
// unknown.
func (r *request) rejected(why string) error {
	r.s.logRejection("endpoint.signature_rejected", r.call.Config.Tenant.ID, r.endpoint.Slug, why)
	return errSignature.Because(why)
}

// verifierConfig returns the config that the endpoint's verifier gets. It returns
// UNAUTHORIZED for an endpoint without a secret, because nothing could be
// verified.
func (r *request) verifierConfig() ([]byte, error) {
	secrets, err := r.s.webhookSecrets(r.endpoint)
	if err != nil {
		return nil, err
	}
	if len(secrets) == 0 {
		return nil, r.rejected("the endpoint has no webhook secret")
	}
	return verifierConfigOf(r.endpoint.Slug, secrets), nil
}

// webhookSecrets returns an endpoint's secrets, the current one first. An endpoint
// without a current one has none.
func (s *Service) webhookSecrets(e *custom.Endpoint) ([]string, error) {
	var secrets []string
	for _, sealed := range []string{e.SealedSecret, e.SealedPrevious} {
		if sealed == "" {
			continue
		}
		plain, err := s.keyring.Open(custom.SecretPurpose, sealed)
		if err != nil {
			return nil, err
		}
		if len(plain) > 0 {
			secrets = append(secrets, string(plain))
		}
	}
	if e.SealedSecret == "" {
		return nil, nil
	}
	return secrets, nil
}

// verifierConfigOf returns {slug, webhook_secret, webhook_secrets}.
func verifierConfigOf(slug string, secrets []string) []byte {
	text := wtf8.AppendUTF8([]byte(`{"slug":`), slug)
	text = wtf8.AppendUTF8(append(text, `,"webhook_secret":`...), secrets[0])
	text = append(text, `,"webhook_secrets":[`...)
	for i, s := range secrets {
		if i > 0 {
			text = append(text, ',')
		}
		text = wtf8.AppendUTF8(text, s)
	}
	return append(text, `]}`...)
}

// parseVerified parses a verifier's result. wrong says why it is a rejection; it
// is "" for a delivery that was verified.
func parseVerified(value []byte) (v *verified, wrong string) {
	if jsontext.Value(value).Kind() != '{' {
		return nil, "it did not return an object"
	}
	answer, err := httpapi.ParseEvent(value, httpapi.MaxEventDepth+1)
	if err != nil {
		return nil, fmt.Sprintf("it returned an object that is nested too deeply: expected at most %d levels in canonicalEvent", httpapi.MaxEventDepth)
	}
	v = &verified{}
	id, _ := answer.Get("providerEventId")
	if reply, _ := answer.Get("reply"); reply.Kind() != 0 && reply.Kind() != 'n' {
		if len(answer.Members) > 1 {
			return nil, "it returned a reply together with an event: expected one of them"
		}
		v.reply, wrong = parseReply(reply)
		return v, wrong
	}
	if id.Kind() != '"' || len(id) == 2 {
		return nil, "providerEventId is not a text, or empty"
	}
	v.id = unquoted(id)
	switch kind, _ := answer.Get("eventKind"); kind.Kind() {
	case '"':
		v.kind = unquoted(kind)
	case 0, 'n':
	default:
		return nil, "eventKind is not a text"
	}
	canonical, _ := answer.Get("canonicalEvent")
	if v.event, err = httpapi.ParseEvent(canonical, httpapi.MaxEventDepth); err != nil {
		return nil, "canonicalEvent is not an object"
	}
	return v, ""
}

func unquoted(v jsontext.Value) string {
	s, _ := wtf8.Unquote(v) // ParseEvent has checked it
	return s
}

const (
	// rejectionLogInterval is the shortest time between two lines of one event of
	// one endpoint.
	rejectionLogInterval = time.Second
	// maxRejectionLogs is how many events of endpoints are remembered for that.
	maxRejectionLogs = 10_000
)

// logRejection logs for the author of a verifier why a delivery was not accepted,
// at most once a second for each event and endpoint. The reason is the author's
// text and contains nothing of the delivery.
func (s *Service) logRejection(event string, tenantID tenant.ID, slug, why string) {
	key, now := event+"/"+string(tenantID)+"/"+slug, s.clock.Now()
	s.mu.Lock()
	last, known := s.logged[key]
	due := !known || now.Sub(last) >= rejectionLogInterval || now.Before(last)
	if due {
		if len(s.logged) >= maxRejectionLogs {
			clear(s.logged)
		}
		s.logged[key] = now
	}
	s.mu.Unlock()
	if due {
		s.emit(event, map[string]any{"tenant": tenantID, "endpoint": slug, "reason": why})
	}
}
