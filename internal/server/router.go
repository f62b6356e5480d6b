package server

import (
	"net/url"
	"slices"
	"strings"

	"gatehouse/internal/httpapi"
)

// router matches paths against the patterns of the routes, segment by segment,
// as they were sent: it neither cleans nor redirects, and an escaped slash does
// not separate segments. A wildcard matches one segment that is not empty.
type router struct{ patterns []*matched }

// newRouter panics on a route that lacks a policy: that is a programming error,
// which any test finds.
func newRouter(routes []httpapi.Route) *router {
	rt := &router{}
	byPattern := map[string]*matched{}
	for i := range routes {
		r := &routes[i]
		if err := r.Check(); err != nil {
			panic(err)
		}
		m := byPattern[r.Pattern]
		if m == nil {
			m = &matched{segments: strings.Split(r.Pattern, "/")[1:]}
			if !strings.Contains(r.Pattern, "{") {
				m.name = strings.TrimPrefix(r.Pattern, base)
			}
			byPattern[r.Pattern] = m
			rt.patterns = append(rt.patterns, m)
		}
		m.add(r)
	}
	return rt
}

// find returns the pattern that a path matches and the values of its wildcards,
// or nil.
func (rt *router) find(u *url.URL) (*matched, httpapi.Params) {
	path, escaped := u.Path, u.RawPath != ""
	if escaped {
		path = u.RawPath
	}
	for _, m := range rt.patterns {
		if params, ok := m.match(path, escaped); ok {
			return m, params
		}
	}
	return nil, httpapi.Params{}
}

// matched is a pattern and the routes of its methods.
type matched struct {
	segments []string // "{name}" is a wildcard
	name     string   // of a pattern without wildcards, as requests are counted by: "/me"; else ""
	routes   []*httpapi.Route
	allow    string
}

// base is what every path of the public API begins with (contract H1). Logs and
// usage name an endpoint without it.
const base = "/public/v1"

func (m *matched) add(r *httpapi.Route) {
	m.routes = append(m.routes, r)
	var methods []string
	for _, r := range m.routes {
		if !r.Chosen {
			methods = append(methods, r.Method)
		}
	}
	slices.Sort(methods)
	m.allow = strings.Join(methods, ", ")
}

func (m *matched) byMethod(method string) *httpapi.Route {
	for _, r := range m.routes {
		if r.Method == method {
			return r
		}
	}
	return nil
}

func (m *matched) match(path string, escaped bool) (params httpapi.Params, ok bool) {
	if path == "" || path[0] != '/' {
		return params, false
	}
	rest, more := path[1:], true
	for _, segment := range m.segments {
		if !more {
			return params, false
		}
		var value string
		value, rest, more = strings.Cut(rest, "/")
		if escaped {
			var err error
			if value, err = url.PathUnescape(value); err != nil {
				return params, false
			}
		}
		switch {
		case segment[0] != '{':
			if value != segment {
				return params, false
			}
		case value == "" || value == "." || value == "..":
			return params, false
		default:
			params.Add(segment[1:len(segment)-1], value)
		}
	}
	return params, !more
}
