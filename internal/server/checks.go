package server

import (
	"context"
	"slices"
	"time"

	"gatehouse/internal/fault"
)

// checkRecorder refuses a request that could not be recorded: entries cannot be
// written, and the queue has all that it may hold (contract G10).
func checkRecorder(_ context.Context, x *exchange) error {
	if !x.config.Tenant.Settings.PublicAPI.LogStandardRequests || !x.s.recorder.Refuses(x.config.Tenant.ID) {
		return nil
	}
	x.unrecorded = true
	return errUnrecorded
}

var errUnrecorded = fault.New(fault.Overloaded, "the service cannot record requests right now; try again soon").After(5 * time.Second)

// checkAPIOn refuses every request while the public API is switched off.
func checkAPIOn(_ context.Context, x *exchange) error {
	if x.config.Tenant.Settings.PublicAPI.Enabled {
		return nil
	}
	x.takeAddress()
	return fault.New(fault.APIDisabled, "the public API of this tenant is switched off")
}

// checkIdentityOn refuses every request while External Identity is switched off.
func checkIdentityOn(_ context.Context, x *exchange) error {
	if x.config.Tenant.Settings.ExternalIdentity.Enabled {
		return nil
	}
	x.takeAddress()
	return errIdentityOff
}

var errIdentityOff = fault.New(fault.ServiceUnavailable, "External Identity of this tenant is switched off")

// checkPreflight makes answerPreflight answer a CORS preflight, which has no route.
func checkPreflight(_ context.Context, x *exchange) error {
	if x.preflight() {
		x.match, x.respond = nil, (*exchange).answerPreflight
	}
	return nil
}

// checkRoute refuses a request to a path or with a method that does not exist,
// and lets its route answer any other.
func checkRoute(_ context.Context, x *exchange) error {
	switch {
	case x.respond != nil:
		return nil
	case x.route == nil:
		return x.refuseRoute()
	}
	x.respond = (*exchange).answerRoute
	return nil
}

// refuseRoute returns the answer where there is no route. It counts against the
// address, because no credential is checked there.
func (x *exchange) refuseRoute() error {
	if !x.takeAddress() {
		return x.rateLimited()
	}
	if x.match == nil {
		return errNoPath
	}
	x.w.Header()["Allow"] = []string{x.match.allow}
	return fault.New(fault.MethodNotAllowed, "%s is not allowed here; allowed: %s", x.r.Method, x.match.allow)
}

var errNoPath = fault.New(fault.NotFound, "there is nothing at this path")

// checkCredential finds the viewer of the request's credential. From then on the
// credential decides which origins' pages may read the answer, including errors
// of later checks.
func checkCredential(ctx context.Context, x *exchange) error {
	viewer, err := x.authenticate(ctx)
	if err != nil {
		return err
	}
	x.viewer = viewer
	if x.origin != "" && x.originListed() {
		x.corsOrigin = x.origin
	}
	return nil
}

// originListed reports whether the request's credential lists its origin: a key
// by itself, an access token by External Identity.
func (x *exchange) originListed() bool {
	if x.key != nil {
		return x.key.AllowsOrigin(x.origin)
	}
	return slices.Contains(x.config.Tenant.IdentityOrigins(), x.origin)
}

// checkAllowlist refuses a key from an address that it does not list (contract
// K6). Such a request counts against the address, like one without a valid
// credential.
func checkAllowlist(_ context.Context, x *exchange) error {
	if x.key == nil || x.key.Allowlist.Allows(x.ip) {
		return nil
	}
	return x.refuse(fault.New(fault.IPDenied, "this API key may not be used from the address %s", x.ip))
}

// checkOrigin refuses a key that is used by pages of an origin that it does not
// list (contract O2). It does not refuse an access token from such an origin,
// because pages of that origin cannot read the answer (contract O3).
func checkOrigin(_ context.Context, x *exchange) error {
	if x.key == nil || x.origin == "" || x.corsOrigin != "" {
		return nil
	}
	return x.refuse(fault.New(fault.CORSDenied, "this API key may not be used by pages of the origin %s", x.origin))
}

// checkRate counts the request against the key's or the external user's limit.
func checkRate(_ context.Context, x *exchange) error {
	if x.key == nil {
		x.budget, x.perMinute = string(x.config.Tenant.ID)+"/user/"+string(x.userID), x.config.Tenant.Settings.ExternalIdentity.RateLimitPerMinute
		if !x.take(x.budget, x.perMinute) {
			return x.rateLimited()
		}
		return nil
	}
	x.budget, x.perMinute = x.key.ID, x.key.RateLimitPerMinute
	if !x.take(x.budget, x.perMinute) {
		return x.rateLimited()
	}
	x.s.keys.Touch(x.key)
	return nil
}
