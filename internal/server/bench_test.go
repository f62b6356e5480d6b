package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// discard is a ResponseWriter that discards what is written, so that net/http
// is not measured.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkServe measures a request from the end of net/http's reading to the
// start of its writing, with audit persistence off and on.
func BenchmarkServe(b *testing.B) {
	for _, persist := range []string{"false", "true"} {
		w := gatetest.New(b, db.SQLite)
		w.Apply(acme + "\n")
		w.Apply("tenant: acme\npublic_api: {enabled: true, log_standard_requests: " + persist + "}\n")
		sam := w.Key("sam@acme.example", gatetest.RateLimit(1_000_000_000))
		id := ""
		for range 60 {
			id = sam.Post("/public/v1/data/contact", `{"first_name":"Ada","score":7,"stage":"new"}`).Want(201, "").ID()
		}
		for name, path := range map[string]string{"one": "/public/v1/data/contact/" + id, "list": "/public/v1/data/contact"} {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			r.Host, r.RemoteAddr = gatetest.Host, "127.0.0.1:5000"
			r.Header.Set("Authorization", "Bearer "+sam.Token)
			b.Run(name+"/persist="+persist, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					w.Nodes[0].Server.ServeHTTP(discard{http.Header{}}, r)
				}
			})
		}
	}
}
