package server

import (
	"context"
	"net/http"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
)

// gate is the exchange as a custom endpoint may use it: the checks of its mode.
type gate struct{ x *exchange }

var _ httpapi.Gate = gate{}

// Caller finds the viewer of an API key or of a JWT. An external user is served
// only where external says so, whichever of the two they bring.
func (g gate) Caller(ctx context.Context, external bool) (access.Viewer, error) {
	viewer, err := g.x.admit(ctx)
	if err == nil && viewer.External() && !external {
		return access.Viewer{}, fault.New(fault.Forbidden, "this endpoint does not serve external users")
	}
	return viewer, err
}

// Take counts the request against a budget of the endpoint's own.
func (g gate) Take(budget string, perMinute int) error {
	x := g.x
	if !x.take(x.config.Tenant.ID+budget, perMinute) {
		return x.rateLimited()
	}
	return nil
}

// Peek is RATE_LIMITED once a budget of the endpoint's own is used up; it counts
// nothing, and leaves the headers alone else.
func (g gate) Peek(budget string, perMinute int) error {
	x := g.x
	stands := x.s.limiter.Peek(x.config.Tenant.ID+budget, perMinute, window)
	if stands.Allowed {
		return nil
	}
	x.limit, x.limited = stands, true
	return x.rateLimited()
}

// Suspect is RATE_LIMITED once the address has used up its budget; it counts
// nothing, and the headers tell of that budget.
func (g gate) Suspect() error {
	if !g.x.peekAddress() {
		return g.x.rateLimited()
	}
	return nil
}

// Refuse counts the request against its address.
func (g gate) Refuse(err error) error {
	if fault.CodeOf(err) == fault.Unauthorized {
		g.x.w.Header()["Www-Authenticate"] = challenge
		g.x.keyPrefix = secret.Prefix(presented(g.x.r.Header))
	}
	return g.x.refuse(err)
}

// presented is the token that a request brings, for the logs.
func presented(h http.Header) string {
	if token := h.Get("X-Webhook-Token"); token != "" {
		return token
	}
	return httpapi.Bearer(h)
}

// Admitted notes how the request said who it was.
func (g gate) Admitted(auth string) { g.x.auth = auth }

// Serves notes which endpoint it is, and whether its successes are kept.
func (g gate) Serves(endpoint string, keep bool) { g.x.endpointName, g.x.keepSuccess = endpoint, keep }
