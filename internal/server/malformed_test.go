package server_test

import (
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
)

// These are requests that no client library sends. Wherever HTTP allows an
// answer, it is in the envelope, with the headers of contract H7.

func TestMalformedRequestsAreAnsweredInTheEnvelope(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	sam := w.Key("sam@acme.example")
	const get, host, end = "GET /public/v1/me HTTP/1.1\r\n", "Host: acme.localhost\r\n", "\r\n"
	auth := "Authorization: Bearer " + sam.Token + "\r\n"
	post := "POST " + contact + " HTTP/1.1\r\n" + host + auth + "Content-Type: application/json\r\n"
	const chunked = "Transfer-Encoding: chunked\r\n"
	for name, x := range map[string]struct {
		text   string
		status int
		code   fault.Code
	}{
		// Hosts
		"two Host headers":            {get + host + "Host: other.localhost\r\n" + auth + end, 400, fault.Validation},
		"the same Host twice":         {get + host + host + auth + end, 400, fault.Validation},
		"no Host":                     {get + auth + end, 400, fault.Validation},
		"an empty Host":               {get + "Host:\r\n" + auth + end, 404, fault.NotFound},
		"a Host with a path":          {get + "Host: acme.localhost/x\r\n" + auth + end, 400, fault.Validation},
		"a Host with white space":     {get + "Host: acme localhost\r\n" + auth + end, 400, fault.Validation},
		"a Host with user info":       {get + "Host: acme.localhost@other\r\n" + auth + end, 400, fault.Validation},
		"a Host header continued":     {get + "Host: acme.localhost\r\n .evil\r\n" + auth + end, 400, fault.Validation},
		"a Host with a zone":          {get + "Host: [2001:db8::1%25eth0]\r\n" + auth + end, 404, fault.NotFound},
		"absolute form, its own host": {"GET http://acme.localhost/public/v1/me HTTP/1.1\r\nHost: other.localhost\r\n" + auth + end, 200, ""},
		"absolute form, another host": {"GET http://other.localhost/public/v1/me HTTP/1.1\r\n" + host + auth + end, 404, fault.NotFound},
		"absolute form, bad host":     {"GET http://%zz/public/v1/me HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"HTTP/1.0 without a Host":     {"GET /public/v1/me HTTP/1.0\r\n" + auth + end, 404, fault.NotFound},
		"HTTP/1.0 with a Host":        {"GET /public/v1/me HTTP/1.0\r\n" + host + auth + end, 200, ""},

		// Request line
		"no request line":            {"nonsense\r\n\r\n", 400, fault.Validation},
		"a version of the future":    {"GET /public/v1/me HTTP/3.0\r\n" + host + auth + end, 505, fault.Validation},
		"HTTP/2's opening":           {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 404, fault.NotFound},
		"a method that is no token":  {"G(T /public/v1/me HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"an unknown method":          {"BREW /public/v1/me HTTP/1.1\r\n" + host + auth + end, 405, fault.MethodNotAllowed},
		"a method in lower case":     {"get /public/v1/me HTTP/1.1\r\n" + host + auth + end, 405, fault.MethodNotAllowed},
		"TRACE":                      {"TRACE /public/v1/me HTTP/1.1\r\n" + host + auth + end, 405, fault.MethodNotAllowed},
		"CONNECT, authority form":    {"CONNECT acme.localhost:80 HTTP/1.1\r\n" + host + auth + end, 404, fault.NotFound},
		"CONNECT, a path":            {"CONNECT /public/v1/me HTTP/1.1\r\n" + host + auth + end, 405, fault.MethodNotAllowed},
		"OPTIONS of the server":      {"OPTIONS * HTTP/1.1\r\n" + host + auth + end, 404, fault.NotFound},
		"a path that does not begin": {"GET public/v1/me HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"NUL in the path":            {"GET /public/v1/m\x00e HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"a bad escape":               {"GET /public/v1/%zz HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"a bad escape in the query":  {"GET " + contact + "?limit=%zz HTTP/1.1\r\n" + host + auth + end, 400, fault.Validation},
		"a fragment":                 {"GET /public/v1/me#x HTTP/1.1\r\n" + host + auth + end, 404, fault.NotFound},

		// Headers
		"a header name with a space": {get + host + auth + "Bad Name: x\r\n" + end, 400, fault.Validation},
		"white space before a colon": {get + host + auth + "Name : x\r\n" + end, 400, fault.Validation},
		"a header without a colon":   {get + host + auth + "nonsense\r\n" + end, 400, fault.Validation},
		"NUL in a header":            {get + host + auth + "X-A: a\x00b\r\n" + end, 400, fault.Validation},
		"a header of 80 KiB":         {get + host + auth + "X-A: " + strings.Repeat("a", 80<<10) + "\r\n" + end, 431, fault.PayloadTooLarge},
		"headers of 80 KiB":          {get + host + auth + strings.Repeat("X-A: aaaaaaaaaa\r\n", 5000) + end, 431, fault.PayloadTooLarge},
		"bare line feeds":            {strings.ReplaceAll(get+host+auth+end, "\r\n", "\n"), 200, ""},
		"an unknown expectation":     {get + host + auth + "Expect: tea\r\n" + end, 417, fault.Validation},
		"the same in HTTP/1.0":       {"GET /public/v1/me HTTP/1.0\r\n" + host + auth + "Expect: tea\r\n" + end, 417, fault.Validation},
		"two Authorization headers":  {get + host + auth + auth + end, 401, fault.Unauthorized},

		// Bodies
		"a chunk of bad size":          {post + chunked + "\r\nzz\r\n{}\r\n0\r\n\r\n", 400, fault.Validation},
		"a chunk that is too short":    {post + chunked + "\r\n5\r\n{}\r\n0\r\n\r\n", 400, fault.Validation},
		"chunked and a length":         {post + chunked + "Content-Length: 3\r\n\r\n12\r\n{\"first_name\":\"A\"}\r\n0\r\n\r\n", 201, ""},
		"an unknown transfer encoding": {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, fault.Validation},
		"a negative length":            {post + "Content-Length: -1\r\n\r\n{}", 400, fault.Validation},
		"a length that is no number":   {post + "Content-Length: two\r\n\r\n{}", 400, fault.Validation},
		"a length beyond all numbers":  {post + "Content-Length: 99999999999999999999\r\n\r\n{}", 400, fault.Validation},
		"two lengths":                  {post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400, fault.Validation},
		"no length at all":             {post + "\r\n", 400, fault.Validation},
	} {
		a := whole(t, raw(t, w, x.text))
		if a.Status != x.status || a.Code() != string(x.code) {
			t.Errorf("%s: %d %s, want %d %s: %s", name, a.Status, a.Code(), x.status, x.code, a.Body)
		}
	}
	sam.Get(me).Want(200, "")
}

// TestPathsAreTakenAsTheyStand: paths are not cleaned, redirected or decoded
// twice.
func TestPathsAreTakenAsTheyStand(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		id := sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		for _, path := range []string{
			"/public/v1/me/", "//public/v1/me", "/public//v1/me", "/public/v1//me", "/./public/v1/me", "/public/v1/x/../me",
			"/public/v1/%2e/me", "/public/v1/x/%2e%2e/me", "/public/v1/x%2f..%2fme", "/public%2fv1%2fme", "/PUBLIC/v1/me", "/public/v1/Me",
			"/public/v1/me%00", "/public/v1/me%20", "/public/v1/me;a=b", "/public/v1/%C0%AEme", "/public/v1/me%3F",
			"/public/v1/data/contact/", "/public/v1/data//contact", "/public/v1/data/contact//" + id, contact + "/" + id + "/", contact + "/" + id + "/x",
			"/public/v1/data/Contact", "/public/v1/data/CONTACT", "/public/v1/data/contact%20", "/public/v1/data/contact%00", "/public/v1/data/%ff",
			"/public/v1/data/contact%2F" + id, "/public/v1/data/contact%252F" + id, "/public/v1/data/account%2F..%2Fcontact", "/public/v1/data/..",
			"/public/v1/data/%2e%2e/me", "/public/v1/data/contact/../contact", contact + "/%2e", contact + "/%2e%2e",
			contact + "/" + strings.ToUpper(id), contact + "/" + id + "%20", contact + "/" + id + "%00", contact + "/%00", contact + "/%ff%fe",
			contact + "/" + id + "%2F", contact + "/x%2F" + id, contact + "/" + strings.ReplaceAll(id, "-", ""), contact + "/%7B" + id + "%7D",
			contact + "/" + strings.Repeat("x", 9000), contact + "/'%20OR%201=1--", "/public/v1/data/user/%00", "/public/v1/data/user/%ff", "/public/v1/data/user%00",
		} {
			for _, method := range []string{"GET", "PATCH", "DELETE"} {
				a := whole(t, sam.Do(method, path, `{"score":1}`))
				ok := a.Status == 404
				switch { // these name an entity type: sam may not use users, and a list takes other methods
				case strings.HasPrefix(path, "/public/v1/data/user/"):
					ok = ok || a.Status == 403
				case method != "GET":
					ok = ok || a.Status == 405
				}
				if !ok {
					t.Errorf("%s: %d %s", a.Call, a.Status, a.Body)
				}
			}
		}
		// An escaped form of a permitted character is the same path.
		sam.Get("/public/v1/%6de").Want(200, "")
		sam.Get("/public/v1/data/%63ontact/"+strings.ReplaceAll(id, "-", "%2D")).Want(200, "")
		if got := sam.Get(contact + "/" + id).Record()["score"]; got != nil {
			t.Errorf("something was written: score %v", got)
		}
	})
}

// TestARefusedRequestLeavesALine: net/http's own refusals are logged.
func TestARefusedRequestLeavesALine(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(acme)
	a := raw(t, w, "GET /public/v1/me HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
	w.Nodes[0].Stop()
	for _, line := range w.Nodes[0].Log.Lines(t) {
		if line["event"] == "server.refused" && line["request_id"] == a.Header.Get("X-Request-Id") && line["status"] == 400.0 {
			return
		}
	}
	t.Error("no line says server.refused")
}
