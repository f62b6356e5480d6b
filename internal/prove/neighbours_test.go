package prove

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// hogTenant returns the manifest of a tenant with a component that takes all the memory it
// may, and one that does almost nothing.
func hogTenant(name string) string {
	return fmt.Sprintf(`
tenant: %[1]s
hosts: [%[1]s.localhost]
public_api: {enabled: true, log_standard_requests: false}
users: [{email: olivia@%[1]s.example, name: Olivia Owner, owner: true}]
logic_components:
  - name: hog
    source: "export default () => { const a = []; for (let i = 0; i < 24; i++) a.push(new Uint8Array(1 << 20).fill(1)); const end = Date.now() + 300; while (Date.now() < end); return a.length }"
  - name: trivial
    source: "export default () => new Uint8Array(1 << 20).length"
custom_endpoints:
  - {slug: hog, target: {component: hog}}
  - {slug: trivial, target: {component: trivial}}
`, name)
}

// Components of three tenants that take all memory they may, as many at once as each may
// run, do not make a fourth tenant's trivial runs fail with an error that blames them.
func TestProveHogsHarmNoNeighbour(t *testing.T) {
	underRace(t)
	p := begin(t, "BOX-2", db.SQLite)
	w := bare(t, db.SQLite)
	tokens := map[string]string{}
	for _, name := range []string{"one", "two", "three", "four"} {
		w.apply(hogTenant(name))
		tokens[name] = strings.TrimSpace(w.must("key", "create", "--tenant", name, "--user", "olivia@"+name+".example", "--name", "prove", "--rate-limit", "100000000"))
	}
	n := w.start()
	defer n.kill()
	call := func(c *http.Client, tenant, slug string) (*answer, error) {
		r, err := http.NewRequest("POST", n.public+"/public/v1/custom/"+slug, strings.NewReader("{}"))
		if err != nil {
			return nil, err
		}
		r.Host = tenant + ".localhost"
		r.Header.Set("Authorization", "Bearer "+tokens[tenant])
		r.Header.Set("Content-Type", "application/json")
		return exchange(c, r)
	}
	c := provider()
	defer c.CloseIdleConnections()
	if a, err := call(c, "four", "trivial"); err != nil || a.status != 200 {
		t.Fatal(a, err)
	}
	var stop atomic.Bool
	var hogs sync.WaitGroup
	for _, tenant := range []string{"one", "two", "three"} {
		for range 8 {
			hogs.Go(func() {
				for !stop.Load() {
					a, err := call(c, tenant, "hog")
					if err != nil || a.status != 200 && a.status != 503 && a.status != 504 {
						p.fail("a hog: %v %v", a, err)
					}
					if a != nil && a.status == 503 {
						p.add("hogs_shed", 1)
						time.Sleep(20 * time.Millisecond)
					}
				}
			})
		}
	}
	time.Sleep(500 * time.Millisecond)
	for range scale(12, 1000) {
		p.tried(1)
		begun := time.Now()
		a, err := call(c, "four", "trivial")
		p.most("slowest_ms", time.Since(begun))
		switch {
		case err != nil || a.status != 200 && a.status != 503:
			p.fail("the neighbour: %v %v", a, err)
		case a.status == 503:
			p.add("neighbour_shed", 1)
		}
	}
	stop.Store(true)
	hogs.Wait()
	for _, tenant := range []string{"one", "four"} {
		if a, err := call(c, tenant, "trivial"); err != nil || a.status != 200 {
			p.fail("afterwards: %v %v", a, err)
		}
	}
}

// Valid deliveries of 1 KB to 900 KB, sent concurrently while loops take the cores, are
// accepted or get an answer to try again. None is refused for a wrong signature.
func TestProveValidDeliveriesUnderLoad(t *testing.T) {
	asShipped(t)
	p := begin(t, "SIGN-1", db.SQLite)
	w := bare(t, db.SQLite)
	w.apply(strings.Replace(shopManifest, "logic_components:\n", `logic_components:
  - {name: spin, source: "export default () => { const end = Date.now() + 400; while (Date.now() < end); return 1 }"}
  - {name: nothing, timeout_ms: 30000, source: "export default () => 1"} # how long it waits for the loops is not the question
`, 1) + `  - {slug: spin, target: {component: spin}}
  - {slug: nothing, target: {component: nothing}, auth: signed, verifier: simple, webhook_secret: a-secret-of-these-proofs, rate_limit_per_minute: 100000000}
`)
	w.token = w.key(owner)
	n := w.start()
	defer n.kill()
	spinner := n.client(w.token)
	defer spinner.close()
	var stop atomic.Bool
	var loops sync.WaitGroup
	for range 4 {
		loops.Go(func() {
			for !stop.Load() {
				if a, err := spinner.do("POST", "/public/v1/custom/spin", "{}"); err != nil || a.status != 200 && a.status != 503 {
					p.fail("a loop: %v %v", a, err)
				}
			}
		})
	}
	var next atomic.Int64
	var senders sync.WaitGroup
	total := int64(scale(24, 3000))
	for range 8 {
		senders.Go(func() {
			c := provider()
			defer c.CloseIdleConnections()
			for i := next.Add(1); i <= total; i = next.Add(1) {
				p.tried(1)
				size := []int{1 << 10, 50 << 10, 300 << 10, 900 << 10}[i%4]
				w.deliverSized(p, c, n.public, fmt.Sprint("e", i), size)
			}
		})
	}
	senders.Wait()
	stop.Store(true)
	loops.Wait()
}

// deliverSized sends one event until it is accepted.
func (w *world) deliverSized(p *proof, c *http.Client, base, ref string, size int) {
	body := fmt.Appendf(nil, `{"ref":%q,"lines":[`, ref)
	for len(body) < size {
		body = append(body, `{"sku":"a-1","quantity":2,"text":"what was ordered"},`...)
	}
	body = append(bytes.TrimRight(body, ","), "]}"...)
	mac := hmac.New(sha256.New, []byte("a-secret-of-these-proofs"))
	mac.Write(body)
	for range 50 {
		r, err := http.NewRequest("POST", base+"/public/v1/custom/nothing", bytes.NewReader(body))
		if err != nil {
			p.fail("%v", err)
			return
		}
		r.Host = host
		r.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
		begun := time.Now()
		a, err := exchange(c, r)
		p.most("slowest_ms", time.Since(begun))
		switch {
		case err != nil || a.status != http.StatusAccepted && a.status != http.StatusServiceUnavailable:
			p.fail("a valid delivery of %d KB: %v %v", size>>10, a, err)
			return
		case a.status == http.StatusAccepted:
			return
		}
		p.add("asked_to_come_again", 1)
		time.Sleep(50 * time.Millisecond)
	}
	p.fail("%s was never accepted", ref)
}
