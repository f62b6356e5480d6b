package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
)

// exchange is one request and its answer.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	start time.Time

	id     string // X-Request-Id
	ip     netip.Addr
	config *access.Config // nil until the tenant is found
	match  *matched       // nil until a pattern matched
	params httpapi.Params // of the match
	route  *httpapi.Route // nil until one of its routes has the method
	call   *httpapi.Call

	auth      credential.Kind // that was found good
	key       *apikey.Key
	keyID     string // of a key that exists, valid or not
	keyPrefix string
	userID    string

	// Set when the request is for a custom endpoint that exists.
	endpointName string
	keepSuccess  bool

	origin     string // the request's Origin, "" for none
	corsOrigin string // the origin that may read the answer, "" for none
	limit      ratelimit.Result
	limited    bool // limit is set
	charges    []ratelimit.Charge
	returned   bool // the charges were given back

	reason string // why the request was refused; for the logs only

	unrecorded bool // refused because the audit log has no room

	body []byte // of the answer
}

const window = time.Minute // of every rate limit outside /auth (contract L1)

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := s.clock.Now()
	x := &exchange{s: s, w: w, r: r, start: time.Now(), id: clock.NewID(now), auth: credential.None, origin: r.Header.Get("Origin")}
	s.metrics.inFlight.Add(1)
	defer s.metrics.inFlight.Add(-1)
	defer x.release()
	reply, err := x.contained()
	status, code := x.answer(&reply, err)
	x.record(now, status, code)
	x.send(status)
}

// release gives back what the request holds of the budgets.
func (x *exchange) release() {
	if x.call != nil {
		x.call.Release()
	}
}

// contained runs the request and turns a panic into INTERNAL, logged with its
// stack. It lets http.ErrAbortHandler pass.
func (x *exchange) contained() (reply httpapi.Reply, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if p == http.ErrAbortHandler { //nolint:errorlint // a sentinel, compared as net/http does
			panic(p)
		}
		x.s.metrics.panics.Inc()
		x.s.log.Emit("server.panic", map[string]any{
			"request_id": x.id, "method": x.r.Method, "path": x.r.URL.Path, "panic": fmt.Sprint(p), "stack": string(debug.Stack()),
		})
		reply, err = httpapi.Reply{}, errPanicked
	}()
	reply, err = x.serve(x.r.Context())
	if err != nil {
		err = x.public(err)
	}
	return reply, err
}

var errPanicked = errors.New("panic")

// serve runs the checks of contract H3 in their order, then the handler.
func (x *exchange) serve(ctx context.Context) (httpapi.Reply, error) {
	if err := x.findClient(); err != nil {
		return httpapi.Reply{}, err
	}
	if err := x.findTenant(ctx); err != nil {
		return httpapi.Reply{}, err
	}
	noRoute := x.findRoute() // called early, so that the logs name the route of a refused request
	if err := x.checkRecorder(); err != nil {
		return httpapi.Reply{}, err
	}
	if err := x.checkSwitch(); err != nil {
		return httpapi.Reply{}, err
	}
	if x.preflight() {
		x.match = nil // a preflight is for no route
		return x.answerPreflight(ctx)
	}
	if noRoute != nil {
		return httpapi.Reply{}, x.refuseRoute(noRoute)
	}
	x.call = &httpapi.Call{
		Request: x.r, RequestID: x.id, IP: x.ip, Config: x.config, Route: x.route, Params: x.params,
		Answer: x.s.answers.Charge(x.config.Tenant.ID), Received: x.s.bodies.Charge(x.config.Tenant.ID),
	}
	switch x.route.Auth {
	case httpapi.Anonymous:
		x.allowIdentityOrigin()
		return x.route.Open(ctx, x.call)
	case httpapi.ByEndpoint:
		return x.route.Custom(ctx, x.call, endpointChecks{x})
	}
	viewer, err := x.admit(ctx)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return x.route.Handler(ctx, &httpapi.Authed{Call: x.call, Viewer: viewer})
}

// findClient finds the client's address (contract H12).
func (x *exchange) findClient() error {
	ip, err := x.s.proxies.ClientIP(x.r)
	x.ip = ip
	return err
}

var errNoHost = fault.New(fault.NotFound, "there is nothing at this host")

// findTenant finds the tenant by the request's host (contract H2).
func (x *exchange) findTenant(ctx context.Context) error {
	host, ok := httpapi.CanonicalHost(x.r.Host)
	if !ok {
		return errNoHost
	}
	config, err := x.s.directory.ByHost(ctx, host)
	x.config = config
	return err
}

// checkRecorder refuses a request that could not be recorded: entries cannot be
// written, and the queue has all that it may hold (contract G10).
func (x *exchange) checkRecorder() error {
	if !x.config.Tenant.Settings.PublicAPI.LogStandardRequests || !x.s.recorder.Refuses(x.config.Tenant.ID) {
		return nil
	}
	x.unrecorded = true
	return fault.New(fault.Overloaded, "the service cannot record requests right now; try again soon").After(5 * time.Second)
}

func (x *exchange) identityPath() bool { return strings.HasPrefix(x.r.URL.Path, "/public/v1/auth/") }

// checkSwitch refuses what the tenant has switched off: /auth asks only for
// External Identity, everything else only for the public API.
func (x *exchange) checkSwitch() error {
	settings := &x.config.Tenant.Settings
	if x.identityPath() {
		if !settings.ExternalIdentity.Enabled {
			x.takeAddress()
			return errIdentityOff
		}
		return nil
	}
	if !settings.PublicAPI.Enabled {
		x.takeAddress()
		return fault.New(fault.APIDisabled, "the public API of this tenant is switched off")
	}
	return nil
}

var errIdentityOff = fault.New(fault.ServiceUnavailable, "External Identity of this tenant is switched off")

// findRoute matches method and path. It takes a path as it was sent, without
// the redirects of net/http.
func (x *exchange) findRoute() error {
	p := x.r.URL.Path
	if !utf8.ValidString(p) || strings.IndexByte(p, 0) >= 0 {
		return errNoPath
	}
	if x.match, x.params = x.s.router.find(x.r.URL); x.match == nil {
		return errNoPath
	}
	if x.route = x.match.byMethod(x.r.Method); x.route == nil {
		return fault.New(fault.MethodNotAllowed, "%s is not allowed here; allowed: %s", x.r.Method, x.match.allow)
	}
	return nil
}

// refuseRoute returns the answer where there is no route. It counts against the
// address, because no credential is checked there.
func (x *exchange) refuseRoute(noRoute error) error {
	if !x.takeAddress() {
		return x.rateLimited()
	}
	if x.match != nil {
		x.w.Header()["Allow"] = []string{x.match.allow}
	}
	return noRoute
}

var errNoPath = fault.New(fault.NotFound, "there is nothing at this path")

// public returns the error that the caller may read; it logs any other.
func (x *exchange) public(err error) error {
	var e *fault.Error
	if errors.As(err, &e) {
		return e
	}
	if x.r.Context().Err() != nil {
		return errGone
	}
	if shed := x.s.overloaded(err); shed != nil {
		return shed
	}
	x.s.log.Emit("server.error", map[string]any{
		"request_id": x.id, "method": x.r.Method, "path": x.r.URL.Path, "error": err.Error(),
	})
	return err
}

// errGone is the answer to a caller who hung up. Only the log reads it.
var errGone = fault.New(fault.Overloaded, "the request ended before it was answered").After(time.Second)
