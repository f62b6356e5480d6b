package httpapi

import (
	"net/netip"
	"strings"
)

const (
	maxHostLength  = 253
	maxLabelLength = 63
)

// CanonicalHost returns the form in which hosts are stored and compared:
// without port, in lower case, without a trailing dot (contract H2). It returns
// false for what cannot be a host: nothing, over 253 characters, user
// information, white space, a character outside [a-z0-9._-], an empty label or
// one that begins or ends with a hyphen, a number that is not an IPv4 address,
// a wrong port. An IPv6 address keeps its brackets. A canonical host is
// returned as it is, without an allocation.
func CanonicalHost(hostport string) (string, bool) {
	host, _, ok := splitHostPort(hostport)
	if !ok {
		return "", false
	}
	return canonicalHostname(host)
}

// splitHostPort splits off the port: "" when there is none, else 1 to 65535.
func splitHostPort(hostport string) (host, port string, ok bool) {
	colon := strings.LastIndexByte(hostport, ':')
	if colon < 0 || strings.HasSuffix(hostport, "]") {
		return hostport, "", true
	}
	host, port = hostport[:colon], hostport[colon+1:]
	if len(port) > 5 {
		return "", "", false
	}
	number := 0
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return "", "", false
		}
		number = number*10 + int(port[i]-'0')
	}
	return host, port, number >= 1 && number <= 65535
}

func canonicalHostname(host string) (string, bool) {
	if strings.HasPrefix(host, "[") {
		return canonicalIPv6(host)
	}
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > maxHostLength {
		return "", false
	}
	last, upper := "", false
	for rest, more := host, true; more; {
		last, rest, more = strings.Cut(rest, ".")
		ok, hasUpper := checkLabel(last)
		if !ok {
			return "", false
		}
		upper = upper || hasUpper
	}
	if strings.Trim(last, "0123456789") == "" { // no top-level domain is a number
		if _, err := netip.ParseAddr(host); err != nil {
			return "", false
		}
	}
	if upper {
		host = strings.ToLower(host)
	}
	return host, true
}

func checkLabel(label string) (ok, upper bool) {
	if label == "" || len(label) > maxLabelLength || label[0] == '-' || label[len(label)-1] == '-' {
		return false, false
	}
	for i := range len(label) {
		switch c := label[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case 'A' <= c && c <= 'Z':
			upper = true
		default:
			return false, false
		}
	}
	return true, upper
}

func canonicalIPv6(host string) (string, bool) {
	if len(host) < 2 || host[len(host)-1] != ']' {
		return "", false
	}
	addr, err := netip.ParseAddr(host[1 : len(host)-1])
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", false
	}
	return "[" + addr.String() + "]", true
}
