package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/fault"
)

func proxies(t testing.TB, list string) TrustedProxies {
	t.Helper()
	p, err := ParseTrustedProxies(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func from(peer string, forwarded ...string) *http.Request {
	return &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": forwarded}}
}

func TestTheClientIsThePeerOrTheRightMostUntrustedHop(t *testing.T) {
	trusted := proxies(t, "10.0.0.0/8, 192.0.2.1,2001:db8::/32")
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"no header", "203.0.113.7:1000", nil, "203.0.113.7"},
		{"an untrusted peer's header is nothing", "203.0.113.7:1000", []string{"8.8.8.8"}, "203.0.113.7"},
		{"nor is it looked at", "203.0.113.7:1000", []string{"rubbish"}, "203.0.113.7"},
		{"a trusted peer's is", "10.0.0.1:1000", []string{"8.8.8.8"}, "8.8.8.8"},
		{"a trusted peer without one", "10.0.0.1:1000", nil, "10.0.0.1"},
		{"a trusted peer with an empty one", "10.0.0.1:1000", []string{"", " \t"}, "10.0.0.1"},
		{"right-most untrusted", "10.0.0.1:1000", []string{"1.1.1.1, 8.8.8.8, 10.9.9.9, 192.0.2.1"}, "8.8.8.8"},
		{"lines are joined", "10.0.0.1:1000", []string{"1.1.1.1, 8.8.8.8", "10.9.9.9", "", "192.0.2.1"}, "8.8.8.8"},
		{"rubbish left of the answer does not matter", "10.0.0.1:1000", []string{"unknown, ,x, 8.8.8.8,10.1.1.1"}, "8.8.8.8"},
		{"all trusted", "10.0.0.1:1000", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"IPv6", "[2001:db8::1]:1000", []string{"2a00::1,[2001:db8::5]:443, [2001:db8::6]"}, "2a00::1"},
		{"mapped peer is IPv4", "[::ffff:10.0.0.1]:1000", []string{"8.8.8.8"}, "8.8.8.8"},
		{"mapped hop is IPv4", "10.0.0.1:1000", []string{"8.8.8.8, ::ffff:10.0.0.2"}, "8.8.8.8"},
		{"mapped answer is IPv4", "10.0.0.1:1000", []string{"::ffff:8.8.8.8"}, "8.8.8.8"},
		{"a hop with a port", "10.0.0.1:1000", []string{"1.2.3.4:5678"}, "1.2.3.4"},
		{"a bracketed hop with a port", "10.0.0.1:1000", []string{"[::1]:80"}, "::1"},
		{"the peer's zone is left out", "[fe80::1%eth0]:1000", nil, "fe80::1"},
	} {
		got, err := trusted.ClientIP(from(c.peer, c.forwarded...))
		if err != nil || got.String() != c.want {
			t.Errorf("%s: %v, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestMalformedHops(t *testing.T) {
	trusted := proxies(t, "10.0.0.0/8")
	for _, header := range []string{
		"unknown", "8.8.8.8,", "8.8.8.8,,10.0.0.2", ",", "1.2.3", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:65536", "fe80::1%eth0", "[::1", "[1.2.3.4]",
		"8.8.8.8 8.8.8.8", "01.2.3.4", `"1.2.3.4"`, "1.2.3.4\x00", "for=1.2.3.4", "10.0.0.0/8",
	} {
		if got, err := trusted.ClientIP(from("10.0.0.1:1", header)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v, %v", header, got, err)
		}
	}
	if _, err := trusted.ClientIP(from("@")); err == nil || fault.CodeOf(err) != "" {
		t.Errorf("a peer without address: %v", err)
	}
}

func TestUntrustedPeerDoesNotAllocate(t *testing.T) {
	trusted, r := proxies(t, "10.0.0.0/8,2001:db8::/32"), from("203.0.113.7:1000", "8.8.8.8")
	if n := testing.AllocsPerRun(100, func() { _, _ = trusted.ClientIP(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTrustedProxiesAreCIDRsAndAddresses(t *testing.T) {
	for _, list := range []string{"", " ", "10.0.0.1", "10.0.0.0/8 , ::1", "::/0", "::ffff:10.0.0.0/104"} {
		if _, err := ParseTrustedProxies(list); err != nil {
			t.Errorf("%q: %v", list, err)
		}
	}
	for list, want := range map[string]string{
		"10.0.0.0/33": "expected an IP address or a network", "localhost": "localhost", "10.0.0.1/8": "did you mean 10.0.0.0/8?",
		"10.0.0.1,": `""`, "fe80::1%eth0": "expected", "10.0.0.1:80": "expected", "2001:db8::1/32": "did you mean 2001:db8::/32?",
	} {
		if _, err := ParseTrustedProxies(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
	if got, _ := proxies(t, "::ffff:10.0.0.0/104").ClientIP(from("10.1.1.1:1", "8.8.8.8")); got.String() != "8.8.8.8" {
		t.Errorf("a mapped network is not IPv4: %v", got)
	}
}

func TestParseAllowlist(t *testing.T) {
	list, err := ParseAllowlist([]string{" 10.0.0.0/8", "192.0.2.7", "", "192.0.2.7/32\r", "198.51.100.128/25"})
	if err != nil || !slices.Equal(list.Strings(), []string{"10.0.0.0/8", "192.0.2.7/32", "198.51.100.128/25"}) {
		t.Fatalf("%v, %v", list.Strings(), err)
	}
	for addr, want := range map[string]bool{
		"10.255.0.1": true, "11.0.0.0": false, "192.0.2.7": true, "192.0.2.8": false, "198.51.100.127": false, "198.51.100.128": true,
		"::ffff:10.0.0.1": true, "::1": false, "2001:db8::1": false, "::a00:1": false,
	} {
		if list.Allows(netip.MustParseAddr(addr)) != want {
			t.Errorf("%s allowed: want %v", addr, want)
		}
	}
	if list.Allows(netip.Addr{}) {
		t.Error("no address is allowed")
	}
	everyIPv4, _ := ParseAllowlist([]string{"0.0.0.0/0"})
	if everyIPv4.Allows(netip.MustParseAddr("::1")) || !everyIPv4.Allows(netip.MustParseAddr("1.2.3.4")) {
		t.Error("0.0.0.0/0 is not every IPv4 address and no other")
	}
	empty, err := ParseAllowlist([]string{"", " "})
	if err != nil || !empty.Allows(netip.MustParseAddr("::1")) || !(Allowlist{}).Allows(netip.MustParseAddr("1.1.1.1")) {
		t.Error("an empty list does not allow all")
	}
}

func TestWrongAllowlists(t *testing.T) {
	for line, want := range map[string]string{
		"10.0.0.1/8": `"10.0.0.1/8": the address has bits outside its network: did you mean 10.0.0.0/8?`,
		"::1":        "IPv4 only", "2001:db8::/32": "IPv4 only", "::ffff:10.0.0.0/104": "IPv4 only",
		"10.0.0.0/33": "expected an IP address or a network", "10.0.0.0/": "expected", "10.0.0/8": "expected", "*": "expected",
		"10.0.0.0/08": "expected", "10.0.0.0 /8": "expected", "010.0.0.0/8": "expected",
	} {
		if _, err := ParseAllowlist([]string{"10.0.0.0/8", line}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
}

// The reference joins all headers, splits them and walks them from the right
// with package net.
func naiveClientIP(trusted []*net.IPNet, peer net.IP, lines []string) (net.IP, bool) {
	isTrusted := func(ip net.IP) bool {
		return slices.ContainsFunc(trusted, func(n *net.IPNet) bool { return n.Contains(ip) })
	}
	lines = slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Trim(l, " \t") == "" })
	hops := strings.Split(strings.Join(lines, ","), ",")
	if len(lines) == 0 {
		hops = nil
	}
	for client, i := peer, len(hops)-1; ; i-- {
		if i < 0 || !isTrusted(client) {
			return client, true
		}
		hop := strings.Trim(hops[i], " \t")
		if client = net.ParseIP(hop); client != nil {
			continue
		}
		if h, port, err := net.SplitHostPort(hop); err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); err == nil && fmt.Sprint(n) == strings.TrimLeft(port[:len(port)-1], "0")+port[len(port)-1:] {
				hop = h
				client = net.ParseIP(h)
			}
		} else if strings.HasPrefix(hop, "[") && strings.HasSuffix(hop, "]") && strings.Contains(hop, ":") {
			client = net.ParseIP(hop[1 : len(hop)-1])
		}
		if client == nil || strings.Contains(hops[i], "[") != (strings.Contains(hop, ":")) {
			return nil, false
		}
	}
}

func FuzzTrustedProxies(f *testing.F) {
	f.Add("10.0.0.1", "1.1.1.1, 8.8.8.8", "10.2.2.2")
	f.Add("2001:db8::1", "unknown, 8.8.8.8:90", "[2001:db8::2]:443")
	f.Add("203.0.113.7", "x", "")
	f.Add("10.0.0.1", "::ffff:10.1.1.1", "[::ffff:10.1.1.1]:1,10.0.0.3:2")
	trusted := proxies(f, "10.0.0.0/8,2001:db8::/32,192.0.2.1")
	var reference []*net.IPNet
	for _, cidr := range []string{"10.0.0.0/8", "2001:db8::/32", "192.0.2.1/32"} {
		_, n, _ := net.ParseCIDR(cidr)
		reference = append(reference, n)
	}
	f.Fuzz(func(t *testing.T, peer, first, second string) {
		ip := net.ParseIP(peer)
		if ip == nil {
			return
		}
		want, ok := naiveClientIP(reference, ip, []string{first, second})
		got, err := trusted.ClientIP(from(net.JoinHostPort(peer, "1"), first, second))
		switch {
		case ok != (err == nil):
			t.Fatalf("%q, %q: %v, reference %v", first, second, err, want)
		case ok && got.String() != want.String():
			t.Fatalf("%q, %q: %v, reference %v", first, second, got, want)
		case !ok && fault.CodeOf(err) != fault.Validation:
			t.Fatalf("%q, %q: %v", first, second, err)
		}
	})
}

// bitString returns an IPv4 address as 32 characters 0 and 1, or "".
func bitString(text string) string {
	bits := ""
	parts := strings.Split(text, ".")
	for _, p := range parts {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || fmt.Sprint(n) != p {
			return ""
		}
		bits += fmt.Sprintf("%08b", n)
	}
	if len(parts) != 4 {
		return ""
	}
	return bits
}

func FuzzAllowlist(f *testing.F) {
	f.Add("10.0.0.0/8", "10.1.2.3")
	f.Add("192.0.2.7", "192.0.2.6")
	f.Add("10.0.0.1/8", "1.1.1.1")
	f.Add("0.0.0.0/0", "255.255.255.255")
	f.Add("128.0.0.0/1", "::1")
	f.Fuzz(func(t *testing.T, line, client string) {
		addr, err := netip.ParseAddr(client)
		if err != nil || strings.TrimSpace(line) != line || line == "" {
			return
		}
		base, length, cidr := strings.Cut(line, "/")
		bits, n := bitString(base), 32
		if cidr {
			n, err = strconv.Atoi(length)
			if err != nil || n < 0 || n > 32 || strconv.Itoa(n) != length {
				bits = ""
			}
		}
		valid := bits != "" && !strings.Contains(bits[min(n, len(bits)):], "1")
		list, err := ParseAllowlist([]string{line})
		if valid != (err == nil) {
			t.Fatalf("%q: %v, reference says valid %v", line, err, valid)
		}
		if !valid {
			return
		}
		address := bitString(addr.Unmap().String())
		if want := address != "" && address[:n] == bits[:n]; list.Allows(addr) != want {
			t.Fatalf("%q allows %v: reference says %v", line, addr, want)
		}
		if again, err := ParseAllowlist(list.Strings()); err != nil || !slices.Equal(again.Strings(), list.Strings()) {
			t.Fatalf("%q reads back as %v, %v", line, again.Strings(), err)
		}
	})
}

func BenchmarkClientIP(b *testing.B) {
	trusted := proxies(b, "10.0.0.0/8,2001:db8::/32")
	direct, proxied := from("203.0.113.7:1000"), from("10.0.0.1:1000", "203.0.113.7, 10.2.2.2")
	b.Run("untrusted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = trusted.ClientIP(direct)
		}
	})
	b.Run("trusted", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = trusted.ClientIP(proxied)
		}
	})
}
