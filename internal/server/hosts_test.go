package server_test

import (
	"net/http"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

const hosted = `
tenant: acme
hosts: [acme.localhost, api.acme.example, "192.0.2.10", "[2001:db8::1]", xn--bcher-kva.example]
admin_hosts: [admin.acme.example]
public_api: {enabled: true}
users: [{email: olivia@acme.example, name: Olivia of Acme, owner: true}]
`

const hostedToo = `
tenant: other
hosts: [acme.localhost.example, other.localhost]
public_api: {enabled: true}
users: [{email: olivia@acme.example, name: Olivia of Other, owner: true}]
`

func TestHostsCompareWithoutPortCaseAndTrailingDot(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(hosted)
		w.Apply(hostedToo)
		acme, other := w.Key("olivia@acme.example"), w.KeyOf("other", "other.localhost", "olivia@acme.example")
		for _, host := range []string{
			"acme.localhost", "ACME.localhost", "Acme.LocalHost", "acme.localhost.", "ACME.LOCALHOST.", "acme.localhost:80", "acme.localhost:8080",
			"acme.localhost:65535", "acme.localhost.:443", "api.acme.example", "192.0.2.10", "192.0.2.10:8080", "[2001:db8::1]", "[2001:DB8::1]:443",
			"[2001:db8:0:0:0:0:0:1]", "xn--bcher-kva.example", "XN--BCHER-KVA.example",
		} {
			acme.Host = host
			if name := acme.Get(me).Want(200, "").Record()["name"]; name != "Olivia of Acme" {
				t.Errorf("%s is %v's", host, name)
			}
			other.Host = host
			other.Get(me).Want(401, "UNAUTHORIZED") // a key is invalid at another tenant's host
		}
		other.Host = "acme.localhost.example"
		if name := other.Get(me).Want(200, "").Record()["name"]; name != "Olivia of Other" {
			t.Errorf("acme.localhost.example is %v's", name)
		}
	})
}

// TestAnUnknownHostIsOneConstant404: the answer does not depend on host, path,
// credential or method.
func TestAnUnknownHostIsOneConstant404(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(hosted)
		olivia := w.Key("olivia@acme.example", origins("https://app.example"))
		want := ""
		check := func(a *gatetest.Answer) {
			t.Helper()
			whole(t, a).Want(404, "NOT_FOUND")
			h := a.Header.Clone()
			for _, name := range []string{"X-Request-Id", "Date", "X-RateLimit-Remaining", "X-RateLimit-Reset"} {
				h.Del(name)
			}
			var b strings.Builder
			if err := h.Write(&b); err != nil {
				t.Fatal(err)
			}
			got := b.String() + string(a.Body)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%s at %s is answered\n%s\nand another\n%s", a.Call, olivia.Host, got, want)
			}
		}
		for _, host := range []string{
			"unknown.localhost", "localhost", "acme", "acme.localhost.evil.example", "evil.acme.localhost", "xacme.localhost", "acme_localhost",
			"acme.localhost..", ".acme.localhost", "acme..localhost", "acme.localhost:0", "acme.localhost:65536", "acme.localhost:http", "acme.localhost:80:80",
			"admin.acme.example", "127.0.0.1", "192.0.2.11", "192.0.2.010", "3221225994", "[2001:db8::2]",
			"b%C3%BCcher.example", "*", "%00", "acme.localhost%00", strings.Repeat("a", 64) + ".localhost", strings.Repeat("a.", 200) + "localhost",
		} {
			olivia.Host = host
			check(olivia.Get(me))
		}
		olivia.Host = "unknown.localhost"
		check(olivia.Get("/nowhere"))
		check(olivia.Post(contact, `{"first_name":"Ada"}`))
		check(olivia.Do("PUT", me, ""))
		check(olivia.Post("/public/v1/auth/login", `{}`))
		check(olivia.With("Origin", "https://app.example").Get(me))
		check(olivia.With("Origin", "https://app.example").With("Access-Control-Request-Method", "GET").Do(http.MethodOptions, me, ""))
		check(olivia.With("X-Forwarded-Host", "acme.localhost").With("Forwarded", "host=acme.localhost").Get(me))
	})
}

// TestTheHostHeaderAloneNamesTheTenant: proxy headers do not count.
func TestTheHostHeaderAloneNamesTheTenant(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(hosted)
		w.Apply(hostedToo)
		acme := w.Key("olivia@acme.example")
		for _, name := range []string{"X-Forwarded-Host", "X-Host", "X-Original-Host", "Forwarded"} {
			value := "other.localhost"
			if name == "Forwarded" {
				value = "host=other.localhost"
			}
			if got := acme.With(name, value).Get(me).Want(200, "").Record()["name"]; got != "Olivia of Acme" {
				t.Errorf("%s made it %v's", name, got)
			}
		}
		// A host moves between tenants with the configuration.
		w.Apply("tenant: acme\nhosts: [acme.localhost]\n")
		acme.Host = "api.acme.example"
		acme.Get(me).Want(404, "NOT_FOUND")
		w.Apply("tenant: other\nhosts: [other.localhost, api.acme.example]\n")
		acme.Get(me).Want(401, "UNAUTHORIZED")
	})
}
