// Package wtf8 reads and writes JSON strings that may have lone surrogates. A JSON
// string can contain one as an escape, which UTF-8 cannot express. In WTF-8 it has
// the three bytes that it would have if it were a character; WTF-8 of any other text
// is UTF-8.
package wtf8

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Unquote returns the text of a JSON string as WTF-8. It returns an error when
// quoted is not a JSON string, or has a lone surrogate that is not written as an
// escape.
func Unquote(quoted jsontext.Value) (string, error) {
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err == nil {
		return string(text), nil
	}
	if len(quoted) < 2 || !quoted.IsValid(jsontext.AllowInvalidUTF8(true)) || !utf8.Valid(quoted) {
		return "", errors.New("wtf8: no JSON string")
	}
	// The decoder reads the text between lone surrogates.
	out := make([]byte, 0, len(quoted))
	for rest := quoted[1 : len(quoted)-1]; ; {
		at, code := nextLone(rest)
		piece := append(append([]byte{'"'}, rest[:at]...), '"')
		if out, err = jsontext.AppendUnquote(out, piece); err != nil {
			return "", fmt.Errorf("wtf8: %w", err)
		}
		if at == len(rest) {
			return string(out), nil
		}
		out = append(out, 0xed, 0x80|byte(code>>6&0x3f), 0x80|byte(code&0x3f))
		rest = rest[at+Escape:]
	}
}

// Escape is the length of an escape like \ud83d.
const Escape = 6

// nextLone returns the offset and code of the first lone surrogate in the text
// between the quotes of a JSON string, or the text's length and 0.
func nextLone(text []byte) (at int, code rune) {
	for at < len(text) {
		if text[at] != '\\' {
			next := bytes.IndexByte(text[at:], '\\')
			if next < 0 {
				return len(text), 0
			}
			at += next
			continue
		}
		code, ok := Surrogate(text[at:])
		switch {
		case !ok:
			at += 2
		case Lone(text[at:]):
			return at, code
		default:
			at += 2 * Escape
		}
	}
	return len(text), 0
}

// Lone reports whether text begins with the escape of a lone surrogate.
func Lone(text []byte) bool {
	first, ok := Surrogate(text)
	if !ok {
		return false
	}
	second, ok := Surrogate(text[Escape:])
	return first >= 0xdc00 || !ok || second < 0xdc00
}

// Surrogate returns the surrogate whose escape, like \ud83d, text begins with. ok is
// false when it begins with anything else.
func Surrogate(text []byte) (code rune, ok bool) {
	if len(text) < Escape || text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return 0, false
	}
	for _, c := range text[2:Escape] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		code = code<<4 | rune(c)
	}
	return code, code >= 0xd800
}

// AppendUTF8 appends s as a JSON string in UTF-8. Each byte that is not part of
// UTF-8 becomes U+FFFD, those of lone surrogates included.
func AppendUTF8(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			dst, _ = jsontext.AppendQuote(dst, s) // the error says that it has replaced bytes
			return dst
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// AppendQuote appends s, which is WTF-8, as a JSON string from which Unquote returns
// s. Each byte that is not part of WTF-8 becomes U+FFFD.
func AppendQuote(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, s)
	if err == nil {
		return out
	}
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for s != "" {
		n := strings.IndexByte(s, 0xed)
		if n < 0 {
			n = len(s)
		}
		if n == 0 && !(len(s) >= 3 && s[1]&0xe0 == 0xa0 && s[2]&0xc0 == 0x80) {
			n = 1 // another character that begins with this byte, or none
			if _, size := utf8.DecodeRuneInString(s); size > 1 {
				n = size
			}
		}
		if n == 0 {
			dst = append(dst, '\\', 'u', 'd', hex[s[1]>>2&0xf], hex[s[1]&3<<2|s[2]>>4&3], hex[s[2]&0xf])
			s = s[3:]
			continue
		}
		piece, _ := jsontext.AppendQuote(nil, string([]rune(s[:n]))) // runes are UTF-8
		dst = append(dst, piece[1:len(piece)-1]...)
		s = s[n:]
	}
	return append(dst, '"')
}
