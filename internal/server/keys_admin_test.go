package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/tenant"
)

type keyInfo struct {
	ID, Name, Prefix, Version string
	User                      struct {
		ID          string
		Email, Name *string
	}
	RateLimitPerMinute, UsedThisMinute int
	CORSAllowedOrigins, IPAllowlist    []string
	ExpiresAt, LastUsedAt              *string
	MayChange                          bool
}

func keysOf(t *testing.T, a *gatetest.Actor, query string) (list []keyInfo) {
	t.Helper()
	a.Get("/admin/v1/keys"+query).Want(200, "").Data(&list)
	return list
}

// made makes a key through the administration.
func made(t *testing.T, a *gatetest.Actor, body string) (k keyInfo, token string) {
	t.Helper()
	var d struct {
		Key   keyInfo
		Token string
	}
	a.Post("/admin/v1/keys", body).Want(201, "").Data(&d)
	return d.Key, d.Token
}

func TestAKeyFromCreateToDelete(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, sam := w.Staff("olivia@acme.example"), w.Staff("sam@acme.example")
		key, token := made(t, sam, `{"name":" Web shop ","corsAllowedOrigins":["https://SHOP.example",""],"ipAllowlist":["127.0.0.0/8"],"expiresAt":"2199-01-01T00:00:00Z"}`)
		if key.Name != "Web shop" || !strings.HasPrefix(token, key.Prefix) || deref(key.User.Email) != "sam@acme.example" || key.RateLimitPerMinute != 1000 ||
			fmt.Sprint(key.CORSAllowedOrigins, key.IPAllowlist) != "[https://shop.example] [127.0.0.0/8]" || key.LastUsedAt != nil || !key.MayChange {
			t.Fatalf("%+v", key)
		}
		caller := w.Anyone()
		caller.Token = token
		caller.Get("/public/v1/me").Want(200, "")
		if got := keysOf(t, sam, "?id="+key.ID)[0]; got.UsedThisMinute != 1 || got.LastUsedAt == nil {
			t.Errorf("after its first call: %+v", got)
		}
		one := "/admin/v1/keys/" + key.ID
		var changed keyInfo
		sam.Patch(one, `{"version":"`+key.Version+`","rateLimitPerMinute":2,"name":"Shop","expiresAt":""}`).Want(200, "").Data(&changed)
		if changed.Name != "Shop" || changed.ExpiresAt != nil || changed.Version == key.Version || len(changed.IPAllowlist) != 1 {
			t.Errorf("%+v", changed)
		}
		caller.Get("/public/v1/me")
		caller.Get("/public/v1/me").Want(429, "RATE_LIMITED") // at once
		conflict := sam.Patch(one, `{"version":"`+key.Version+`","name":"Lost"}`).Want(409, "CONFLICT")
		if !strings.Contains(string(conflict.Body), `"name":"Shop"`) {
			t.Errorf("it does not show what the key is now: %s", conflict.Body)
		}
		fields := sam.Patch(one, `{"version":"`+changed.Version+`","name":"","rateLimitPerMinute":0,"corsAllowedOrigins":["*"],"ipAllowlist":["::1/64"],"expiresAt":"soon"}`).Want(400, "VALIDATION").Fields()
		if fmt.Sprint(fields) != "[corsAllowedOrigins expiresAt ipAllowlist name rateLimitPerMinute]" {
			t.Errorf("%v", fields)
		}
		if got := keysOf(t, olivia, "")[0]; got.Name != "Shop" || !got.MayChange {
			t.Errorf("to the owner: %+v", got)
		}
		sam.Delete(one).Want(200, "")
		caller.Get("/public/v1/me").Want(401, "UNAUTHORIZED")
		sam.Delete(one).Want(404, "NOT_FOUND")
		changes, err := tenant.Changes(t.Context(), w.DB().For("acme"), 3)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, c := range changes {
			text, _ := json.Marshal(c)
			told = append(told, c.Actor+" "+c.Action+" "+c.Kind)
			if strings.Contains(string(text), token) || strings.Contains(string(text), token[20:]) {
				t.Errorf("the history has the token: %s", text)
			}
		}
		if want := "[sam@acme.example delete api_key sam@acme.example update api_key sam@acme.example create api_key]"; fmt.Sprint(told) != want {
			t.Errorf("history %v", told)
		}
		for id, e := range w.AuditLog("acme") {
			if strings.Contains(e.Request+e.Response, token[12:]) {
				t.Errorf("the entry %s has the token", id)
			}
		}
	})
}

