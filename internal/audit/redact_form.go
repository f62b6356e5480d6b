package audit

import (
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// redactPairs returns a query or form without its secrets: the values of pairs
// with a secret name, JSON members inside values, and our tokens. Everything
// else stays unchanged. Of what is longer than maxBody without them the rest is left out.
func redactPairs(s string) string {
	if !suspiciousPairs(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 && b.Len() <= maxBody {
		pair, separator := s, ""
		if n := strings.IndexAny(s, "&;"); n >= 0 {
			pair, separator = s[:n], s[n:n+1]
		}
		s = s[len(pair)+len(separator):]
		b.WriteString(redactPair(pair))
		b.WriteString(separator)
	}
	return b.String()
}

// suspiciousPairs reports whether a query or form may have something to take
// out. An escape may always hide a name, and each of pairEnds contains "api",
// "passw", or one of words.
func suspiciousPairs(s string) bool {
	if strings.IndexByte(s, '%') >= 0 {
		return true
	}
	small := strings.ToLower(s)
	return strings.Contains(small, "api") || strings.Contains(small, "passw") || suspicious([]byte(s))
}

func redactPair(pair string) string {
	key, value, has := strings.Cut(pair, "=")
	name := unescape(key)
	if has && slices.ContainsFunc(segments(name), isSecretPair) {
		return maskTokens(key) + "=" + redacted
	}
	if nextToken(name, 0) >= 0 && nextToken(key, 0) < 0 {
		key = redacted
	}
	if !has {
		return maskTokens(key)
	}
	text := unescape(value)
	if looksLikeJSON(text) {
		r := redactor{nesting: 1, limit: maxBody}
		if changed, ok := r.text([]byte(text)); ok && changed {
			return maskTokens(key) + "=" + url.QueryEscape(string(r.out))
		}
	}
	if masked := maskTokens(value); masked != value || nextToken(text, 0) < 0 {
		return maskTokens(key) + "=" + masked
	}
	return maskTokens(key) + "=" + redacted
}

// segments returns the parts of a name like user[password] or user.password.
func segments(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '[' || r == ']' || r == '.' })
}

// unescape decodes %XX and +; a % that begins no escape is kept.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

// parsesAsForm reports whether a body is a form, and not another text that was
// sent with a form's content type: every escape is complete, and no name has
// characters that only other formats have in names.
func parsesAsForm(s string) bool {
	for pair := range strings.SplitSeq(s, "&") {
		key, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil || strings.ContainsAny(pair, ";\"<>{}\r\n") || strings.ContainsAny(name, "\"<>{}:") ||
			strings.ContainsFunc(name, unicode.IsControl) {
			return false
		}
		if _, err := url.QueryUnescape(value); err != nil {
			return false
		}
	}
	return true
}
