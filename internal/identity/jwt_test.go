package identity

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// forge makes tokens that differ from a good one in a point.
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

func TestOnlyAGoodTokenIsLetIn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		id := w.join(eva)
		accessToken, _ := w.login(eva)
		f := &forge{w, id}
		rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
		w.must(err)
		w.newTenant("umbrella")
		umbrella, err := w.dir.Current(w.ctx, "umbrella")
		w.must(err)
		foreign, err := w.id.signer(w.ctx, umbrella)
		w.must(err)
		now := w.clock.Now().Unix()
		parts := strings.Split(accessToken, ".")
		staff := w.user(sam).ID

		good := map[string]string{
			"issued":                   accessToken,
			"forged like it":           f.make(jwt.SigningMethodHS256, nil),
			"from a clock a bit ahead": f.make(jwt.SigningMethodHS256, func(_, c map[string]any) any { c["iat"], c["exp"] = now+30, now+3630; return nil }),
		}
		bad := map[string]string{
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
		for name, token := range good {
			v, err := w.id.Authenticate(w.ctx, w.config(), token)
			if err != nil || v.UserID() != id {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, token := range bad {
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

// flipped is a base64url digit that differs in the bits that do not count.
func flipped(c byte) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(digits[strings.IndexByte(digits, c)^1])
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

// An access token outlives its user's deactivation, with live permissions, but
// not its user.
func TestATokenHasTheRightsItsUserHasNow(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.join(eva)
		accessToken, _ := w.login(eva)
		w.setActive(eva, false)
		if _, err := w.id.Authenticate(w.ctx, w.config(), accessToken); err != nil {
			t.Errorf("deactivated: %v", err)
		}
		w.configure(func(*tenant.Tenant) {})
		w.must(w.d.For(acme).Write(w.ctx, func(tx db.Tx) error { return user.Delete(w.ctx, tx, w.user(eva).ID) }))
		if _, err := w.id.Authenticate(w.ctx, w.config(), accessToken); fault.CodeOf(err) != fault.Unauthorized {
			t.Errorf("deleted: %v", err)
		}
	})
}

func TestARotatedKeyIsAcceptedUntilItsTokensHaveExpired(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			w := newWorld(t, dbtest.OpenConfig(t, config))
			other := w
			if engine == db.Postgres {
				other = node(t, dbtest.OpenConfig(t, config), w.clock)
			}
			w.join(eva)
			old, _ := w.login(eva)
			in := func(n *world, token string) bool {
				_, err := n.id.Authenticate(w.ctx, n.config(), token)
				return err == nil
			}
			if !in(w, old) || !in(other, old) {
				t.Fatal("a good token is refused")
			}
			stale := other.config()
			w.must(w.id.RotateKey(w.ctx, "olivia", acme))
			fresh, _ := w.login(eva)
			if kid(t, fresh) == kid(t, old) {
				t.Error("the key is the same")
			}
			if _, err := other.id.Authenticate(w.ctx, stale, fresh); err != nil {
				t.Errorf("a node that has not heard of the rotation: %v", err)
			}
			if !in(w, old) || !in(other, old) || !in(w, fresh) {
				t.Error("a token is refused after the rotation")
			}
			w.clock.advance(59 * time.Minute)
			if !in(w, old) {
				t.Error("an old token is refused too early")
			}
			w.clock.advance(3 * time.Minute)
			key := w.id.keys.of(acme).set.Load().byKid[kid(t, old)]
			forged, err := sign(w.config(), key, w.user(eva).ID, w.clock.Now().UnixMicro())
			w.must(err)
			if in(w, forged) || in(other, forged) {
				t.Error("a token of a retired key is accepted")
			}
			changes, err := tenant.Changes(w.ctx, w.d.For(acme), 2)
			w.must(err)
			for _, c := range changes {
				if c.Kind != "jwt_key" || c.Actor != "olivia" || strings.Contains(fmt.Sprint(c), "v1.") {
					t.Errorf("history: %+v", c)
				}
			}
			if fault.CodeOf(w.id.RotateKey(w.ctx, "x", "nowhere")) != fault.NotFound || fault.CodeOf(w.id.RotateKey(w.ctx, "x", "")) != fault.NotFound {
				t.Error("a tenant that is not there has a key")
			}
		})
	}
}

