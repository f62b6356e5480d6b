package component_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/component"
)

// TestHMACSha1 tries a vector of RFC 2202 and Go's own, in every encoding.
func TestHMACSha1(t *testing.T) {
	if got := value(t, `return hmacSha1('Jefe', 'what do ya want for nothing?')`); got != "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79" {
		t.Error(got)
	}
	mac := hmac.New(sha1.New, []byte("k€y"))
	mac.Write([]byte("dätä 😀"))
	sum := mac.Sum(nil)
	for encoding, want := range map[string]string{
		"hex": hex.EncodeToString(sum), "base64": base64.StdEncoding.EncodeToString(sum), "base64url": base64.RawURLEncoding.EncodeToString(sum),
	} {
		if got := value(t, `return crypto.hmacSha1('k€y', 'dätä 😀', '`+encoding+`')`); got != want {
			t.Errorf("%s: %v, not %s", encoding, got, want)
		}
	}
	if got := value(t, `try { hmacSha1('', 'x') } catch (e) { return e.message }`); got != "hmacSha1: the key is empty" {
		t.Error(got)
	}
}

// js writes Go values as arguments of a call.
func js(t *testing.T, values ...any) string {
	t.Helper()
	parts := make([]string, len(values))
	for i, v := range values {
		if b, ok := v.([]byte); ok {
			parts[i] = "Uint8Array.fromHex('" + hex.EncodeToString(b) + "')"
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = string(text)
	}
	return strings.Join(parts, ", ")
}

// loose returns another text that a decoder of base64 which is not strict takes for the
// same bytes: of one that ends with "=", with the lowest bit of its last digit set.
func loose(text string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	end := strings.IndexByte(text, '=') - 1
	return text[:end] + string(digits[strings.IndexByte(digits, text[end])|1]) + text[end+1:]
}

// TestEd25519 tries a vector of RFC 8032, keys and signatures in each of their forms, and
// what is not right.
func TestEd25519(t *testing.T) {
	const (
		rfcKey       = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
		rfcSignature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
	)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	body := "1750000000" + `{"text":"Größe 😀"}`
	signature := ed25519.Sign(private, []byte(body))
	other := ed25519.Sign(private, []byte(body+" "))
	b64 := base64.StdEncoding.EncodeToString
	for args, want := range map[string]any{
		js(t, rfcKey, "r", rfcSignature):                                         true,
		js(t, strings.ToUpper(rfcKey), "r", strings.ToUpper(rfcSignature)):       true,
		js(t, rfcKey, "s", rfcSignature):                                         false,
		js(t, []byte(public), body, signature):                                   true,
		js(t, []byte(public), []byte(body), signature):                           true,
		js(t, hex.EncodeToString(public), body, hex.EncodeToString(signature)):   true,
		js(t, b64(public), body, b64(signature)):                                 true,
		js(t, b64(public), body, b64(other)):                                     false,
		js(t, b64(public), body, signature[:63]):                                 false,
		js(t, b64(public), body, b64(signature)+"\n"):                            false,
		js(t, b64(public), body, b64(signature)[:40]+"\r\n"+b64(signature)[40:]): false,
		js(t, b64(public), body, loose(b64(signature))):                          false,
		js(t, loose(b64(public)), body, signature):                               "TypeError",
		js(t, b64(public)+"\n", body, signature):                                 "TypeError",
		js(t, b64(public), body, ""):                                             false,
		js(t, b64(public), body, strings.Repeat("zz", 64)):                       false,
		js(t, b64(public), body, strings.Repeat("A", 10_000)):                    false,
		js(t, b64(public), body, nil):                                            false,
		js(t, b64(public), body, map[string]any{}):                               false,
		js(t, b64(public)[1:], body, signature):                                  "TypeError",
		js(t, "", body, signature):                                               "TypeError",
		js(t, nil, body, signature):                                              "TypeError",
		js(t, public[:31], body, signature):                                      "TypeError",
		js(t, b64(public), nil, signature):                                       "TypeError",
		js(t, hex.EncodeToString(public)+" ", body, signature):                   "TypeError",
		js(t, make([]byte, 32), body, make([]byte, 64)):                          "TypeError",
	} {
		if got := value(t, "try { return ed25519Verify("+args+") } catch (e) { return e instanceof TypeError && e.stack ? e.name : 'a ' + typeof e }"); got != want {
			t.Errorf("%.300s: %v, not %v", args, got, want)
		}
	}
}

// TestWeakKeys: keys that anybody can sign by are refused, in each of their forms. Go takes them: of
// each, it finds a signature right that nobody made.
func TestWeakKeys(t *testing.T) {
	weak := []string{
		"00", "01", "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	}
	var keys [][]byte
	for _, text := range weak {
		key, err := hex.DecodeString(text + strings.Repeat("0", 64-len(text)))
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.Clone(key)
		other[31] |= 0x80
		keys = append(keys, key, other)
	}
	forged := func(key []byte) bool {
		for _, r := range keys {
			for n := range 64 {
				if ed25519.Verify(key, []byte{byte(n)}, append(bytes.Clone(r), make([]byte, 32)...)) {
					return true
				}
			}
		}
		return false
	}
	for _, key := range keys {
		if !forged(key) {
			t.Errorf("%x is not weak", key)
		}
		if got := value(t, "try { return ed25519Verify("+js(t, key, "x", make([]byte, 64))+") } catch (e) { return String(e) }"); !strings.Contains(fmt.Sprint(got), "of small order") {
			t.Errorf("%x: %v", key, got)
		}
	}
	// 2^255-1 is above the field's prime, and no point; the last is the largest number below.
	for key, want := range map[string]string{strings.Repeat("ff", 32): "not canonical", "efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": "not canonical",
		"ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": "false"} {
		if got := value(t, "try { return ed25519Verify("+js(t, key, "x", make([]byte, 64))+") } catch (e) { return String(e) }"); !strings.Contains(fmt.Sprint(got), want) {
			t.Errorf("%s: %v", key, got)
		}
	}
}

// TestECDSA tries keys and signatures in each of their forms, and what is not right.
func TestECDSA(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	large, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	largeKey, err := x509.MarshalPKIXPublicKey(&large.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	foreignKey, err := x509.MarshalPKIXPublicKey(&foreign.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		s, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	body := `[{"email":"größe@example.com"}]`
	b64 := base64.StdEncoding.EncodeToString
	for args, want := range map[string]any{
		js(t, b64(key), body, b64(sign(body))):                true,
		js(t, key, []byte(body), sign(body)):                  true,
		js(t, b64(key), body, b64(sign(body+" "))):            false,
		js(t, b64(key), body, hex.EncodeToString(sign(body))): false,
		js(t, b64(key), body, b64(sign(body))+"\n"):           false,
		js(t, b64(key), body, ""):                             false,
		js(t, b64(key), body, nil):                            false,
		js(t, b64(largeKey), body, b64(sign(body))):           "TypeError",
		js(t, b64(foreignKey), body, b64(sign(body))):         "TypeError",
		js(t, "MFkw", body, b64(sign(body))):                  "TypeError",
		js(t, "", body, b64(sign(body))):                      "TypeError",
	} {
		if got := value(t, "try { return ecdsaP256Verify("+args+") } catch (e) { return e instanceof TypeError && e.stack ? e.name : 'a ' + typeof e }"); got != want {
			t.Errorf("%.300s: %v, not %v", args, got, want)
		}
	}
}

// TestVerifyingIsWork: it is counted where a source is compiled, and a run ends in time
// whatever it verifies.
func TestVerifyingIsWork(t *testing.T) {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	loop := fmt.Sprintf("for (;;) ed25519Verify(%s);", js(t, []byte(public), "x", make([]byte, 64)))
	begun := time.Now()
	if _, err := engine(t).Compile(t.Context(), loop+" export default () => 1"); err == nil {
		t.Error("a top level that verifies for ever compiles")
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("a top level that verifies for ever took %s", took)
	}
	r := body(t, loop, component.Run{Timeout: 200 * time.Millisecond})
	if r.Failed == nil || r.Failed.Status != 504 || r.Wall > 2*time.Second {
		t.Errorf("%+v after %s", r.Failed, r.Wall)
	}
}

// TestTooManyRandomBytes is a TypeError, like what else is wrong with the arguments of a helper.
func TestTooManyRandomBytes(t *testing.T) {
	if got := value(t, `try { crypto.getRandomValues(new Uint8Array(65537)) } catch (e) { return e instanceof TypeError && e.message }`); got != "getRandomValues: more than 65536 bytes" {
		t.Error(got)
	}
	if got := value(t, `return crypto.getRandomValues(new Uint8Array(65536)).some((b) => b !== 0)`); got != true {
		t.Error(got)
	}
}

// TestRespond: only what respond() made is an answer; data that looks like one is not.
func TestRespond(t *testing.T) {
	for source, want := range map[string]string{
		`return respond({status: 201, headers: {a: 'b'}, body: 'text'})`: `{"status":201,"headers":{"a":"b"},"body":"text"}`,
		`return respond()`:     `{}`,
		`return respond(null)`: `{}`,
		`return respond({__proto__: null, status: null, headers: null, body: null})`:                 `{"status":null,"headers":null,"body":null}`,
		`JSON.stringify = null; Object.prototype.toJSON = () => 'x'; return respond({body: {a: 1}})`: `{"body":"x"}`,
	} {
		if r := body(t, source, component.Run{}); r.Failed != nil || !r.Responds || string(r.Value) != want {
			t.Errorf("%s: %v %s %+v", source, r.Responds, r.Value, r.Failed)
		}
	}
	for source, want := range map[string]string{
		`return {status: 201, headers: {a: 'b'}, body: 'text'}`:             `{"status":201,"headers":{"a":"b"},"body":"text"}`,
		`return {a: respond({body: 'text'})}`:                               `{"a":{}}`,
		`return Object.create(Object.getPrototypeOf(respond({body: 'x'})))`: `{}`,
		`return new (respond({}).constructor)({body: 'text'})`:              `{"body":"text"}`,
		`respond({body: 'made and not returned'}); return 1`:                `1`,
		`return structuredClone(respond({body: 'text'}))`:                   `{}`,
	} {
		if r := body(t, source, component.Run{}); r.Failed != nil || r.Responds || string(r.Value) != want {
			t.Errorf("%s: %v %s %+v", source, r.Responds, r.Value, r.Failed)
		}
	}
	for source, want := range map[string]string{
		`return respond({body: new Uint8Array(3)})`:           "no bytes",
		`return respond({body: 1n})`:                          "BigInt",
		`return respond('text')`:                              "expected an object of status, headers and body",
		`return respond(5)`:                                   "expected an object of status",
		`return respond([])`:                                  "expected an object of status",
		`return respond(() => 1)`:                             "expected an object of status",
		`return respond(new Map())`:                           "expected an object of status",
		`return respond(respond({body: 'x'}))`:                "expected an object of status",
		`return respond({body: "a"}, {status: 201})`:          "TypeError: respond: expected one object of status, headers and body",
		`return respond({extra: 1})`:                          "TypeError: respond: extra is not known",
		`return respond({[Symbol('s')]: 1})`:                  "Symbol(s) is not known",
		`return respond({status: NaN})`:                       "respond: status: expected a whole number",
		`return respond({status: '200'})`:                     "respond: status: expected a whole number",
		`return respond({status: () => 200})`:                 "respond: status: expected a whole number",
		`return respond({body: () => 1})`:                     "respond: body: expected a text",
		`return respond({body: Symbol()})`:                    "respond: body: expected a text",
		`return respond({body: respond({})})`:                 "respond: body: expected a text",
		`return respond({headers: new Map([['Link', 'a']])})`: "respond: headers: expected an object of texts",
		`return respond({headers: [['Link', 'a']]})`:          "respond: headers: expected an object of texts",
		`return respond({headers: {Link: () => 'a'}})`:        "respond: headers: expected an object of texts",
		`return respond({headers: {[Symbol()]: 'a'}})`:        "respond: headers: expected an object of texts",
	} {
		if r := body(t, source, component.Run{}); r.Failed == nil || !strings.Contains(r.Failed.Message, want) {
			t.Errorf("%s: %s %+v", source, r.Value, r.Failed)
		}
	}
	if r := body(t, `return typeof respond`, component.Run{Verifier: verifierInput(nil)}); string(r.Value) != `"undefined"` {
		t.Errorf("a verifier has respond: %s", r.Value)
	}
}

// TestVerifiersSeeTheRequest, whatever its query has.
func TestVerifiersSeeTheRequest(t *testing.T) {
	in := verifierInput(nil)
	in.Request = []byte(`{"method":"GET","query":{"hub.challenge":"1","__proto__":"2"},"url":"https://acme.localhost/public/v1/custom/hook?x=1"}`)
	r := run(t, compile(t, `export default ({method, query, url}) => [method, query['hub.challenge'], Object.keys(query), url]`), component.Run{Verifier: in})
	if want := `["GET","1",["hub.challenge","__proto__"],"https://acme.localhost/public/v1/custom/hook?x=1"]`; string(r.Value) != want {
		t.Errorf("%s %+v", r.Value, r.Failed)
	}
}
