// Package secret makes, hides, compares and seals what must not leak: API and
// webhook tokens, the secrets a tenant stores, passwords, and the master key
// everything at rest is sealed with.
//
// Three rules run through it. A secret prints as "[secret]" whatever prints it;
// the one way to its text is a call named Reveal. What only has to be
// recognised is stored as a hash. What has to be read again is sealed for one
// purpose, and opens for no other.
package secret

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode/utf8"
)

const (
	// APITokenPrefix begins every API key's token.
	APITokenPrefix = "svc_api_"
	// webhookTokenPrefix begins every webhook token.
	webhookTokenPrefix = "svc_whk_"

	tokenBytes   = 32 // 64 hex digits
	prefixLength = 12
	redacted     = "[secret]"
)

// Token is a bearer secret in the clear, on its way to the one person who may
// see it. Printed, logged or marshalled it shows "[secret]"; Reveal is its text.
// Package fmt cannot hide it in an unexported field of a struct that is printed
// whole, so keep it out of those.
type Token string

// NewAPIToken returns a fresh API key token: svc_api_ and 64 hex digits.
func NewAPIToken() Token { return newToken(APITokenPrefix) }

// NewWebhookToken returns a fresh webhook token: svc_whk_ and 64 hex digits.
func NewWebhookToken() Token { return newToken(webhookTokenPrefix) }

func newToken(prefix string) Token {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	return Token(prefix + hex.EncodeToString(random[:]))
}

// Reveal is the token's text: for the answer that shows it once, and for tests.
func (t Token) Reveal() string { return string(t) }

// String hides the token.
func (Token) String() string { return redacted }

// GoString hides the token from %#v.
func (Token) GoString() string { return redacted }

// Format hides the token from every verb of package fmt, %d and %x included.
func (Token) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the token from log/slog.
func (Token) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON hides the token from JSON.
func (Token) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText hides the token from YAML and XML.
func (Token) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// TokenHash is what is stored of a token: its SHA-256 in hex. Its type keeps it
// apart from the token and from everything else that is text.
type TokenHash string

// Hash returns the hash of a token. A plain SHA-256 is enough for a random token of
// 256 bits, and too little for anything a person chose.
func Hash(token string) TokenHash {
	var in [128]byte // room for any token of ours, off the heap: this runs on every request
	sum := sha256.Sum256(append(in[:0], token...))
	var out [2 * sha256.Size]byte
	hex.Encode(out[:], sum[:])
	return TokenHash(out[:])
}

// Prefix returns the beginning of a presented token, for lists and logs: its first
// 12 characters, but no more than a third of it, because a short text may be a
// person's password. The result is always valid UTF-8 without U+0000, which
// U+FFFD replaces, so that every log and database column accepts it.
func Prefix(token string) string {
	length := min(prefixLength, utf8.RuneCountInString(token)/3)
	end, clean := 0, true
	for range length {
		r, size := utf8.DecodeRuneInString(token[end:])
		clean = clean && r != 0 && (r != utf8.RuneError || size > 1)
		end += size
	}
	if clean {
		return strings.Clone(token[:end]) // a log entry must not keep a long header in memory
	}
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, token[:end])
}
