package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/admin"
	"gatehouse/internal/apikey"
	"gatehouse/internal/audit"
	"gatehouse/internal/console"
	"gatehouse/internal/data"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/identity"
	"gatehouse/internal/openapi"
	"gatehouse/internal/staff"
	"gatehouse/internal/tenant"
	"gatehouse/internal/transfer"
)

// surface is a part of what tenants' hosts serve. It defines which requests are
// for it, which checks they pass in which order, and its routes.
type surface struct {
	name   string
	hosts  tenant.HostKind // of the tenant
	prefix string          // of the paths; the surface with the longest one takes a request
	// orPublic surfaces are at the public hosts of a tenant that has no hosts of the
	// kind above.
	orPublic bool

	// checks are what every request of the surface passes before its route runs.
	checks []check
	// admission is what a request of a route that takes a credential passes
	// next. A custom endpoint runs it itself, if its mode asks for an API key.
	admission []check

	credentials []httpapi.Auth  // one of them is that of each route
	limits      []httpapi.Limit // likewise
	// perAddress returns how many requests a minute an address may send without
	// a valid credential.
	perAddress func(*tenant.Settings) int
	// readers reports whether pages of the request's origin may read an answer
	// if no credential decides that. If readers is nil, no page may.
	readers func(context.Context, *exchange) (bool, error)
	class   audit.Class // of requests to none of the routes

	routes []httpapi.Route
	router *router

	// pages are those of the surface besides its routes, if any.
	pages *console.Site
}

// A check refuses a request, or finds out something about it. Its error is the
// answer.
type check func(context.Context, *exchange) error

// surfaces are all that a server offers at the hosts of tenants. Beside them are
// the pages of the operator's listener (operations.go), which knows no tenant.
type surfaces []*surface

// newSurfaces returns every surface with its routes. The order of checks is that
// of contract H3. newSurfaces panics on a surface or a route that lacks a
// policy: that is a programming error, which any test finds.
func newSurfaces(data *data.Service, endpoints *endpoint.Service, identity *identity.Service, staff *staff.Service, openapi *openapi.Service,
	admin *admin.Service, transfer *transfer.Service, log *audit.AdminAPI, keys *apikey.Admin) surfaces {
	return surfaces{
		{
			name:        "public data",
			hosts:       tenant.PublicHost,
			checks:      []check{checkRecorder, checkAPIOn, checkPreflight, checkRoute},
			admission:   []check{checkCredential, checkAllowlist, checkOrigin, checkRate},
			credentials: []httpapi.Auth{httpapi.KeyOrJWT, httpapi.ByEndpoint},
			limits:      []httpapi.Limit{httpapi.PerCredential},
			perAddress:  unauthenticatedPerMinute,
			readers:     originsOfKeys,
			class:       audit.Other,
			routes:      slices.Concat(data.Routes(), endpoints.Routes()),
		},
		{
			name:        "External Identity",
			hosts:       tenant.PublicHost,
			prefix:      "/public/v1/auth/",
			checks:      []check{checkRecorder, checkIdentityOn, checkPreflight, checkRoute},
			admission:   []check{checkCredential, checkAllowlist, checkOrigin, checkRate},
			credentials: []httpapi.Auth{httpapi.Anonymous, httpapi.KeyOnly, httpapi.JWTOnly},
			limits:      []httpapi.Limit{httpapi.PerCredential, httpapi.PerRule},
			perAddress:  unauthenticatedPerMinute,
			readers:     originsOfIdentity,
			class:       audit.Auth,
			routes:      identity.Routes(),
		},
		{
			name:        "admin",
			hosts:       tenant.AdminHost,
			orPublic:    true,
			prefix:      adminBase,
			checks:      []check{checkAdminRecorder, checkRoute, checkSameOrigin},
			admission:   []check{checkSession, checkSessionRate, checkNeeds, checkQuery},
			credentials: []httpapi.Auth{httpapi.Anonymous, httpapi.Staff},
			limits:      []httpapi.Limit{httpapi.PerCredential, httpapi.PerRule},
			perAddress:  unauthenticatedPerMinute,
			class:       audit.Other,
			routes: slices.Concat(
				staff.Routes(),
				admin.AdminRoutes(),
				transfer.AdminRoutes(), // before those of one record, which they also match
				data.AdminRoutes(),
				openapi.AdminRoutes(),
				endpoints.AdminRoutes(),
				log.Routes(),
				keys.Routes(),
			),
		},
		{
			name:       "console",
			hosts:      tenant.AdminHost,
			orPublic:   true,
			prefix:     console.Base,
			checks:     []check{checkPage},
			perAddress: func(*tenant.Settings) int { return pagesPerMinute },
			class:      audit.Other,
			pages:      console.New(),
		},
	}.made()
}

// made creates the router of each surface. It panics on a surface or a route that
// lacks a policy.
func (list surfaces) made() surfaces {
	for _, sf := range list {
		if err := list.check(sf); err != nil {
			panic(err)
		}
		sf.router = newRouter(sf.routes)
	}
	return list
}

// check reports what a surface lacks, and which of its routes it does not admit.
func (list surfaces) check(sf *surface) error {
	if sf.name == "" || sf.hosts == 0 || len(sf.checks) == 0 || sf.perAddress == nil || sf.class == "" {
		return fmt.Errorf("surface %q: name, hosts, checks, limit of an address and audit class must be set", sf.name)
	}
	for i := range sf.routes {
		switch r := &sf.routes[i]; {
		case list.find(&tenant.Tenant{}, sf.hosts, r.Pattern) != sf:
			return fmt.Errorf("surface %s: another one takes requests to %s", sf.name, r.Pattern)
		case !slices.Contains(sf.credentials, r.Auth) || !slices.Contains(sf.limits, r.Limit):
			return fmt.Errorf("surface %s: it has no routes with the credential or the limit of %s %s", sf.name, r.Method, r.Pattern)
		case r.Auth != httpapi.Anonymous && len(sf.admission) == 0:
			return fmt.Errorf("surface %s: nothing checks the credential of %s %s", sf.name, r.Method, r.Pattern)
		}
	}
	return nil
}

// find returns the surface that takes requests to a path at a kind of host of a
// tenant, or nil.
func (list surfaces) find(t *tenant.Tenant, hosts tenant.HostKind, path string) (found *surface) {
	for _, sf := range list {
		if sf.at(t, hosts) && sf.under(path) && (found == nil || len(sf.prefix) > len(found.prefix)) {
			found = sf
		}
	}
	return found
}

// under reports whether a path begins with the surface's prefix, which ends at a slash.
func (sf *surface) under(path string) bool {
	rest, ok := strings.CutPrefix(path, sf.prefix)
	return ok && (rest == "" || rest[0] == '/' || sf.prefix == "" || strings.HasSuffix(sf.prefix, "/"))
}

// at reports whether the surface is at a kind of host of a tenant.
func (sf *surface) at(t *tenant.Tenant, hosts tenant.HostKind) bool {
	return sf.hosts == hosts || sf.orPublic && hosts == tenant.PublicHost && len(t.AdminHosts) == 0
}

// routes returns the routes of all surfaces.
func (list surfaces) routes() (routes []httpapi.Route) {
	for _, sf := range list {
		routes = append(routes, sf.routes...)
	}
	return routes
}

func unauthenticatedPerMinute(s *tenant.Settings) int { return s.UnauthenticatedPerIPPerMinute }
