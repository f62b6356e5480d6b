package server

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// buffers holds answers while they are written, up to keepBuffer; a larger one is
// sent from where it was built.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 4096); return &b }}

const keepBuffer = 64 << 10

// Values that never change are shared: a header's values are not written to.
var (
	typeJSON   = []string{"application/json"}
	noStore    = []string{"no-store"}
	noSniff    = []string{"nosniff"}
	varyOrigin = []string{"Origin"}
	connClose  = []string{"close"}
)

// answer makes the one answer of the request, which send writes, and returns its
// status and the code of its error, if it is one.
func (x *exchange) answer(reply *httpapi.Reply, err error) (status int, code string) {
	if err == nil {
		err = x.affordable(reply)
	}
	body := buffer()
	h := x.w.Header()
	if err != nil {
		e := httpapi.Public(err)
		body = httpapi.AppendError(body, e)
		if x.call != nil { // an error may be long, too; what failed has done nothing
			if full := x.call.Hold(len(body)); full != nil {
				e = httpapi.Public(full)
				body = httpapi.AppendError(buffer(), e)
			}
		}
		status, code, x.reason = e.HTTPStatus(), string(e.Code), e.Reason
		if e.Code == fault.Overloaded && e.Status == 0 { // a status is chosen by a component's fail()
			x.uncharge()
		}
		if e.RetryAfter > 0 {
			h["Retry-After"] = []string{strconv.Itoa(seconds(e.RetryAfter))}
		}
		if x.corsOrigin == "" {
			x.corsOrigin = x.readableBy(x.r.Context())
		}
	} else {
		status = reply.Status
		if status == 0 {
			status = http.StatusOK
		}
		for name, values := range reply.Header {
			h[name] = values
		}
		switch {
		case status == http.StatusNoContent:
		case len(reply.Data) > keepBuffer:
			body = httpapi.Enclose(reply)
		default:
			body = httpapi.AppendReply(body, reply)
		}
	}
	x.headers(h, len(body), status)
	x.body = body
	return status, code
}

// send writes the answer, once all else is done for the request: net/http passes
// a long body on at once, and the client has it before this returns. Whatever came
// after would give a quick client the time to have its next request there before
// this one is over. Its connection would never wait for one then, and the runtime,
// which changes goroutines where one waits, would serve it for whole time slices
// while all others stand in line.
func (x *exchange) send(status int) {
	x.w.WriteHeader(status)
	if len(x.body) > 0 {
		_, _ = x.w.Write(x.body) // the caller hung up: the log says what was answered
	}
	if cap(x.body) <= keepBuffer { // nobody has kept it
		b := x.body[:0]
		buffers.Put(&b)
	}
}

// buffer is an empty one from the pool.
func buffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

// affordable counts an answer that whoever built it has not counted. What
// changes something has counted its answer before it did: it is never told
// that it was refused when it was not.
func (x *exchange) affordable(reply *httpapi.Reply) error {
	if x.call == nil || x.r.Method != http.MethodGet {
		return nil
	}
	return x.call.Hold(len(reply.Data))
}

// headers sets what every response has (decisions 2.1, 2.20, 2.22).
func (x *exchange) headers(h http.Header, size, status int) {
	h["Cache-Control"] = noStore
	h["X-Content-Type-Options"] = noSniff
	h["X-Request-Id"] = []string{x.id}
	if status != http.StatusNoContent {
		h["Content-Type"] = typeJSON
		h["Content-Length"] = []string{strconv.Itoa(size)}
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
	if x.call != nil && x.call.ToldLimit() != nil {
		x.limit, x.limited = *x.call.ToldLimit(), true
	}
	switch {
	case !x.limited && x.returned:
		x.peekAddress()
	case !x.limited:
		x.takeAddress()
	case x.returned && x.limit.Allowed && x.charged():
		x.limit.Remaining = min(x.limit.Limit, x.limit.Remaining+1)
	}
	h["X-Ratelimit-Limit"] = []string{strconv.Itoa(x.limit.Limit)}
	h["X-Ratelimit-Remaining"] = []string{strconv.Itoa(x.limit.Remaining)}
	h["X-Ratelimit-Reset"] = []string{strconv.Itoa(seconds(x.limit.Reset))}
}

// seconds is a duration as headers tell it: whole, rounded up, at least 1.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// record tells the logs and the metrics of the finished request.
func (x *exchange) record(at time.Time, status int, code string) {
	ev := &audit.Event{
		RequestID: x.id, Method: x.r.Method, Path: x.r.URL.Path, Query: x.r.URL.RawQuery, Status: status, ErrorCode: code,
		Reason: x.reason, Start: at, Duration: time.Since(x.start), Auth: x.auth, UserID: x.userID, APIKeyID: x.keyID, APIKeyPrefix: x.keyPrefix, Class: audit.Other,
	}
	if x.ip.IsValid() {
		ev.IP = x.ip.String()
	}
	if x.route != nil {
		ev.Route = x.route.Pattern
	}
	switch {
	case x.match != nil:
		ev.Class = auditClass[x.match.routes[0].Audit]
	case x.identityPath():
		ev.Class = audit.Auth
	}
	if x.config != nil {
		ev.Tenant, ev.Endpoint = x.config.Tenant.ID, x.endpoint()
		ev.Persist = audit.Persisted(ev.Class, status, x.config.Tenant.Settings.PublicAPI.LogStandardRequests, x.keepSuccess) &&
			!x.unrecorded
	}
	if ev.Persist {
		ev.RequestHeader, ev.ContentType = x.r.Header, x.r.Header.Get("Content-Type")
		if x.call != nil {
			ev.RequestBody = x.call.Seen()
		}
		ev.ResponseBody, ev.ResponseContentType, ev.Rendered = x.body, typeJSON[0], true
	}
	x.s.log.Line(ev)
	x.s.recorder.Record(ev)
	x.s.metrics.observe(ev)
}

var auditClass = map[httpapi.AuditClass]audit.Class{
	httpapi.AuditStandard: audit.Standard, httpapi.AuditIdentity: audit.Auth, httpapi.AuditCustom: audit.Custom,
}

// endpoint is what the request is counted and filtered by: only names that
// exist, so that made-up paths cost nothing.
func (x *exchange) endpoint() string {
	if x.match == nil {
		return ""
	}
	switch pattern := x.match.routes[0].Pattern; {
	case x.endpointName != "":
		return x.endpointName
	case pattern == "/public/v1/me":
		return "/me"
	case x.match.routes[0].Auth == httpapi.ByEndpoint: // refused before it was served
		if slug := x.params.Get("slug"); x.s.endpoints.Exists(x.r.Context(), x.config, slug) {
			return "/custom/" + slug
		}
		return ""
	case x.identityPath() && !strings.Contains(pattern, "{"):
		return strings.TrimPrefix(pattern, "/public/v1")
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
