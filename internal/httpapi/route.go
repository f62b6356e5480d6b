package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/user"
)

// Auth says which credentials a route takes. The zero value is no policy, and a
// route without one cannot be served.
type Auth uint8

// The policies.
const (
	_ Auth = iota
	// Anonymous routes take no credential; the secret, if any, is in the body.
	Anonymous
	// KeyOrJWT routes take an API key or an external user's JWT.
	KeyOrJWT
	// KeyOnly routes take an API key.
	KeyOnly
	// JWTOnly routes take an external user's JWT.
	JWTOnly
	// ByEndpoint routes take the credential that the custom endpoint declares.
	ByEndpoint
	// Staff routes take a session of staff, by cookie, and nothing else. They are
	// on the admin surface alone, and have Needs.
	Staff
)

func (a Auth) String() string {
	return [...]string{"none", "anonymous", "key or JWT", "key", "JWT", "by endpoint", "staff"}[a]
}

// Takes reports whether a caller may present a c to a route. A ByEndpoint route
// takes what a caller presents to Checks.Caller; it checks tokens and
// signatures of webhooks itself.
func (a Auth) Takes(c credential.Kind) bool {
	switch c {
	case credential.APIKey:
		return a == KeyOrJWT || a == KeyOnly || a == ByEndpoint
	case credential.AccessToken:
		return a == KeyOrJWT || a == JWTOnly || a == ByEndpoint
	case credential.Session:
		return a == Staff
	default:
		return false
	}
}

// Limit says which rate limit a route counts against.
type Limit uint8

// The limits.
const (
	_ Limit = iota
	// PerCredential is the budget of the key, of the external user or of the staff
	// session, or without a valid credential that of the client address.
	PerCredential
	// PerRule routes check the limits of External Identity themselves.
	PerRule
)

func (l Limit) String() string { return [...]string{"none", "per credential", "per rule"}[l] }

// AuditClass says which toggle decides whether a request's audit entry is kept
// (contract G5).
type AuditClass uint8

// The classes.
const (
	_ AuditClass = iota
	// AuditStandard is /data and /me, kept by the tenant's toggle.
	AuditStandard
	// AuditIdentity is /auth, of which early failures only are kept.
	AuditIdentity
	// AuditCustom is a custom endpoint, kept by its own toggle.
	AuditCustom
	// AuditAdmin is the admin surface: changes and early refusals are kept,
	// whatever the tenant's toggle says, and reads are not.
	AuditAdmin
	// AuditSignIn is AuditAdmin for routes whose bodies have passwords, codes or
	// secrets: no body is kept.
	AuditSignIn
)

func (c AuditClass) String() string {
	return [...]string{"none", "standard", "identity", "custom", "admin", "sign-in"}[c]
}

// Route is one line of the HTTP surface. Exactly one of Open, Custom and
// Handler is set: Open for Anonymous routes, Custom for ByEndpoint, Handler for
// all others.
type Route struct {
	Method, Pattern string // Pattern as net/http's, without method and host
	// Chosen routes exist only where their handler says so, by Checks.NoMethod. Allow
	// does not name their method.
	Chosen bool
	Auth   Auth
	Limit  Limit
	Audit  AuditClass
	// BodyCap is the largest body in bytes; 0 means the method has none.
	BodyCap int64

	// The following are of routes of the admin surface only; see admin.go.

	// Needs is what the viewer of a Staff route needs; it must be set.
	Needs Needs
	// Query names the query parameters that a Staff route takes. Any other, and one
	// that is repeated, is VALIDATION before the handler runs. A name that ends
	// in "[*]", such as "filter[*]", stands for all that begin like it.
	Query []string
	// Takes and Gives hold zero values of the Go types of the JSON body and of
	// the answer's data, and GivesMeta that of its meta, where it is not that of a
	// list. nil is for none. They document the route, and TypeScript is generated
	// from them.
	Takes, Gives, GivesMeta any

	Handler func(context.Context, *Authed) (Reply, error)
	Open    func(context.Context, *Call) (Reply, error)
	Custom  func(context.Context, *Call, Checks) (Reply, error)
}

// Checks is what the server offers to a route that chooses its own checks: a
// custom endpoint, whose definition says which credential it takes. The error
// of a check that fails is the answer to the request.
type Checks interface {
	// Caller returns the viewer of the request's API key or JWT, and which of
	// the two it is, after checks 4 to 7 of contract H3. An external user is
	// FORBIDDEN unless external is set.
	Caller(ctx context.Context, external bool) (access.Viewer, credential.Kind, error)
	// Take counts the request against a budget of the endpoint's own and
	// returns RATE_LIMITED when that is used up; Peek does not count it.
	Take(budget string, perMinute int) error
	Peek(budget string, perMinute int) error
	// Suspect returns RATE_LIMITED when the address has used up its budget for
	// requests without a valid credential.
	Suspect() error
	// Refuse counts the request against its address. It returns err, or
	// RATE_LIMITED when the address's budget is used up.
	Refuse(err error) error
	// TakeAddress counts the request against its address, as one without a valid
	// credential. It returns RATE_LIMITED when the address's budget is used up.
	TakeAddress() error
	// NoMethod returns the answer to a method that does not exist at the path, as if
	// the route did not exist.
	NoMethod() error
	// Admitted records for the logs how the request authenticated.
	Admitted(with credential.Kind)
	// Serves records for the logs the endpoint's name, "/custom/slug", and
	// whether its successes are kept.
	Serves(endpoint string, keep bool)
}

