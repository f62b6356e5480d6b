package audit

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
)

// Entry is one stored entry. It has no secrets.
type Entry struct {
	ID        string // grows with At; Filter.Before takes it
	At        time.Time
	UserID    string // "" for none
	User      string // their e-mail address, now or when last seen; the id if none is known
	Auth      string // KEY, JWT, TOKEN or SIGNED; "" for none
	Method    string
	Path      string
	Endpoint  string
	Status    int
	IP        string
	Duration  time.Duration
	RequestID string
	Request   string // JSON: {"query", "headers", "header_names", "body"}
	Response  string // JSON: {"reason", "body"}
}

// AppendJSON appends the entry as `gatehouse audit --json` prints it, on one
// line (contract G6). What does not apply is null.
func (e *Entry) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"time":"`...)
	dst = clock.AppendRFC3339Micro(dst, clock.Micros(e.At))
	dst = appendOrNull(append(dst, `","user":`...), e.User)
	dst = appendOrNull(append(dst, `,"auth":`...), e.Auth)
	dst = appendQuoted(append(dst, `,"method":`...), e.Method)
	dst = appendQuoted(append(dst, `,"path":`...), e.Path)
	dst = appendOrNull(append(dst, `,"endpoint":`...), e.Endpoint)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(e.Status), 10)
	dst = appendOrNull(append(dst, `,"ip":`...), e.IP)
	dst = appendMillis(append(dst, `,"duration_ms":`...), e.Duration)
	dst = appendOrNull(append(dst, `,"request_id":`...), e.RequestID)
	dst = append(append(dst, `,"request":`...), e.Request...)
	dst = append(append(dst, `,"response":`...), e.Response...)
	return append(dst, '}')
}

// Filter selects entries; its zero value selects all.
type Filter struct {
	User       string    // e-mail address; a deleted user's too, while there are entries
	Endpoint   string    // '/data/*', '/me', '/custom/*', '/auth/*' or one endpoint, such as '/custom/lead-hook'
	ErrorsOnly bool      // status 400 and above
	Limit      int       // 0 for all
	Before     string    // the id of an entry: only older ones
	Since      time.Time // only entries of requests since then; zero for all
	RequestID  string    // of one request: the X-Request-Id of its answer
}

// bounds returns the ids between which the selected entries are: from the first
// one on, and below the second. The ids of a request and of its entry have the
// same instant.
func (f Filter) bounds() (from, below string) {
	if !f.Since.IsZero() {
		from = clock.IDsFrom(f.Since)
	}
	below = cmp.Or(f.Before, afterAll)
	if at, ok := clock.TimeOf(f.RequestID); ok {
		from, below = max(from, clock.IDsFrom(at)), min(below, clock.IDsFrom(at.Add(time.Millisecond)))
	}
	return from, below
}

// Check returns VALIDATION if the filter is invalid.
func (f Filter) Check() error {
	if f.Limit < 0 {
		return fault.New(fault.Validation, "limit %d: expected 0 or more", f.Limit)
	}
	if _, ok := clock.TimeOf(f.RequestID); f.RequestID != "" && !ok {
		return fault.New(fault.Validation, "request id %q: expected the id that the answer's header X-Request-Id has", f.RequestID)
	}
	if f.Endpoint == "" || f.Endpoint == "/me" {
		return nil
	}
	for _, area := range []string{"/data/", "/custom/", "/auth/"} {
		name, ok := strings.CutPrefix(f.Endpoint, area)
		if ok && name != "" && (name == "*" || !strings.ContainsAny(name, "*?")) {
			return nil
		}
	}
	return fault.New(fault.Validation,
		"endpoint %q: expected '/data/*', '/data/ENTITY', '/me', '/custom/*', '/custom/SLUG' or '/auth/*'", f.Endpoint)
}
