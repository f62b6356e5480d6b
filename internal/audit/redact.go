package audit

import (
	"bytes"
	"strings"
)

// What is taken out before anything is stored (decisions 2.35):
//
//   - the value of every JSON or form member with one of the secret names,
//     however the name is spelled: in any case, with \u or %XX escapes, at any
//     depth, in JSON that is itself inside a string;
//   - whatever looks like one of our tokens, wherever it stands.
//
// Most bodies have neither, and a scan that knows only a few bytes says so;
// only the others are read token by token.

const redacted = "[redacted]"

// secretNames are the members whose values are never stored, lower case.
var secretNames = []string{
	"password", "newpassword", "token", "refreshtoken", "accesstoken", "activationtoken", "secret",
}

// isSecretName compares a name, already unescaped, without case. Folding is
// Unicode's: a stray long s or Kelvin sign hides nothing.
func isSecretName(name string) bool {
	for _, secret := range secretNames {
		if strings.EqualFold(name, secret) {
			return true
		}
	}
	return false
}

// suspect has the bytes at which suspicious looks twice: one that every secret
// name has and few other words do, the v of svc_, the backslash of an escape,
// line ends, and the last byte of the two runes that fold to an ASCII letter.
var suspect = func() (table [256]bool) {
	for _, c := range []byte("kKwWcCv\\\n\r\xbf\xaa") {
		table[c] = true
	}
	return table
}()

// suspicious reports whether a JSON text may hold something to take out, or
// line ends. It errs on the side of yes: every secret name contains password,
// token or secret.
func suspicious(b []byte) bool {
	for i, c := range b {
		if !suspect[c] {
			continue
		}
		switch c {
		case 'k', 'K':
			if folded(b, i-2, "token") {
				return true
			}
		case 'w', 'W':
			if folded(b, i-4, "password") {
				return true
			}
		case 'c', 'C':
			if folded(b, i-2, "secret") {
				return true
			}
		case 'v':
			if folded(b, i-1, "svc_") {
				return true
			}
		case '\\':
			if i+1 < len(b) && b[i+1] == 'u' {
				return true
			}
		case 0xbf:
			if i > 0 && b[i-1] == 0xc5 { // ſ, U+017F
				return true
			}
		case 0xaa:
			if i > 1 && b[i-1] == 0x84 && b[i-2] == 0xe2 { // K, U+212A
				return true
			}
		default:
			return true
		}
	}
	return false
}

// folded reports whether word, in lower-case ASCII, stands at b[at:] in any case.
func folded(b []byte, at int, word string) bool {
	if at < 0 || len(b)-at < len(word) {
		return false
	}
	for i := range len(word) {
		c := b[at+i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// tokenDigits is how many hexadecimal digits make a token of a prefix. The
// twelve characters that lists and logs show of a token have four.
const tokenDigits = 8

// maskTokens is s with everything that looks like one of our tokens taken out.
func maskTokens(s string) string {
	at := nextToken(s, 0)
	if at < 0 {
		return s
	}
	var b strings.Builder
	from := 0
	for ; at >= 0; at = nextToken(s, from) {
		b.WriteString(s[from:at])
		b.WriteString(redacted)
		from = at + tokenLength(s[at:])
	}
	b.WriteString(s[from:])
	return b.String()
}

// nextToken is where the next token in s begins, at or after from; -1 for none.
func nextToken(s string, from int) int {
	for from < len(s) {
		n := strings.Index(s[from:], "svc_")
		if n < 0 {
			return -1
		}
		if from += n; tokenLength(s[from:]) > 0 {
			return from
		}
		from += len("svc_")
	}
	return -1
}

// tokenLength is how many bytes of s the token has that s begins with; 0 for none.
func tokenLength(s string) int {
	const prefix = len("svc_api_")
	if !strings.HasPrefix(s, "svc_api_") && !strings.HasPrefix(s, "svc_whk_") {
		return 0
	}
	n := prefix
	for n < len(s) && isHex(s[n]) {
		n++
	}
	if n < prefix+tokenDigits {
		return 0
	}
	return n
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// hasToken reports whether b has something that may be a token.
func hasToken(b []byte) bool { return bytes.Contains(b, []byte("svc_")) }
