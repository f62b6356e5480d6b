package httpapi

import (
	"fmt"
	"slices"
	"strings"
)

// CanonicalOrigin returns the form in which origins are stored and compared
// (contract O1): scheme://host[:port] in lower case, without the scheme's
// default port. It returns false for anything else, "null" and wildcards
// included. Schemes of apps (capacitor://localhost) are origins too.
func CanonicalOrigin(header string) (string, bool) {
	canonical, reason := parseOrigin(header)
	return canonical, reason == ""
}

// ParseOrigins parses a list of origins, one a line. It ignores white space
// around a line, empty lines and repetitions. The result is canonical. The
// error is one sentence that names the line.
func ParseOrigins(lines []string) ([]string, error) {
	origins := make([]string, 0, len(lines))
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		canonical, reason := parseOrigin(line)
		if reason != "" {
			return nil, fmt.Errorf("%q: %s", line, reason)
		}
		if !slices.Contains(origins, canonical) {
			origins = append(origins, canonical)
		}
	}
	return origins, nil
}

// parseOrigin returns the canonical origin, or the reason why text is none.
func parseOrigin(text string) (canonical, reason string) {
	scheme, authority, found := strings.Cut(text, "://")
	switch {
	case text == "null":
		return "", "null is not an origin: it does not distinguish files and sandboxed frames"
	case strings.Contains(text, "*"):
		return "", "no wildcards: list each origin"
	case !found || !validScheme(scheme):
		return "", "expected scheme://host or scheme://host:port"
	case strings.ContainsAny(authority, "/?#"):
		end := strings.IndexAny(authority, "/?#")
		return "", fmt.Sprintf("an origin has no path: did you mean %s?", text[:len(scheme)+len("://")+end])
	case strings.Contains(authority, "@"):
		return "", "an origin has no user information"
	}
	host, port, ok := splitHostPort(authority)
	name, valid := canonicalHostname(host)
	if !ok || !valid || strings.HasSuffix(host, ".") {
		return "", "expected a host name (international ones in their xn-- form) or an address, and a port of 1 to 65535 if any"
	}
	scheme = strings.ToLower(scheme)
	port = strings.TrimLeft(port, "0")
	if port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return scheme + "://" + name, ""
	}
	return scheme + "://" + name + ":" + port, ""
}

func validScheme(scheme string) bool {
	for i := range len(scheme) {
		switch c := scheme[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return scheme != ""
}
