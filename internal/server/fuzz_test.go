package server_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// FuzzRequest serves whatever net/http accepts as a request: the answer is
// complete, in the envelope, and never INTERNAL.
func FuzzRequest(f *testing.F) {
	w := gatetest.New(f, db.SQLite)
	w.Apply(acme)
	w.Apply(unlogged)
	w.Apply("tenant: acme\nunauthenticated_per_ip_per_minute: 1000000000\n")
	key := w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000_000), origins(app))
	id := key.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
	const host, auth, kind = "Host: acme.localhost\r\n", "Authorization: Bearer KEY\r\n", "Content-Type: application/json\r\n"
	for _, seed := range []string{
		"GET /public/v1/me HTTP/1.1\r\n" + host + auth + "\r\n",
		"GET " + contact + "?limit=2&filter[score]=1 HTTP/1.1\r\n" + host + auth + "\r\n",
		"GET " + contact + "/ID HTTP/1.1\r\n" + host + auth + "\r\n",
		"POST " + contact + " HTTP/1.1\r\n" + host + auth + kind + "Content-Length: 20\r\n\r\n{\"first_name\":\"Ada\"}",
		"PATCH " + contact + "/ID HTTP/1.1\r\n" + host + auth + kind + "Transfer-Encoding: chunked\r\n\r\n9\r\n{\"score\":\r\n2\r\n1}\r\n0\r\n\r\n",
		"DELETE " + contact + "/x HTTP/1.1\r\n" + host + auth + "\r\n",
		"PATCH /public/v1/data/user/x HTTP/1.0\r\n" + host + auth + kind + "Content-Length: 2\r\n\r\n{}",
		"OPTIONS " + contact + " HTTP/1.1\r\n" + host + "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n\r\n",
		"GET http://acme.localhost:80/public/v1/me?x=%zz HTTP/1.1\r\nHost: other\r\nX-Forwarded-For: 198.51.100.1, ::1\r\nOrigin: null\r\n\r\n",
		"TRACE //public/%2e/v1/%00 HTTP/1.1\r\n" + host + "\r\n",
		"CONNECT acme.localhost:80 HTTP/1.1\r\n" + host + "Authorization: Basic x\r\n\r\n",
	} {
		f.Add(seed)
	}
	serve := w.Nodes[0].Server
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(strings.NewReplacer("KEY", key.Token, "ID", id).Replace(text))))
		if err != nil {
			t.Skip("no request")
		}
		r.RemoteAddr = "127.0.0.1:5000"
		rec := httptest.NewRecorder()
		serve.ServeHTTP(rec, r)
		a := &gatetest.Answer{T: t, Call: r.Method + " " + r.URL.String(), Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
		if whole(t, a); a.Status >= 500 && a.Code() != "SERVICE_UNAVAILABLE" { // a JWT, while External Identity is off
			t.Errorf("%q: %d %s", text, a.Status, a.Body)
		}
	})
}
