package endpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/admission"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
	"gatehouse/internal/wtf8"
)

// errSignature is the answer to every delivery that the verifier rejects.
var errSignature = fault.New(fault.Unauthorized, "the signature was rejected")

// verified is what a verifier returned for a delivery (contract W10).
type verified struct {
	id    string // providerEventId in WTF-8, so that distinct ids stay distinct
	kind  string // eventKind, WTF-8
	event *httpapi.Object
}

// errUnjudged is the answer to a delivery whose verifier was stopped at one of
// its limits. The signature may be right, so the answer must not say that it is
// wrong: the provider would give up.
var errUnjudged = fault.New(fault.Overloaded, "the delivery could not be checked within the verifier's limits; try again later").After(5 * time.Second)

// strangers bounds the verifications of deliveries that are not verified yet,
// of one endpoint and of one address at one endpoint (contract W8). All of a
// tenant's run within its share of the engine's places.
var strangers = admission.Limits{Running: 6, PerKey: 2, Waiting: 256, WaitingPerKey: 64, MaxWait: 2 * time.Second}

// errStrangers sheds a delivery that gets no place in time.
var errStrangers = fault.New(fault.Overloaded, "too many deliveries wait to be checked; try again soon").After(time.Second)

// gates holds an admission.Gate for each endpoint at which deliveries are being
// verified.
type gates struct {
	mu sync.Mutex
	m  map[string]*gateInUse
}

type gateInUse struct {
	*admission.Gate
	users int
}

// enter waits for a place among an endpoint's verifications.
func (g *gates) enter(ctx context.Context, endpoint, address string) (leave func(), err error) {
	g.mu.Lock()
	if g.m == nil {
		g.m = map[string]*gateInUse{}
	}
	own := g.m[endpoint]
	if own == nil {
		own = &gateInUse{Gate: admission.NewGate(strangers)}
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
			err = errStrangers
		}
		return nil, err
	}
	return func() { out(); done() }, nil
}

// verify runs the endpoint's verifier. It returns UNAUTHORIZED when the
// verifier rejects, in whatever way, and OVERLOADED when it cannot run now or
// was stopped at a limit.
func (r *request) verify(ctx context.Context, body []byte) (*verified, error) {
	c := r.catalog.Components[r.endpoint.Verifier]
	if c == nil {
		return nil, errNoTarget(custom.Target{Kind: custom.ToComponent, Name: r.endpoint.Verifier})
	}
	config, err := r.verifierConfig()
	if err != nil {
		return nil, err
	}
	program, err := r.s.programs.of(ctx, r.call.Config.Tenant.ID, c)
	if err != nil {
		return nil, err
	}
	leave, err := r.s.strangers.enter(ctx, string(r.call.Config.Tenant.ID)+"/"+r.endpoint.Slug, httpapi.AddressKey(r.call.IP))
	if err != nil {
		return nil, err
	}
	defer leave()
	res, err := program.Run(ctx, component.Run{
		Tenant:   string(r.call.Config.Tenant.ID),
		Verifier: &component.VerifierInput{RawBody: body, Headers: lowerNames(r.call.Request.Header, r.call.Request.Host), Config: config},
	})
	if err != nil {
		return nil, err
	}
	if res.Failed != nil && res.Failed.CutOff {
		r.s.tells("endpoint.delivery_unjudged", r.call.Config.Tenant.ID, r.endpoint.Slug, res.Failed.Message)
		return nil, errUnjudged.Because(res.Failed.Message)
	}
	if res.Failed != nil {
		return nil, r.rejected(res.Failed.Message)
	}
	if err := r.call.Keep(len(res.Value)); err != nil { // it may be larger than the delivery
		return nil, err
	}
	v, wrong := read(res.Value)
	if wrong != "" {
		return nil, r.rejected(wrong)
	}
	// An event has any number of members, and waits with them for its turn.
	if err := r.call.Keep(len(res.Value) + aroundMember*len(v.event.Members)); err != nil {
		return nil, err
	}
	return v, nil
}

// aroundMember is about how many bytes one member of an event takes besides its
// text: in the object, in its index and among the inputs.
const aroundMember = 160

// rejected returns the answer to a delivery that the verifier rejects. The
// reason, which is the author's text, is for the logs only: the sender may be
// anybody.
func (r *request) rejected(why string) error {
	r.s.tells("endpoint.signature_rejected", r.call.Config.Tenant.ID, r.endpoint.Slug, why)
	return errSignature.Because(why)
}

// verifierConfig returns {slug, webhook_secret, webhook_secrets}. An endpoint
// without a secret rejects, because nothing could be verified.
func (r *request) verifierConfig() ([]byte, error) {
	var secrets []string
	for _, sealed := range []string{r.endpoint.SealedSecret, r.endpoint.SealedPrevious} {
		if sealed == "" {
			continue
		}
		plain, err := r.s.keyring.Open(custom.SecretPurpose, sealed)
		if err != nil {
			return nil, err
		}
		if len(plain) > 0 {
			secrets = append(secrets, string(plain))
		}
	}
	if r.endpoint.SealedSecret == "" || len(secrets) == 0 {
		return nil, r.rejected("the endpoint has no webhook secret")
	}
	text := quote([]byte(`{"slug":`), r.endpoint.Slug)
	text = quote(append(text, `,"webhook_secret":`...), secrets[0])
	text = append(text, `,"webhook_secrets":[`...)
	for i, s := range secrets {
		if i > 0 {
			text = append(text, ',')
		}
		text = quote(text, s)
	}
	return append(text, `]}`...), nil
}

// read parses a verifier's result; wrong is why it rejects.
func read(value []byte) (v *verified, wrong string) {
	if jsontext.Value(value).Kind() != '{' {
		return nil, "it returned no object"
	}
	answer, err := httpapi.ParseEvent(value, httpapi.MaxEventDepth+1)
	if err != nil {
		return nil, fmt.Sprintf("it returned an object that is nested too deeply: expected at most %d levels in canonicalEvent", httpapi.MaxEventDepth)
	}
	v = &verified{}
	id, _ := answer.Get("providerEventId")
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

// rejectsEvery bounds how often a rejected signature is logged, for each
// endpoint.
const (
	rejectsEvery = time.Second
	maxRejected  = 10_000
)

// tells logs an event for the author of a verifier. The reason is the author's
// text and has nothing of the delivery.
func (s *Service) tells(event string, tenantID tenant.ID, slug, why string) {
	key, now := event+"/"+string(tenantID)+"/"+slug, s.clock.Now()
	s.mu.Lock()
	last, known := s.rejected[key]
	tell := !known || now.Sub(last) >= rejectsEvery || now.Before(last)
	if tell {
		if len(s.rejected) >= maxRejected {
			clear(s.rejected)
		}
		s.rejected[key] = now
	}
	s.mu.Unlock()
	if tell {
		s.emit(event, map[string]any{"tenant": tenantID, "endpoint": slug, "reason": why})
	}
}
