package schema

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

func TestWords(t *testing.T) {
	for text, expect := range map[string]string{
		"":                                  "",
		" -- !? ":                           "",
		"Acme Corp., acme":                  "acme corp",
		"Straße STRASSE strasse":            "strasse",
		"Müller MÜLLER muller Mu\u0308ller": "muller",
		"İstanbul ISTANBUL ıstanbul":        "istanbul",
		"naïve café ΣΊΣΥΦΟΣ σίσυφος": "naive cafe σισυφοσ",
		"ﬁle № Ⅷ ½ m² ①":             "file viii 1 2 m2",
		"a_b-c's x/y 4.5":            "a b c s x y 4 5",
		"東京都 iPhone東京":               "東 京 都 iphone",
		"がか ｶﾞ ﾊﾟ":                   "が か ガ パ",
		"한국어 문서":                     "한국어 문서",
		"👍🏽 ok 👩‍👩‍👧":                "ok",
		"שָׁלוֹם שלום":               "שלום",
		"مُحَمَّد محمد":              "محمد",
		"किताब कतब":                  "किताब कतब",
		"ไทย":                        "ไทย",
		"\u0301 x\u0301\u0302\u0303": "x",
		"٣٤ ３４":                      "٣٤ 34",
		"ﷺ":                          "صلى الله عليه وسلم",
	} {
		if got := strings.Join(Words(text), " "); got != expect {
			t.Errorf("the words of %q are %q, expected %q", text, got, expect)
		}
	}
}

// What is folded character by character is what is folded as a whole.
func TestFoldsByCharacter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := make([]rune, 1+random.IntN(6))
		for i := range text {
			text[i] = rune(random.IntN(0x530))
		}
		if fast, slow := fold(string(text)), foldAny(string(text)); fast != slow {
			t.Fatalf("%q is %q and %q", string(text), fast, slow)
		}
	}
}

func TestWordsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100)
	if got := Words(long + " " + strings.Repeat("x", 100)); !slices.Equal(got, []string{strings.Repeat("e", maxWord), strings.Repeat("x", maxWord)}) {
		t.Errorf("long words are %q", got)
	}
	var many strings.Builder
	for i := range 2 * MaxWords {
		many.WriteString(strings.Repeat("ab", i+1)[:2+i%60] + string(rune('a'+i/60)) + string(rune('a'+i%26)) + " ")
	}
	if got := Words(many.String()); len(got) != MaxWords {
		t.Errorf("%d words of many", len(got))
	}
	if got := Words(strings.Repeat("a ", maxSearched/2) + "end"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("a word beyond the bound: %q", got)
	}
	if got := Words(strings.Repeat("a ", maxSearched/2-2) + "end"); !slices.Equal(got, []string{"a", "end"}) {
		t.Errorf("a word before the bound: %q", got)
	}
}

func quoted(text string) jsontext.Value {
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return v
}

// A word is found by itself: what a search asks for has gone through the same form.
func FuzzWords(f *testing.F) {
	for _, text := range []string{"Straße", "İstanbul", "ﷺ ½", "東京がﾊﾟ", "e\u0301\u0302x", "\u0344\u1E9B\u0323", "ᾳ ΐ ǰ", "Ꮏ0", strings.Repeat("é", 80), "a\u034fb"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, word := range Words(text) {
			if n := utf8.RuneCountInString(word); n == 0 || n > maxWord || len(word) > 4*maxWord || !utf8.ValidString(word) {
				t.Fatalf("%q has the word %q", text, word)
			}
			if again := Words(word); !slices.Contains(again, word) {
				t.Fatalf("%q has the word %q, whose words are %q", text, word, again)
			}
			if s, reason := ParseSearch(word); reason != "" || !s.Holds([]*Field{{Type: Text, Searchable: true}}, []jsontext.Value{quoted(word)}) {
				t.Fatalf("the word %q is not found by itself: %v %s", word, s, reason)
			}
		}
	})
}

// Capital and small letters of every script have one form, and that form is its own.
func TestFormsOfLetters(t *testing.T) {
	for r := range rune(unicode.MaxRune) {
		if unicode.SimpleFold(r) == r {
			continue
		}
		form := fold(string(r))
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if got := fold(string(other)); got != form {
				t.Errorf("%c is %s, %c is %s", r, form, other, got)
			}
		}
		if again := fold(form); again != form {
			t.Errorf("%c is %s, which is %s", r, form, again)
		}
	}
}

func TestParseSearch(t *testing.T) {
	for text, expect := range map[string]Search{
		"Acme":                {{"acme", false}},
		"  new YORK new ":     {{"new", false}, {"york", false}},
		"acm* corp":           {{"acm", true}, {"corp", false}},
		"foo-ba*":             {{"foo", false}, {"ba", true}},
		"ab ab* *":            {{"ab", false}, {"ab", true}},
		"Straß*":              {{"strass", true}},
		"東京*":                 {{"東", false}, {"京", false}},
		"a *b":                {{"a", false}, {"b", false}},
		"a b c d e f g h h H": {{"a", false}, {"b", false}, {"c", false}, {"d", false}, {"e", false}, {"f", false}, {"g", false}, {"h", false}},
	} {
		if got, reason := ParseSearch(text); reason != "" || !slices.Equal(got, expect) {
			t.Errorf("%q is %v (%s), expected %v", text, got, reason, expect)
		}
	}
	for text, expect := range map[string]string{
		"":                       "expected 1 to 8 words",
		"*":                      "expected 1 to 8 words",
		"👍 -":                    "expected 1 to 8 words",
		"a*":                     "expected at least 2",
		"ä*":                     "expected at least 2",
		"a b c d e f g h i":      "expected at most 8 words",
		strings.Repeat("é", 201): "expected at most 200 characters",
	} {
		if got, reason := ParseSearch(text); got != nil || !strings.HasPrefix(reason, expect) {
			t.Errorf("%q is %v (%s), expected %s", text, got, reason, expect)
		}
	}
}

func BenchmarkWords(b *testing.B) {
	for name, text := range map[string]string{
		"ascii": "met at the spring fair, asked for the price list ", "accents": "Grüße aus Köln für Frau Müller, Straße ", "marks": "e\u0301\u0302x ", "han": "東京都",
	} {
		text = strings.Repeat(text, maxSearched/utf8.RuneCountInString(text))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Words(text)
			}
		})
	}
}
