package audit

import (
	"cmp"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

// maxPathFilter bounds the part of a path that a filter may name.
const maxPathFilter = 200

// filter reads a filter of entries. scope is what a cursor of such a list is good
// for.
func (q *params) filter(w access.Viewer) (f Filter, scope string) {
	f = Filter{
		KeyID: q.text("key"), Method: strings.ToUpper(q.text("method")), RequestID: strings.ToLower(q.text("requestId")), Path: q.text("path"),
		IP: q.text("ip"), Since: q.instant("from"), Until: q.instant("to"),
	}
	if who := q.text("user"); strings.Contains(who, "@") {
		f.User = who
	} else {
		f.UserID = who
	}
	if list := q.text("endpoint"); list != "" {
		f.Endpoints = strings.Split(list, ",")
		for _, pattern := range f.Endpoints {
			if !endpointPattern(pattern) {
				q.wrong["endpoint"] = "expected '/data/*', '/data/ENTITY', '/me', '/custom/*', '/custom/SLUG', '/auth/*' or '/admin/*', or several with commas"
			}
		}
		if len(f.Endpoints) > maxEndpointsAsked {
			q.wrong["endpoint"] = "expected at most " + strconv.Itoa(maxEndpointsAsked)
		}
	}
	q.status(&f)
	if text := q.text("credential"); text != "" {
		if f.Auth = strings.ToUpper(text); f.Auth == strings.ToUpper(authNone) {
			f.Auth = authNone
		}
		if (&Filter{Auth: f.Auth}).Check() != nil {
			q.wrong["credential"] = "expected one of " + strings.Join(auths, ", ")
		}
	}
	if (&Filter{RequestID: f.RequestID}).Check() != nil {
		q.wrong["requestId"] = "expected the id that the answer's header X-Request-Id has"
	}
	if len(f.Path) > maxPathFilter {
		q.wrong["path"] = "expected at most " + strconv.Itoa(maxPathFilter) + " characters"
	}
	var parts []string
	for _, name := range filterQuery {
		if name != "from" && name != "to" { // a page goes on below an entry, whatever the times
			parts = append(parts, q.text(name))
		}
	}
	return f, string(w.Tenant()) + "\x00" + strings.Join(parts, "\x00")
}

func (q *params) status(f *Filter) {
	switch text := q.text("status"); text {
	case "":
	case "errors":
		f.ErrorsOnly = true
	case "2xx", "4xx", "5xx":
		f.Class = text
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 100 || n > 599 {
			q.wrong["status"] = "expected errors, 2xx, 4xx, 5xx or one status such as 404"
		}
		f.Status = n
	}
}

// mayAsk reports whether a viewer may search for a user by this e-mail address.
func mayAsk(w access.Viewer, address string) bool {
	return w.MayNameByAddress() || user.EmailKey(address) == user.EmailKey(w.Email())
}

// maxPageSize is the longest page of entries.
const maxPageSize = 200

// pageSize reads the parameter limit.
func (q *params) pageSize() int { return cmp.Or(q.number("limit", 50, 1, maxPageSize), 50) }

// shows tells which parts of users a viewer may see.
type shows struct {
	self        string
	email, name bool
}

func showsOf(c *httpapi.Authed) shows {
	s := shows{self: string(c.Viewer.UserID())}
	if r, err := c.Viewer.OnUsers(); err == nil && c.Viewer.MayNameUsers() {
		s.email, s.name = r.Column("email").Read, r.Column("name").Read
	}
	return s
}
