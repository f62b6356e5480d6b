// Package fault defines the one type of errors that callers of the API see, and
// the closed list of its codes (contract E1).
//
// A function that can fail for a reason that the caller may know returns a *Error.
// Any other error is foreign: the server logs it and answers a fixed INTERNAL, so
// that no internal detail is sent.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code is one of the codes of the error envelope.
type Code string

// The closed list of codes, each with its HTTP status in Status.
const (
	Unauthorized         Code = "UNAUTHORIZED"
	Forbidden            Code = "FORBIDDEN"
	CORSDenied           Code = "CORS_DENIED"
	IPDenied             Code = "IP_DENIED"
	NotFound             Code = "NOT_FOUND"
	Validation           Code = "VALIDATION"
	QueryTooBroad        Code = "QUERY_TOO_BROAD"
	RateLimited          Code = "RATE_LIMITED"
	APIDisabled          Code = "API_DISABLED"
	ExecutionError       Code = "EXECUTION_ERROR"
	ServiceUnavailable   Code = "SERVICE_UNAVAILABLE"
	TooManyRequests      Code = "TOO_MANY_REQUESTS"
	InvalidCredentials   Code = "INVALID_CREDENTIALS"
	EmailTaken           Code = "EMAIL_TAKEN"
	TokenExpired         Code = "TOKEN_EXPIRED"
	TokenInvalid         Code = "TOKEN_INVALID"
	AccountNotActive     Code = "ACCOUNT_NOT_ACTIVE"
	MethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	PayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	UnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	Conflict             Code = "CONFLICT"
	PreconditionFailed   Code = "PRECONDITION_FAILED"
	IdempotencyKeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	Overloaded           Code = "OVERLOADED"
	ExecutionTimeout     Code = "EXECUTION_TIMEOUT"
	Internal             Code = "INTERNAL"
)

var statuses = map[Code]int{
	Unauthorized: 401, Forbidden: 403, CORSDenied: 403, IPDenied: 403, NotFound: 404, Validation: 400, QueryTooBroad: 400,
	RateLimited: 429, APIDisabled: 503, ExecutionError: 422, ServiceUnavailable: 503, TooManyRequests: 429,
	InvalidCredentials: 401, EmailTaken: 409, TokenExpired: 400, TokenInvalid: 400, AccountNotActive: 403,
	MethodNotAllowed: 405, PayloadTooLarge: 413, UnsupportedMediaType: 415, Conflict: 409, PreconditionFailed: 412, IdempotencyKeyReused: 422, Overloaded: 503,
	ExecutionTimeout: 504, Internal: 500,
}

// Error is an error that the caller may see.
type Error struct {
	Code    Code
	Message string
	// Details is the envelope's details object; nil is sent as {}.
	Details map[string]any
	// RetryAfter, when positive, is sent as the Retry-After header in whole
	// seconds, rounded up.
	RetryAfter time.Duration
	// Status overrides the code's HTTP status; 0 keeps it. Only fail, of a flow or a
	// component, sets it.
	Status int
	// Charged says that the request counts against its budgets even if it is
	// OVERLOADED, because its own work was too much (contract L5).
	Charged bool
	// Reason says why, for the logs. It is never sent.
	Reason string
}

// New returns an error with the given code and a message for people. OVERLOADED
// always has a RetryAfter: one second, unless After sets another.
func New(code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Message: fmt.Sprintf(format, args...)}
	if code == Overloaded {
		e.RetryAfter = time.Second
	}
	return e
}

// Fields returns a VALIDATION error that names every failing field with its
// reason in details.fields (contract E5, R8).
func Fields(message string, reasons map[string]string) *Error {
	return &Error{Code: Validation, Message: message, Details: map[string]any{"fields": reasons}}
}

// With returns a copy of e that carries one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = make(map[string]any, len(e.Details)+1)
	for k, v := range e.Details {
		c.Details[k] = v
	}
	c.Details[key] = value
	return &c
}

// After returns a copy of e with RetryAfter d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.RetryAfter = d
	return &c
}

// Because returns a copy of e with Reason why.
func (e *Error) Because(why string) *Error {
	c := *e
	c.Reason = why
	return &c
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether target is a *Error with the same code, so that
// errors.Is(err, fault.New(fault.NotFound, "")) compares codes.
func (e *Error) Is(target error) bool {
	var t *Error
	return errors.As(target, &t) && t.Code == e.Code
}

// HTTPStatus returns the HTTP status of e.
func (e *Error) HTTPStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	return Status(e.Code)
}

// Status returns the HTTP status of a code, 500 for an unknown one.
func Status(c Code) int {
	if s, ok := statuses[c]; ok {
		return s
	}
	return 500
}

// Codes returns every code, in no order, for tests and documentation.
func Codes() []Code {
	list := make([]Code, 0, len(statuses))
	for c := range statuses {
		list = append(list, c)
	}
	return list
}

// CodeOf returns the code of err, or "" when err is nil or foreign.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
