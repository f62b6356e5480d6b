package component

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMatcher compares a matcher with a search for each text at each place, over texts
// that overlap, contain and begin each other.
func TestMatcher(t *testing.T) {
	word := func(most int) string {
		b := make([]byte, 1+rand.IntN(most))
		for n := range b {
			b[n] = "ab\x00"[rand.IntN(3)]
		}
		return string(b)
	}
	for range 2000 {
		texts := make([]string, 1+rand.IntN(6))
		for n := range texts {
			texts[n] = word(6)
		}
		s := word(40)
		secret, joined := make([]bool, len(s)), make([]bool, len(s)) // joined to the byte before it
		for at := range len(s) {
			for _, text := range texts {
				if strings.HasPrefix(s[at:], text) {
					for n := range len(text) {
						secret[at+n], joined[at+n] = true, joined[at+n] || n > 0
					}
				}
			}
		}
		shown := make([]bool, len(s))
		last := 0
		for _, one := range find(newMatcher(texts), s) {
			if one.begin < last || one.end <= one.begin || joined[one.begin] {
				t.Fatalf("%q in %q: wrong stretch %v", texts, s, one)
			}
			last = one.end
			for n := one.begin; n < one.end; n++ {
				shown[n] = true
				if n > one.begin && !joined[n] {
					t.Fatalf("%q in %q: %v is more than one", texts, s, one)
				}
			}
		}
		for n := range secret {
			if secret[n] != shown[n] {
				t.Fatalf("%q in %q: byte %d is in one: %v, found: %v", texts, s, n, secret[n], shown[n])
			}
		}
	}
}

// TestMatcherIsSmall shows that what many secrets have in common is held once, and that a
// program counts what it holds.
func TestMatcherIsSmall(t *testing.T) {
	one, many := map[string]string{}, map[string]string{}
	for n := range MaxSecrets {
		text := strings.Repeat("a", MaxSecret-1-n) + "b"
		one["K0"], many["K"+strings.Repeat("x", n)] = text, text
	}
	if is, of := newRedactor(many).size(), newRedactor(one).size(); is > of+of/2 {
		t.Errorf("%d bytes for %d secrets of one beginning, %d for one", is, MaxSecrets, of)
	}
	p := &Program{image: &image{owned: 1000}, secrets: newRedactor(one)}
	if p.Size() < 1000+MaxSecret {
		t.Errorf("the program counts %d bytes", p.Size())
	}
}
