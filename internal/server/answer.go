package server

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/console"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// buffers pools the buffers in which answers are built. A buffer larger than
// keepBuffer is not returned to the pool.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

const keepBuffer = 64 << 10

// Header values that never change are shared and must not be modified.
var (
	typeJSON   = []string{"application/json"}
	typeEvents = []string{"text/event-stream"}
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	varyOrigin = []string{"Origin"}
	connClose  = []string{"close"}
)

// answer builds the one answer of the request, which send writes. It returns
// the answer's status and, for an error, its code.
func (x *exchange) answer(reply *httpapi.Reply, err error) (status int, code string) {
	if err == nil {
		err = x.affordable(reply)
	}
	h := x.w.Header()
	var failure *fault.Error
	if err == nil {
		status = x.succeed(h, reply)
	} else {
		failure = x.fail(h, err)
		status, code = failure.HTTPStatus(), string(failure.Code)
	}
	x.settle(failure)
	x.headers(h, status)
	return status, code
}

// succeed builds the body of a success and returns its status.
func (x *exchange) succeed(h http.Header, reply *httpapi.Reply) (status int) {
	status = reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	x.contentType = reply.ContentType
	for name, values := range reply.Header {
		h[name] = values
	}
	switch {
	case reply.Stream != nil:
		x.stream = reply.Stream
	case status == http.StatusNoContent || status == http.StatusNotModified:
		x.body = buffer()
	case len(reply.Data) > keepBuffer:
		x.body = httpapi.Enclose(reply)
	default:
		x.body = httpapi.AppendReply(buffer(), reply)
	}
	return status
}

// fail builds the body of an error and returns the error that is answered, which
// is OVERLOADED if the error itself exceeds what the tenant may hold.
func (x *exchange) fail(h http.Header, err error) *fault.Error {
	e := httpapi.Public(err)
	x.body = httpapi.AppendError(buffer(), e)
	if x.call != nil { // an error may be long, too; a request that failed has changed nothing
		if full := x.call.Hold(len(x.body)); full != nil {
			e = httpapi.Public(full)
			x.body = httpapi.AppendError(buffer(), e)
		}
	}
	x.reason = e.Reason
	if e.RetryAfter > 0 {
		h["Retry-After"] = []string{strconv.Itoa(seconds(e.RetryAfter))}
	}
	if x.corsOrigin == "" {
		x.corsOrigin = x.readableBy(x.r.Context())
	}
	return e
}

// send writes the answer. It must be called after all other work for the
// request: net/http passes a long body on at once, so the client has it before
// send returns. If work followed, a quick client could have its next request
// ready when this one ends. Its connection would then never wait for input, and
// the runtime, which switches goroutines when one waits, would serve that
// connection for whole time slices while all others queue.
func (x *exchange) send(status int) {
	x.w.WriteHeader(status)
	if x.stream != nil {
		x.sendStream()
		return
	}
	if len(x.body) > 0 {
		_, _ = x.w.Write(x.body) // fails when the caller hung up; the log says what was answered
	}
	if cap(x.body) <= keepBuffer { // nothing else refers to the body
		b := x.body[:0]
		buffers.Put(&b)
	}
}

// buffer returns an empty buffer from the pool.
func buffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// affordable charges the budget for an answer that its handler has not charged.
// It does so for GET only: a handler that changes something charges its answer
// before the change, so that a caller is never told OVERLOADED after the change
// was made.
func (x *exchange) affordable(reply *httpapi.Reply) error {
	if x.call == nil || x.r.Method != http.MethodGet {
		return nil
	}
	return x.call.Hold(len(reply.Data))
}

