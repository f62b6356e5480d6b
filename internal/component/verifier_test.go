package component_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/component"
)

// TestHMACVectors tries the vectors of RFC 4231, as bytes and, those that are text,
// as strings.
func TestHMACVectors(t *testing.T) {
	hexed := func(s string) string { return "Uint8Array.fromHex('" + s + "')" }
	for _, c := range []struct{ key, data, want string }{
		{repeated("0b", 20), hex.EncodeToString([]byte("Hi There")), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
		{hex.EncodeToString([]byte("Jefe")), hex.EncodeToString([]byte("what do ya want for nothing?")), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
		{repeated("aa", 20), repeated("dd", 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
		{"0102030405060708090a0b0c0d0e0f10111213141516171819", repeated("cd", 50), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
		{repeated("aa", 131), hex.EncodeToString([]byte("Test Using Larger Than Block-Size Key - Hash Key First")), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
		{repeated("aa", 131), hex.EncodeToString([]byte("This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.")),
			"9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
	} {
		if got := value(t, "return crypto.hmacSha256("+hexed(c.key)+", "+hexed(c.data)+")"); got != c.want {
			t.Errorf("%s: %v", c.key, got)
		}
	}
	const want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	if got := value(t, `return hmacSha256('Jefe', 'what do ya want for nothing?')`); got != want {
		t.Error(got)
	}
}

// TestHelpers checks encodings and invalid arguments.
func TestHelpers(t *testing.T) {
	mac := hmac.New(sha256.New, []byte("k€y"))
	mac.Write([]byte("dätä 😀"))
	sum := mac.Sum(nil)
	now := time.Now().Unix()
	for body, want := range map[string]any{
		`return hmacSha256('k€y', 'dätä 😀')`:                                                                                 hex.EncodeToString(sum),
		`return hmacSha256('k€y', 'dätä 😀', 'base64')`:                                                                       base64.StdEncoding.EncodeToString(sum),
		`return hmacSha256('k€y', 'dätä 😀', 'base64url')`:                                                                    base64.RawURLEncoding.EncodeToString(sum),
		`return hmacSha256(new TextEncoder().encode('k€y').buffer, new DataView(new TextEncoder().encode('dätä 😀').buffer))`: hex.EncodeToString(sum),
		`return hmacSha256(new Uint16Array([0x6566]), 'x') === hmacSha256('fe', 'x')`:                                        true,
		`try { hmacSha256('', 'x') } catch (e) { return e.message }`:                                                         "hmacSha256: the key is empty",
		`try { hmacSha256(undefined, 'x') } catch (e) { return e.name }`:                                                     "TypeError",
		`try { hmacSha256('k', null) } catch (e) { return e.name }`:                                                          "TypeError",
		`try { hmacSha256('k', 1) } catch (e) { return e.name }`:                                                             "TypeError",
		`try { hmacSha256('k', 'x', 'latin1') } catch (e) { return e.name }`:                                                 "TypeError",
		`return safeCompare('abc', 'abc')`:                                                                                   true,
		`return safeCompare('abc', new Uint8Array([97, 98, 99]))`:                                                            true,
		`return safeCompare('abc', 'abd')`:                                                                                   false,
		`return safeCompare('abc', 'ab')`:                                                                                    false,
		`return safeCompare(undefined, undefined)`:                                                                           false,
		`return safeCompare(null, null)`:                                                                                     false,
		`return safeCompare(1, 1)`:                                                                                           false,
		`return safeCompare({}, {})`:                                                                                         false,
		`return safeCompare('1', 1)`:                                                                                         false,
		`return safeCompare(['a'], 'a')`:                                                                                     false,
		fmt.Sprintf(`return checkTimestampFresh(%d)`, now):                                                                   true,
		fmt.Sprintf(`return checkTimestampFresh('%d')`, now):                                                                 true,
		fmt.Sprintf(`return checkTimestampFresh(%d)`, now-290):                                                               true,
		fmt.Sprintf(`return checkTimestampFresh(%d)`, now-310):                                                               false,
		fmt.Sprintf(`return checkTimestampFresh(%d)`, now+310):                                                               false,
		fmt.Sprintf(`return checkTimestampFresh(%d, 1000)`, now-900):                                                         true,
		fmt.Sprintf(`return checkTimestampFresh(%d, Infinity)`, now-900):                                                     true,
		fmt.Sprintf(`return checkTimestampFresh(%d, NaN)`, now):                                                              false,
		fmt.Sprintf(`return checkTimestampFresh(%d, -1)`, now):                                                               false,
		fmt.Sprintf(`return checkTimestampFresh(%d, '300')`, now):                                                            false,
		fmt.Sprintf(`return checkTimestampFresh(%d000)`, now):                                                                false,
		fmt.Sprintf(`return checkTimestampFresh('%d000')`, now):                                                              false,
		fmt.Sprintf(`return checkTimestampFresh(' %d')`, now):                                                                false,
		fmt.Sprintf(`return checkTimestampFresh('%d.0')`, now):                                                               false,
		fmt.Sprintf(`return checkTimestampFresh('-%d')`, now):                                                                false,
		fmt.Sprintf(`return checkTimestampFresh({ valueOf: () => %d })`, now):                                                false,
		fmt.Sprintf(`Date.now = () => 0; return checkTimestampFresh(%d)`, now):                                               true,
		`return [NaN, '', null, undefined, -1, Infinity, 0, [], true, 1n].some(v => checkTimestampFresh(v, Infinity))`:       false,
	} {
		if got := value(t, body); got != want {
			t.Errorf("%s: %v, not %v", body, got, want)
		}
	}
}

// TestRawBody checks that the signature over timestamp, dot and body is right for
// any bytes, computed from rawBody and from rawBytes.
func TestRawBody(t *testing.T) {
	p := compile(t, `export default ({ rawBody, rawBytes, headers, config }) => {
		const joined = new Uint8Array(headers.ts.length + 1 + rawBytes.length);
		joined.set(new TextEncoder().encode(headers.ts + '.')); joined.set(rawBytes, headers.ts.length + 1);
		return [hmacSha256(config.webhook_secret, headers.ts + '.' + rawBody), hmacSha256(config.webhook_secret, joined), typeof records, safeCompare(rawBody, rawBytes)];
	}`)
	bodies := [][]byte{{}, []byte("plain"), []byte("ü€😀"), {0}, {0xff}, {0xed, 0xb2, 0x80}, {0xed, 0xa0, 0x80}, {0xf0, 0x9f, 0x98}, {0xc0, 0x80},
		[]byte("😀\x80\xbf"), []byte("\xef\xbb\xbfbom"), []byte("\xef\xbf\xbd"), bytes.Repeat([]byte{0xfe}, 1000)}
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		b := make([]byte, random.IntN(200))
		for i := range b {
			b[i] = byte(random.Uint32())
			if n%2 == 0 { // more text that is almost UTF-8
				b[i] |= 0x80 & byte(random.Uint32())
			}
		}
		bodies = append(bodies, b)
	}
	big := make([]byte, 1<<20)
	for i := range big {
		big[i] = byte(random.Uint32())
	}
	bodies = append(bodies, big)
	for _, body := range bodies {
		mac := hmac.New(sha256.New, []byte("whsec"))
		mac.Write([]byte("1700000000."))
		mac.Write(body)
		want := hex.EncodeToString(mac.Sum(nil))
		r := run(t, p, component.Run{Verifier: &component.VerifierInput{RawBody: body, Headers: []byte(`{"ts":"1700000000"}`), Config: []byte(`{"webhook_secret":"whsec"}`)}, Timeout: time.Second})
		if r.Failed != nil || string(r.Value) != fmt.Sprintf(`[%q,%q,"undefined",true]`, want, want) {
			t.Fatalf("%.40x: %s %+v, want %s", body, r.Value, r.Failed, want)
		}
	}
}

// TestVerifier checks that the documented verifier accepts what is signed, rejects
// one changed bit, and has the limits of verifiers.
func TestVerifier(t *testing.T) {
	body := []byte(`{"id":"evt_1","type":"paid","n":1}`)
	p := compile(t, verifierSource)
	in := verifierInput(body)
	if r := run(t, p, component.Run{Verifier: in}); r.Failed != nil || !strings.Contains(string(r.Value), `"providerEventId":"evt_1"`) {
		t.Fatalf("%s %+v", r.Value, r.Failed)
	}
	for n := range body {
		changed := bytes.Clone(body)
		changed[n] ^= 1
		if r := run(t, p, component.Run{Verifier: &component.VerifierInput{RawBody: changed, Headers: in.Headers, Config: in.Config}}); r.Failed == nil {
			t.Errorf("accepted %s", changed)
		}
	}
	r := run(t, compile(t, `export default () => { for (;;) ; }`), component.Run{Verifier: in})
	if r.Failed == nil || r.Failed.Status != 504 || !r.Failed.CutOff || r.CPU < component.VerifierCPU || r.CPU > 2*component.VerifierCPU {
		t.Error(r.Failed, r.CPU)
	}
	r = run(t, compile(t, `export default () => { const a = []; try { for (let i = 0; i < 15; i++) a.push(new Uint8Array(1 << 20)) } catch { fail("caught") } }`), component.Run{Verifier: in})
	if r.Failed == nil || !r.Failed.CutOff || !strings.Contains(r.Failed.Message, "memory limit of 16 MiB") {
		t.Error(r.Failed)
	}
	r = run(t, compile(t, `const r = records; export default () => r.get('a', 'b')`), component.Run{Verifier: in, Host: customerHost})
	if r.Failed == nil || !strings.Contains(r.Failed.Message, "not available") {
		t.Error(r.Failed, string(r.Value))
	}
}
