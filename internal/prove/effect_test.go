package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// soon is how long a change by a command may take to have effect on every node.
const soon = time.Second

// effects are changes made by commands beside running servers.
type effects struct {
	p     *proof
	w     *world
	nodes []*node
}

// A change by a command has effect on every running node within a second.
func TestProveCommandsTakeEffect(t *testing.T) {
	asShipped(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "EFFECT", engine)
		w := fresh(t, engine)
		e := &effects{p: p, w: w, nodes: []*node{w.start()}}
		if engine == db.Postgres {
			e.nodes = append(e.nodes, w.start())
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		f := newFleet(p, 2) // few, because others take the folder's lock, too
		f.settles = true    // the API is switched off meanwhile
		c := e.nodes[0].client(w.token)
		defer c.close()
		wait.Go(func() { f.load(ctx, c, func() bool { return false }) })
		for round := range scale(1, 10) {
			e.round(round)
		}
		cancel()
		wait.Wait()
		for _, n := range e.nodes {
			if n.panicked() {
				p.fail("panic: %s%s", n.stdout(), n.stderr())
			}
		}
	})
}

// until asks every node until all answer with the status and code, and
// measures how long that takes.
func (e *effects) until(what, token, method, path, body string, status int, code string) {
	e.p.t.Helper()
	e.p.tried(1)
	begun := time.Now()
	var wait sync.WaitGroup
	for i, n := range e.nodes {
		wait.Go(func() {
			c := n.client(token)
			defer c.close()
			for {
				a, err := c.do(method, path, body)
				took := time.Since(begun)
				if err == nil && a.status == status && (code == "" || a.code() == code) {
					e.p.most(what, took)
					if took > strictly(soon) {
						e.p.fail("%s holds on node %d after %s", what, i, took)
					}
					return
				}
				if took > strictly(10*soon) {
					e.p.fail("%s does not hold on node %d after %s: %v %v", what, i, took, a, err)
					return
				}
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	wait.Wait()
}

func (e *effects) round(round int) {
	w, sam := e.w, "sam@acme.example"
	name := fmt.Sprintf("round-%d", round)
	token := strings.TrimSpace(w.must("key", "create", "--tenant", "acme", "--user", sam, "--name", name, "--rate-limit", "1000000"))
	e.until("key_create", token, "GET", "/public/v1/me", "", 200, "")
	e.until("warm", token, "GET", contact, "", 200, "")

	w.must("user", "deactivate", "--tenant", "acme", "--email", sam)
	e.until("user_deactivate", token, "GET", contact, "", 401, "UNAUTHORIZED")
	w.must("user", "reactivate", "--tenant", "acme", "--email", sam)
	e.until("user_reactivate", token, "GET", contact, "", 200, "")

	w.apply(strings.Replace(manifest, "create: true, read: true", "create: true, read: false", 1))
	e.until("permission_taken", token, "GET", contact, "", 403, "FORBIDDEN")
	w.apply(manifest)
	e.until("permission_given", token, "GET", contact, "", 200, "")

	e.sharing(token)

	field := fmt.Sprintf("nick_%d", round)
	body := fmt.Sprintf(`{"first_name":"Nick",%q:"x"}`, field)
	e.until("field_unknown", w.token, "POST", contact, body, 400, "VALIDATION")
	w.apply(strings.Replace(manifest, "      - {name: extra, type: json}", "      - {name: extra, type: json}\n      - {name: "+field+", type: text}", 1))
	e.until("field_new", w.token, "POST", contact, body, 201, "")

	w.apply(strings.Replace(manifest, "enabled: true", "enabled: false", 1))
	e.until("api_off", token, "GET", contact, "", 503, "API_DISABLED")
	w.apply(manifest)
	e.until("api_on", token, "GET", contact, "", 200, "")

	w.must("key", "delete", "--tenant", "acme", "--id", e.keyID(name))
	e.until("key_delete", token, "GET", contact, "", 401, "UNAUTHORIZED")
}

// sharing shares a record of the owner's with the user of the token.
func (e *effects) sharing(token string) {
	e.p.t.Helper()
	c := e.nodes[0].client(e.w.token)
	defer c.close()
	a, err := c.do("POST", contact, `{"first_name":"Shared"}`)
	if err != nil {
		e.p.fail("%v", err)
		return
	}
	r, _ := a.record() // without an id the command fails
	e.until("not_shared", token, "GET", contact+"/"+r.ID, "", 404, "NOT_FOUND")
	args := []string{"--tenant", "acme", "--entity", "contact", "--record", r.ID, "--user", "sam@acme.example"}
	e.w.must(append([]string{"share", "add"}, args...)...)
	e.until("share_add", token, "GET", contact+"/"+r.ID, "", 200, "")
	e.w.must(append([]string{"share", "remove"}, args...)...)
	e.until("share_remove", token, "GET", contact+"/"+r.ID, "", 404, "NOT_FOUND")
}

func (e *effects) keyID(name string) string {
	e.p.t.Helper()
	for line := range strings.Lines(e.w.must("key", "list", "--tenant", "acme", "--json")) {
		var key struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		}
		if err := json.Unmarshal([]byte(line), &key); err != nil {
			e.p.t.Fatal(err)
		}
		if key.Name == name {
			return key.ID
		}
	}
	e.p.t.Fatalf("key %s is not listed", name)
	return ""
}
