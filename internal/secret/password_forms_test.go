package secret

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
)

// A password is the same one however a machine composes its letters, and a hash
// from before that was so still holds.
func TestAPasswordIsOneInEveryNormalForm(t *testing.T) {
	composed, decomposed := "p\u00e4ssw\u00f6rter", "pa\u0308sswo\u0308rter"
	mixed := "p\u00e4sswo\u0308rter"
	salt := make([]byte, argonSaltBytes)
	hashes := []string{}
	for _, typed := range []string{composed, decomposed, mixed} {
		hash, err := HashPassword(typed)
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, hash)
	}
	hashes = append(hashes, phc(salt, argon2.IDKey([]byte(decomposed), salt, argonTime, argonMemoryKiB, argonThreads, argonKeyBytes)))
	for i, hash := range hashes {
		for _, typed := range []string{composed, decomposed, mixed} {
			if !VerifyPassword(hash, typed) {
				t.Errorf("hash %d does not know %+q", i, typed)
			}
		}
		if VerifyPassword(hash, "passworter") {
			t.Error("another password is taken")
		}
	}
	if err := CheckPassword(strings.Repeat("a\u0308", 128)); err != nil {
		t.Errorf("128 characters: %v", err)
	}
	if CheckPassword("a\u0308a\u0308a\u0308a\u0308") == nil {
		t.Error("4 characters are enough when they are decomposed")
	}
	if n := len(forms("plain password")); n != 1 {
		t.Errorf("%d hashes for a plain password", n)
	}
}

// What a check costs is told by what is derived, not by a clock: a machine under
// load makes any of two equal works the slower one.
func TestTheDummyHashCostsAsMuchAsARealOneAndMatchesNothing(t *testing.T) {
	dummy := DummyHash()
	hashed, err := HashPassword("12345678")
	if err != nil {
		t.Fatal(err)
	}
	if dummy != DummyHash() || VerifyPassword(dummy, "12345678") || len(dummy) != len(hashed) {
		t.Errorf("forms differ: %s, %s", dummy, hashed)
	}
	for typed, checks := range map[string]int{"12345678": 1, "another one": 1, "": 1, "p\u00e4ssword": 2, "pa\u0308ssword": 2, "p\u00e4sswo\u0308rd": 3} {
		work := func(phc string) (done []string) {
			verify(phc, typed, func(password, salt []byte, time, memory uint32, threads uint8, keyLen uint32) []byte {
				done = append(done, fmt.Sprint(len(password), len(salt), time, memory, threads, keyLen))
				return make([]byte, keyLen)
			})
			return done
		}
		if d, r := work(dummy), work(hashed); !slices.Equal(d, r) || len(d) != checks {
			t.Errorf("%+q: the dummy takes %v, a real hash takes %v, want %d", typed, d, r, checks)
		}
	}
	right, err := HashPassword("p\u00e4ssword")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	holds := verify(right, "p\u00e4ssword", func(password, salt []byte, time, memory uint32, threads uint8, keyLen uint32) []byte {
		n++
		return argon2.IDKey(password, salt, time, memory, threads, keyLen)
	})
	if !holds || n != 2 {
		t.Errorf("a right password: %v after %d hashes, a wrong one takes 2", holds, n)
	}
}
