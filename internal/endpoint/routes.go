package endpoint

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/custom"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/secret"
	"gatehouse/internal/wtf8"
)

// Routes returns the routes of all custom endpoints. GET exists at those only whose
// verifier answers it (contract W17).
func (s *Service) Routes() []httpapi.Route {
	const pattern = "/public/v1/custom/{slug}"
	return []httpapi.Route{
		{
			Method: http.MethodPost, Pattern: pattern, Auth: httpapi.ByEndpoint, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditCustom, BodyCap: httpapi.DataBodyCap, Custom: s.serve,
		},
		{
			Method: http.MethodGet, Pattern: pattern, Chosen: true, Auth: httpapi.ByEndpoint, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditCustom, Custom: s.serve,
		},
	}
}

// serve finds the endpoint and serves the call in the endpoint's mode. It returns
// NOT_FOUND for an unknown slug, the errors of checks, and what the target's run
// failed with.
func (s *Service) serve(ctx context.Context, call *httpapi.Call, checks httpapi.Checks) (httpapi.Reply, error) {
	catalog, err := s.catalog(ctx, call.Config)
	if err != nil {
		return httpapi.Reply{}, err
	}
	e := catalog.Endpoints[call.Params.Get("slug")]
	if call.Request.Method == http.MethodGet && (e == nil || e.Auth != custom.Signed || !e.AllowGet) {
		return httpapi.Reply{}, checks.NoMethod()
	}
	if e == nil {
		return httpapi.Reply{}, checks.Refuse(errUnknown)
	}
	checks.Serves("/custom/"+e.Slug, e.LogRequests)
	call.BodyCap = int64(e.MaxBodyBytes)
	r := &request{s: s, call: call, checks: checks, endpoint: e, catalog: catalog}
	switch e.Auth {
	case custom.Token:
		return r.byToken(ctx)
	case custom.Signed:
		return r.bySignature(ctx)
	}
	return r.byKey(ctx)
}

// Exists reports whether the tenant has an endpoint with that slug; false also
// when its definitions cannot be read. It is for requests that are refused before
// they reach serve.
func (s *Service) Exists(ctx context.Context, cfg *access.Config, slug string) bool {
	catalog, err := s.catalog(ctx, cfg)
	return err == nil && catalog.Endpoints[slug] != nil
}

// request is one call of an endpoint.
type request struct {
	s        *Service
	call     *httpapi.Call
	checks   httpapi.Checks
	endpoint *custom.Endpoint
	catalog  *catalog
}

// job returns the execution that the request asks for.
func (r *request) job(auth credential.Kind, caller access.Viewer, given inputs.Object, e *event) *job {
	return &job{
		config: r.call.Config, caller: caller, runAs: r.endpoint.RunAs, definedBy: r.endpoint.DefinedBy, slug: r.endpoint.Slug, auth: auth,
		target: r.endpoint.Target, inputs: given, event: e, requestID: r.call.RequestID,
	}
}

// byKey serves an endpoint in key mode: for an API key, or for an external user
// where the endpoint allows it.
func (r *request) byKey(ctx context.Context) (httpapi.Reply, error) {
	viewer, kind, err := r.checks.Caller(ctx, r.endpoint.ExternalUsers)
	if err != nil {
		return httpapi.Reply{}, err
	}
	given, err := r.inputs(false)
	if err != nil {
		return httpapi.Reply{}, err
	}
	j := r.job(kind, viewer, given, nil)
	j.holder = r.call
	out := r.s.execute(ctx, j)
	return out.reply(""), out.Err
}

// errToken is the answer to every wrong or missing webhook token.
var errToken = fault.New(fault.Unauthorized, "a valid webhook token is required")

// webhookToken returns the token that a delivery presents: with both headers,
// X-Webhook-Token counts (contract K1).
func webhookToken(h http.Header) string {
	if values, ok := h["X-Webhook-Token"]; ok {
		if len(values) != 1 {
			return ""
		}
		return values[0]
	}
	return httpapi.Bearer(h)
}

