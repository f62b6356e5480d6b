package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/tenant/tenanttest"
	"gatehouse/internal/user"
)

// forge makes tokens that differ from a valid one in one point.
type forge struct {
	w       *world
	subject string
}

func (f *forge) make(method jwt.SigningMethod, change func(header, claims map[string]any) (key any)) string {
	f.w.t.Helper()
	key, err := f.w.id.signer(f.w.ctx, f.w.config())
	f.w.must(err)
	now := f.w.clock.Now().Unix()
	token := jwt.NewWithClaims(method, jwt.MapClaims{
		"iss": "https://acme.example", "aud": "public-api", "sub": f.subject, "tid": acme, "typ": "external",
		"iat": now, "exp": now + 3600, "jti": "x",
	})
	token.Header["kid"] = key.kid
	with := any(key.secret)
	if change != nil {
		if k := change(token.Header, token.Claims.(jwt.MapClaims)); k != nil {
			with = k
		}
	}
	text, err := token.SignedString(with)
	f.w.must(err)
	return text
}

func (f *forge) claim(name string, value any) string {
	return f.make(jwt.SigningMethodHS256, func(_, claims map[string]any) any {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
		return nil
	})
}

func (f *forge) header(name string, value any) string {
	return f.make(jwt.SigningMethodHS256, func(header, _ map[string]any) any {
		if value == nil {
			delete(header, name)
		} else {
			header[name] = value
		}
		return nil
	})
}

// bad returns invalid tokens that differ from a valid one in one point each, or in form.
// foreign is the key of another tenant.
func (f *forge) bad(accessToken string, foreign *signingKey) map[string]string {
	f.w.t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	f.w.must(err)
	now := f.w.clock.Now().Unix()
	parts := strings.Split(accessToken, ".")
	staff := f.w.user(sam).ID
	return map[string]string{
		"empty":              "",
		"garbage":            "garbage",
		"dots":               "..",
		"two parts":          parts[0] + "." + parts[1],
		"four parts":         accessToken + ".x",
		"space":              accessToken + " ",
		"no signature":       parts[0] + "." + parts[1] + ".",
		"another signature":  parts[0] + "." + parts[1] + "." + strings.Repeat("A", 43),
		"padded":             parts[0] + "." + parts[1] + "." + parts[2] + "=",
		"not canonical":      parts[0] + "." + parts[1] + "." + parts[2][:42] + flipped(parts[2][42]),
		"claims of another":  parts[0] + "." + strings.Split(f.claim("sub", staff), ".")[1] + "." + parts[2],
		"not JSON":           base64.RawURLEncoding.EncodeToString([]byte("x")) + "." + parts[1] + "." + parts[2],
		"none":               f.make(jwt.SigningMethodNone, func(_, _ map[string]any) any { return jwt.UnsafeAllowNoneSignatureType }),
		"None":               f.header("alg", "None"),
		"HS384":              f.make(jwt.SigningMethodHS384, nil),
		"HS512":              f.make(jwt.SigningMethodHS512, nil),
		"RS256":              f.make(jwt.SigningMethodRS256, func(_, _ map[string]any) any { return rsaKey }),
		"RS256 in name":      f.header("alg", "RS256"),
		"another key":        f.make(jwt.SigningMethodHS256, func(_, _ map[string]any) any { return make([]byte, 32) }),
		"empty key":          f.make(jwt.SigningMethodHS256, func(_, _ map[string]any) any { return []byte{} }),
		"another tenant's":   f.make(jwt.SigningMethodHS256, func(h, _ map[string]any) any { h["kid"] = foreign.kid; return foreign.secret }),
		"unknown kid":        f.header("kid", "0199a000-0000-7000-8000-000000000000"),
		"no kid":             f.header("kid", nil),
		"kid no text":        f.header("kid", 7),
		"empty kid":          f.header("kid", ""),
		"header typ":         f.header("typ", "at+jwt"),
		"no header typ":      f.header("typ", nil),
		"critical":           f.header("crit", []string{"b64"}),
		"iss":                f.claim("iss", "https://umbrella.example"),
		"no iss":             f.claim("iss", nil),
		"aud":                f.claim("aud", "admin"),
		"aud a list":         f.claim("aud", []string{"public-api", "admin"}),
		"no aud":             f.claim("aud", nil),
		"tid":                f.claim("tid", "umbrella"),
		"no tid":             f.claim("tid", nil),
		"typ":                f.claim("typ", "internal"),
		"no typ":             f.claim("typ", nil),
		"no sub":             f.claim("sub", nil),
		"sub unknown":        f.claim("sub", "0199a000-0000-7000-8000-000000000000"),
		"sub of staff":       f.claim("sub", staff),
		"sub no text":        f.claim("sub", 7),
		"expired":            f.make(jwt.SigningMethodHS256, func(_, c map[string]any) any { c["iat"], c["exp"] = now-3600, now; return nil }),
		"long expired":       f.claim("exp", now-100_000),
		"lives too long":     f.claim("exp", now+3601+3600),
		"no exp":             f.claim("exp", nil),
		"exp no number":      f.claim("exp", "soon"),
		"no iat":             f.claim("iat", nil),
		"issued in future":   f.make(jwt.SigningMethodHS256, func(_, c map[string]any) any { c["iat"], c["exp"] = now+600, now+900; return nil }),
		"not yet":            f.claim("nbf", now+600),
		"oversized":          f.claim("jti", strings.Repeat("x", 4096)),
		"oversized unsigned": strings.Repeat("a", 5000) + "..",
	}
}

func TestOnlyAGoodTokenIsLetIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := w.join(eva)
		accessToken, _ := w.login(eva)
		f := &forge{w, id}
		w.newTenant("umbrella")
		umbrella, err := w.dir.Current(w.ctx, "umbrella")
		w.must(err)
		foreign, err := w.id.signer(w.ctx, umbrella)
		w.must(err)
		now := w.clock.Now().Unix()

		good := map[string]string{
			"issued":                   accessToken,
			"forged like it":           f.make(jwt.SigningMethodHS256, nil),
			"from a clock a bit ahead": f.make(jwt.SigningMethodHS256, func(_, c map[string]any) any { c["iat"], c["exp"] = now+30, now+3630; return nil }),
		}
		for range 2 { // the second time the tokens are cached
			for name, token := range good {
				v, err := w.id.Authenticate(w.ctx, w.config(), token)
				if err != nil || string(v.UserID()) != id {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		for name, token := range f.bad(accessToken, foreign) {
			if v, err := w.id.Authenticate(w.ctx, w.config(), token); err != errUnauthorized || v != (access.Viewer{}) { //nolint:errorlint // the very same answer
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := w.id.Authenticate(w.ctx, umbrella, accessToken); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("at another tenant: %v", err)
		}
		w.clock.advance(time.Hour)
		if _, err := w.id.Authenticate(w.ctx, w.config(), accessToken); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("after an hour: %v", err)
		}
	})
}

// flipped returns a base64url digit that differs only in the bits that a decoder ignores.
func flipped(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(digits[strings.IndexByte(digits, c)^1])
}

// A token that was accepted before is refused once something has changed that makes it
// invalid, and a request that still uses the old configuration does not make it accepted
// again.
func TestATokenThatWasLetInIsAskedAgain(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		token, _ := w.login(eva)
		before := w.config()
		in := func(cfg *access.Config) bool {
			_, err := w.id.Authenticate(w.ctx, cfg, token)
			return err == nil
		}
		for range 2 {
			if !in(before) {
				t.Fatal("a good token is refused")
			}
		}
		w.configure(func(t *tenant.Tenant) { t.BaseURL = "https://other.example" })
		after := w.config()
		for range 2 {
			if in(after) || !in(before) || in(after) {
				t.Error("it is not judged by the configuration of the request")
			}
		}
		w.configure(func(t *tenant.Tenant) { t.BaseURL = "https://acme.example" })
		if !in(w.config()) {
			t.Error("a good token is refused")
		}
		w.clock.advance(time.Hour)
		if in(w.config()) {
			t.Error("an expired token is known")
		}
	})
}

func TestTheClaimsAreThoseOfTheDecision(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := w.join(eva)
		accessToken, _ := w.login(eva)
		claims := jwt.MapClaims{}
		token, _, err := jwt.NewParser().ParseUnverified(accessToken, claims)
		w.must(err)
		names := []string{}
		for name := range claims {
			names = append(names, name)
		}
		slices.Sort(names)
		if fmt.Sprint(names) != "[aud exp iat iss jti sub tid typ]" || len(token.Header) != 3 || token.Header["alg"] != "HS256" {
			t.Errorf("%v %v", names, token.Header)
		}
		if claims["iss"] != "https://acme.example" || claims["aud"] != "public-api" || claims["sub"] != id || claims["tid"] != acme ||
			claims["typ"] != "external" || claims["exp"].(float64)-claims["iat"].(float64) != 3600 {
			t.Errorf("%v", claims)
		}
	})
}

// An access token stays valid when its user is deactivated, with current permissions, but not
// when the user is deleted.
func TestATokenHasTheRightsItsUserHasNow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		accessToken, _ := w.login(eva)
		w.setActive(eva, false)
		if _, err := w.id.Authenticate(w.ctx, w.config(), accessToken); err != nil {
			t.Errorf("deactivated: %v", err)
		}
		w.configure(func(*tenant.Tenant) {})
		w.must(tenanttest.Change(w.ctx, w.d.For(acme), func(tx tenant.ConfigTx) error { return user.Delete(w.ctx, tx, w.user(eva).ID) }))
		if _, err := w.id.Authenticate(w.ctx, w.config(), accessToken); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("deleted: %v", err)
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	w := newWorld(b, dbtest.Open(b, db.SQLite))
	w.join(eva)
	accessToken, _ := w.login(eva)
	cfg := w.config()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.id.Authenticate(w.ctx, cfg, accessToken); err != nil {
			b.Fatal(err)
		}
	}
}
