package secret

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// The cost of a password hash: OWASP's recommendation for argon2id with 19 MiB. A hash
// takes that much memory while it is computed, so a caller that hashes for strangers
// must limit how many run at once.
const (
	argonMemoryKiB = 19_456
	argonTime      = 2
	argonThreads   = 1
	argonSaltBytes = 16
	argonKeyBytes  = 32

	minPassword = 8
	maxPassword = 128
)

var (
	errNotUTF8  = errors.New("the password must be valid UTF-8 text")
	errTooShort = fmt.Errorf("the password must have at least %d characters", minPassword)
	errTooLong  = fmt.Errorf("the password must have at most %d characters", maxPassword)
)

// CheckPassword checks a new password: it must have 8 to 128 characters, counted in
// NFC. The error is meant for the person who chose the password.
func CheckPassword(password string) error {
	switch n := utf8.RuneCountInString(norm.NFC.String(password)); {
	case !utf8.ValidString(password):
		return errNotUTF8
	case n < minPassword:
		return errTooShort
	case n > maxPassword:
		return errTooLong
	}
	return nil
}

// HashPassword returns the argon2id hash of a password in NFC, with a new salt, as a PHC
// string. It returns the error of CheckPassword, if any.
func HashPassword(password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	salt := make([]byte, argonSaltBytes)
	_, _ = rand.Read(salt) // never fails
	return phc(salt, argon2.IDKey([]byte(norm.NFC.String(password)), salt, argonTime, argonMemoryKiB, argonThreads, argonKeyBytes)), nil
}

// VerifyPassword reports whether phc is the hash of password, whichever Unicode normal
// form either was typed in. A phc that is not an argon2id hash of this package matches
// no password. The time it takes depends on the password that is tried, but not on
// whether it is right.
func VerifyPassword(phc, password string) bool { return verify(phc, password, argon2.IDKey) }

// derive is argon2.IDKey, or a function of a test that counts calls.
type derive func(password, salt []byte, time, memory uint32, threads uint8, keyLen uint32) []byte

func verify(phc, password string, derive derive) bool {
	p, ok := parsePHC(phc)
	if !ok {
		return false
	}
	right := 0
	for _, form := range forms(password) {
		key := derive([]byte(form), p.salt, p.time, p.memory, p.threads, uint32(len(p.key)))
		right |= subtle.ConstantTimeCompare(key, p.key)
	}
	return right == 1
}

// forms returns the texts that the hash of a password may have been made from: its
// NFC; and, for hashes made before passwords were normalized, its NFD and the text as
// typed. For most passwords these are the same.
func forms(password string) []string {
	list := []string{norm.NFC.String(password)}
	for _, form := range []string{norm.NFD.String(password), password} {
		if !slices.Contains(list, form) {
			list = append(list, form)
		}
	}
	return list
}

// DummyHash returns a hash that matches no password and costs as much to verify as a
// real one. Login verifies it where there is no user, so that both take equally long.
func DummyHash() string { return dummyHash() }

var dummyHash = sync.OnceValue(func() string {
	random := make([]byte, argonSaltBytes+argonKeyBytes)
	_, _ = rand.Read(random) // never fails
	return phc(random[:argonSaltBytes], random[argonSaltBytes:])
})

func phc(salt, key []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, argonMemoryKiB, argonTime, argonThreads, b64(salt), b64(key))
}

type phcParams struct {
	memory, time uint32
	threads      uint8
	salt, key    []byte
}

// parsePHC parses a hash. It refuses a hash whose parameters would take gigabytes of
// memory, or minutes.
func parsePHC(phc string) (p phcParams, ok bool) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, false
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.threads); err != nil || n != 3 {
		return p, false
	}
	if parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", p.memory, p.time, p.threads) {
		return p, false
	}
	var errSalt, errKey error
	p.salt, errSalt = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	p.key, errKey = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	ok = errSalt == nil && errKey == nil &&
		p.memory >= 8*uint32(p.threads) && p.memory <= 256*1024 &&
		p.time >= 1 && p.time <= 16 && p.threads >= 1 && p.threads <= 16 &&
		len(p.salt) >= 8 && len(p.salt) <= 64 && len(p.key) >= 16 && len(p.key) <= 64
	return p, ok
}
