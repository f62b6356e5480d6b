package audit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
)

// Filter selects entries; its zero value selects all.
type Filter struct {
	User       string    // e-mail address; a deleted user's too, while there are entries
	UserID     string    // a user's id
	Endpoint   string    // '/data/*', '/me', '/custom/*', '/auth/*', '/admin/*' or one endpoint, such as '/custom/lead-hook'
	Endpoints  []string  // any of several of them; together with Endpoint at most maxEndpointsAsked
	ErrorsOnly bool      // status 400 and above
	Limit      int       // 0 for all
	Before     string    // the id of an entry: only older ones
	Since      time.Time // only entries of requests since then; zero for all
	Until      time.Time // only entries of requests before then; zero for all
	RequestID  string    // of one request: the X-Request-Id of its answer
	KeyID      string    // of an API key
	Auth       string    // KEY, JWT, TOKEN, SIGNED or SESSION, or "none"
	Method     string
	Status     int    // one status; 0 for all
	Class      string // 2xx (which has 3xx), 4xx or 5xx
	Path       string // a part of the path, compared without case
	IP         string // one address

	since string // only ids from this one on
}

const (
	maxEndpointsAsked = 8
	authNone          = "none"
)

// auths are the ways in which a request can have authenticated.
var auths = []string{"KEY", "JWT", "TOKEN", "SIGNED", "SESSION", authNone}

// endpoints returns the patterns one of which an entry's endpoint must match.
func (f *Filter) endpoints() []string {
	if f.Endpoint == "" {
		return f.Endpoints
	}
	return append([]string{f.Endpoint}, f.Endpoints...)
}

// bounds returns the ids between which the selected entries are: from the first
// one on, and below the second. The ids of a request and of its entry have the
// same instant.
func (f *Filter) bounds() (from, below string) {
	if !f.Since.IsZero() {
		from = clock.IDsFrom(f.Since)
	}
	from = max(from, f.since)
	below = cmp.Or(f.Before, afterAll)
	if !f.Until.IsZero() {
		below = min(below, clock.IDsFrom(f.Until))
	}
	if at, ok := clock.TimeOf(f.RequestID); ok {
		from, below = max(from, clock.IDsFrom(at)), min(below, clock.IDsFrom(at.Add(time.Millisecond)))
	}
	return from, below
}

// Check returns VALIDATION if the filter is invalid.
func (f *Filter) Check() error {
	if f.Limit < 0 {
		return fault.New(fault.Validation, "limit %d: expected 0 or more", f.Limit)
	}
	if _, ok := clock.TimeOf(f.RequestID); f.RequestID != "" && !ok {
		return fault.New(fault.Validation, "request id %q: expected the id that the answer's header X-Request-Id has", f.RequestID)
	}
	patterns := f.endpoints()
	if len(patterns) > maxEndpointsAsked {
		return fault.New(fault.Validation, "%d endpoints: expected at most %d", len(patterns), maxEndpointsAsked)
	}
	for _, pattern := range patterns {
		if !endpointPattern(pattern) {
			return fault.New(fault.Validation,
				"endpoint %q: expected '/data/*', '/data/ENTITY', '/me', '/custom/*', '/custom/SLUG', '/auth/*' or '/admin/*'", pattern)
		}
	}
	if f.Auth != "" && !slices.Contains(auths, f.Auth) {
		return fault.New(fault.Validation, "credential %q: expected one of %s", f.Auth, strings.Join(auths, ", "))
	}
	if f.Class != "" && f.Class != "2xx" && f.Class != "4xx" && f.Class != "5xx" {
		return fault.New(fault.Validation, "status %q: expected 2xx, 4xx, 5xx or one status such as 404", f.Class)
	}
	return nil
}

// endpointPattern reports whether a text is an endpoint or an area of endpoints.
func endpointPattern(s string) bool {
	if s == "/me" {
		return true
	}
	for _, area := range areas {
		if name, ok := strings.CutPrefix(s, area); ok && name != "" && (name == "*" || !strings.ContainsAny(name, "*?")) {
			return true
		}
	}
	return false
}

// matcher decides which entries of a head a filter selects, without copying
// them. Its from and below bound the ids.
type matcher struct {
	filter      Filter
	patterns    []string
	users       []string // any of these; nil for all
	from, below string
	path        []byte // in lower case
}

func newMatcher(f *Filter, users []string) matcher {
	m := matcher{filter: *f, patterns: f.endpoints(), users: users, path: bytes.ToLower([]byte(f.Path))}
	m.from, m.below = f.bounds()
	return m
}

func (m *matcher) wants(e *headEntry) bool {
	f := &m.filter
	id := e.texts[textID]
	return string(id) >= m.from && string(id) < m.below &&
		(!f.ErrorsOnly || e.status >= 400) &&
		(f.Status == 0 || e.status == f.Status) &&
		(f.Class == "" || classOf(e.status) == f.Class) &&
		(m.users == nil || contains(m.users, e.texts[textUser])) &&
		(f.KeyID == "" || string(e.texts[textKey]) == f.KeyID) &&
		(f.Auth == "" || string(e.texts[textAuth]) == f.Auth || f.Auth == authNone && len(e.texts[textAuth]) == 0) &&
		(f.Method == "" || string(e.texts[textMethod]) == f.Method) &&
		(f.IP == "" || string(e.texts[textIP]) == f.IP) &&
		(f.RequestID == "" || string(e.texts[textRequestID]) == f.RequestID) &&
		m.wantsEndpoint(e.texts[textEndpoint]) &&
		(len(m.path) == 0 || bytes.Contains(bytes.ToLower(e.texts[textPath]), m.path))
}

func (m *matcher) wantsEndpoint(endpoint []byte) bool {
	if len(m.patterns) == 0 {
		return true
	}
	for _, pattern := range m.patterns {
		area, wide := strings.CutSuffix(pattern, "*")
		if string(endpoint) == pattern || wide && len(endpoint) >= len(area) && string(endpoint[:len(area)]) == area {
			return true
		}
	}
	return false
}

func contains(list []string, b []byte) bool {
	for _, s := range list {
		if string(b) == s {
			return true
		}
	}
	return false
}
