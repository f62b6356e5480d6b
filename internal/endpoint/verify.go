package endpoint

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// errSignature is the one answer to every delivery that the verifier does not take.
var errSignature = fault.New(fault.Unauthorized, "the signature was rejected")

// verified is what a verifier says of a delivery (specification, "Verifier
// contract").
type verified struct {
	id    string // providerEventId
	kind  string // eventKind
	event *httpapi.Object
}

// verify asks the endpoint's verifier. UNAUTHORIZED when it rejects, in
// whatever way; OVERLOADED when it cannot run now.
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
	res, err := program.Run(ctx, component.Run{
		Tenant:   r.call.Config.Tenant.ID,
		Verifier: &component.VerifierInput{RawBody: body, Headers: lowerNames(r.call.Request.Header, r.call.Request.Host), Config: config},
	})
	if err != nil {
		return nil, err
	}
	if res.Failed != nil {
		r.s.rejects(r.call.Config.Tenant.ID, r.endpoint.Slug, res.Failed.Message)
		return nil, errSignature
	}
	v, wrong := read(res.Value)
	if wrong != "" {
		r.s.rejects(r.call.Config.Tenant.ID, r.endpoint.Slug, wrong)
		return nil, errSignature
	}
	return v, nil
}

// verifierConfig is {slug, webhook_secret, webhook_secrets}. Without a secret
// nothing could be verified: that rejects.
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
		return nil, errSignature
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

// read takes a verifier's answer apart; wrong says why it rejects.
func read(value []byte) (v *verified, wrong string) {
	answer, err := httpapi.ParseObject(value)
	if err != nil {
		return nil, "it returned no object"
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
	if v.event, err = httpapi.ParseObject(canonical); err != nil {
		return nil, "canonicalEvent is not an object"
	}
	return v, ""
}

func unquoted(v jsontext.Value) string {
	s, _ := jsontext.AppendUnquote(nil, v) // ParseObject has read it
	return string(s)
}

// rejectsEvery bounds how often the log tells of rejected signatures, for each
// endpoint.
const (
	rejectsEvery = time.Second
	maxRejected  = 10_000
)

// rejects tells the log why a verifier rejected, for its author. The message is
// theirs; nothing of the delivery is in it.
func (s *Service) rejects(tenantID, slug, why string) {
	key, now := tenantID+"/"+slug, s.clock.Now()
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
		s.emit("endpoint.signature_rejected", map[string]any{"tenant": tenantID, "endpoint": slug, "reason": why})
	}
}
