package component

import (
	"unicode/utf8"
)

// ---- between host functions and the engine ----

// textOf returns the text of a string in WTF-8, which the engine uses. The bytes are
// in the engine's memory and valid until the host function returns. ok is false,
// and an exception pending, when v is not a string or there is no memory.
func (i *instance) textOf(v uint64) (b []byte, ok bool) {
	if !isText(v) {
		i.throwType("a string is needed")
		return nil, false
	}
	length := i.machine.scratch + 128
	at := uint32(i.nested("JS_ToCStringLen2", i.machine.jsctx, uint64(length), v, 0))
	if at == 0 {
		return nil, false
	}
	i.cStrings = append(i.cStrings, at)
	n := i.load32(length)
	i.run.turns += int64(n)
	return i.view(at, n), true
}

// dataOf returns the bytes of a Uint8Array, or those that a string stands for, see
// toBytes. Otherwise it is like textOf.
func (i *instance) dataOf(v uint64) (b []byte, ok bool) {
	if tagOf(v) != tagObject {
		b, ok = i.textOf(v)
		return i.toBytes(b), ok
	}
	length := i.machine.scratch + 128
	i.store32(length, 0)
	at := uint32(i.nested("JS_GetUint8Array", i.machine.jsctx, uint64(length), v))
	n := i.load32(length)
	if at == 0 && i.nested("JS_HasException", i.machine.jsctx) != 0 {
		return nil, false
	}
	i.run.turns += int64(n)
	return i.view(at, n), true
}

func (i *instance) throwType(message string) uint64 {
	text := i.newText([]byte(message))
	if text == thrownByHost {
		return thrownByHost
	}
	i.nested("JS_Throw", i.machine.jsctx, text)
	return thrownByHost
}

// newText returns a string of WTF-8.
func (i *instance) newText(b []byte) uint64 { return i.fromBytes("JS_NewStringLen", b) }

// newBytes returns a Uint8Array.
func (i *instance) newBytes(b []byte) uint64 { return i.fromBytes("JS_NewUint8ArrayCopy", b) }

func (i *instance) fromBytes(function string, b []byte) uint64 {
	return i.build(function, len(b), func(dst []byte) { copy(dst, b) })
}

// build returns a value of n bytes, which fill writes. They are written into the
// engine's memory, which is bounded; Go's is not.
func (i *instance) build(function string, n int, fill func(dst []byte)) uint64 {
	at := i.nested("wasm_malloc", uint64(n+1))
	if at == 0 {
		i.nested("JS_ThrowOutOfMemory", i.machine.jsctx)
		return thrownByHost
	}
	dst := i.view(uint32(at), uint32(n+1))
	dst[n] = 0
	i.run.turns += int64(n)
	fill(dst[:n])
	v := i.nested(function, i.machine.jsctx, at, uint64(n))
	i.nested("wasm_free", at)
	return v
}

// ---- bytes that are not UTF-8, in strings (contract W9) ----

// surrogatesLen returns the length of b as surrogates writes it.
func (i *instance) surrogatesLen(b []byte) int { return len(b) + 2*i.invalid(b) }

// surrogates writes b to dst as the engine reads strings. Each byte that is not part
// of valid UTF-8 becomes the lone surrogate U+DC00 + byte.
func (i *instance) surrogates(dst, b []byte) {
	i.eachPiece(b, func(piece []byte, bad bool) {
		if bad {
			dst[0], dst[1], dst[2] = 0xed, 0xb0|piece[0]>>6, 0x80|piece[0]&0x3f
			dst = dst[3:]
			return
		}
		dst = dst[copy(dst, piece):]
	})
}

// replaced writes b to dst, with U+FFFD, which has three bytes, too, for each such
// byte.
func (i *instance) replaced(dst, b []byte) {
	i.eachPiece(b, func(piece []byte, bad bool) {
		if bad {
			dst = dst[copy(dst, "\uFFFD"):]
			return
		}
		dst = dst[copy(dst, piece):]
	})
}

// invalid counts the bytes that are not part of valid UTF-8.
func (i *instance) invalid(b []byte) (n int) {
	if !utf8.Valid(b) {
		i.eachPiece(b, func(_ []byte, bad bool) {
			if bad {
				n++
			}
		})
	}
	return n
}

// stride is how many characters a host function processes between checkpoints: at
// most a millisecond of work.
const stride = 64 << 10

// eachPiece calls do for each stretch of valid UTF-8 in b, and for each single byte
// that is bad.
func (i *instance) eachPiece(b []byte, do func(piece []byte, bad bool)) {
	for at, turn := 0, 1; len(b) > 0; turn++ {
		if turn%stride == 0 {
			i.checkpoint()
		}
		for at < len(b) && b[at] < utf8.RuneSelf {
			at++
		}
		r, n := utf8.DecodeRune(b[at:])
		if n > 0 && (r != utf8.RuneError || n > 1) {
			at += n
			continue
		}
		if at > 0 {
			do(b[:at], false)
		}
		if n == 1 {
			do(b[at:at+1], true)
		}
		b, at = b[at+n:], 0
	}
}

// surrogate reports whether s begins with a surrogate in three bytes, and which byte
// that stands for, if it is one of U+DC80 to U+DCFF.
func surrogate(s []byte) (is bool, c byte, stands bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 {
		return false, 0, false
	}
	if s[1] == 0xb2 || s[1] == 0xb3 {
		return true, (s[1]&3)<<6 | s[2]&0x3f, true
	}
	return true, 0, false
}

// toBytes turns the text of a string into the bytes that it stands for: it reverses
// surrogates. Other lone surrogates become U+FFFD. It changes s in place, which
// must be a copy of the string: JS_ToCStringLen2 copies those that are not ASCII.
func (i *instance) toBytes(s []byte) []byte { return i.convert(s, true) }

// toUTF8 is toBytes for text: each lone surrogate becomes U+FFFD.
func (i *instance) toUTF8(s []byte) []byte { return i.convert(s, false) }

func (i *instance) convert(s []byte, restore bool) []byte {
	if utf8.Valid(s) {
		return s
	}
	n := 0
	for at, turn := 0, 1; at < len(s); turn++ {
		if turn%stride == 0 {
			i.checkpoint()
		}
		is, c, stands := surrogate(s[at:])
		switch {
		case !is:
			s[n] = s[at]
			n, at = n+1, at+1
		case stands && restore:
			s[n] = c
			n, at = n+1, at+3
		default:
			n, at = n+copy(s[n:], "\uFFFD"), at+3
		}
	}
	return s[:n]
}