// Check reports what a route lacks. A route that lacks anything is a
// programming error.
func (r *Route) Check() error {
	if r.Method == "" || r.Pattern == "" || r.Auth == 0 || r.Limit == 0 || r.Audit == 0 {
		return fmt.Errorf("route %s %s: method, pattern, auth, limit and audit class must be set", r.Method, r.Pattern)
	}
	open, custom := r.Auth == Anonymous, r.Auth == ByEndpoint
	if open != (r.Open != nil) || custom != (r.Custom != nil) || (open || custom) == (r.Handler != nil) {
		return fmt.Errorf("route %s %s: an anonymous route has Open, one by endpoint Custom, every other Handler", r.Method, r.Pattern)
	}
	return r.checkNeeds()
}

// Policy returns the route as one line of the golden list of the surface.
func (r *Route) Policy() string {
	line := fmt.Sprintf("%-6s %-40s auth: %-11s limit: %-14s audit: %-8s body: %d", r.Method, r.Pattern, r.Auth, r.Limit, r.Audit, r.BodyCap)
	if len(r.Needs) > 0 {
		line += " needs: " + r.Needs.String()
	}
	return line
}

// Call is a request that has passed the checks of its route.
type Call struct {
	Request   *http.Request
	RequestID string
	IP        netip.Addr
	Config    *access.Config
	Route     *Route
	Params    Params // of the route's pattern
	// Secure is set if the request is known to have come by TLS: to this server,
	// or to a trusted proxy that says so.
	Secure bool
	// BodyCap, if not 0, is the largest body in bytes instead of the route's.
	BodyCap int64

	// Answer is charged for the answer while it is built and written, Received
	// for the body. The zero Charge counts nothing.
	Answer, Received admission.Charge

	// Cores is where large bodies are parsed. nil bounds nothing.
	Cores *admission.Cores

	// More counts further requests against the limit of the credential, all or none. It
	// returns RATE_LIMITED. nil counts nothing.
	More func(requests int) error

	body     []byte
	bodyRead bool
	parsed   bool // the body is a JSON object
	told     *ratelimit.Result
	charges  []ratelimit.Charge
	userID   user.ID
}

// Identify records, for the logs, the user whom a request without a credential turned out
// to be of: who signed in.
func (c *Call) Identify(id user.ID) { c.userID = id }

// Identified returns the user of Identify, "" for none.
func (c *Call) Identified() user.ID { return c.userID }

// Charged records a charge of a route's own limits, so that it can be returned
// when the request is shed with OVERLOADED.
func (c *Call) Charged(charge ratelimit.Charge) { c.charges = append(c.charges, charge) }

// Charges returns everything recorded with Charged.
func (c *Call) Charges() []ratelimit.Charge { return c.charges }

// Weigh counts the request, which counts as one already, as n requests. It returns
// RATE_LIMITED where the limit of the credential has no room for so many.
func (c *Call) Weigh(n int) error {
	if n <= 1 || c.More == nil {
		return nil
	}
	return c.More(n - 1)
}

// Hold counts an answer that is now n bytes long. It returns OVERLOADED when
// the answers of the tenant, or of all tenants, take too much memory.
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

// Release gives back what the call holds. It must be called when the call is
// answered.
func (c *Call) Release() {
	c.Answer.Release()
	c.Received.Release()
}

// TellLimit makes the answer's rate headers describe r. A route that checks
// limits of its own calls it with the tightest that applies (contract L3).
func (c *Call) TellLimit(r ratelimit.Result) { c.told = &r }

// ToldLimit returns what TellLimit was last given, or nil.
func (c *Call) ToldLimit() *ratelimit.Result { return c.told }

// Params are the values of a pattern's wildcards.
type Params struct {
	n      int
	names  [3]string
	values [3]string
}

// Add sets a wildcard's value; a pattern has three at most.
func (p *Params) Add(name, value string) {
	p.names[p.n], p.values[p.n] = name, value
	p.n++
}

// Get returns the value of a wildcard, "" when the pattern has none of that
// name.
func (p *Params) Get(name string) string {
	for i := range p.n {
		if p.names[i] == name {
			return p.values[i]
		}
	}
	return ""
}

// Authed is a Call with a valid credential.
type Authed struct {
	*Call
	Viewer access.Viewer
	// Session is the staff session of a Staff route, nil on all others.
	Session *StaffSession
}

// Reply is a handler's answer. Data is JSON; nil stands for null. The server
// may write into Data and its spare capacity: nothing else may refer to that
// memory.
type Reply struct {
	Status int // 0 is 200
	Data   []byte
	Meta   []byte // JSON object; nil is sent as {}
	// Bare sends Data as the whole body, without the envelope (contract H6).
	Bare bool
	// ContentType is that of a Bare answer which is not the service's own JSON; "" for
	// application/json.
	ContentType string
	Header      http.Header
	// Stream, if set, sends the answer piece by piece, as server-sent events, in
	// place of Data. It is called once the headers are sent. Its context ends with
	// the connection and when the server drains; each call of send writes one piece
	// and fails when the client does not take it in time. Nothing can be answered
	// any more when it returns an error, which is logged. The logs have the request
	// from when it was answered, not from when its stream ended.
	Stream func(ctx context.Context, send func(piece []byte) error) error
}
