package server_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
)

// Two nodes share one PostgreSQL. Changes are made through the first node's
// database, and nothing notifies the second: a change holds at once on the node
// that made it and within 1 s on every other (contract H15).

func twoNodes(t *testing.T) (w *gatetest.World, first, second *gatetest.Node) {
	t.Helper()
	w = gatetest.New(t, db.Postgres)
	w.Apply(acme)
	second = w.AddNode()
	return w, w.Nodes[0], second
}

// applyAt applies a manifest through one node's database, as a command on the
// same machine would.
func applyAt(t *testing.T, w *gatetest.World, n *gatetest.Node, src string) {
	t.Helper()
	_, err := manifest.Apply(t.Context(), n.DB, w.Clock, "test.yaml", []byte(src), func(string) string { return "" }, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
}

// within fails the test unless the change made at begun becomes visible. That it does so
// within a second is judged where nothing else uses the machine, by TestProveCommandsTakeEffect.
func within(t *testing.T, what string, begun time.Time, seen func() bool) {
	t.Helper()
	const limit = 10 * time.Second
	for {
		asked := time.Now()
		if seen() {
			t.Logf("%s: seen after %v", what, asked.Sub(begun).Round(time.Millisecond))
			return
		}
		if asked.Sub(begun) > limit {
			t.Errorf("%s: not seen after %v", what, asked.Sub(begun))
			return
		}
		time.Sleep(20 * time.Millisecond) // far from the limit of requests of a user
	}
}

func status(a *gatetest.Actor, path string, want int) func() bool {
	return func() bool { return a.Get(path).Status == want }
}

func TestADeletedKeyIsDeadOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	for range 3 {
		sam := w.Key("sam@acme.example")
		sam.At(first).Get(me).Want(200, "")
		sam.At(second).Get(me).Want(200, "") // both have it cached now
		if err := first.Server.Keys().Delete(t.Context(), "test", "acme", sam.KeyID); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		sam.At(first).Get(me).Want(401, "UNAUTHORIZED") // at once
		within(t, "the deletion of a key", begun, status(sam.At(second), me, 401))
		sam.At(second).Get(contact).Want(401, "UNAUTHORIZED") // for good
	}
}

func TestANewKeyWorksOnEveryNode(t *testing.T) {
	w, _, second := twoNodes(t)
	w.Key("sam@acme.example").At(second).Get(me).Want(200, "")
}

func TestAPermissionThatIsTakenIsGoneOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	sam := w.Key("sam@acme.example")
	id := sam.Post(contact, `{"first_name":"Ada","score":1}`).Want(201, "").ID()
	one := contact + "/" + id
	const may = "contact: {create: true, read: true, update: true, delete: true}"
	for range 2 {
		sam.At(second).Get(one).Want(200, "")
		applyAt(t, w, first, strings.Replace(acme, may, "contact: {create: true, read: true, fields: {score: {read: false}}}", 1))
		begun := time.Now()
		// A write reads the current configuration: the other node refuses at
		// once.
		sam.At(second).Patch(one, `{"stage":"new"}`).Want(403, "FORBIDDEN")
		sam.At(second).Delete(one).Want(403, "FORBIDDEN")
		within(t, "a field that is closed", begun, func() bool {
			_, shown := sam.At(second).Get(one).Want(200, "").Record()["score"]
			return !shown
		})
		within(t, "a verb that is taken, in /me", begun, func() bool {
			return !strings.Contains(string(sam.At(second).Get(me).Want(200, "").Body), `"delete"`)
		})
		applyAt(t, w, first, acme)
		within(t, "a permission that is given", time.Now(), func() bool { return sam.At(second).Patch(one, `{"score":2}`).Status == 200 })
	}
	applyAt(t, w, first, strings.Replace(acme, may+"\n", "", 1))
	within(t, "an entity type that is closed", time.Now(), status(sam.At(second), contact, 403))
}

func TestADeactivatedUserIsOutOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	sam := w.Key("sam@acme.example")
	for range 2 {
		within(t, "a reactivation", time.Now(), status(sam.At(second), me, 200))
		if _, _, err := config.SetUserActive(t.Context(), first.DB.For("acme"), w.Clock, config.Operator("test"), "sam@acme.example", false); err != nil {
			t.Fatal(err)
		}
		within(t, "a deactivation", time.Now(), status(sam.At(second), me, 401))
		if _, _, err := config.SetUserActive(t.Context(), first.DB.For("acme"), w.Clock, config.Operator("test"), "sam@acme.example", true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASwitchIsThrownOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	sam := w.Key("sam@acme.example")
	sam.At(second).Get(me).Want(200, "")
	applyAt(t, w, first, "tenant: acme\npublic_api: {enabled: false}\n")
	within(t, "API off", time.Now(), status(sam.At(second), me, 503))
	applyAt(t, w, first, "tenant: acme\npublic_api: {enabled: true}\n")
	within(t, "API on", time.Now(), status(sam.At(second), me, 200))
	applyAt(t, w, first, "tenant: acme\nhosts: [acme.localhost, new.localhost]\n")
	moved := sam.At(second)
	moved.Host = "new.localhost"
	within(t, "a new host", time.Now(), status(moved, me, 200))
	applyAt(t, w, first, "tenant: acme\nhosts: [acme.localhost]\n")
	within(t, "a host that is taken", time.Now(), status(moved, me, 404))
	applyAt(t, w, first, "tenant: acme\nunauthenticated_per_ip_per_minute: 7\n")
	within(t, "a limit", time.Now(), func() bool {
		anyone := w.Anyone().At(second)
		return anyone.Get("/nowhere").Header.Get("X-RateLimit-Limit") == "7"
	})
}

// TestEachNodeHasItsOwnBudget: with n nodes the effective limit is up to n
// times the configured one (contract L6).
func TestEachNodeHasItsOwnBudget(t *testing.T) {
	w, first, second := twoNodes(t)
	w.Apply(unlogged)
	const limit = 20
	sam := w.Key("sam@acme.example", gatetest.RateLimit(limit))
	accepted := map[*gatetest.Node]*atomic.Int64{first: {}, second: {}}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range limit {
				n := []*gatetest.Node{first, second}[(i+j)%2]
				if sam.At(n).Get(me).Status == 200 {
					accepted[n].Add(1)
				}
			}
		})
	}
	wg.Wait()
	if a, b := accepted[first].Load(), accepted[second].Load(); a != limit || b != limit {
		t.Errorf("accepted %d and %d, want %d on each node", a, b, limit)
	}
}

// TestACursorIsGoodOnEveryNode, and so is a record that one node wrote.
func TestACursorIsGoodOnEveryNode(t *testing.T) {
	w, first, second := twoNodes(t)
	sam := w.Key("sam@acme.example")
	nodes := []*gatetest.Node{first, second}
	made := map[string]bool{}
	for i := range 7 {
		id := sam.At(nodes[i%2]).Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		sam.At(nodes[(i+1)%2]).Get(contact+"/"+id).Want(200, "")
		made[id] = true
	}
	path := contact + "?limit=2"
	for i := 0; ; i++ {
		page := sam.At(nodes[i%2]).Get(path).Want(200, "")
		for _, r := range page.Records() {
			if id, _ := r["id"].(string); !made[id] {
				t.Errorf("record %s came twice, or is none", id)
			} else {
				delete(made, id)
			}
		}
		m := page.Meta()
		if !m.HasMore {
			break
		}
		path = contact + "?limit=2&cursor=" + *m.NextCursor
	}
	if len(made) > 0 {
		t.Errorf("%d records were missed", len(made))
	}
}
