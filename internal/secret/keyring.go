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

	// The label of every derived key begins with one of these, so that two uses
	// never share a key, whatever purposes callers choose.
	labelSeal   = "gatehouse/seal/v1/"
	labelDerive = "gatehouse/derive/v1/"
	labelCheck  = "gatehouse/check/v1"

	// maxCachedPurposes bounds the cache of keys. Beyond it, keys are derived again
	// at each use.
	maxCachedPurposes = 4096
)

// ErrOpen means that a sealed value cannot be opened: it was sealed with another master
// key or for another purpose, or it is damaged. These cannot be told apart.
var ErrOpen = errors.New("secret: the sealed value does not open: another master key, another purpose, or damaged")

var sealedEncoding = base64.RawURLEncoding.Strict()

// Keyring holds the master key, from which it derives a key for each purpose. It may be
// used by several goroutines at once, and prints as "[secret]".
type Keyring struct {
	master [masterKeySize]byte

	mu    sync.RWMutex
	aeads map[string]cipher.AEAD
}

// NewKeyring returns the keyring of a master key. It returns an error unless the key has
// exactly 32 bytes.
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

// Seal encrypts and authenticates plain for one purpose (AES-256-GCM with the purpose's
// own key and a fresh nonce). It returns text that can be stored: "v1." and
// base64url.
func (k *Keyring) Seal(purpose string, plain []byte) string {
	sealed := k.aead(purpose).Seal(nil, nil, plain, []byte(purpose))
	return sealedVersion + sealedEncoding.EncodeToString(sealed)
}

// Open is the inverse of Seal for the same purpose. Its only error is ErrOpen.
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

// CheckValue returns a value that is the same for the same master key and reveals
// nothing about it. The database keeps it, so that a node with another key fails when
// it starts, and not when it first opens something.
func (k *Keyring) CheckValue() string {
	mac := hmac.New(sha256.New, k.derive(labelCheck, sha256.Size))
	mac.Write([]byte("gatehouse master key check"))
	return hex.EncodeToString(mac.Sum(nil))
}

// Derive returns size bytes of key material for a purpose. It panics unless size is
// from 1 to 8160, the limit of HKDF-SHA256. Different sizes for one purpose give
// unrelated keys.
func (k *Keyring) Derive(purpose string, size int) []byte {
	if size < 1 || size > 255*sha256.Size {
		panic("secret: Derive: size " + strconv.Itoa(size))
	}
	return k.derive(labelDerive+strconv.Itoa(size)+"/"+purpose, size)
}

func (k *Keyring) derive(label string, size int) []byte {
	key, err := hkdf.Key(sha256.New, k.master[:], nil, label, size)
	if err != nil {
		panic("secret: " + err.Error()) // only for a wrong size, which callers exclude
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
		panic("secret: " + err.Error()) // only for a wrong key size
	}
	a, err = cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("secret: " + err.Error()) // only for a wrong block size
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.aeads) < maxCachedPurposes {
		k.aeads[purpose] = a
	}
	return a
}
