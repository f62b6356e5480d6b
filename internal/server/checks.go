package server

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/secret"
)

// admit returns the viewer of the request's credential and checks what the
// credential restricts: addresses, origins, rate.
func (x *exchange) admit(ctx context.Context) (access.Viewer, error) {
	viewer, err := x.authenticate(ctx)
	if err == nil {
		if x.auth == credential.AccessToken {
			err = x.checkUser()
		} else {
			err = x.checkKey()
		}
	}
	if err != nil {
		return access.Viewer{}, err
	}
	return viewer, nil
}

// authenticate returns the viewer of the request's credential, if it is of a
// kind that the route accepts. A request without a valid one counts against its
// address: the error is UNAUTHORIZED, or RATE_LIMITED when that budget is used
// up. A credential of an external user is SERVICE_UNAVAILABLE while External
// Identity is off.
func (x *exchange) authenticate(ctx context.Context) (viewer access.Viewer, err error) {
	token := httpapi.Bearer(x.r.Header)
	switch looksLikeJWT := strings.Count(token, ".") == 2; {
	case looksLikeJWT && !x.config.Tenant.Settings.ExternalIdentity.Enabled:
		x.takeAddress()
		return access.Viewer{}, errIdentityOff // check 4 of contract H3
	case looksLikeJWT && x.route.Auth.Takes(credential.AccessToken):
		viewer, err = x.byJWT(ctx, token)
	case x.route.Auth.Takes(credential.APIKey):
		viewer, err = x.byKey(ctx, token) // a JWT is no key, and refused as one
	default:
		err = apikey.ErrUnauthorized
	}
	if err == nil && viewer.External() && !x.config.Tenant.Settings.ExternalIdentity.Enabled {
		x.takeAddress()
		return access.Viewer{}, errIdentityOff // contract K7
	}
	if fault.CodeOf(err) != fault.Unauthorized {
		return viewer, err
	}
	x.w.Header()["Www-Authenticate"] = challenge
	if !x.takeAddress() {
		return access.Viewer{}, x.rateLimited()
	}
	return access.Viewer{}, err
}

var challenge = []string{"Bearer"}

// byKey returns the viewer of an API key.
func (x *exchange) byKey(ctx context.Context, token string) (access.Viewer, error) {
	resolved, err := x.s.keys.Resolve(ctx, x.config, token)
	if resolved != nil {
		x.key, x.keyID, x.keyPrefix, x.userID, x.auth = resolved.Key, resolved.Key.ID, resolved.Key.Prefix, resolved.Key.UserID, credential.APIKey
	} else {
		x.keyPrefix = secret.Prefix(token)
	}
	if err != nil {
		x.key = nil // the key exists and is not valid: only the logs name it
		return access.Viewer{}, err
	}
	return resolved.Viewer, nil
}

// byJWT returns the viewer of an external user's access token.
func (x *exchange) byJWT(ctx context.Context, token string) (access.Viewer, error) {
	viewer, err := x.s.identity.Authenticate(ctx, x.config, token)
	if err != nil {
		x.keyPrefix = secret.Prefix(token)
		return viewer, err
	}
	x.auth, x.userID = credential.AccessToken, viewer.UserID()
	return viewer, nil
}

// checkUser charges the rate limit of one external user. It does not refuse an
// origin that is not listed; pages of that origin cannot read the answer
// (contract O3).
func (x *exchange) checkUser() error {
	x.allowIdentityOrigin()
	perMinute := x.config.Tenant.Settings.ExternalIdentity.RateLimitPerMinute
	if !x.take(x.config.Tenant.ID+"/user/"+x.userID, perMinute) {
		return x.rateLimited()
	}
	return nil
}

// allowIdentityOrigin lets pages of External Identity's origins read the
// answer.
func (x *exchange) allowIdentityOrigin() {
	if x.origin != "" && slices.Contains(x.config.Tenant.IdentityOrigins(), x.origin) {
		x.corsOrigin = x.origin
	}
}

