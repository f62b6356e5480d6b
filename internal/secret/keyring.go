package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
)

const (
	masterKeySize = 32
	sealedVersion = "v1."

	// Every derived key's label begins with one of these, so that no two uses
	// can meet in one key whatever a caller names its purpose.
	labelSeal   = "gatehouse/seal/v1/"
	labelDerive = "gatehouse/derive/v1/"
	labelCheck  = "gatehouse/check/v1"

	// A purpose is a constant of the program or a tenant's id; beyond this many
	// the keys are derived anew at each use instead of kept.
	maxCachedPurposes = 4096
)

// ErrOpen is the answer to a sealed value that does not open: it was sealed
// under another master key or for another purpose, or it was damaged. Which of
// them cannot be told.
var ErrOpen = errors.New("secret: the sealed value does not open: another master key, another purpose, or damaged")

var sealedEncoding = base64.RawURLEncoding.Strict()

// Keyring holds the master key and derives from it one key for each purpose.
// It may be used by several goroutines at once, and prints as "[secret]".
type Keyring struct {
	master [masterKeySize]byte

	mu    sync.RWMutex
	aeads map[string]cipher.AEAD
}

// NewKeyring returns the keyring of a master key of exactly 32 bytes.
func NewKeyring(master []byte) (*Keyring, error) {
	if len(master) != masterKeySize {
		return nil, fmt.Errorf("master key: expected %d bytes, found %d", masterKeySize, len(master))
	}
	k := &Keyring{aeads: map[string]cipher.AEAD{}}
	copy(k.master[:], master)
	return k, nil
}

// Format hides the keys from every verb of package fmt.
func (*Keyring) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// Seal encrypts and authenticates plain for one purpose (AES-256-GCM under that
// purpose's own key, with a fresh nonce) and returns text for a column:
// "v1." and base64url.
func (k *Keyring) Seal(purpose string, plain []byte) string {
	sealed := k.aead(purpose).Seal(nil, nil, plain, []byte(purpose))
	return sealedVersion + sealedEncoding.EncodeToString(sealed)
}

// Open undoes Seal for the same purpose. It fails with ErrOpen.
func (k *Keyring) Open(purpose, sealed string) ([]byte, error) {
	body, ok := strings.CutPrefix(sealed, sealedVersion)
	if !ok || strings.ContainsAny(body, "\r\n") { // the decoder would skip line ends
		return nil, ErrOpen
	}
	raw, err := sealedEncoding.DecodeString(body)
	if err != nil {
		return nil, ErrOpen
	}
	plain, err := k.aead(purpose).Open(nil, nil, raw, []byte(purpose))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// CheckValue is a constant for each master key that tells nothing about it. It
// is kept in the database, so that a node with another key is found out when it
// starts and not when it first fails to open something.
func (k *Keyring) CheckValue() string {
	mac := hmac.New(sha256.New, k.derive(labelCheck, sha256.Size))
	mac.Write([]byte("gatehouse master key check"))
	return hex.EncodeToString(mac.Sum(nil))
}

// Derive returns size bytes of key material of its own for a purpose. It panics
// when size is not within 1 to 8160, the reach of HKDF-SHA256. The sizes of one
// purpose are unrelated keys, none the beginning of another.
func (k *Keyring) Derive(purpose string, size int) []byte {
	if size < 1 || size > 255*sha256.Size {
		panic("secret: Derive: size " + strconv.Itoa(size))
	}
	return k.derive(labelDerive+strconv.Itoa(size)+"/"+purpose, size)
}

func (k *Keyring) derive(label string, size int) []byte {
	key, err := hkdf.Key(sha256.New, k.master[:], nil, label, size)
	if err != nil {
		panic("secret: " + err.Error()) // only a wrong size, which callers rule out
	}
	return key
}

func (k *Keyring) aead(purpose string) cipher.AEAD {
	k.mu.RLock()
	a := k.aeads[purpose]
	k.mu.RUnlock()
	if a != nil {
		return a
	}
	block, err := aes.NewCipher(k.derive(labelSeal+purpose, 32))
	if err != nil {
		panic("secret: " + err.Error()) // only a wrong key size
	}
	a, err = cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("secret: " + err.Error()) // only a wrong block size
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.aeads) < maxCachedPurposes {
		k.aeads[purpose] = a
	}
	return a
}
