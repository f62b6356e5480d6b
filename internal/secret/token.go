// Package secret handles secrets: API and webhook tokens, the secrets that a tenant
// stores, passwords, and the master key that seals everything at rest.
//
// It follows three rules. A secret prints as "[secret]", and only a method named Reveal
// returns its text. A secret that only has to be recognized is stored as a hash. A
// secret that has to be read again is sealed for one purpose, and opens for no other.
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
	// APITokenPrefix is the prefix of the token of every API key.
	APITokenPrefix = "svc_api_"
	// webhookTokenPrefix is the prefix of every webhook token.
	webhookTokenPrefix = "svc_whk_"

	tokenBytes   = 32 // 64 hex digits
	prefixLength = 12
	redacted     = "[secret]"
)

// Token is a bearer token in clear text, for the one person who may see it. Printed,
// logged or marshaled it shows "[secret]"; Reveal returns its text. It must not be
// kept in an unexported field of a struct that is printed, where package fmt cannot
// hide it.
type Token string

// NewAPIToken returns a new token for an API key: svc_api_ and 64 hex digits.
func NewAPIToken() Token { return newToken(APITokenPrefix) }

// NewWebhookToken returns a new webhook token: svc_whk_ and 64 hex digits.
func NewWebhookToken() Token { return newToken(webhookTokenPrefix) }

func newToken(prefix string) Token {
	var random [tokenBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	return Token(prefix + hex.EncodeToString(random[:]))
}

// Reveal returns the token's text, for the answer that shows it once, and for tests.
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

// TokenHash is the stored form of a token: its SHA-256 in hex. It has a type of its own
// so that it cannot be confused with the token or with other text.
type TokenHash string

// Hash returns the hash of a token. A plain SHA-256 is enough for a random token of 256
// bits, but not for anything that a person chose.
func Hash(token string) TokenHash {
	var in [128]byte // fits every token of ours, so that nothing is allocated: this runs on every request
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