// byToken serves a webhook with a secret token.
func (r *request) byToken(ctx context.Context) (httpapi.Reply, error) {
	token := webhookToken(r.call.Request.Header)
	stored, err := r.s.store.tokenHash(ctx, r.call.Config.Tenant.ID, r.endpoint.Slug)
	if err != nil {
		return httpapi.Reply{}, err
	}
	presented := secret.Hash(token)
	if stored == "" || token == "" || subtle.ConstantTimeCompare([]byte(stored), []byte(presented)) != 1 {
		return httpapi.Reply{}, r.checks.Refuse(errToken)
	}
	r.checks.Admitted(credential.WebhookToken)
	failpoint.At("token.found")
	if err := r.checks.Take("/webhook/"+r.endpoint.Slug, r.endpoint.RateLimitPerMinute); err != nil {
		return httpapi.Reply{}, err
	}
	key, err := httpapi.IdempotencyKey(r.call.Request.Header)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if _, err := r.call.Body(); err != nil { // read before other deliveries of the key wait for this one
		return httpapi.Reply{}, err
	}
	failpoint.At("token.body-read")
	e := &event{ID: clock.NewID(r.s.clock.Now())}
	if key != "" {
		e.KeyHash = idempotencyKeyHash(key)
	}
	out, duplicate, err := r.deliver(ctx, credential.WebhookToken, func() (inputs.Object, error) { return r.inputs(true) }, e)
	if duplicate != nil || err != nil {
		return orEmpty(duplicate), err
	}
	return r.answer(e, out), nil
}

// answer returns the answer to a delivery that was processed.
func (r *request) answer(e *event, out *Outcome) httpapi.Reply {
	if r.endpoint.Reply == custom.Receipt {
		return receipt(e.ID, out)
	}
	return out.reply(e.ID)
}

// idempotencyKeyHash and providerKeyHash return what a delivery is recognized by: the
// hash of the caller's name for it or of the provider's.
func idempotencyKeyHash(key string) string {
	return string(secret.Hash("idempotency-key\x00" + key))
}

func providerKeyHash(id string) string { return string(secret.Hash("provider-event\x00" + id)) }

// deliver runs a delivery unless it was processed before: then it returns the
// answer to a duplicate, whatever the delivery contains. read returns the target's
// inputs. The error is OVERLOADED or EXECUTION_TIMEOUT when the delivery had to
// wait for others of its key, one of read, or what the run failed with.
func (r *request) deliver(ctx context.Context, auth credential.Kind, read func() (inputs.Object, error), e *event) (out *Outcome, duplicate *httpapi.Reply, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime) // for waiting and running together
	defer cancel()
	tenantID := r.call.Config.Tenant.ID
	if e.KeyHash != "" {
		unlock, err := r.s.deliveries.Lock(ctx, string(tenantID)+"/"+r.endpoint.Slug+"/"+e.KeyHash)
		switch {
		case errors.Is(err, admission.ErrFull):
			err = fault.New(fault.Overloaded, "too many deliveries of this event wait for the first").After(time.Second)
		case errors.Is(err, context.DeadlineExceeded):
			err = timeoutFault(err)
		}
		if err != nil {
			return nil, nil, err
		}
		defer unlock()
		failpoint.At("delivery.locked")
		if duplicate, err := r.seen(ctx, e); duplicate != nil || err != nil {
			return nil, duplicate, err
		}
	}
	failpoint.At("delivery.is-new")
	given, err := read()
	if err != nil {
		return nil, nil, err
	}
	j := r.job(auth, access.Viewer{}, given, e)
	if r.endpoint.Reply != custom.Receipt {
		j.holder = r.call
	}
	out = r.s.execute(ctx, j)
	failpoint.At("delivery.before-answer")
	if errors.Is(out.Err, errSeen) {
		duplicate, err = r.seen(ctx, e)
		return nil, duplicate, err
	}
	return out, nil, out.Err
}

// seen returns the answer to a delivery that was processed before, or nil for a
// new one.
func (r *request) seen(ctx context.Context, e *event) (*httpapi.Reply, error) {
	first, err := r.s.store.seen(ctx, r.call.Config.Tenant.ID, r.endpoint.Slug, e.KeyHash)
	if err != nil || first == "" {
		return nil, err
	}
	r.s.history.duplicate()
	r.s.repeats.add(repeat{r.call.Config.Tenant.ID, first, clock.Micros(r.s.clock.Now())})
	return &httpapi.Reply{Data: []byte(`{"duplicate":true}`), Bare: true, Header: http.Header{"X-Event-Id": {first}}}, nil
}

