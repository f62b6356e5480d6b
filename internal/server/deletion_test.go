package server_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/audit"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// neighbour is the manifest of acme with another name and host.
var neighbour = strings.NewReplacer("tenant: acme", "tenant: umbrella", "acme.localhost", "umbrella.localhost").Replace(acme)

// restedDeletion backdates the start of a deletion, so that its waiting time is
// over.
func restedDeletion(t *testing.T, w *gatetest.World) {
	t.Helper()
	err := w.DB().For("acme").Write(t.Context(), func(tx db.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE tenant_deletions SET begun_at = begun_at - $2 WHERE tenant_id = $1`, time.Hour.Microseconds())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// rowsOfAcme counts the rows of the tenant acme in a table.
func rowsOfAcme(t *testing.T, w *gatetest.World, table string) (n int64) {
	t.Helper()
	err := w.DB().For("acme").Query(t.Context(), `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`, func(r db.Row) error { n = r.Int(0); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// logged counts a tenant's entries in the audit log.
func logged(t *testing.T, w *gatetest.World, id string) (n int) {
	t.Helper()
	log := audit.Log{DB: w.DB(), Tenant: tenant.ID(id)}
	if err := log.Query(t.Context(), audit.Filter{}, func(*audit.Entry) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestADeletedTenantIsGoneAndItsNeighbourIsNot(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		w.Apply(neighbour)
		for range 5 { // so that the new tenant reaches the versions that the old one had
			w.Key("sam@acme.example")
		}
		sam, other := w.Key("sam@acme.example"), w.KeyOf("umbrella", "umbrella.localhost", "sam@acme.example")
		for i := range 40 {
			for _, a := range []*gatetest.Actor{sam, other} {
				if r := a.Post("/public/v1/data/contact", fmt.Sprintf(`{"first_name": "n%d"}`, i)); r.Status != 201 {
					t.Fatal(r)
				}
			}
		}
		for begun := time.Now(); logged(t, w, "acme") < 40 || logged(t, w, "umbrella") < 40; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatal("the audit log is not written")
			}
		}
		if _, err := tenant.Delete(t.Context(), w.DB(), "acmee"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("a tenant that there is not: %v", err)
		}
		begun := time.Now()
		done, err := tenant.Delete(t.Context(), w.DB(), "acme")
		if err != nil || done.Done || done.Rows < 80 {
			t.Fatalf("%+v, %v", done, err)
		}
		within(t, "a request of the deleted tenant", begun.Add(time.Since(begun)), status(sam, "/public/v1/me", 404))
		if _, err := w.TryApply(acme, manifest.Options{}); fault.CodeOf(err) != fault.Conflict || !strings.Contains(err.Error(), "is being deleted") {
			t.Errorf("its name is taken for a time: %v", err)
		}
		if _, err := tenant.Delete(t.Context(), w.DB(), "acme"); err != nil { // before the waiting time is over: nothing is deleted yet
			t.Error(err)
		}
		// Rows written by a request that began before are deleted, too.
		err = w.DB().For("acme").Write(t.Context(), func(tx db.Tx) error {
			_, err := tx.Exec(t.Context(), `INSERT INTO events (tenant_id, event_id, slug, auth, kind, received_at) VALUES ($1, 'late', 's', 'token', '', 1)`)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // the waiting time, shortened: the recorder writes its last entries of the tenant
		restedDeletion(t, w)
		if done, err := tenant.Delete(t.Context(), w.DB(), "acme"); err != nil || !done.Done {
			t.Fatalf("once its time is up: %+v, %v", done, err)
		}
		for _, table := range []string{"events", "usage_writers", "records", "users", "api_keys", "config_changes", "tenant_clocks", "tenant_deletions"} {
			if n := rowsOfAcme(t, w, table); n != 0 {
				t.Errorf("%s: %d rows are left", table, n)
			}
		}
		if r := other.Get("/public/v1/data/contact?limit=50"); r.Status != 200 || strings.Count(string(r.Body), `"first_name"`) != 40 {
			t.Errorf("the neighbour: %d", r.Status)
		}
		if n := logged(t, w, "acme"); n != 0 {
			t.Errorf("%d entries are left in the audit log", n)
		}
		if n := logged(t, w, "umbrella"); n < 40 {
			t.Errorf("the neighbour's audit log has %d entries", n)
		}
		w.Apply(strings.ReplaceAll(acme, "first_name", "given_name")) // the name is free, and nothing of the old tenant is left,
		// not even in the server's caches, such as the one of keys.
		if r := sam.Get("/public/v1/data/contact"); r.Status != 401 {
			t.Errorf("a key of the old tenant: %v", r)
		}
		if r := w.Key("sam@acme.example").Post("/public/v1/data/contact", `{"given_name": "Ada"}`); r.Status != 201 {
			t.Errorf("a field that the old tenant had not: %v", r)
		}
		if r := w.Key("sam@acme.example").Get("/public/v1/data/contact"); r.Status != 200 || strings.Contains(string(r.Body), "first_name") {
			t.Errorf("the new tenant: %v", r)
		}
		if r := sam.Get("/public/v1/me"); r.Status != 401 {
			t.Errorf("a key of the old tenant: %d", r.Status)
		}
	})
}

// A deletion that was stopped is continued by the command or by a server, and
// the tenant is unknown to its callers from the first moment.
func TestADeletionThatIsStoppedGoesOn(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		for i := range 60 {
			sam.Post("/public/v1/data/contact", fmt.Sprintf(`{"first_name": "n%d"}`, i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() {
			_, err := tenant.Delete(ctx, w.DB(), "acme")
			stopped <- err
		}()
		for rowsOfAcme(t, w, "tenant_deletions") == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		within(t, "a request while it is being deleted", time.Now(), status(sam, "/public/v1/me", 404))
		restedDeletion(t, w)
		// A server continues it.
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		go tenant.RunDeletions(ctx, w.DB(), func(err error) { t.Errorf("a server: %v", err) })
		for begun := time.Now(); rowsOfAcme(t, w, "tenant_deletions") > 0; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > 30*time.Second {
				t.Fatal("no server finished it")
			}
		}
		if n := rowsOfAcme(t, w, "records") + rowsOfAcme(t, w, "field_values"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestADeletionIsSeenByTheOtherNode within the second of contract H15.
func TestADeletionIsSeenByTheOtherNode(t *testing.T) {
	w, first, second := twoNodes(t)
	sam := w.Key("sam@acme.example")
	for _, n := range []*gatetest.Node{first, second} {
		if r := sam.At(n).Get("/public/v1/me"); r.Status != 200 {
			t.Fatal(r)
		}
	}
	begun := time.Now()
	if _, err := tenant.Delete(t.Context(), first.DB, "acme"); err != nil {
		t.Fatal(err)
	}
	begun = begun.Add(time.Since(begun)) // the purge may take longer
	within(t, "a deletion on the other node", begun, status(sam.At(second), "/public/v1/me", 404))
}
