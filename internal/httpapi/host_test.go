package httpapi

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestHostsCompareWithoutPortCaseAndTrailingDot(t *testing.T) {
	label63 := strings.Repeat("a", 63)
	host253 := strings.Repeat(label63+".", 3) + strings.Repeat("b", 61)
	for in, want := range map[string]string{
		"acme.localhost":       "acme.localhost",
		"ACME.Localhost":       "acme.localhost",
		"acme.localhost:8080":  "acme.localhost",
		"acme.localhost.:8080": "acme.localhost",
		"acme.localhost.":      "acme.localhost",
		"localhost":            "localhost",
		"my_shop.example":      "my_shop.example",
		"xn--bcher-kva.de":     "xn--bcher-kva.de",
		"127.0.0.1":            "127.0.0.1",
		"127.0.0.1:65535":      "127.0.0.1",
		"[::1]":                "[::1]",
		"[2001:DB8::1]:80":     "[2001:db8::1]",
		"[0:0:0:0:0:0:0:1]":    "[::1]",
		"1.example":            "1.example",
		host253:                host253,
		host253 + ".:1":        host253,
	} {
		if got, ok := CanonicalHost(in); !ok || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, ok, want)
		}
	}
}

func TestInvalidHosts(t *testing.T) {
	for _, in := range []string{
		"", ".", "..", "a..b", ".a", "a..", ":80", ".:80", "a:", "a:0", "a:65536", "a:080000", "a:-1", "a:8o", "a:80:80", "a: 80",
		"user@a", "user:pw@a", "a b", " a", "a ", "a\x00", "a\r\nb", "a/b", "a\\b", "a%20b", "żółw.pl", "a,b", "*.a", "-a.b", "a-.b",
		"256.1.1.1", "1.2.3", "1", "127.0.0.01", "a.1", "::1", "[::1", "::1]", "[]", "[::1]x", "[::1]:", "[::1]:x", "[fe80::1%eth0]", "[127.0.0.1]",
		"[g::1]", strings.Repeat("a", 64), strings.Repeat("a.", 127), strings.Repeat("a", 1<<20),
	} {
		if in == strings.Repeat("a.", 127) {
			in += "a"
		}
		if got, ok := CanonicalHost(in); ok || got != "" {
			t.Errorf("%.80q is taken for the host %q", in, got)
		}
	}
}

func TestCanonicalHostDoesNotAllocate(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { CanonicalHost("acme.localhost:8080") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCanonicalHost(f *testing.F) {
	for _, s := range []string{"acme.localhost:8080", "A.b.", "[::1]:80", "127.0.0.1", "a..b", "x@y", "1.2.3", "a:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		host, ok := CanonicalHost(in)
		if !ok {
			if host != "" {
				t.Fatalf("%q is no host, yet %q", in, host)
			}
			return
		}
		if again, ok := CanonicalHost(host); !ok || again != host {
			t.Fatalf("%q: canonical %q becomes %q, %v", in, host, again, ok)
		}
		if upper, ok := CanonicalHost(strings.ToUpper(in)); !ok || upper != host {
			t.Fatalf("%q: in upper case %q, %v, else %q", in, upper, ok, host)
		}
		u, err := url.Parse("http://" + in + "/x")
		if err != nil || u.Path != "/x" || u.User != nil {
			t.Fatalf("%q: net/url sees no host there: %v", in, err)
		}
		want := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		if addr, err := netip.ParseAddr(want); err == nil && addr.Is6() {
			want = "[" + addr.String() + "]"
		}
		if host != want || len(host) > 253 || strings.ContainsAny(host, " @/\x00") {
			t.Fatalf("%q: %q, net/url says %q", in, host, want)
		}
	})
}

func BenchmarkCanonicalHost(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		CanonicalHost("acme.localhost:8080")
	}
}
