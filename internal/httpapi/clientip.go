package httpapi

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"gatehouse/internal/fault"
)

// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted. The
// zero value trusts none.
type TrustedProxies struct{ networks []netip.Prefix }

// ParseTrustedProxies parses a comma-separated list of CIDRs and addresses; an
// empty list trusts none. The error is one sentence that names the entry.
func ParseTrustedProxies(list string) (TrustedProxies, error) {
	var t TrustedProxies
	if strings.TrimSpace(list) == "" {
		return t, nil
	}
	for entry := range strings.SplitSeq(list, ",") {
		network, err := parseNetwork(strings.TrimSpace(entry))
		if err != nil {
			return TrustedProxies{}, err
		}
		t.networks = append(t.networks, network)
	}
	return t, nil
}

// ClientIP returns the client address (contract H12): the peer of the
// connection, or, when that is a trusted proxy, the right-most hop of
// X-Forwarded-For that is not one (the left-most hop when all are). An
// IPv4-mapped IPv6 address counts as IPv4.
//
// A hop that is reached and is not an address is VALIDATION. Hops to the left
// of the client are not read: the client may have invented them. A peer without
// an IP address is a foreign error.
func (t TrustedProxies) ClientIP(r *http.Request) (netip.Addr, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("the peer has no IP address: %w", err)
	}
	client := peer.Addr().WithZone("").Unmap()
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0 && t.trusts(client); i-- {
		rest := lines[i]
		if strings.Trim(rest, " \t") == "" {
			continue
		}
		for more := true; more && t.trusts(client); {
			comma := strings.LastIndexByte(rest, ',')
			hop, ok := parseHop(strings.Trim(rest[comma+1:], " \t"))
			if !ok {
				return netip.Addr{}, fault.New(fault.Validation, "X-Forwarded-For: expected IP addresses separated by commas")
			}
			client, more = hop, comma >= 0
			rest = rest[:max(comma, 0)]
		}
	}
	return client, nil
}

// Secure reports whether a request is known to have come by TLS: to this server, or
// to a trusted proxy, which says so in X-Forwarded-Proto.
func (t TrustedProxies) Secure(r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !t.trusts(peer.Addr().WithZone("").Unmap()) {
		return false
	}
	values := r.Header["X-Forwarded-Proto"]
	return len(values) > 0 && strings.EqualFold(strings.TrimSpace(lastOf(values[len(values)-1])), "https")
}

// lastOf returns the last entry of a header's comma-separated list: the one that the
// nearest proxy added.
func lastOf(list string) string { return list[strings.LastIndexByte(list, ',')+1:] }

func (t TrustedProxies) trusts(addr netip.Addr) bool { return containsAddr(t.networks, addr) }

// parseHop parses an address with or without a port: 192.0.2.1, 192.0.2.1:443,
// 2001:db8::1, [2001:db8::1] or [2001:db8::1]:443. It refuses a zone, which
// means nothing on another machine.
func parseHop(hop string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(hop)
	if err != nil && strings.HasPrefix(hop, "[") && strings.HasSuffix(hop, "]") {
		addr, err = netip.ParseAddr(hop[1 : len(hop)-1])
		if err == nil && !addr.Is6() {
			return netip.Addr{}, false
		}
	} else if err != nil {
		var withPort netip.AddrPort
		withPort, err = netip.ParseAddrPort(hop)
		addr = withPort.Addr()
	}
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr.Unmap(), true
}

// Allowlist is an API key's list of IPv4 networks. The empty one allows every
// address.
type Allowlist struct{ networks []netip.Prefix }

// ParseAllowlist parses IPv4 CIDRs and single IPv4 addresses, one a line
// (contract K6). It ignores white space around a line, empty lines and
// repetitions. It refuses IPv6, and a network with host bits, because it does
// not say what its author meant. The error is one sentence that names the line.
func ParseAllowlist(lines []string) (Allowlist, error) {
	var list Allowlist
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.Contains(line, ":") {
			return Allowlist{}, fmt.Errorf("%q: an allowlist takes IPv4 only, because an IPv6 client never matches one", line)
		}
		network, err := parseNetwork(line)
		if err != nil {
			return Allowlist{}, err
		}
		if !slices.Contains(list.networks, network) {
			list.networks = append(list.networks, network)
		}
	}
	return list, nil
}

// Allows reports whether a client with this address may use the key. An IPv6
// client never matches a list that is not empty; an IPv4-mapped address is
// IPv4.
func (l Allowlist) Allows(addr netip.Addr) bool {
	return len(l.networks) == 0 || containsAddr(l.networks, addr.Unmap())
}

// Strings returns the list in canonical form, which ParseAllowlist accepts.
func (l Allowlist) Strings() []string {
	texts := make([]string, len(l.networks))
	for i, n := range l.networks {
		texts[i] = n.String()
	}
	return texts
}

func containsAddr(networks []netip.Prefix, addr netip.Addr) bool {
	for _, n := range networks {
		if n.Contains(addr) {
			return true
		}
	}
	return false
}

// parseNetwork parses a CIDR without host bits, or an address as a network of
// one. IPv4-mapped IPv6 becomes IPv4.
func parseNetwork(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q: expected an IP address or a network such as 10.0.0.0/8", text)
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	network, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q: expected an IP address or a network such as 10.0.0.0/8", text)
	}
	if network != network.Masked() {
		return netip.Prefix{}, fmt.Errorf("%q: the address has bits outside its network: did you mean %s?", text, network.Masked())
	}
	if network.Addr().Is4In6() && network.Bits() >= 96 {
		network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
	}
	return network, nil
}

// AddressKey returns the text by which a client address is counted (contract
// L4): an IPv4 address itself, or an IPv6 address's /64, all of which one
// client may have.
func AddressKey(addr netip.Addr) string {
	if addr.Is4() || !addr.IsValid() {
		return addr.String()
	}
	network, err := addr.WithZone("").Prefix(64)
	if err != nil {
		return addr.String()
	}
	return network.String()
}
