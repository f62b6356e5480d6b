package identity

import (
	"testing"

	"gatehouse/internal/fault"
	"gatehouse/internal/ratelimit"
)

// answer is the answer of a route.
type answer struct {
	t      testing.TB
	call   string
	status int
	code   fault.Code
	err    *fault.Error
	raw    string
	data   map[string]any
	limit  *ratelimit.Result
}

// want checks the status and the code of an error, "" for none.
func (a answer) want(status int, code fault.Code) answer {
	a.t.Helper()
	if a.status != status || a.code != code {
		a.t.Fatalf("%s: %d %s %v %s, want %d %s", a.call, a.status, a.code, a.err, a.raw, status, code)
	}
	return a
}

func (a answer) text(name string) string {
	a.t.Helper()
	s, ok := a.data[name].(string)
	if !ok {
		a.t.Fatalf("%s: no text %q in %s", a.call, name, a.raw)
	}
	return s
}