// checkKey checks what a key restricts: addresses, origins, rate. A request
// from where the key may not be used counts against the address, like one
// without a valid credential.
func (x *exchange) checkKey() error {
	k := x.key
	originAllowed := x.origin == "" || k.AllowsOrigin(x.origin)
	if originAllowed {
		x.corsOrigin = x.origin // pages of the origin may also read the errors of the other checks
	}
	if !k.Allowlist.Allows(x.ip) {
		return x.refuse(fault.New(fault.IPDenied, "this API key may not be used from the address %s", x.ip))
	}
	if !originAllowed {
		return x.refuse(fault.New(fault.CORSDenied, "this API key may not be used by pages of the origin %s", x.origin))
	}
	if !x.take(k.ID, k.RateLimitPerMinute) {
		return x.rateLimited()
	}
	x.s.keys.Touch(k)
	return nil
}

// take counts the request against a budget, which the answer's headers then
// describe.
func (x *exchange) take(budget string, perMinute int) bool {
	var charge ratelimit.Charge
	x.limit, charge = x.s.limiter.Charge(budget, perMinute, window)
	x.limited = true
	x.charges = append(x.charges, charge)
	return x.limit.Allowed
}

// refuse counts the request against its address. It returns err, or
// RATE_LIMITED when the address's budget is used up.
func (x *exchange) refuse(err error) error {
	if !x.takeAddress() {
		return x.rateLimited()
	}
	return err
}

// charged reports whether the request counted against any budget.
func (x *exchange) charged() bool {
	counted := func(c ratelimit.Charge) bool { return c != ratelimit.Charge{} }
	return slices.ContainsFunc(x.charges, counted) || x.call != nil && slices.ContainsFunc(x.call.Charges(), counted)
}

// uncharge takes the request off every budget it counted against: what the
// platform sheds is charged to nobody (contract L5). A caller who hung up still
// pays; otherwise hanging up would make requests free.
func (x *exchange) uncharge() {
	if x.r.Context().Err() != nil {
		return
	}
	charges := x.charges
	if x.call != nil {
		charges = append(charges, x.call.Charges()...)
	}
	for _, c := range charges {
		x.s.limiter.Return(c)
	}
	x.returned = true
}

func (x *exchange) rateLimited() error {
	return fault.New(fault.RateLimited, "too many requests; try again in %d s", seconds(x.limit.Reset)).After(x.limit.Reset)
}

// takeAddress counts the request against the budget that all requests of one
// address without a valid credential share (contract L2).
func (x *exchange) takeAddress() bool {
	return x.take(x.addressBudget())
}

// peekAddress is takeAddress without counting.
func (x *exchange) peekAddress() bool {
	budget, perMinute := x.addressBudget()
	x.limit, x.limited = x.s.limiter.Peek(budget, perMinute, window), true
	return x.limit.Allowed
}

// addressBudget returns the budget of the address: the tenant's, or the one for
// unknown hosts.
func (x *exchange) addressBudget() (budget string, perMinute int) {
	if x.config == nil {
		return addressBudget("", x.ip), unknownHostPerMinute
	}
	return addressBudget(x.config.Tenant.ID, x.ip), x.config.Tenant.Settings.UnauthenticatedPerIPPerMinute
}

// addressBudget names the budget of an address at a tenant, or at none ("").
func addressBudget(tenant string, ip netip.Addr) string {
	return tenant + "/address/" + httpapi.AddressKey(ip)
}

// unknownHostPerMinute is the limit of an address where there is no tenant to
// set one.
const unknownHostPerMinute = 1000

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
	ok, err := x.s.keys.AllowsOrigin(ctx, x.config, x.origin)
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
	allowHeaders  = []string{"Authorization, Content-Type, Idempotency-Key, X-Webhook-Token"}
	maxAge        = []string{"600"}
	varyPreflight = []string{"Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}
	exposed       = []string{"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, X-Request-Id"}
)

// readableBy returns the origin that may read an error for which no key is
// known, or "": it decides by the same origins as a preflight (contract O5).
func (x *exchange) readableBy(ctx context.Context) string {
	if x.origin == "" || x.config == nil || x.key != nil {
		return ""
	}
	if x.identityPath() {
		if slices.Contains(x.config.Tenant.IdentityOrigins(), x.origin) {
			return x.origin
		}
		return ""
	}
	if ok, err := x.s.keys.AllowsOrigin(ctx, x.config, x.origin); err != nil || !ok {
		return ""
	}
	return x.origin
}
