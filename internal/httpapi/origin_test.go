package httpapi

import (
	"slices"
	"strings"
	"testing"
)

func TestOriginsHaveOneForm(t *testing.T) {
	for in, want := range map[string]string{
		"https://portal.acme.example":      "https://portal.acme.example",
		"HTTPS://Portal.Acme.Example:443":  "https://portal.acme.example",
		"https://portal.acme.example:0443": "https://portal.acme.example",
		"http://localhost:80":              "http://localhost",
		"http://localhost:443":             "http://localhost:443",
		"http://localhost:5173":            "http://localhost:5173",
		"http://[::1]:3000":                "http://[::1]:3000",
		"http://127.0.0.1":                 "http://127.0.0.1",
		"capacitor://localhost":            "capacitor://localhost",
		"chrome-extension://abcdef":        "chrome-extension://abcdef",
		"app+x.1-y://localhost:80":         "app+x.1-y://localhost:80",
	} {
		if got, ok := CanonicalOrigin(in); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, ok, want)
		}
	}
}

func TestInvalidOrigins(t *testing.T) {
	for in, why := range map[string]string{
		"null":                     "null",
		"*":                        "wildcards",
		"https://*.acme.example":   "wildcards",
		"https://a.example/":       "did you mean https://a.example?",
		"https://a.example:8/x?y":  "did you mean https://a.example:8?",
		"https://a.example#x":      "did you mean https://a.example?",
		"https://u@a.example":      "user information",
		"a.example":                "expected scheme://host",
		"//a.example":              "expected scheme://host",
		"://a.example":             "expected scheme://host",
		"1x://a.example":           "expected scheme://host",
		"https:a.example":          "expected scheme://host",
		"https://":                 "expected a host name",
		"file://":                  "expected a host name",
		"https://a.example.":       "expected a host name",
		"https://a.example:0":      "port",
		"https://a.example:":       "port",
		"https://żółw.pl":          "xn--",
		"https://a.example b":      "expected a host name",
		"https://a, https://b":     "no path",
		"https://a.example\x00":    "expected a host name",
		"https://a.example\nX: y":  "expected a host name",
		"javascript:alert(1)":      "expected scheme://host",
		"https://a.example https:": "expected a host name",
	} {
		_, err := ParseOrigins([]string{"https://good.example", in})
		if err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", in, err, why)
		}
		if got, ok := CanonicalOrigin(in); ok || got != "" {
			t.Errorf("%q is taken for the origin %q", in, got)
		}
	}
}

func TestParseOrigins(t *testing.T) {
	got, err := ParseOrigins([]string{" https://A.example:443 ", "", "\t", "https://a.example", "http://localhost:5173\r"})
	if want := []string{"https://a.example", "http://localhost:5173"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if got, err := ParseOrigins(nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("nothing: %#v, %v", got, err)
	}
}

func BenchmarkCanonicalOrigin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		CanonicalOrigin("https://portal.acme.example")
	}
}
