package audit

import (
	"slices"
	"strings"
)

// RedactPath returns a request's path without secrets. Every line and entry
// that shows a path shows this one. It takes out
//
//   - whatever looks like a token of ours, an access token or a random text, also
//     percent-encoded once more;
//   - what follows a segment that names a secret, as in /verify/…, unless it is
//     the id of something;
//   - the value of a pair with a secret's name, as in ;token=… or %3Ftoken=….
//
// A path without any of them, which is nearly every path, is returned unchanged.
func RedactPath(path string) string {
	if !suspiciousPath(path) {
		return path
	}
	segments := strings.Split(path, "/")
	named := false // the previous segment names a secret
	for i, s := range segments {
		follows := named
		named = namesSecret(s)
		segments[i] = redactSegment(s)
		if follows && s != "" && !isID(s) && !named {
			segments[i] = redacted
		}
	}
	return strings.Join(segments, "/")
}

// The lengths from which a text of upper and lower case letters counts as
// random: a complete refresh or one-time token has 43 characters, and one that
// was cut usually has a digit. Our ids, slugs and names have no upper case
// letters.
const (
	randomLength = 40
	cutLength    = 20
)

// suspiciousPath reports whether a path may have something to take out.
func suspiciousPath(path string) bool {
	start, capital := 0, false // of the segment; random texts and JWTs have upper case letters
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			if escapes[path[i]] {
				return true
			}
			capital = capital || 'A' <= path[i] && path[i] <= 'Z'
			continue
		}
		s := path[start:i]
		if namesSecret(s) || capital && (len(s) >= cutLength || nextJWT(s, 0) >= 0) {
			return true
		}
		start, capital = i+1, false
	}
	return strings.Contains(path, "svc_")
}

// escapes are the bytes of escapes and of pairs.
var escapes = [256]bool{'%': true, '=': true, '?': true, ';': true, '&': true}

// afterNames are segments that a secret follows, besides the names of secrets.
var afterNames = []string{"verify", "activate", "reset-password", "password-reset", "reset"}

func namesSecret(segment string) bool {
	if segment == "" {
		return false
	}
	switch segment[len(segment)-1] | 0x20 { // what each of these names ends with; nearly every segment ends here
	case 'd', 'e', 'n', 't', 'y':
	default:
		return false
	}
	return isSecretPair(segment) || slices.ContainsFunc(afterNames, func(name string) bool { return strings.EqualFold(name, segment) })
}

func redactSegment(s string) string {
	text := s
	for range 2 { // net/http has undone one encoding already
		if decoded := unescape(text); decoded != text {
			text = decoded
		}
	}
	if text != s && (looksRandom(text) || maskTokens(text) != text || maskJWTs(text) != text) {
		return redacted
	}
	before, query, has := strings.Cut(text, "?")
	if !has && strings.ContainsAny(text, "=&;") {
		before, query, has = "", text, true
	}
	if has {
		if masked := redactQuery(query); masked != query {
			if before != "" {
				before += "?"
			}
			return redactSegment(before) + masked
		}
	}
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return !base64url(byte(r)) || r > 'z' }) {
		if looksRandom(piece) {
			return redacted
		}
	}
	return maskJWTs(maskTokens(s))
}

// looksRandom reports whether a text looks like a refresh token or one-time
// token: base64url of some length with upper and lower case letters.
func looksRandom(s string) bool {
	if len(s) < cutLength {
		return false
	}
	capital, small, digit := false, false, false
	for i := range len(s) {
		switch c := s[i]; {
		case 'A' <= c && c <= 'Z':
			capital = true
		case 'a' <= c && c <= 'z':
			small = true
		case '0' <= c && c <= '9':
			digit = true
		case !base64url(c):
			return false
		}
	}
	return capital && small && (digit || len(s) >= randomLength) && !isID(s)
}

func base64url(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// isID reports whether a text has the form of a record's or user's id.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}

// jwtStart is the beginning of every JWT: its header is an object in base64url.
const jwtStart = "eyJ"

// nextJWT returns where the next JWT in s begins, at or after from; -1 for
// none.
func nextJWT(s string, from int) int {
	for from < len(s) {
		n := strings.Index(s[from:], jwtStart)
		if n < 0 {
			return -1
		}
		if from += n; jwtLength(s[from:]) > 0 {
			return from
		}
		from += len(jwtStart)
	}
	return -1
}

// jwtLength returns the length of the JWT that s begins with; 0 for none. A JWT
// without its signature counts: the rest of it is secret, too.
func jwtLength(s string) int {
	n, dots := 0, 0
	for n < len(s) && (base64url(s[n]) || s[n] == '.' && dots < 2) {
		if s[n] == '.' {
			dots++
		}
		n++
	}
	if dots == 0 {
		return 0
	}
	return n
}

// maskJWTs returns s with every JWT replaced.
func maskJWTs(s string) string {
	for at := nextJWT(s, 0); at >= 0; at = nextJWT(s, at+len(redacted)) {
		s = s[:at] + redacted + s[at+jwtLength(s[at:]):]
	}
	return s
}

// queryNames are names in a query, besides those of isSecretPair, under which
// other services put secrets. A form may have a field with such a name.
var queryNames = []string{
	"code", "key", "access_key", "sig", "signature", "auth", "authorization", "bearer", "jwt", "pwd", "session", "session_id", "sid",
}

// redactQuery is redactPairs for the query of a URL.
func redactQuery(query string) string {
	var b strings.Builder
	for len(query) > 0 {
		pair, separator := query, ""
		if n := strings.IndexAny(query, "&;"); n >= 0 {
			pair, separator = query[:n], query[n:n+1]
		}
		query = query[len(pair)+len(separator):]
		key, _, has := strings.Cut(pair, "=")
		name := unescape(key)
		if has && slices.ContainsFunc(queryNames, func(secret string) bool { return strings.EqualFold(name, secret) }) {
			pair = key + "=" + redacted
		}
		b.WriteString(redactPairs(maskJWTs(pair)))
		b.WriteString(separator)
	}
	return b.String()
}