// headers sets what every response has (contract H7, O5, L3).
func (x *exchange) headers(h http.Header, status int) {
	h["X-Request-Id"] = []string{x.id}
	if !x.page {
		h["Cache-Control"] = noStore
		h["X-Content-Type-Options"] = noSniff
		h["Content-Type"] = typeJSON
	}
	switch {
	case x.stream != nil:
		h["Content-Type"] = typeEvents
		h["X-Accel-Buffering"] = []string{"no"} // a proxy must pass each piece on
	case status == http.StatusNoContent || status == http.StatusNotModified:
		delete(h, "Content-Type")
	case x.contentType != "":
		h["Content-Type"] = []string{x.contentType}
		fallthrough
	default:
		h["Content-Length"] = []string{strconv.Itoa(len(x.body))}
	}
	if x.s.draining.Load() {
		h["Connection"] = connClose
	}
	if h["Vary"] == nil {
		h["Vary"] = varyOrigin
	}
	if x.corsOrigin != "" {
		h["Access-Control-Allow-Origin"] = []string{x.corsOrigin}
		h["Access-Control-Expose-Headers"] = exposed
	}
	h["X-Ratelimit-Limit"] = []string{strconv.Itoa(x.limit.Limit)}
	h["X-Ratelimit-Remaining"] = []string{strconv.Itoa(x.limit.Remaining)}
	h["X-Ratelimit-Reset"] = []string{strconv.Itoa(seconds(x.limit.Reset))}
}

// seconds returns d as headers give it: in whole seconds, rounded up, at least
// 1.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// record writes the finished request to the logs and the metrics.
func (x *exchange) record(at time.Time, status int, code string) {
	ev := &audit.Event{
		RequestID: x.id, Method: x.r.Method, Path: x.r.URL.Path, Query: x.r.URL.RawQuery, Status: status, ErrorCode: code,
		Reason: x.reason, Start: at, Duration: time.Since(x.start), Auth: x.auth, UserID: x.userID, APIKeyID: x.keyID, APIKeyPrefix: x.keyPrefix, Class: audit.Other,
	}
	if x.ip.IsValid() {
		ev.IP = x.ip.String()
	}
	if x.call != nil && ev.UserID == "" {
		ev.UserID = x.call.Identified()
	}
	if x.session != nil && x.session.Acting() {
		ev.UserID, ev.RealUserID = x.viewer.UserID(), x.session.UserID
	}
	if x.route != nil {
		ev.Route = x.route.Pattern
	}
	switch {
	case x.match != nil:
		ev.Class = auditClass[x.match.routes[0].Audit]
	case x.surface != nil:
		ev.Class = x.surface.class
	}
	ev.Uncounted = x.surface != nil && (x.surface.prefix == adminBase || x.surface.prefix == console.Base)
	if x.config != nil {
		ev.Tenant, ev.Endpoint = x.config.Tenant.ID, x.endpoint()
		ev.Persist = audit.Persisted(ev.Class, status, x.config.Tenant.Settings.PublicAPI.LogStandardRequests, x.keepSuccess || x.changes()) &&
			!x.unrecorded && !x.visits(status)
	}
	if ev.Persist {
		ev.RequestHeader, ev.ContentType = x.r.Header, x.r.Header.Get("Content-Type")
		if x.call != nil {
			ev.RequestBody, ev.RequestParsed = x.call.Seen(), x.call.Parsed()
		}
		ev.ResponseBody, ev.ResponseContentType, ev.Rendered = x.body, typeJSON[0], true
		if x.contentType != "" { // a tenant's code has made it
			ev.ResponseContentType, ev.Rendered = x.contentType, false
		}
	}
	x.s.log.Line(ev)
	x.s.recorder.Record(ev)
	x.s.metrics.observe(ev)
}

var auditClass = map[httpapi.AuditClass]audit.Class{
	httpapi.AuditStandard: audit.Standard, httpapi.AuditIdentity: audit.Auth, httpapi.AuditCustom: audit.Custom,
	httpapi.AuditAdmin: audit.Admin, httpapi.AuditSignIn: audit.SignIn,
}

// endpoint returns the name that the request is counted and filtered by. It has
// names of existing endpoints only, so that made-up paths cost nothing.
func (x *exchange) endpoint() string {
	if x.match == nil {
		return ""
	}
	switch {
	case x.endpointName != "":
		return x.endpointName
	case x.surface.prefix == adminBase:
		return adminBase[:len(adminBase)-len("v1/")] + x.match.segments[2]
	case x.match.name != "":
		return x.match.name
	case x.match.routes[0].Auth == httpapi.ByEndpoint: // refused before the endpoint's handler ran
		if slug := x.params.Get("slug"); x.s.endpoints.Exists(x.r.Context(), x.config, slug) {
			return "/custom/" + slug
		}
		return ""
	default:
		if e := x.config.Schema.Entity(x.params.Get("entity")); e != nil {
			return e.Endpoint
		}
		if x.params.Get("entity") == "user" {
			return "/data/user"
		}
		return ""
	}
}