// Whose keys a viewer sees, makes and changes (contract K9).
func TestWhoseKeysOneSeesAndChanges(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		olivia, sam, wanda := w.Staff("olivia@acme.example"), w.Staff("sam@acme.example"), w.Staff("wanda@acme.example")
		ofSam, _ := made(t, sam, `{"name":"sam's"}`)
		ofWanda, _ := made(t, wanda, `{"name":"wanda's","user":"WANDA@acme.example"}`)
		ofRita, _ := made(t, olivia, `{"name":"rita's","user":"rita@acme.example"}`)
		made(t, olivia, `{"name":"rita's other","user":"`+w.UserID("acme", "rita@acme.example")+`"}`)
		for actor, want := range map[*gatetest.Actor]string{
			olivia: "rita's other true, rita's true, wanda's true, sam's true", wanda: "rita's other false, rita's false, wanda's true, sam's false", sam: "sam's true",
		} {
			var got []string
			for _, k := range keysOf(t, actor, "") {
				got = append(got, fmt.Sprint(k.Name, " ", k.MayChange))
				if actor == wanda && k.Name != "wanda's" && (k.User.Email != nil || k.User.Name != nil) {
					t.Errorf("Wanda sees the user of %s", k.Name)
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%v, want %s", got, want)
			}
		}
		// Nobody but the owner makes keys for others; whether the user exists is not told.
		a := sam.Post("/admin/v1/keys", `{"name":"x","user":"rita@acme.example"}`).Want(403, "FORBIDDEN")
		b := sam.Post("/admin/v1/keys", `{"name":"x","user":"nobody@acme.example"}`).Want(403, "FORBIDDEN")
		if string(a.Body) != string(b.Body) {
			t.Errorf("%s\n%s", a.Body, b.Body)
		}
		wanda.Post("/admin/v1/keys", `{"name":"x","user":"olivia@acme.example"}`).Want(403, "FORBIDDEN")
		olivia.Post("/admin/v1/keys", `{"name":"x","user":"nobody@acme.example"}`).Want(400, "VALIDATION")
		// What one does not see does not exist; what one sees and may not change is refused.
		missing := sam.Patch("/admin/v1/keys/none", `{"version":"x"}`).Want(404, "NOT_FOUND")
		hidden := sam.Patch("/admin/v1/keys/"+ofRita.ID, `{"version":"x"}`).Want(404, "NOT_FOUND")
		if string(missing.Body) != string(hidden.Body) {
			t.Errorf("%s\n%s", missing.Body, hidden.Body)
		}
		sam.Delete("/admin/v1/keys/"+ofWanda.ID).Want(404, "NOT_FOUND")
		wanda.Patch("/admin/v1/keys/"+ofSam.ID, `{"version":"`+ofSam.Version+`","name":"x"}`).Want(403, "FORBIDDEN")
		wanda.Delete("/admin/v1/keys/"+ofSam.ID).Want(403, "FORBIDDEN")
		if got := keysOf(t, sam, "?user="+w.UserID("acme", "rita@acme.example")); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		if got := keysOf(t, olivia, "?user="+w.UserID("acme", "rita@acme.example")+"&limit=1"); len(got) != 1 {
			t.Errorf("%+v", got)
		}
		olivia.Delete("/admin/v1/keys/"+ofSam.ID).Want(200, "")
	})
}

// Of several changes made against one version, one is made; nobody's is lost
// unseen.
func TestConcurrentChangesOfAKey(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(observedTenant())
		sam := w.Staff("sam@acme.example")
		key, _ := made(t, sam, `{"name":"n"}`)
		var done, refused atomic.Int32
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				switch a := sam.Patch("/admin/v1/keys/"+key.ID, fmt.Sprintf(`{"version":%q,"rateLimitPerMinute":%d}`, key.Version, 10+i)); a.Status {
				case 200:
					done.Add(1)
				case 409:
					refused.Add(1)
				}
			})
		}
		wait.Wait()
		if done.Load() != 1 || refused.Load() != 7 {
			t.Errorf("%d done, %d refused", done.Load(), refused.Load())
		}
	})
}

func TestKeysAreListedPageByPage(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(observedTenant())
	olivia := w.Staff("olivia@acme.example")
	for i := range 7 {
		made(t, olivia, fmt.Sprintf(`{"name":"k%d"}`, i))
	}
	var names []string
	for cursor := ""; ; {
		a := olivia.Get("/admin/v1/keys?limit=3"+cursor).Want(200, "")
		var list []keyInfo
		a.Data(&list)
		for _, k := range list {
			names = append(names, k.Name)
		}
		if !a.Meta().HasMore {
			break
		}
		cursor = "&cursor=" + *a.Meta().NextCursor
	}
	if fmt.Sprint(names) != "[k6 k5 k4 k3 k2 k1 k0]" {
		t.Error(names)
	}
	olivia.Get("/admin/v1/keys?cursor=AAAA").Want(400, "VALIDATION")
	olivia.Get("/admin/v1/keys?q=x").Want(400, "VALIDATION")
}