func kid(t *testing.T, token string) string {
	t.Helper()
	parsed, _, err := jwt.NewParser().ParseUnverified(token, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Header["kid"].(string)
}

func TestManyNodesAgreeOnTheFirstKey(t *testing.T) {
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) {
			config := dbtest.Config(t, engine)
			w := newWorld(t, dbtest.OpenConfig(t, config))
			nodes := []*world{w}
			if engine == db.Postgres {
				nodes = append(nodes, node(t, dbtest.OpenConfig(t, config), w.clock))
			}
			cfg := w.config()
			kids := inParallel(50, func(i int) string {
				key, err := nodes[i%len(nodes)].id.signer(context.Background(), cfg)
				if err != nil {
					return err.Error()
				}
				return key.kid
			})
			if len(kids) != 1 || w.rows(`SELECT 1 FROM jwt_keys WHERE tenant_id = $1`) != 1 {
				t.Errorf("%v", kids)
			}
		})
	}
}

func TestAKeyIsSealedAndOpensForItsTenantAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.newTenant("umbrella")
		key, err := w.id.signer(w.ctx, w.config())
		w.must(err)
		w.must(w.d.For("umbrella").Write(w.ctx, func(tx db.Tx) error {
			var sealed string
			err := w.d.For(acme).Query(w.ctx, `SELECT sealed FROM jwt_keys WHERE tenant_id = $1`, func(r db.Row) error { sealed = r.Text(0); return nil })
			if err != nil || strings.Contains(sealed, base64.RawURLEncoding.EncodeToString(key.secret)) {
				t.Errorf("%v %s", err, sealed)
			}
			_, err = tx.Exec(w.ctx, `INSERT INTO jwt_keys (tenant_id, kid, sealed, created_at) VALUES ($1, $2, $3, 1)`, key.kid, sealed)
			return err
		}))
		umbrella, err := w.dir.Current(w.ctx, "umbrella")
		w.must(err)
		if _, err := w.id.signer(w.ctx, umbrella); err == nil || fault.CodeOf(err) != "" {
			t.Errorf("a copied key opens: %v", err)
		}
	})
}

// A flood of made-up key ids is no flood of reads.
func TestUnknownKeyIDsAreLookedUpSparingly(t *testing.T) {
	w := newWorld(t, dbtest.Open(t, db.SQLite))
	id := w.join(eva)
	f := &forge{w, id}
	one := f.header("kid", "0199a000-0000-7000-8000-000000000001")
	cfg := w.config()
	reads := &w.id.keys.of(acme).reads
	for range 100 {
		if _, err := w.id.Authenticate(w.ctx, cfg, one); fault.CodeOf(err) != fault.Unauthorized {
			t.Fatal(err)
		}
	}
	if n := reads.Load(); n > 4 {
		t.Errorf("%d reads for one key id", n)
	}
	w.clock.advance(2 * time.Second)
	before := reads.Load()
	_, _ = w.id.Authenticate(w.ctx, cfg, one)
	if reads.Load() != before+1 {
		t.Error("it is never asked for again")
	}
	var wg sync.WaitGroup
	for i := range 2 * maxRefuted {
		wg.Go(func() { _, _ = w.id.verifier(w.ctx, cfg, fmt.Sprint(i)) })
	}
	wg.Wait()
	if n := len(w.id.keys.of(acme).refuted); n > maxRefuted {
		t.Errorf("%d are remembered", n)
	}
	accessToken, _ := w.login(eva)
	if _, err := w.id.Authenticate(w.ctx, cfg, accessToken); err != nil {
		t.Error(err)
	}
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
