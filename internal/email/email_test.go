package email_test

import (
	"net/mail"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/internal/email"
)

// Texts of one line are one address, of different lines different ones.
func TestOneAddressHasOneKey(t *testing.T) {
	seen := map[string]int{}
	for i, line := range [][]string{
		{"eva@customer.example", " EVA@Customer.Example ", "Eva@CUSTOMER.example"},
		{"eva@bücher.example", "eva@xn--bcher-kva.example", "EVA@BÜCHER.example", "eva@XN--BCHER-KVA.EXAMPLE", "eva@bu\u0308cher.example", "eva@bücher。example"},
		{"σοφός@x.example", "ΣΟΦΌΣ@x.example", "σοφόσ@x.example", "ΣΟΦΟ\u0301Σ@x.example"},
		{"x@σοφος.example", "x@ΣΟΦΟΣ.example", "x@xn--0xaajbq.example", "x@xn--0xaakcn.example", "x@σοφοσ.example"},
		{"josé@x.example", "jose\u0301@x.example", "JOSÉ@x.example"},
		{"x@i\u0345\u0327.example", "x@i\u0327\u0345.example"}, // what is stored is composed
		{"jose@x.example"},
		{"eva@bucher.example"},
		{"k@x.example", "\u212a@x.example"}, // the Kelvin sign
		{"no address", " NO address"},
		{"a@b@c.example"},
		{"bot@foo_bar.example", "BOT@foo_BAR.example"},
		{"bot@foö_bar.example", "BOT@FOÖ_BAR.example"},
		{""},
	} {
		for _, text := range line {
			key := email.Key(text)
			if at, ok := seen[key]; ok && at != i {
				t.Errorf("%q has the key %q, as line %d", text, key, at)
			}
			seen[key] = i
			if key != email.Key(line[0]) {
				t.Errorf("%q has the key %q, want that of %q, %q", text, key, line[0], email.Key(line[0]))
			}
		}
	}
	if got := email.Key("Eva@BÜCHER.example"); got != "eva@xn--bcher-kva.example" {
		t.Error(got)
	}
}

func TestWhatNoMailReachesIsNoAddress(t *testing.T) {
	for _, good := range []string{
		"eva@customer.example", "a.b+c@x", "o'neil@x.example", "eva@bücher.example", "eva@xn--bcher-kva.example", "ΣΟΦΟΣ@σοφος.example",
		"用户@例子.广告", "名。前@x.example", strings.Repeat("l", 64) + "@x.example", "x@a--b.example", " eva@customer.example ", "1@2.3x", "josé@x.example",
		"מישהו@דוגמה.example", "_@x-y.example",
	} {
		if err := email.Check(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "x", "@x.example", "x@", "x@y@z.example", "a..b@x", ".a@x", "a.@x", "a b@x.example", "a\u00a0b@x.example", "a\u3000b@x.example",
		"a\u2003b@x.example", "a\u200bb@x.example", "a\u200db@x.example", "a\u202eb@x.example", "a\u2066b@x.example", "\ufeffa@x.example",
		"a\u2028b@x.example", "a\u00adb@x.example", "a\u115fb@x.example", "a\ufe0fb@x.example", "a\x00b@x.example", "a\tb@x.example",
		"a\ue000@x.example", "a\ufffd@x.example", "a@x\u200b.example", "a@x\u00ad.example", "a@x\u200f.example",
		"a@x..example", "a@.example", "a@x.example.", "a@-x.example", "a@x-.example", "a@foo_bar.example", "a@x y.example", "a@x,y",
		"a@[192.0.2.1]", "a@192.0.2.1", "a@1", "a@xn--\u00fc.example", "a@xn--0.example", "a@xn--a.example", "a<b@x.example", "a>@x", "a,b@x", "a;b@x", "a:b@x", "a(b)@x",
		`"a b"@x.example`, `"a"@x.example`, `a\b@x.example`, "a@" + strings.Repeat("l", 64) + ".example", strings.Repeat("l", 65) + "@x.example",
		"a@" + strings.Repeat("l.", 126) + "example", "a@" + strings.Repeat("ü.", 80) + "example", "\xff@x.example", "a@\u05d0a.example", "a@\u0300x.example",
	} {
		if err := email.Check(bad); err == nil {
			t.Errorf("%q is taken for an address", bad)
		} else if !strings.HasPrefix(err.Error(), "expected an e-mail address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func text(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{"a", "Z", "é", "e\u0301", "ß", "ẞ", "Σ", "ς", "İ", "ı", "ﬁ", "\u0345", "ᾳ", "Ꭰ", "ꭰ", "xn--", "xn--bcher-kva", ".", "..", "-", "@", " ", "_", "。", "א", "1", "\u200d", "ü"}),
		rapid.StringN(1, 3, 12)), 0, 12).Draw(t, "parts")
	return strings.Join(parts, "")
}

// The key of a key is the key, whatever the text; nothing changes by normal form
// or by being brought to where mail is sent.
func TestKeysOfAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := text(t)
		key := email.Key(s)
		if again := email.Key(key); again != key {
			t.Fatalf("%q: %q, and of that %q", s, key, again)
		}
		if err := email.Check(s); err != nil {
			return
		}
		for name, same := range map[string]string{"cleaned": email.Clean(s), "as mail is sent": email.Mailbox(s)} {
			if got := email.Key(same); got != key {
				t.Fatalf("%q %s is %q, of the key %q instead of %q", s, name, same, got, key)
			}
		}
		if i := strings.LastIndexByte(key, '@'); strings.ContainsFunc(key[i:], func(r rune) bool { return r > 0x7e }) {
			t.Fatalf("%q: the domain of %q is not ASCII", s, key)
		}
		// The mail package writes to such addresses alone.
		to := email.Mailbox(s)
		if a, err := mail.ParseAddress(to); err != nil || a.Address != to || a.Name != "" {
			t.Fatalf("%q: mail to %q: %v %v", s, to, a, err)
		}
	})
}
