package component

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // for HMAC, which SHA-1's collisions do not break
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"slices"
)

// sha1Encoding is added to the number of an encoding for HMAC-SHA1.
const sha1Encoding = 4

func (i *instance) hmac(key, data uint64, encoding int) uint64 {
	k, ok1 := i.dataOf(key)
	d, ok2 := i.dataOf(data)
	if !ok1 || !ok2 {
		return thrownByHost
	}
	algorithm := sha256.New
	if encoding&sha1Encoding != 0 {
		algorithm = sha1.New
	}
	mac := hmac.New(algorithm, k)
	i.hashed(mac, d)
	var space [sha256.Size]byte
	return i.encoded(mac.Sum(space[:0]), encoding&^sha1Encoding)
}

// hashed writes data to a hash, a piece at a time.
func (i *instance) hashed(h hash.Hash, data []byte) {
	for len(data) > 0 {
		n := min(len(data), 256<<10)
		h.Write(data[:n])
		data = data[n:]
		i.checkpoint()
	}
}

// encoded returns a hash of at most 32 bytes as a text: hex, base64 or base64url.
func (i *instance) encoded(sum []byte, encoding int) uint64 {
	var text [2 * sha256.Size]byte
	switch encoding {
	case 1:
		return i.newText(base64.StdEncoding.AppendEncode(text[:0], sum))
	case 2:
		return i.newText(base64.RawURLEncoding.AppendEncode(text[:0], sum))
	default:
		return i.newText(hex.AppendEncode(text[:0], sum))
	}
}

// signatureTurns is the work of verifying a signature, besides reading its data, in
// turns of the engine's loops.
const signatureTurns = 20_000

// maxSignatureText is the length of the longest key or signature that is read.
const maxSignatureText = 1 << 10

// publicKey reports whether a signature of data was made with its private key. The
// signature is text or bytes.
type publicKey func(data, signature []byte, isText bool) bool

// verifies reports whether a signature of data is right by a public key, which parse
// reads. Where parse returns nil it returns problem as a text, which the prelude throws.
func (i *instance) verifies(key, data, signature uint64, parse func(key []byte, isText bool) (known publicKey, problem string)) uint64 {
	k, ok := i.dataOf(key)
	if !ok {
		return thrownByHost
	}
	k = bytes.Clone(k[:min(len(k), maxSignatureText+1)]) // the next call of the engine may move its memory
	s, ok := i.dataOf(signature)
	if !ok {
		return thrownByHost
	}
	s = bytes.Clone(s[:min(len(s), maxSignatureText+1)])
	d, ok := i.dataOf(data)
	if !ok {
		return thrownByHost
	}
	known, problem := parse(k, isText(key))
	if known == nil {
		return i.newText([]byte(problem))
	}
	i.run.turns += signatureTurns
	right := known(d, s, isText(signature))
	i.checkpoint()
	if right {
		return jsTrue
	}
	return jsFalse
}

// ed25519Key reads a key of 32 bytes; as text it is hex or base64. A key that is
// weak is none, because anybody can sign by it.
func ed25519Key(text []byte, isText bool) (publicKey, string) {
	key := ofLength(text, isText, ed25519.PublicKeySize)
	if key == nil {
		return nil, "ed25519Verify: the public key must be 32 bytes, or their hex or base64"
	}
	if weak(key) {
		return nil, "ed25519Verify: the public key is not canonical or of small order: expected one that was generated"
	}
	return func(data, signature []byte, isText bool) bool {
		s := ofLength(signature, isText, ed25519.SignatureSize)
		return s != nil && ed25519.Verify(key, data, s)
	}, ""
}

// smallOrder are the coordinates y of the points whose order divides 8, as a key has
// them, but for the sign of x in the last bit.
var smallOrder = [][ed25519.PublicKeySize]byte{
	{},
	{1},
	coordinate("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	coordinate("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
	coordinate("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
}

func coordinate(text string) (y [ed25519.PublicKeySize]byte) {
	if _, err := hex.Decode(y[:], []byte(text)); err != nil {
		panic(err) // the texts are in this file
	}
	return y
}

// weak reports whether a key is a point of small order, or not canonical: y is
// 2^255-19 or more.
func weak(key ed25519.PublicKey) bool {
	y := [ed25519.PublicKeySize]byte(key)
	y[31] &= 0x7f
	tooLarge := y[31] == 0x7f && y[0] >= 0xed && bytes.Count(y[1:31], []byte{0xff}) == 30
	return tooLarge || slices.Contains(smallOrder, y)
}

// ofLength returns n bytes that are given as they are or as text in hex or base64,
// or nil for anything else.
func ofLength(given []byte, isText bool, n int) []byte {
	if isText {
		var err error
		if len(given) == hex.EncodedLen(n) {
			given, err = hex.AppendDecode(nil, given)
		} else {
			given, err = fromBase64(given)
		}
		if err != nil {
			return nil
		}
	}
	if len(given) != n {
		return nil
	}
	return given
}

// ecdsaKey reads a key of the curve P-256 in the form SubjectPublicKeyInfo; as text
// it is base64. Signatures are of SHA-256, in ASN.1; as text they are base64.
func ecdsaKey(text []byte, isText bool) (publicKey, string) {
	const problem = "ecdsaP256Verify: the public key must be a SubjectPublicKeyInfo of the curve P-256, or its base64"
	parsed, err := x509.ParsePKIXPublicKey(orBase64(text, isText))
	key, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, problem
	}
	return func(data, signature []byte, isText bool) bool {
		sum := sha256.Sum256(data)
		return ecdsa.VerifyASN1(key, sum[:], orBase64(signature, isText))
	}, ""
}

// orBase64 returns bytes that are given as they are or as base64, or nil.
func orBase64(given []byte, isText bool) []byte {
	if !isText {
		return given
	}
	b, err := fromBase64(given)
	if err != nil {
		return nil
	}
	return b
}

// fromBase64 decodes the one text that bytes have in base64: without line breaks, and
// with no bit set that means nothing.
func fromBase64(text []byte) ([]byte, error) {
	if at := bytes.IndexAny(text, "\r\n"); at >= 0 {
		return nil, base64.CorruptInputError(at)
	}
	return base64.StdEncoding.Strict().AppendDecode(nil, text)
}