func orEmpty(r *httpapi.Reply) httpapi.Reply {
	if r == nil {
		return httpapi.Reply{}
	}
	return *r
}

// reply returns what a run returned: in the envelope, or as its component's respond()
// has it. eventID is that of the delivery, "" for none.
func (o *Outcome) reply(eventID string) httpapi.Reply {
	made := httpapi.Reply{Data: o.Data, Meta: o.Meta}
	if o.response != nil {
		made = o.response.reply()
	}
	if eventID != "" {
		if made.Header == nil {
			made.Header = http.Header{}
		}
		made.Header["X-Event-Id"] = []string{eventID}
	}
	return made
}

// receipt returns the answer, without envelope, to an accepted delivery (contract
// H6, C2, C7).
func receipt(eventID string, out *Outcome) httpapi.Reply {
	body := []byte(`{"received":true,`)
	if ignored(out.Data) {
		body = append(body, `"ignored":true,`...)
	}
	body = append(wtf8.AppendUTF8(append(body, `"event_id":`...), eventID), '}')
	return httpapi.Reply{Status: http.StatusAccepted, Data: body, Bare: true, Header: http.Header{"X-Event-Id": {eventID}}}
}

// bySignature serves a webhook that a provider signs (contract W8). Before any
// work, it refuses calls from an address that has used up its attempts, and calls
// of an endpoint whose budget is used up. Only a verified delivery counts against
// that budget, so that nobody but the provider can use it up.
func (r *request) bySignature(ctx context.Context) (httpapi.Reply, error) {
	budget, perMinute := "/webhook/"+r.endpoint.Slug, r.endpoint.RateLimitPerMinute
	if err := r.checks.Suspect(); err != nil {
		return httpapi.Reply{}, err
	}
	if err := r.checks.Peek(budget, perMinute); err != nil {
		return httpapi.Reply{}, err
	}
	r.call.Received.Strange() // who sends it is not known yet
	body, err := r.signedBody()
	if fault.CodeOf(err) != "" && fault.CodeOf(err) != fault.Overloaded {
		return httpapi.Reply{}, r.checks.Refuse(err) // the delivery is not verified
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	failpoint.At("signed.body-read")
	v, err := r.verify(ctx, body)
	if fault.CodeOf(err) == fault.Unauthorized {
		return httpapi.Reply{}, r.checks.Refuse(err)
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	if v.reply == nil && r.call.Request.Method == http.MethodGet {
		return httpapi.Reply{}, r.checks.Refuse(r.rejected("it accepted a GET as an event: expected a reply"))
	}
	if v.reply != nil { // nothing says that a provider has signed it
		return v.reply.reply(), r.checks.TakeAddress()
	}
	r.checks.Admitted(credential.Signature)
	if err := r.checks.Take(budget, perMinute); err != nil {
		return httpapi.Reply{}, err
	}
	failpoint.At("signed.verified")
	read := func() (inputs.Object, error) {
		decls, keep, err := r.catalog.declared(r.endpoint.Target)
		if err != nil {
			return nil, err
		}
		return inputs.FromJSON(decls, v.event.Members, keep)
	}
	e := &event{
		ID: clock.NewID(r.s.clock.Now()), Kind: v.kind, ProviderID: v.id, KeyHash: providerKeyHash(v.id),
	}
	out, duplicate, err := r.deliver(ctx, credential.Signature, read, e)
	if duplicate != nil || err != nil {
		return orEmpty(duplicate), err
	}
	return r.answer(e, out), nil
}

// signedBody reads the body that is to be verified. That of a GET means nothing, and
// is not read.
func (r *request) signedBody() ([]byte, error) {
	if r.call.Request.Method == http.MethodGet {
		return nil, nil
	}
	return r.call.Body()
}

// verifierHeaders returns the header as a verifier gets it: names in lower case,
// the values of repeated ones joined (contract W9).
func verifierHeaders(h http.Header, host string) []byte {
	text := wtf8.AppendUTF8(append(make([]byte, 0, 1024), `{"host":`...), host)
	for name, values := range h {
		text = wtf8.AppendUTF8(append(text, ','), strings.ToLower(name))
		text = wtf8.AppendUTF8(append(text, ':'), strings.Join(values, ", "))
	}
	return append(text, '}')
}
