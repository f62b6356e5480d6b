package audit

import (
	"net/http"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/credential"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Event is one request and its answer. A string that does not apply is empty;
// the zero value of a member is always safe.
//
// No consumer keeps an event or what it refers to: its header and bodies may be
// changed as soon as the call that takes it returns.
type Event struct {
	Tenant    tenant.ID // "" for an unknown host: such a request is logged, but neither stored nor counted
	RequestID string
	Method    string
	Path      string // as sent, without the query; RedactPath of it is kept
	Query     string // raw
	Route     string // the pattern that matched; "" for none
	// Endpoint is what the entry is filtered and counted by: "/data/contact",
	// "/me", "/custom/slug", "/auth/login"; "" for none. It must be set only
	// for an existing entity type or slug: a made-up one costs the tenant a row
	// of usage a minute.
	Endpoint  string
	Status    int
	ErrorCode string
	// Reason is the reason of the answer, where the answer does not give it.
	Reason   string
	Start    time.Time
	Duration time.Duration
	IP       string
	Auth     credential.Kind // "" is credential.None

	UserID user.ID
	// RealUserID is the user who signed in, if they act as UserID.
	RealUserID   user.ID
	APIKeyID     string
	APIKeyPrefix string

	RequestHeader       http.Header
	RequestBody         []byte
	RequestParsed       bool   // RequestBody is known to be JSON: no more of it is read than is kept
	ContentType         string // of the request body
	ResponseBody        []byte
	ResponseContentType string
	// Rendered means that the service itself has made ResponseBody as JSON, so
	// that it need not be checked.
	Rendered bool

	Class   Class
	Persist bool // the result of Persisted
	// Uncounted requests are not part of the tenant's usage: those of the
	// administration.
	Uncounted bool
}

// heavy reports whether bodies are to be gone through that are worth a turn at the cores.
func (ev *Event) heavy() bool {
	return !ev.RequestParsed && len(ev.RequestBody) >= admission.Heavy || !ev.Rendered && len(ev.ResponseBody) >= admission.Heavy
}

// Class is the kind of a route for the audit log; each route names one.
type Class string

// The classes.
const (
	Standard Class = "standard" // /data/* and /me
	Custom   Class = "custom"   // /custom/*
	Auth     Class = "auth"     // /auth/*: bodies are never stored
	Admin    Class = "admin"    // /admin/v1/*
	SignIn   Class = "sign-in"  // /admin/v1/session and the like: bodies are never stored
	Other    Class = "other"    // unknown paths and everything else
)

// Persisted reports whether a request becomes an audit entry (contract G5).
// tenantToggle is the tenant's log_standard_requests, endpointToggle the custom
// endpoint's log_requests.
//
//   - The tenant's toggle covers every request of class Standard, every 4xx and
//     5xx of class Custom, and every early failure (401, 403, 429, 503) of any
//     class, unknown paths included.
//   - The endpoint's toggle covers the successes (below 400) of class Custom and
//     nothing else: with the tenant's toggle off its failures are not kept. The
//     request log has them in any case.
//   - Of the classes Admin and SignIn, early failures and every request that asks
//     for a change are kept, whatever the toggles say; endpointToggle is then whether
//     the request asks for a change.
func Persisted(class Class, status int, tenantToggle, endpointToggle bool) bool {
	if class == Admin || class == SignIn {
		return endpointToggle || isEarly(status)
	}
	if isEarly(status) {
		return tenantToggle
	}
	switch {
	case class == Standard:
		return tenantToggle
	case class == Custom && status < http.StatusBadRequest:
		return endpointToggle
	case class == Custom:
		return tenantToggle
	default:
		return false
	}
}

// isEarly reports whether a status is that of a refusal before the work began.
func isEarly(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true
	}
	return false
}
