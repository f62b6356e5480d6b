package audit

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// What is taken out before anything is stored (contract G7):
//
//   - the value of every JSON or form member with one of the secret names,
//     however the name is spelled: in any case, with \u or %XX escapes, at any
//     depth, in JSON that is itself inside a string;
//   - whatever looks like one of our tokens, wherever it occurs.
//
// Most bodies have neither, which a scan for a few bytes shows; only the others
// are read token by token.

const redacted = "[redacted]"

// secretNames are the members whose values are never stored, in lower case.
// Each contains one of words, which the scan looks for.
var secretNames = []string{
	"password", "newpassword", "token", "refreshtoken", "accesstoken", "activationtoken", "secret",
	"new_password", "currentpassword", "current_password", "refresh_token", "access_token", "activation_token", "client_secret",
}

// pairEnds are the ends of secret names in queries, forms and paths, where
// clients put secrets of other services: x-api-key, id_token. A member of a
// record may have such a name without being a secret.
var pairEnds = []string{"apikey", "api_key", "api-key", "token", "password", "passwd", "secret"}

// isSecretPair is isSecretName for queries, forms and paths.
func isSecretPair(name string) bool {
	return isSecretName(name) || slices.ContainsFunc(pairEnds, func(end string) bool {
		return len(name) >= len(end) && strings.EqualFold(name[len(name)-len(end):], end)
	})
}

// isSecretName reports whether an unescaped name is a secret's, in any case. It
// folds Unicode, so that a long s or a Kelvin sign hides nothing.
func isSecretName(name string) bool {
	for _, secret := range secretNames {
		if strings.EqualFold(name, secret) {
			return true
		}
	}
	return false
}

// words are what a text is scanned for, in lower case: every secret name
// contains one of the first three, every token of ours the last. Each has two
// pairs of adjacent letters that are rare in other texts, one at an even offset
// and one at an odd offset: wherever a word occurs, one of its pairs begins at
// an even offset of the text.
var words = [...]struct {
	text string
	at   int // of the pair
}{
	{"token", 2}, {"token", 1}, {"password", 6}, {"password", 3}, {"secret", 2}, {"secret", 1}, {"svc_", 0}, {"svc_", 1},
}

// pairs has a bit for each pair of words, in any case.
var pairs = func() (bits [1 << 16 / 64]uint64) {
	for _, w := range words {
		for _, first := range bothCases(w.text[w.at]) {
			for _, second := range bothCases(w.text[w.at+1]) {
				pair := uint16(first) | uint16(second)<<8
				bits[pair>>6] |= 1 << (pair & 63)
			}
		}
	}
	return bits
}()

func bothCases(c byte) []byte {
	if 'a' <= c && c <= 'z' {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// isPair returns 1 in its lowest bit when two bytes are one of pairs.
func isPair(two uint16) uint64 { return pairs[two>>6] >> (two & 63) }

// unusual are escapes and the two runes that fold to an ASCII letter, any of
// which may hide a name, and line ends.
var unusual = [][]byte{[]byte(`\u`), []byte("\u017f"), []byte("\u212a"), []byte("\n"), []byte("\r")}

// suspicious reports whether a JSON text may have something to take out, or
// line ends. It may report true wrongly, never false. Every answer that is kept
// is scanned, so it compares eight bytes at a time.
func suspicious(b []byte) bool {
	for _, u := range unusual {
		if bytes.Contains(b, u) {
			return true
		}
	}
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if (isPair(uint16(x))|isPair(uint16(x>>16))|isPair(uint16(x>>32))|isPair(uint16(x>>48)))&1 != 0 && wordNear(b, i, i+8) {
			return true
		}
	}
	return wordNear(b, i, len(b))
}

// wordNear reports whether one of words has its pair at an even offset of
// b[from:to].
func wordNear(b []byte, from, to int) bool {
	for i := from; i+1 < to; i += 2 {
		if isPair(uint16(b[i])|uint16(b[i+1])<<8)&1 == 0 {
			continue
		}
		for _, w := range words {
			if folded(b, i-w.at, w.text) {
				return true
			}
		}
	}
	return false
}

// folded reports whether b[at:] begins with word, a lower-case ASCII text, in
// any case.
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

// tokenDigits is how many hexadecimal digits after a prefix make a token. The
// twelve characters of a token that lists and logs show have four.
const tokenDigits = 8

// maskTokens returns s with everything that looks like one of our tokens
// replaced.
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

// nextToken returns where the next token in s begins, at or after from; -1 for
// none.
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

// tokenLength returns the length of the token that s begins with; 0 for none.
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

// hasToken reports whether b may have a token.
func hasToken(b []byte) bool { return bytes.Contains(b, []byte("svc_")) }
