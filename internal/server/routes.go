package server

import (
	"net/http"
	"slices"
	"strings"

	"gatehouse/internal/data"
	"gatehouse/internal/httpapi"
)

// routes is the whole HTTP surface: what each line says of itself is checked
// here and kept in a golden list.
func routes(data *data.Service) []httpapi.Route {
	return slices.Concat(
		data.Routes(),
	)
}

// newMux builds the matcher of the routes. It panics on a route that lacks a
// policy: that is a programming error, found by the first test.
func newMux(routes []httpapi.Route) *http.ServeMux {
	byPattern := map[string]*matched{}
	mux := http.NewServeMux()
	for i := range routes {
		r := &routes[i]
		if err := r.Check(); err != nil {
			panic(err)
		}
		m := byPattern[r.Pattern]
		if m == nil {
			m = newMatched(r.Pattern)
			byPattern[r.Pattern] = m
			mux.Handle(r.Pattern, m)
		}
		m.add(r)
	}
	return mux
}

// matched is a pattern and the routes of its methods. The mux finds it; the
// exchange serves it.
type matched struct {
	segments []string // of the pattern; "{name}" is a wildcard
	routes   []*httpapi.Route
	allow    string
}

func newMatched(pattern string) *matched { return &matched{segments: strings.Split(pattern, "/")} }

func (m *matched) add(r *httpapi.Route) {
	m.routes = append(m.routes, r)
	var methods []string
	for _, r := range m.routes {
		methods = append(methods, r.Method)
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

// bind sets the request's path values, as the mux would have done had it
// called the handler itself.
func (m *matched) bind(r *http.Request) {
	rest := r.URL.Path
	for i, s := range m.segments {
		value := rest
		if i < len(m.segments)-1 {
			value, rest, _ = strings.Cut(rest, "/")
		}
		if strings.HasPrefix(s, "{") {
			r.SetPathValue(strings.Trim(s, "{}"), value)
		}
	}
}

// ServeHTTP makes matched an http.Handler, which the mux asks for. Nobody calls it.
func (m *matched) ServeHTTP(http.ResponseWriter, *http.Request) {
	panic("a matched route is served by its exchange")
}
