package audit

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatehouse/internal/clock"
)

const (
	maxQuery   = 8 << 10 // bytes kept of a query
	maxHeader  = 1 << 10 // of an allowed header's value
	maxHeaders = 100     // names of headers kept
)

// allowedHeaders are the headers whose values are kept; of all others only the
// names are. Each has its canonical form, as in net/http, and the name that is
// written.
var allowedHeaders = []struct{ canonical, name string }{
	{"Accept", "accept"}, {"Accept-Language", "accept-language"}, {"Content-Length", "content-length"},
	{"Content-Type", "content-type"}, {"Idempotency-Key", "idempotency-key"}, {"Origin", "origin"},
	{"User-Agent", "user-agent"},
}

// encoder turns events into entries: redacted, cut, and storable in any
// database. It must not be used by several goroutines at once.
type encoder struct {
	entry Entry
	buf   []byte // the request, then the response
	split int    // where the response begins
	names []string
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// The largest sizes kept of texts, in bytes.
const (
	maxPath     = 2 << 10
	maxEndpoint = 160
	maxShort    = 128
	maxReason   = 1 << 10
)

// encode makes the entry of an event. The entry refers to the event's texts,
// which are copied when it is added to a block.
func (e *encoder) encode(ev *Event) {
	endpoint := ev.Endpoint
	if len(endpoint) > maxEndpoint {
		endpoint = ""
	}
	e.entry = Entry{
		ID: clock.NewID(ev.Start), At: ev.Start,
		UserID: short(string(ev.UserID)), Auth: ev.Auth.Label(), Method: short(ev.Method),
		Path: storable(cut(RedactPath(ev.Path), maxPath)), Endpoint: storable(endpoint), IP: short(ev.IP),
		Status: ev.Status, Duration: max(ev.Duration, 0), RequestID: short(ev.RequestID),
		KeyID: short(ev.APIKeyID), KeyPrefix: short(ev.APIKeyPrefix), Code: short(ev.ErrorCode), RealUserID: short(string(ev.RealUserID)),
	}
	e.buf = e.buf[:0]
	e.request(ev)
	e.split = len(e.buf)
	e.response(ev)
	e.entry.Gate = stoppedAt(&e.entry, ev.ResponseBody)
}

// size returns about how many bytes the entry takes in a block.
func (e *encoder) size() int64 {
	return int64(len(e.buf) + len(e.entry.Path) + len(e.entry.Endpoint) + 512)
}

// addTo adds the entry to a block.
func (e *encoder) addTo(b *block) { b.add(&e.entry, e.buf[:e.split], e.buf[e.split:]) }

// done returns the encoder to the pool, unless it has grown large.
func (e *encoder) done() {
	e.entry = Entry{}
	if cap(e.buf) <= 4*maxBody {
		encoders.Put(e)
	}
}

// reason returns the reason of an answer. The author of a component may have
// written this text, so it may contain anything.
func reason(ev *Event) string { return cut(maskTokens(ev.Reason), maxReason) }

func short(s string) string { return storable(cut(s, maxShort)) }

// request appends {"query", "headers", "header_names", "body"} without the
// members that are empty.
func (e *encoder) request(ev *Event) {
	e.buf = append(e.buf, '{')
	if ev.Query != "" {
		e.member("query")
		e.buf = appendQuoted(e.buf, cut(redactQuery(ev.Query), maxQuery))
	}
	e.headers(ev.RequestHeader)
	if !withheld(ev) {
		e.body(ev.RequestBody, ev.ContentType, ev.RequestParsed)
	}
	e.buf = append(e.buf, '}')
}

// response appends {"reason", "body"} without the members that are empty.
func (e *encoder) response(ev *Event) {
	e.buf = append(e.buf, '{')
	if ev.Reason != "" {
		e.member("reason")
		e.buf = appendQuoted(e.buf, reason(ev))
	}
	if !withheld(ev) {
		e.body(ev.ResponseBody, ev.ResponseContentType, ev.Rendered)
	}
	e.buf = append(e.buf, '}')
}

// withheld reports whether the bodies of a request are not stored. It checks
// more than the class, so that a wrongly declared route leaks nothing.
func withheld(ev *Event) bool {
	return ev.Class == Auth || ev.Class == SignIn || ev.Endpoint == "/auth" || strings.HasPrefix(ev.Endpoint, "/auth/") ||
		slices.ContainsFunc(secretPaths, func(path string) bool { return strings.Contains(ev.Path, path) })
}

// secretPaths are the beginnings of the paths whose bodies have passwords or codes.
var secretPaths = []string{"/public/v1/auth", "/admin/v1/session", "/admin/v1/password", "/admin/v1/account"}

// member appends a member's name, which must be plain ASCII.
func (e *encoder) member(name string) {
	if e.buf[len(e.buf)-1] != '{' {
		e.buf = append(e.buf, ',')
	}
	e.buf = append(e.buf, '"')
	e.buf = append(e.buf, name...)
	e.buf = append(e.buf, '"', ':')
}

func (e *encoder) headers(h http.Header) {
	if len(h) == 0 {
		return
	}
	found := 0
	for _, allowed := range allowedHeaders {
		values := h[allowed.canonical]
		if len(values) == 0 {
			continue
		}
		if found++; found == 1 {
			e.member("headers")
			e.buf = append(e.buf, '{')
		}
		e.member(allowed.name)
		value := values[0]
		if len(values) > 1 {
			value = strings.Join(values, ", ")
		}
		e.buf = appendQuoted(e.buf, cut(maskJWTs(maskTokens(value)), maxHeader))
	}
	if found > 0 {
		e.buf = append(e.buf, '}')
	}
	if found == len(h) {
		return
	}
	e.names = e.names[:0]
	for name := range h {
		if !slices.ContainsFunc(allowedHeaders, func(a struct{ canonical, name string }) bool { return a.canonical == name }) {
			e.names = append(e.names, name)
		}
	}
	slices.Sort(e.names)
	e.member("header_names")
	e.buf = append(e.buf, '[')
	for i, name := range e.names[:min(len(e.names), maxHeaders)] {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.buf = appendQuoted(e.buf, cut(maskTokens(strings.ToLower(name)), maxHeader))
	}
	e.buf = append(e.buf, ']')
}

// body appends the member body: the JSON itself, a form as a string, the
// beginning of a long one, or the length of one that does not parse. valid
// means that the body is known to be JSON; only what is kept of such a body is
// read.
func (e *encoder) body(body []byte, contentType string, valid bool) {
	if len(body) == 0 {
		return
	}
	before := len(e.buf)
	e.member("body")
	start := len(e.buf)
	if !valid && isForm(contentType) && !looksLikeJSON(body) {
		if form := string(body); parsesAsForm(form) {
			if form = redactPairs(form); len(form) > maxBody {
				e.truncated(form, len(body))
			} else {
				e.buf = appendQuoted(e.buf, form)
			}
			return
		}
	} else if out, ok := appendJSON(e.buf, body, maxBody, valid); ok {
		e.buf = out
		if len(e.buf)-start > maxBody {
			text := string(e.buf[start : start+maxBody])
			e.buf = e.buf[:start]
			e.truncated(text, len(body))
		}
		return
	}
	e.buf = e.buf[:before]
	e.member("body")
	e.buf = append(e.buf, `{"unparsed":true,"bytes":`...)
	e.buf = strconv.AppendInt(e.buf, int64(len(body)), 10)
	e.buf = append(e.buf, '}')
}

// truncated appends the beginning of a redacted text. The whole object has at
// most maxBody bytes, escapes included.
func (e *encoder) truncated(text string, size int) {
	e.buf = append(e.buf, `{"truncated":true,"bytes":`...)
	e.buf = strconv.AppendInt(e.buf, int64(size), 10)
	e.buf = append(e.buf, `,"start":"`...)
	const longest = 6 // bytes that one byte may become
	for end := len(e.buf) + maxBody - 64; len(text) > 0; {
		n := boundary(text, min(len(text), (end-len(e.buf))/longest))
		if n == 0 {
			break
		}
		e.buf = appendEscaped(e.buf, text[:n])
		text = text[n:]
	}
	e.buf = append(e.buf, '"', '}')
}

func isForm(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded")
}
