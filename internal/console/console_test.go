package console

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
)

func site(t *testing.T) *Site {
	t.Helper()
	s, err := newSite(fstest.MapFS{
		"index.html":                {Data: []byte("<!doctype html>app")},
		"index.html.br":             {Data: []byte("packed app")},
		"assets/main-abc123.js":     {Data: []byte("script script script")},
		"assets/main-abc123.js.br":  {Data: []byte("br")},
		"assets/main-abc123.js.gz":  {Data: []byte("gzip")},
		"assets/_helper-abc123.css": {Data: []byte("style")},
		"mark.svg":                  {Data: []byte("<svg/>")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhichFileAnswersWhichAddress(t *testing.T) {
	s := site(t)
	for address, want := range map[string]string{
		"/admin": "app", "/admin/": "app", "/admin/settings/keys": "app", "/admin/users/eva@customer.example": "app", "/admin/index.html": "app",
		"/admin/../../etc/passwd": "app", "/admin/assets/main-abc123.js": "script", "/admin/assets/_helper-abc123.css": "style", "/admin/mark.svg": "<svg/>",
		"/admin/assets/main-old.js": "no such file", "/admin/assets/": "no such file", "/admin/assets/main-abc123.js.br": "no such file",
	} {
		r := s.Page(address, http.Header{})
		if !strings.Contains(string(r.Data), want) || want == "no such file" && r.Status != 404 {
			t.Errorf("%s: %d %s, want %s", address, r.Status, r.Data, want)
		}
		for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Content-Type", "Cache-Control"} {
			if r.Header.Get(name) == "" {
				t.Errorf("%s: no %s", address, name)
			}
		}
	}
}

func TestWhatMayBeCached(t *testing.T) {
	s := site(t)
	for address, want := range map[string]string{
		"/admin/assets/main-abc123.js": "immutable", "/admin": "no-store", "/admin/keys": "no-store", "/admin/mark.svg": "no-cache", "/admin/assets/none.js": "no-store",
	} {
		if got := s.Page(address, http.Header{}).Header.Get("Cache-Control"); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	first := s.Page("/admin/mark.svg", http.Header{})
	again := s.Page("/admin/mark.svg", http.Header{"If-None-Match": {`"other", W/` + first.Header.Get("Etag")}})
	if again.Status != http.StatusNotModified || len(again.Data) > 0 {
		t.Errorf("a file that the client has: %d %s", again.Status, again.Data)
	}
}

func TestTheClientChoosesTheEncoding(t *testing.T) {
	s := site(t)
	for accept, want := range map[string]string{
		"": "script script script", "gzip": "gzip", "gzip, deflate, br, zstd": "br", "br;q=0, gzip;q=0.5": "gzip", "BR": "br", "identity": "script script script", "br;q=x": "script script script",
	} {
		r := s.Page("/admin/assets/main-abc123.js", http.Header{"Accept-Encoding": {accept}})
		if string(r.Data) != want || (r.Header.Get("Content-Encoding") != "") != (want != "script script script") || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %s as %q", accept, r.Data, r.Header.Get("Content-Encoding"))
		}
	}
}

func TestTheHeadersOfAPageForbidWhatItDoesNotNeed(t *testing.T) {
	policy := site(t).Page("/admin", http.Header{}).Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "connect-src 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if _, err := newSite(fstest.MapFS{"assets/x.js": {}}); err == nil {
		t.Error("a build without index.html is served")
	}
	if built == nil && !strings.Contains(string(New().Page("/admin", http.Header{}).Data), "make build") {
		t.Error("a binary without the console does not say how to get it")
	}
}
