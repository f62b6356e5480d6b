package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/ratelimit"
)

// Auth says which credential a route takes. The zero value is no policy: a
// route without one cannot be served.
type Auth uint8

// The policies.
const (
	_ Auth = iota
	// Anonymous routes take no credential; whoever knows the body's secret may call.
	Anonymous
	// KeyOrJWT routes take an API key or an external user's JWT.
	KeyOrJWT
	// KeyOnly routes take an API key.
	KeyOnly
	// JWTOnly routes take an external user's JWT.
	JWTOnly
	// ByEndpoint routes take what the custom endpoint of the slug says.
	ByEndpoint
)

func (a Auth) String() string {
	return [...]string{"none", "anonymous", "key or JWT", "key", "JWT", "by endpoint"}[a]
}

// Limit says which rate limit a route falls under.
type Limit uint8

// The limits.
const (
	_ Limit = iota
	// PerCredential is the key's or the external user's own budget; without a
	// valid credential, the client address's.
	PerCredential
	// PerRule routes check the limits of External Identity themselves.
	PerRule
)

func (l Limit) String() string { return [...]string{"none", "per credential", "per rule"}[l] }

// AuditClass says which toggle decides whether a request's audit entry is kept
// (specification, "Events" 3).
type AuditClass uint8

// The classes.
const (
	_ AuditClass = iota
	// AuditStandard: /data and /me, by the tenant-wide toggle.
	AuditStandard
	// AuditIdentity: /auth, early failures only.
	AuditIdentity
	// AuditCustom: a custom endpoint, by its own toggle.
	AuditCustom
)

func (c AuditClass) String() string { return [...]string{"none", "standard", "identity", "custom"}[c] }

// Route is one line of the HTTP surface. Exactly one of Open, Gated and Handler
// is set: Open for Anonymous routes, Gated for ByEndpoint, Handler for all others.
type Route struct {
	Method, Pattern string // Pattern as net/http's, without method and host
	Auth            Auth
	Limit           Limit
	Audit           AuditClass
	// BodyCap is the largest body in bytes; 0 means the method has none.
	BodyCap int64
	Handler func(context.Context, *Authed) (Reply, error)
	Open    func(context.Context, *Call) (Reply, error)
	Gated   func(context.Context, *Call, Gate) (Reply, error)
}

// Gate is what the server does for a route that chooses its own checks: a
// custom endpoint, whose definition says which credential it takes. Every
// check that fails is the answer to the request.
type Gate interface {
	// Caller finds the viewer of the request's API key or, where external says
	// so, external user's JWT, with all the checks of decisions 2.4.
	Caller(ctx context.Context, external bool) (access.Viewer, error)
	// Take counts the request against a budget of the endpoint's own; Peek is
	// Take without counting.
	Take(budget string, perMinute int) error
	Peek(budget string, perMinute int) error
	// Suspect is RATE_LIMITED once the address has used up what it may try
	// without a valid credential.
	Suspect() error
	// Refuse counts the request against its address and returns err, or
	// RATE_LIMITED.
	Refuse(err error) error
	// Admitted notes for the logs how the request said who it was.
	Admitted(auth string)
	// Serves notes for the logs which endpoint it is, "/custom/slug", and
	// whether its successes are kept.
	Serves(endpoint string, keep bool)
}

// Check reports what a route lacks; a route that lacks anything is a
// programming error.
func (r *Route) Check() error {
	if r.Method == "" || r.Pattern == "" || r.Auth == 0 || r.Limit == 0 || r.Audit == 0 {
		return fmt.Errorf("route %s %s: method, pattern, auth, limit and audit class must be set", r.Method, r.Pattern)
	}
	open, gated := r.Auth == Anonymous, r.Auth == ByEndpoint
	if open != (r.Open != nil) || gated != (r.Gated != nil) || (open || gated) == (r.Handler != nil) {
		return fmt.Errorf("route %s %s: an anonymous route has Open, one by endpoint Gated, every other Handler", r.Method, r.Pattern)
	}
	return nil
}

// Policy is the route as one line, for the golden list of the surface.
func (r *Route) Policy() string {
	return fmt.Sprintf("%-6s %-40s auth: %-11s limit: %-14s audit: %-8s body: %d", r.Method, r.Pattern, r.Auth, r.Limit, r.Audit, r.BodyCap)
}

// Call is one request, past the checks of its route.
type Call struct {
	Request   *http.Request
	RequestID string
	IP        netip.Addr
	Config    *access.Config
	Route     *Route
	Params    Params // of the route's pattern
	// BodyCap is the largest body in bytes where it is not the route's; 0 is the route's.
	BodyCap int64

	// Answer is what the answer holds while it is built and written, Received
	// what the body does; zero, they are not counted.
	Answer, Received admission.Charge

	body     []byte
	bodyRead bool
	told     *ratelimit.Result
	charges  []ratelimit.Charge
}

// Charged notes what a route's own limits counted the request as, for it to be
// returned where the request is shed with OVERLOADED.
func (c *Call) Charged(charge ratelimit.Charge) { c.charges = append(c.charges, charge) }

// Charges is everything noted with Charged.
func (c *Call) Charges() []ratelimit.Charge { return c.charges }

// Hold counts an answer that is n bytes long by now: OVERLOADED when the answers
// of the tenant, or of all, take too much memory.
func (c *Call) Hold(n int) error {
	if c.Answer.Reach(int64(n)) {
		return nil
	}
	return errAnswers
}

var (
	errAnswers = fault.New(fault.Overloaded, "too many large answers are being built or read right now; try again soon, with a smaller limit").After(2 * time.Second)
	errBodies  = fault.New(fault.Overloaded, "too many large bodies are being received right now; try again soon").After(2 * time.Second)
)

// Release gives back what the call holds, once it is answered.
func (c *Call) Release() {
	c.Answer.Release()
	c.Received.Release()
}

// TellLimit makes the answer's rate headers tell of r: for routes that check
// limits of their own, of the tightest that applies (decisions 2.22).
func (c *Call) TellLimit(r ratelimit.Result) { c.told = &r }

// ToldLimit is what TellLimit was last given, nil for nothing.
func (c *Call) ToldLimit() *ratelimit.Result { return c.told }

// Params are the values of a pattern's wildcards.
type Params struct {
	n      int
	names  [3]string
	values [3]string
}

// Add notes a wildcard's value; a pattern has three at most.
func (p *Params) Add(name, value string) {
	p.names[p.n], p.values[p.n] = name, value
	p.n++
}

// Get is the value of a wildcard, "" when the pattern has none of that name.
func (p *Params) Get(name string) string {
	for i := range p.n {
		if p.names[i] == name {
			return p.values[i]
		}
	}
	return ""
}

// Authed is a Call with a credential that was found good.
type Authed struct {
	*Call
	Viewer access.Viewer
}

// Reply is a handler's answer. Data is JSON; nil stands for null. The server may
// write into Data and into the memory behind it: nobody else may hold a part of it.
type Reply struct {
	Status int // 0 is 200
	Data   []byte
	Meta   []byte // JSON object; nil is sent as {}
	// Bare sends Data as the whole body, without the envelope (receipts,
	// decisions 2.3).
	Bare   bool
	Header http.Header
}
