package component

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"gatehouse/internal/number"
	"gatehouse/internal/wtf8"
)

// wellFormed changes text, which JSON.stringify wrote, in place so that strict
// decoders of JSON accept it. It replaces a lone surrogate with U+FFFD. problem is
// not "" for what cannot be mended: a lone surrogate in a member's name, which could
// become equal to another name, and a number that no double holds, which JSON.rawJSON
// can write.
//
// exact keeps lone surrogates that are written as escapes.
func wellFormed(text []byte, exact bool) (problem string) {
	for at := 0; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			end, halves := scanText(text, at+1, exact)
			if halves && end+1 < len(text) && text[end+1] == ':' {
				return "the handler returned an object with half of a surrogate pair in a member's name"
			}
			at = end
		case c == '-' || '0' <= c && c <= '9':
			end, plain := at+1, true
			for ; end < len(text); end++ {
				if d := text[end]; '0' <= d && d <= '9' || d == '.' {
					continue
				} else if d != 'e' && d != 'E' && d != '+' && d != '-' {
					break
				}
				plain = false
			}
			if plain && end-at < 20 { // nearly all are
				at = end - 1
				continue
			}
			if !number.Holds(text[at:end]) {
				return fmt.Sprintf("the handler returned %.40s, a number that no IEEE double holds", text[at:end])
			}
			at = end - 1
		}
	}
	return ""
}

// scanText replaces the lone surrogates of the string that begins at from. It
// returns the offset of the string's last quote, and whether there were any.
func scanText(text []byte, from int, exact bool) (end int, halves bool) {
	if n := bytes.IndexByte(text[from:], '"'); n >= 0 { // most strings have no escape
		if inside := text[from : from+n]; bytes.IndexByte(inside, '\\') < 0 && bytes.IndexByte(inside, 0xed) < 0 {
			return from + n, false
		}
	}
	for at := from; at < len(text); at++ {
		switch c := text[at]; {
		case c == '"':
			return at, halves
		case c == '\\':
			switch _, is := wtf8.Surrogate(text[at:]); {
			case is && !wtf8.Lone(text[at:]):
				at += 2*wtf8.Escape - 1 // a pair
			case is && !exact:
				copy(text[at:], `\ufffd`)
				halves = true
				fallthrough
			default:
				at++ // the escaped character
			}
		case c == 0xed:
			if is, _, _ := surrogate(text[at:]); is { // only JSON.rawJSON can write it
				copy(text[at:], "\uFFFD")
				halves = true
				at += utf8.RuneLen(utf8.RuneError) - 1
			}
		}
	}
	return len(text), halves
}
