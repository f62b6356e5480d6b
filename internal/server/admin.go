package server

import (
	"context"
	"net/http"
	"net/url"

	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/staff"
)

// adminBase is what the path of every route of the admin surface begins with.
const adminBase = "/admin/v1/"

// The limits of the admin surface, in requests a minute: of one session, and of all
// sessions at one address, which a whole office may share.
const (
	sessionPerMinute      = 1200
	adminAddressPerMinute = 6000
	pagesPerMinute        = 6000 // of an address: the console's files
)

// checkAdminRecorder is checkRecorder for the admin surface, whose changes are
// kept whatever the tenant's toggle says.
func checkAdminRecorder(_ context.Context, x *exchange) error {
	if !x.s.recorder.Refuses(x.config.Tenant.ID) {
		return nil
	}
	x.unrecorded = true
	return errUnrecorded
}

// safe reports whether the request's method asks for no change.
func (x *exchange) safe() bool {
	return x.r.Method == http.MethodGet || x.r.Method == http.MethodHead || x.r.Method == http.MethodOptions
}

// changes reports whether the request asks for a change on the admin surface.
func (x *exchange) changes() bool {
	return x.surface != nil && x.surface.prefix == adminBase && !x.safe()
}

// visits reports whether a request asked, without a session cookie or another credential,
// whether there is a session, and was told that there is none: a visit of the console, which
// is no attempt to be recorded (contract Y7).
func (x *exchange) visits(status int) bool {
	return status == http.StatusUnauthorized && x.route != nil && x.route.Method == http.MethodGet && x.route.Pattern == adminBase+"session" &&
		!staff.Presents(x.r) && x.r.Header.Get("Authorization") == ""
}

// crossOrigin finds requests that pages of other origins make.
var crossOrigin = http.NewCrossOriginProtection()

// checkSameOrigin refuses a change that a page of another origin asks for: by the
// header Sec-Fetch-Site, which every current browser sends to a secure origin, or
// else by Origin, which every browser sends with a change. A request with neither
// is refused as well, and so is one with a body that is not JSON, which is all
// that a form can send.
func checkSameOrigin(_ context.Context, x *exchange) error {
	if x.safe() {
		return nil
	}
	if x.origin == "" && x.r.Header.Get("Sec-Fetch-Site") == "" {
		return x.refuse(errNoOrigin)
	}
	if err := crossOrigin.Check(x.r); err != nil || x.origin != "" && !x.ownOrigin() {
		return x.refuse(errCrossOrigin)
	}
	if x.r.ContentLength == 0 && len(x.r.Header["Content-Type"]) == 0 {
		return nil
	}
	if err := httpapi.CheckJSON(x.r.Header); err != nil {
		return x.refuse(err)
	}
	return nil
}

// ownOrigin reports whether the request's Origin is this host.
func (x *exchange) ownOrigin() bool {
	u, err := url.Parse(x.origin)
	return err == nil && u.Host != "" && u.Host == x.r.Host
}

var (
	errNoOrigin    = fault.New(fault.CORSDenied, "a change needs the header Origin or Sec-Fetch-Site, which browsers send; other programs set Origin to this host's")
	errCrossOrigin = fault.New(fault.CORSDenied, "the administration takes changes from its own pages only")
)

// checkSession finds the viewer of the request's staff session. A request without
// a valid one counts against its address.
func checkSession(ctx context.Context, x *exchange) error {
	viewer, session, err := x.s.staff.Authenticate(ctx, x.call)
	if fault.CodeOf(err) == fault.Unauthorized {
		x.w.Header()["Www-Authenticate"] = sessionChallenge
		return x.refuse(err)
	}
	if err != nil {
		return err
	}
	x.viewer, x.session, x.auth, x.userID = viewer, session, credential.Session, session.UserID
	return nil
}

var sessionChallenge = []string{`Session realm="/admin"`}

// checkSessionRate counts the request against the limits of its address and of its
// session. The answer's headers describe the session's, unless the address's is
// used up.
func checkSessionRate(_ context.Context, x *exchange) error {
	of := string(x.config.Tenant.ID)
	if !x.take(of+"/admin/address/"+httpapi.AddressKey(x.ip), adminAddressPerMinute) {
		return x.rateLimited()
	}
	if !x.take(of+"/admin/session/"+x.session.ID, sessionPerMinute) {
		return x.rateLimited()
	}
	return nil
}

// checkNeeds refuses a viewer who lacks what the route needs.
func checkNeeds(_ context.Context, x *exchange) error {
	if x.session.Stage != credential.Full && !x.route.Needs.BeforeFactor() {
		return fault.New(fault.Forbidden, "the sign-in is not complete").With("stage", x.session.Stage)
	}
	return x.route.Needs.Check(x.viewer)
}

// checkQuery refuses query parameters that the route does not take.
func checkQuery(_ context.Context, x *exchange) error {
	if x.r.URL.RawQuery == "" {
		return nil
	}
	query, err := httpapi.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return err
	}
	return x.route.CheckQuery(query)
}

// checkPage lets the console answer with one of its files, which are the same for
// everybody.
func checkPage(_ context.Context, x *exchange) error {
	if !x.take(string(x.config.Tenant.ID)+"/console/address/"+httpapi.AddressKey(x.ip), pagesPerMinute) {
		return x.rateLimited()
	}
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.w.Header()["Allow"] = []string{"GET, HEAD"}
		return fault.New(fault.MethodNotAllowed, "%s is not allowed here; allowed: GET, HEAD", x.r.Method)
	}
	x.respond = (*exchange).answerPage
	return nil
}

// answerPage answers with a file of the console.
func (x *exchange) answerPage(context.Context) (httpapi.Reply, error) {
	x.page = true
	return x.surface.pages.Page(x.r.URL.Path, x.r.Header), nil
}
