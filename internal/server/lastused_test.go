package server_test

import (
	"testing"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/gatetest"
)

// TestTheUseOfAKeyIsKept: last_used_at is when a key last passed its checks,
// within a second or two; a refused call does not count.
func TestTheUseOfAKeyIsKept(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		used, forbidden := w.Key("sam@acme.example"), w.Key("sam@acme.example")
		denied := w.Key("sam@acme.example", allowlist("198.51.100.0/24"))
		pages := w.Key("sam@acme.example", origins(app))
		idle := w.Key("sam@acme.example")
		keys := func() map[string]apikey.Key {
			list, err := w.Nodes[0].Server.Keys().List(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			m := map[string]apikey.Key{}
			for _, k := range list {
				m[k.ID] = k
			}
			return m
		}
		lastUsed := func(a *gatetest.Actor, after int64) int64 {
			t.Helper()
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if at := keys()[a.KeyID].LastUsedAt; at > after {
					return at
				}
			}
			t.Fatal("last_used_at is not written")
			return 0
		}
		begun := w.Clock.Now().UnixMicro()
		denied.Get(me).Want(403, "IP_DENIED")
		pages.With("Origin", evil).Get(me).Want(403, "CORS_DENIED")
		used.Get(me).Want(200, "")
		forbidden.Get("/public/v1/data/nothing").Want(404, "NOT_FOUND") // the key passed; the entity type does not exist
		first := lastUsed(used, 0)
		if now := w.Clock.Now().UnixMicro(); first < begun || first > now {
			t.Errorf("last used at %d, want %d to %d", first, begun, now)
		}
		lastUsed(forbidden, 0)
		for _, a := range []*gatetest.Actor{denied, pages, idle} {
			if k := keys()[a.KeyID]; k.LastUsedAt != 0 {
				t.Errorf("a key that was not used: %+v", k)
			}
		}
		w.Clock.Advance(time.Minute) // a key in use is written every 30 s
		used.Get(me).Want(200, "")
		if second := lastUsed(used, first); second < first+time.Minute.Microseconds() {
			t.Errorf("last used at %d, before at %d", second, first)
		}
	})
}
