package server

import (
	"context"
	"net/http"

	"gatehouse/internal/access"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
)

// endpointChecks offers an exchange's checks to a custom endpoint, which
// chooses those of its mode.
type endpointChecks struct{ x *exchange }

var _ httpapi.Checks = endpointChecks{}

// Caller returns the viewer of an API key or of a JWT, and which of the two was
// presented. An external user is FORBIDDEN unless external is set, with either
// kind of credential.
func (c endpointChecks) Caller(ctx context.Context, external bool) (access.Viewer, credential.Kind, error) {
	if err := c.x.run(ctx, c.x.surface.admission); err != nil {
		return access.Viewer{}, credential.None, err
	}
	if c.x.viewer.External() && !external {
		return access.Viewer{}, credential.None, fault.New(fault.Forbidden, "this endpoint does not serve external users")
	}
	return c.x.viewer, c.x.auth, nil
}

// Take counts the request against a budget of the endpoint's own, and returns
// RATE_LIMITED when that is used up.
func (c endpointChecks) Take(budget string, perMinute int) error {
	x := c.x
	if !x.take(string(x.config.Tenant.ID)+budget, perMinute) {
		return x.rateLimited()
	}
	return nil
}

// Peek returns RATE_LIMITED when a budget of the endpoint's own is used up. It
// counts nothing, and sets the rate headers only then.
func (c endpointChecks) Peek(budget string, perMinute int) error {
	x := c.x
	stands := x.s.limiter.Peek(string(x.config.Tenant.ID)+budget, perMinute, window)
	if stands.Allowed {
		return nil
	}
	x.limit, x.limited = stands, true
	return x.rateLimited()
}

// Suspect returns RATE_LIMITED when the address has used up its budget. It
// counts nothing; the rate headers describe that budget.
func (c endpointChecks) Suspect() error {
	if !c.x.peekAddress() {
		return c.x.rateLimited()
	}
	return nil
}

// Refuse counts the request against its address. It returns err, or
// RATE_LIMITED when the address's budget is used up.
func (c endpointChecks) Refuse(err error) error {
	if fault.CodeOf(err) == fault.Unauthorized {
		c.x.w.Header()["Www-Authenticate"] = challenge
		c.x.keyPrefix = secret.Prefix(presented(c.x.r.Header))
	}
	return c.x.refuse(err)
}

// TakeAddress counts the request against its address, and returns RATE_LIMITED when
// the address's budget is used up.
func (c endpointChecks) TakeAddress() error { return c.x.refuse(nil) }

// NoMethod returns the answer to a method that does not exist at the path.
func (c endpointChecks) NoMethod() error { return c.x.refuseRoute() }

// presented returns the token that a request presents, for the logs.
func presented(h http.Header) string {
	if token := h.Get("X-Webhook-Token"); token != "" {
		return token
	}
	return httpapi.Bearer(h)
}

// Admitted records for the logs how the request authenticated.
func (c endpointChecks) Admitted(with credential.Kind) { c.x.auth = with }

// Serves records for the logs the endpoint's name, and whether its successes
// are kept.
func (c endpointChecks) Serves(endpoint string, keep bool) {
	c.x.endpointName, c.x.keepSuccess = endpoint, keep
}
