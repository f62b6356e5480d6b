package secret

import (
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
