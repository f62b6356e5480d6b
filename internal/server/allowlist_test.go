package server_test

import (
	"testing"

	"gatehouse/internal/gatetest"
)

// The server trusts 127.0.0.0/8, and the tests call from 127.0.0.1: their
// X-Forwarded-For counts as a proxy's.

func TestAnAllowlistHoldsForTheClientBehindTrustedProxies(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		any4 := w.Key("sam@acme.example", allowlist("0.0.0.0/0"))
		net := w.Key("sam@acme.example", allowlist("198.51.100.0/24", "203.0.113.7"))
		local := w.Key("sam@acme.example", allowlist("127.0.0.1"))
		open := w.Key("sam@acme.example")
		for _, x := range []struct {
			hops             []string // X-Forwarded-For, a line each
			net, any4, local bool     // whether the key may be used
		}{
			{nil, false, true, true}, // the peer itself
			{[]string{"198.51.100.1"}, true, true, false},
			{[]string{"198.51.101.1"}, false, true, false},
			{[]string{"203.0.113.7"}, true, true, false},
			{[]string{"203.0.113.8"}, false, true, false},
			{[]string{" 198.51.100.1\t"}, true, true, false},
			{[]string{"198.51.100.1:4711"}, true, true, false},
			{[]string{""}, false, true, true},

			// The right-most hop that is not a trusted proxy; the client may
			// have invented those to the left.
			{[]string{"198.51.100.1, 203.0.113.99"}, false, true, false},
			{[]string{"203.0.113.99, 198.51.100.1"}, true, true, false},
			{[]string{"nonsense, 198.51.100.1"}, true, true, false},
			{[]string{"198.51.100.1, 127.0.0.2"}, true, true, false},
			{[]string{"198.51.100.1, 127.0.0.2, 127.9.9.9"}, true, true, false},
			{[]string{"198.51.100.1", "203.0.113.99"}, false, true, false},
			{[]string{"203.0.113.99", "198.51.100.1"}, true, true, false},
			{[]string{"198.51.100.1", "127.0.0.2"}, true, true, false},
			{[]string{"127.0.0.1"}, false, true, true}, // all are trusted: the left-most
			{[]string{"127.0.0.1, 127.0.0.9"}, false, true, true},
			{[]string{"127.0.0.1, 10.0.0.1"}, false, true, false}, // 10.0.0.1 is not a trusted proxy

			// IPv6 never matches a list that is not empty; a mapped address is IPv4.
			{[]string{"2001:db8::1"}, false, false, false},
			{[]string{"[2001:db8::1]:443"}, false, false, false},
			{[]string{"::1"}, false, false, false},
			{[]string{"::"}, false, false, false},
			{[]string{"::ffff:198.51.100.1"}, true, true, false},
			{[]string{"::ffff:c633:6401"}, true, true, false},
			{[]string{"[::ffff:198.51.100.1]:443"}, true, true, false},
			{[]string{"::198.51.100.1"}, false, false, false}, // compatible, not mapped
			{[]string{"64:ff9b::198.51.100.1"}, false, false, false},
			{[]string{"198.51.100.1, ::ffff:127.0.0.1"}, true, true, false}, // a mapped proxy is a proxy
		} {
			for key, allowed := range map[*gatetest.Actor]bool{net: x.net, any4: x.any4, local: x.local, open: true} {
				a := *key
				a.Header = a.Header.Clone()
				a.Header["X-Forwarded-For"] = x.hops
				if got := whole(t, a.Get(me)); allowed && got.Status != 200 || !allowed && got.Code() != "IP_DENIED" {
					t.Errorf("X-Forwarded-For %q: %d %s, allowed %v", x.hops, got.Status, got.Body, allowed)
				}
			}
		}
		// Other headers are ignored.
		for _, name := range []string{"X-Real-Ip", "Forwarded", "True-Client-Ip", "Cf-Connecting-Ip", "X-Client-Ip", "X-Forwarded"} {
			value := "198.51.100.1"
			if name == "Forwarded" {
				value = "for=" + value
			}
			net.With(name, value).Get(me).Want(403, "IP_DENIED")
		}
	})
}

func TestAMalformedHopIs400(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		for _, hops := range []string{
			"nonsense", "unknown", "_hidden", "198.51.100", "198.51.100.1.1", "198.51.100.256", "0198.51.100.1", "3325256705", "198.51.100.1/32",
			"198.51.100.1,", ",198.51.100.1,", "198.51.100.1, nonsense", "198.51.100.1,,127.0.0.1", "2001:db8::1%eth0", "2001:db8::g", "[2001:db8::1",
			"[198.51.100.1]", "198.51.100.1:port", "198.51.100.1:99999", "for=198.51.100.1", "\"198.51.100.1\"", "198.51.100.1;", "::ffff:198.51.100.256",
		} {
			a := whole(t, from(sam, hops).Get(me))
			if a.Status != 400 || a.Code() != "VALIDATION" {
				t.Errorf("X-Forwarded-For %q: %d %s", hops, a.Status, a.Body)
			}
		}
		// Hops to the left of the client are not read.
		from(sam, "nonsense, 198.51.100.1").Get(me).Want(200, "")
	})
}
