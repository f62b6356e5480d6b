package audit

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plain has the bytes that need no escape in a JSON string.
var plain = func() (table [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// appendQuoted appends s as a JSON string that is valid, stays on one line and
// cannot control a terminal, whatever bytes s has: bytes that are not UTF-8
// become U+FFFD; control characters, line and paragraph separators and changes
// of writing direction are escaped.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendEscaped(dst, s)
	return append(dst, '"')
}

// appendEscaped is appendQuoted without the quotes.
func appendEscaped(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if size > 1 && !steering(r) {
			i += size
			continue
		}
		dst = append(dst, s[from:i]...)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == utf8.RuneError:
			dst = append(dst, "\ufffd"...)
		default:
			dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		}
		i += size
		from = i
	}
	return append(dst, s[from:]...)
}

// steering reports whether a rune outside ASCII changes how the following text
// is shown: C1 controls, line separators, directional marks. All fit four
// hexadecimal digits.
func steering(r rune) bool {
	return r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f
}

// appendOrNull appends s as a JSON string, or null for "".
func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, s)
}

// appendMillis appends a duration as a JSON number of milliseconds with three
// decimals; a negative one counts as zero.
func appendMillis(dst []byte, d time.Duration) []byte {
	us := max(d.Microseconds(), 0)
	dst = strconv.AppendInt(dst, us/1000, 10)
	rest := us % 1000
	return append(dst, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
}

// cut returns s, or its first limit bytes and an ellipsis if it is longer. It
// never cuts inside a rune.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:boundary(s, limit)] + "…"
}

// boundary returns the last offset at or before n that is not inside a rune.
func boundary(s string, n int) int {
	if n == len(s) {
		return n
	}
	for back := 0; back < utf8.UTFMax && n-back > 0; back++ {
		if utf8.RuneStart(s[n-back]) {
			return n - back
		}
	}
	return n
}

// storable returns s as every database accepts it: valid UTF-8 without U+0000.
func storable(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
		}
	}
	return s
}
