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
	"gatehouse/internal/user"
)

// exchange is one request and its answer.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	start time.Time

	id      string // X-Request-Id
	ip      netip.Addr
	config  *access.Config // nil until the tenant is found
	surface *surface       // nil until the tenant is found
	match   *matched       // nil if no pattern of the surface matches
	params  httpapi.Params // of the match
	route   *httpapi.Route // nil if none of the match's routes has the method
	// respond answers the request once it has passed the surface's checks. One
	// of the checks sets it.
	respond func(*exchange, context.Context) (httpapi.Reply, error)
	call    *httpapi.Call
	viewer  access.Viewer // of the credential
	session *httpapi.StaffSession

	auth      credential.Kind // that was found good
	key       *apikey.Key
	keyID     string // of a key that exists, valid or not
	keyPrefix string
	userID    user.ID

	// Set when the request is for a custom endpoint that exists.
	endpointName string
	keepSuccess  bool

	origin     string // the request's Origin, "" for none
	corsOrigin string // the origin that may read the answer, "" for none
	limit      ratelimit.Result
	limited    bool // limit is set
	charges    []ratelimit.Charge
	returned   bool   // uncharge has taken the charges back
	counted    int    // requests that were taken back
	budget     string // of the credential, with its limit
	perMinute  int

	reason string // why the request was refused; for the logs only

	unrecorded bool // refused because the audit log has no room

	contentType string                                                         // of the answer; "" for the service's own JSON
	page        bool                                                           // the answer is a file of the console, with headers of its own
	body        []byte                                                         // of the answer
	stream      func(ctx context.Context, send func(piece []byte) error) error // sends it instead of body
}

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

// release returns to the budgets what the request holds of them.
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
	reply, err = x.serve(answerInTime(x.r.Context(), x.start))
	if err != nil {
		err = x.public(err)
	}
	return reply, err
}

var errPanicked = errors.New("panic")

// serve finds the request's surface, runs its checks in order, and then calls
// respond, which one of them has set.
func (x *exchange) serve(ctx context.Context) (httpapi.Reply, error) {
	if err := x.findClient(); err != nil {
		return httpapi.Reply{}, err
	}
	if err := x.findSurface(ctx); err != nil {
		return httpapi.Reply{}, err
	}
	if err := x.run(ctx, x.surface.checks); err != nil {
		return httpapi.Reply{}, err
	}
	return x.respond(x, ctx)
}

// run runs checks until one fails.
func (x *exchange) run(ctx context.Context, checks []check) error {
	for _, check := range checks {
		if err := check(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// findClient finds the client's address (contract H12).
func (x *exchange) findClient() error {
	ip, err := x.s.proxies.ClientIP(x.r)
	x.ip = ip
	return err
}

var errNoHost = fault.New(fault.NotFound, "there is nothing at this host")

// findSurface finds the tenant by the request's host (contract H2), the surface
// by host and path, and its route. It does not refuse a request without a route,
// because other checks come first; the route is found here so that the logs name
// it for requests that these checks refuse.
func (x *exchange) findSurface(ctx context.Context) error {
	host, ok := httpapi.CanonicalHost(x.r.Host)
	if !ok {
		return errNoHost
	}
	config, kind, err := x.s.directory.ByHost(ctx, host)
	if err != nil {
		return err
	}
	path := x.r.URL.Path
	sf := x.s.surfaces.find(config.Tenant, kind, path)
	if sf == nil {
		return errNoHost
	}
	x.config, x.surface = config, sf
	if !utf8.ValidString(path) || strings.IndexByte(path, 0) >= 0 {
		return nil
	}
	if x.match, x.params = sf.router.find(x.r.URL); x.match != nil {
		x.route = x.match.byMethod(x.r.Method)
	}
	return nil
}

// answerRoute runs the request's route. It runs the surface's admission first,
// if the route takes a credential.
func (x *exchange) answerRoute(ctx context.Context) (httpapi.Reply, error) {
	x.call = &httpapi.Call{
		Request: x.r, RequestID: x.id, IP: x.ip, Config: x.config, Route: x.route, Params: x.params, Secure: x.s.proxies.Secure(x.r),
		Answer: x.s.answers.Charge(string(x.config.Tenant.ID)), Received: x.s.bodies.Charge(string(x.config.Tenant.ID)),
		Cores: x.s.engine.Cores(), More: x.takeMore,
	}
	switch x.route.Auth {
	case httpapi.Anonymous:
		x.corsOrigin = x.readableBy(ctx)
		return x.route.Open(ctx, x.call)
	case httpapi.ByEndpoint:
		return x.route.Custom(ctx, x.call, endpointChecks{x})
	}
	if err := x.run(ctx, x.surface.admission); err != nil {
		return httpapi.Reply{}, err
	}
	return x.route.Handler(ctx, &httpapi.Authed{Call: x.call, Viewer: x.viewer, Session: x.session})
}

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
