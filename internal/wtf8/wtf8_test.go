package wtf8_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/wtf8"
)

// TestRoundTrip reads and writes random UTF-16 without loss.
func TestRoundTrip(t *testing.T) {
	units := []uint16{0, 'a', '"', '\\', 'u', 'd', 0xe9, 0x20ac, 0xd7ff, 0xd800, 0xd83d, 0xdbff, 0xdc00, 0xde00, 0xdfff, 0xe000, 0xfffd}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := make([]uint16, random.IntN(8))
		quoted := []byte{'"'}
		for i := range text {
			text[i] = units[random.IntN(len(units))]
			const hex, HEX = "0123456789abcdef", "0123456789ABCDEF"
			digits := hex
			if random.IntN(2) == 0 {
				digits = HEX
			}
			c := text[i]
			quoted = append(quoted, '\\', 'u', digits[c>>12], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		}
		quoted = append(quoted, '"')
		s, err := wtf8.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		again := wtf8.AppendQuote(nil, s)
		if twice, err := wtf8.Unquote(again); err != nil || twice != s || !utf8.Valid(again) {
			t.Fatalf("%s: %q, written as %s, read as %q %v", quoted, s, again, twice, err)
		}
		if got := units16(t, s); string(utf16.Decode(got)) != string(utf16.Decode(text)) || len(got) != len(text) {
			t.Fatalf("%s: %x, not %x", quoted, got, text)
		}
		var std string
		if json.Unmarshal(quoted, &std) == nil && utf8.ValidString(s) && s != std {
			t.Fatalf("%s: %q, not %q", quoted, s, std)
		}
	}
	for _, text := range []string{"", "a", `"`, `"a`, `"\ud80"`, `"\x"`, "\"\xff\"", `5`, `"a" `} {
		if s, err := wtf8.Unquote(jsontext.Value(text)); err == nil {
			t.Errorf("%s is read as %q", text, s)
		}
	}
	if got := string(wtf8.AppendQuote(nil, "a\xff\xed\x9f\xbf\xed\xa0\x80\xed\xa0")); got != "\"a\ufffd퟿\\ud800\ufffd\ufffd\"" {
		t.Errorf("%s", got)
	}
}

// TestAppendUTF8 shows that text of any bytes is written as jsontext writes it,
// with U+FFFD for each byte that is not part of UTF-8.
func TestAppendUTF8(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{"a", "~", "\x7f", "\"", "\\", "/", "<&>", "\x00", "\n", "\x1f", "é", "🙂", "\u2028", "\ufffd", "\xff", "\x80", "\xe2\x82", "\xed\xa0\x80"}
	for range 20_000 {
		s := ""
		for range random.IntN(5) {
			s += parts[random.IntN(len(parts))]
		}
		want, err := jsontext.AppendQuote(nil, string([]rune(s))) // runes are UTF-8
		if err != nil {
			t.Fatal(err)
		}
		if got := wtf8.AppendUTF8(nil, s); string(got) != string(want) {
			t.Fatalf("AppendUTF8(%q) = %s, want %s", s, got, want)
		}
	}
}

// units16 returns the UTF-16 of a WTF-8 text.
func units16(t *testing.T, s string) (units []uint16) {
	t.Helper()
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			if len(s) < 3 || s[0] != 0xed {
				t.Fatalf("%q is no WTF-8", s)
			}
			units = append(units, 0xd000|uint16(s[1]&0x3f)<<6|uint16(s[2]&0x3f))
			s = s[3:]
			continue
		}
		units = utf16.AppendRune(units, r)
		s = s[n:]
	}
	return units
}
