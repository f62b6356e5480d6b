package identity

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
)

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
			forged, err := sign(w.config(), key, grant{userID: w.user(eva).ID, now: w.clock.Now().UnixMicro()})
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

// A flood of invented key ids does not cause a flood of database reads.
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
	for i := range 2 * maxUnknown {
		wg.Go(func() { _, _ = w.id.verifier(w.ctx, cfg, fmt.Sprint(i)) })
	}
	wg.Wait()
	if n := len(w.id.keys.of(acme).unknown); n > maxUnknown {
		t.Errorf("%d are remembered", n)
	}
	accessToken, _ := w.login(eva)
	if _, err := w.id.Authenticate(w.ctx, cfg, accessToken); err != nil {
		t.Error(err)
	}
}
