package server

import (
	"context"
	"net/http"
	"slices"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// preflight reports whether the request is a CORS preflight, which carries no
// credential (contract O4).
func (x *exchange) preflight() bool {
	return x.r.Method == http.MethodOptions && x.origin != "" && x.r.Header.Get("Access-Control-Request-Method") != ""
}

// answerPreflight allows every origin that an active key of the tenant, or
// External Identity, lists. Any other is CORS_DENIED.
func (x *exchange) answerPreflight(ctx context.Context) (httpapi.Reply, error) {
	if !x.takeAddress() {
		return httpapi.Reply{}, x.rateLimited()
	}
	ok, err := originsOfKeys(ctx, x)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if !ok {
		return httpapi.Reply{}, fault.New(fault.CORSDenied, "pages of the origin %s may not use this API", x.origin)
	}
	x.corsOrigin = x.origin
	h := x.w.Header()
	h["Access-Control-Allow-Methods"] = allowMethods
	h["Access-Control-Allow-Headers"] = allowHeaders
	h["Access-Control-Max-Age"] = maxAge
	h["Vary"] = varyPreflight
	return httpapi.Reply{Status: http.StatusNoContent, Bare: true}, nil
}

var (
	allowMethods  = []string{"GET, POST, PATCH, DELETE"}
	allowHeaders  = []string{"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Webhook-Token"}
	maxAge        = []string{"600"}
	varyPreflight = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	exposed       = []string{"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id, ETag, Idempotent-Replay"}
)

// readableBy returns the request's origin if its pages may read an answer to a
// request without a known key, else "" (contract O5).
func (x *exchange) readableBy(ctx context.Context) string {
	if x.origin == "" || x.surface == nil || x.surface.readers == nil || x.key != nil {
		return ""
	}
	if ok, err := x.surface.readers(ctx, x); err != nil || !ok {
		return ""
	}
	return x.origin
}

// originsOfKeys reports whether an active key of the tenant, or External Identity,
// lists the request's origin.
func originsOfKeys(ctx context.Context, x *exchange) (bool, error) {
	return x.s.keys.AllowsOrigin(ctx, x.config, x.origin)
}

// originsOfIdentity reports whether External Identity lists the request's origin
// (contract O3).
func originsOfIdentity(_ context.Context, x *exchange) (bool, error) {
	return slices.Contains(x.config.Tenant.IdentityOrigins(), x.origin), nil
}
