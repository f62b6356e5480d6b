package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gatehouse/internal/access"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

// Needs says who may use a Staff route: the viewers that hold one of the system
// permissions that it lists, or all that AnyStaff or BeforeFactor stand for. The
// owner of the tenant holds every permission. The surface checks it, before the
// handler runs.
type Needs []string

var (
	// AnyStaff is for every staff member who is signed in.
	AnyStaff = Needs{"any staff"}
	// BeforeFactor is AnyStaff, and also sessions that have passed the password and
	// not the second factor. The Viewer of such a session may do nothing.
	BeforeFactor = Needs{"any staff, before the second factor"}
)

func (n Needs) String() string { return strings.Join(n, " or ") }

// open reports whether n asks for no permission.
func (n Needs) open() bool { return slices.Equal(n, AnyStaff) || slices.Equal(n, BeforeFactor) }

// BeforeFactor reports whether n is for sessions before the second factor, too.
func (n Needs) BeforeFactor() bool { return slices.Equal(n, BeforeFactor) }

// Check returns FORBIDDEN if a viewer lacks what n asks for.
func (n Needs) Check(w access.Viewer) error {
	if n.open() || slices.ContainsFunc(n, w.May) {
		return nil
	}
	return fault.New(fault.Forbidden, "this needs the permission %s", n).With("needs", []string(n))
}

// StaffSession is the session that a request of a Staff route was made with.
type StaffSession struct {
	ID string
	// UserID and Email are those of the user who signed in. While they act as
	// another user, the Viewer is that other user, and ActingAs their address.
	UserID   user.ID
	Email    string
	ActingAs string // "" unless acting
	// Real is the viewer of the user who signed in; it is the request's Viewer unless
	// they act as another one. The zero Viewer before the second factor.
	Real  access.Viewer
	Stage credential.Stage
	// SignedInAt is when the session began; it ends at ExpiresAt at the latest.
	SignedInAt, ExpiresAt time.Time
}

// Acting reports whether the user acts as another one.
func (s *StaffSession) Acting() bool { return s.ActingAs != "" }

// Lasting returns the viewers that must all be allowed a change which outlives the acting:
// the viewer, and while they act as another user also the one who signed in. What gives
// somebody a way in later is of this kind: keys, endpoints that run as a user, users with
// passwords, permission sets and roles.
func (c *Authed) Lasting() []access.Viewer {
	if c.Session == nil || !c.Session.Acting() {
		return []access.Viewer{c.Viewer}
	}
	return []access.Viewer{c.Viewer, c.Session.Real}
}

// LastingCheck returns the first error of a check of the viewers of Lasting.
func (c *Authed) LastingCheck(check func(access.Viewer) error) error {
	for _, w := range c.Lasting() {
		if err := check(w); err != nil {
			return err
		}
	}
	return nil
}

// Actor returns who makes a change, in the form that the change history keeps: the
// address of the user who signed in, and of the one they act as, if any.
func (s *StaffSession) Actor() string {
	if s.Acting() {
		return s.Email + " as " + s.ActingAs
	}
	return s.Email
}

// ListMeta is the meta of an answer whose data is a list.
type ListMeta struct {
	Count      int     `json:"count"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
}

// checkNeeds reports what a route lacks for the admin surface.
func (r *Route) checkNeeds() error {
	staff := r.Auth == Staff
	if staff != (len(r.Needs) > 0) {
		return fmt.Errorf("route %s %s: a staff route has Needs, every other has none", r.Method, r.Pattern)
	}
	if r.Needs.open() {
		return nil
	}
	for _, permission := range r.Needs {
		if !slices.Contains(access.SystemPermissions, permission) {
			return fmt.Errorf("route %s %s: needs %q: expected a system permission", r.Method, r.Pattern, permission)
		}
	}
	return nil
}

// ParseQuery parses a raw query. It returns VALIDATION if that is malformed.
func ParseQuery(raw string) (url.Values, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fault.New(fault.Validation, "the query is malformed: expected name=value pairs in percent encoding")
	}
	return values, nil
}

// CheckQuery returns VALIDATION for a query parameter that the route does not take,
// that occurs twice, or that is empty or no text.
func (r *Route) CheckQuery(query map[string][]string) error {
	wrong := map[string]string{}
	for name, values := range query {
		switch {
		case !r.takesQuery(name):
			wrong[strings.ToValidUTF8(name, "\ufffd")] = "unknown parameter"
		case len(values) > 1:
			wrong[name] = "given more than once"
		case values[0] == "":
			wrong[name] = "expected a value"
		case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0):
			wrong[name] = "expected valid UTF-8"
		}
	}
	if len(wrong) > 0 {
		return fault.Fields("the query has parameters that are not taken here", wrong)
	}
	return nil
}

func (r *Route) takesQuery(name string) bool {
	return slices.ContainsFunc(r.Query, func(known string) bool {
		if stem, ok := strings.CutSuffix(known, "*]"); ok {
			return strings.HasPrefix(name, stem) && strings.HasSuffix(name, "]")
		}
		return name == known
	})
}

// Decode reads the request's body strictly into a T, a struct with json tags. It
// returns the errors of Call.JSON and of DecodeStrict.
func Decode[T any](c *Call) (T, error) {
	var none T
	if err := CheckJSON(c.Request.Header); err != nil {
		return none, err
	}
	body, err := c.Body()
	if err != nil {
		return none, err
	}
	var value T
	err = c.Compute(func() error {
		value, err = DecodeStrict[T](body)
		return err
	})
	return value, err
}
