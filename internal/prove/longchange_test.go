package prove

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

const (
	// stallMost is how long a write may take while its tenant's records are indexed anew, or matched with a new rule.
	stallMost = 200 * time.Millisecond

	// bulkKinds is how many values the field has that is indexed.
	bulkKinds = 10
)

// bulkManifest is the manifest of a tenant with many records; the parts are those of a field's definition, and the rules.
const bulkManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: false}
entities:
  - {name: bulk, fields: [{name: tag, type: text%s}]}
roles: [{name: sales}]
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [reads]}
permission_sets: [{name: reads, entities: {bulk: {read: true}}}]
%s`

// A field of many records is indexed, and a rule shares those with a value: meanwhile the tenant's writes and those of
// another go on, a killed apply goes on where it was, and afterwards the index and the rule say what the records say,
// those written meanwhile included.
func TestProveALongChange(t *testing.T) {
	asShipped(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "SHAPE-1", engine)
		l := newLongChange(p, engine)
		l.alone(time.Duration(scale(1, 20)) * time.Second)
		l.apply("index", true, fmt.Sprintf(bulkManifest, ", indexed: true", ""))
		l.apply("rule", false, fmt.Sprintf(bulkManifest, ", indexed: true", `
sharing_rules:
  - {entity: bulk, where: {tag: tag 7}, share_with_role: sales, access: read}
`))
		l.stop()
		l.compare()
		if l.n.panicked() || !l.n.running() {
			p.fail("the process did not stay: %s%s", l.n.stdout(), l.n.stderr())
		}
	})
}

// longChange is the world of a long change: two tenants with writers.
type longChange struct {
	p     *proof
	w     *world
	n     *node
	bulk  int
	stop  func()
	other string // the other tenant's key

	mu    sync.Mutex
	phase string
	took  map[string][]time.Duration // of writes, by tenant and phase
	tags  map[string]string          // by id, what the writers wrote
}

func newLongChange(p *proof, engine db.Engine) *longChange {
	t := p.t
	t.Helper()
	l := &longChange{p: p, w: bare(t, engine), bulk: scale(8_000, 1_000_000), took: map[string][]time.Duration{}, tags: map[string]string{}}
	l.w.apply(victimManifest)
	l.other = strings.TrimSpace(l.w.must("key", "create", "--tenant", "bravo", "--user", "bea@bravo.example", "--name", "prove", "--rate-limit", "100000000"))
	l.w.apply(fmt.Sprintf(bulkManifest, "", ""))
	l.w.token = l.w.key(owner)
	l.w.fill("bulk", 1, l.bulk, `{"tag":"of #"}`)
	l.n = l.w.start()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for id := range 4 {
		writers.Go(func() { l.write(ctx, id) })
	}
	for range 2 {
		writers.Go(func() { l.neighbour(ctx) })
	}
	l.stop = sync.OnceFunc(func() { cancel(); writers.Wait() })
	t.Cleanup(l.stop)
	return l
}

// write creates records and changes them, and some of those that are indexed.
func (l *longChange) write(ctx context.Context, id int) {
	c := l.n.client(l.w.token)
	defer c.close()
	for i := id; ctx.Err() == nil; i += 4 {
		tag := fmt.Sprintf("tag %d", i%bulkKinds)
		old := fmt.Sprintf("bulk%d", 1+(i*7919)%l.bulk)
		if _, err := l.timed(c, "acme", "PATCH", "/public/v1/data/bulk/"+old, `{"tag":"`+tag+`"}`, http.StatusOK); err != nil {
			return
		}
		l.wrote(old, tag)
		a, err := l.timed(c, "acme", "POST", "/public/v1/data/bulk", `{"tag":"`+tag+`"}`, http.StatusCreated)
		if err != nil {
			return
		}
		r, err := a.record()
		if err != nil {
			l.p.fail("%v", err)
		}
		l.wrote(r.ID, tag)
		time.Sleep(2 * time.Millisecond)
	}
}

func (l *longChange) wrote(id, tag string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tags[id] = tag
}

func (l *longChange) neighbour(ctx context.Context) {
	c := l.n.client(l.other)
	c.host = "bravo.localhost"
	defer c.close()
	for ctx.Err() == nil {
		if _, err := l.timed(c, "bravo", "POST", contact, `{"first_name":"Carla","score":7}`, http.StatusCreated); err != nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// timed sends a write and notes how long it took.
func (l *longChange) timed(c *client, tenant, method, path, body string, status int) (*answer, error) {
	a, err := c.do(method, path, body)
	if err == nil && a.status != status {
		err = fmt.Errorf("%s", a)
	}
	if err != nil {
		l.p.fail("a write: %v", err)
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	name := tenant + "_" + l.phase
	l.took[name] = append(l.took[name], a.at.Sub(a.sent))
	return a, nil
}

func (l *longChange) begin(phase string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = phase
}

// alone measures the writes with nothing beside them.
func (l *longChange) alone(long time.Duration) {
	time.Sleep(500 * time.Millisecond)
	l.begin("alone")
	time.Sleep(long)
	l.begin("")
}

// apply applies a manifest; killed: it is killed once on the way and begun again.
func (l *longChange) apply(phase string, killed bool, text string) {
	l.p.t.Helper()
	l.p.tried(1)
	file := filepath.Join(l.w.logs, "bulk.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		l.p.t.Fatal(err)
	}
	l.begin(phase)
	begun := time.Now()
	if killed {
		c := l.w.command(l.p.t.Context(), "apply", "-f", file)
		if err := c.Start(); err != nil {
			l.p.t.Fatal(err)
		}
		time.Sleep(time.Duration(scale(300, 20_000)) * time.Millisecond)
		_ = c.Process.Signal(syscall.SIGKILL) // it may have ended
		_ = c.Wait()                          // killed
		if c.ProcessState.Exited() {
			l.p.add("not_killed", 1)
		}
	}
	c := l.w.command(l.p.t.Context(), "apply", "-f", file)
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	if err := c.Run(); err != nil {
		l.p.fail("apply: %v: %s", err, words.String())
	}
	l.begin("")
	l.p.most(phase, time.Since(begun))
	l.p.add(phase+"_lines", strings.Count(words.String(), "\n")) // of progress
	l.judge(phase)
}

// judge compares the writes of a phase with the bound, and with those alone.
func (l *longChange) judge(phase string) {
	l.p.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tenant := range []string{"acme", "bravo"} {
		took, alone := l.took[tenant+"_"+phase], l.took[tenant+"_alone"]
		if len(took) == 0 || len(alone) == 0 {
			l.p.fail("%s: nothing was written in %s", tenant, phase)
			continue
		}
		for name, times := range map[string][]time.Duration{"alone": alone, phase: took} {
			for q, part := range map[string]float64{"p50": 0.5, "p99": 0.99, "most": 1} {
				l.p.set(tenant+"_"+name+"_"+q+"_us", quantile(times, part).Microseconds())
			}
		}
		most := quantile(took, 1)
		if most > strictly(stallMost) {
			l.p.fail("%s: a write took %s in %s, at most %s is meant", tenant, most, phase, stallMost)
		}
	}
}

// compare checks that index and rule say what the records say.
func (l *longChange) compare() {
	l.p.t.Helper()
	c := l.n.client(l.w.token)
	defer c.close()
	sam := l.n.client(l.w.key("sam@acme.example"))
	defer sam.close()
	want := map[string][]string{}
	for id, tag := range l.tags {
		want[tag] = append(want[tag], id)
	}
	checks := 0
	same := func(what string, ids, of []string) {
		checks++
		slices.Sort(ids)
		slices.Sort(of)
		if !slices.Equal(ids, of) {
			l.p.fail("%s: %d records, want %d", what, len(ids), len(of))
		}
	}
	for begun := time.Now(); time.Since(begun) < strictly(soon); time.Sleep(10 * time.Millisecond) { // until the node knows index and rule
		a, err := c.do("GET", "/public/v1/data/bulk?filter[tag]=none", "")
		if err == nil && a.status == http.StatusOK && len(l.listed(sam, "")) > 0 {
			break
		}
	}
	for tag, ids := range want {
		same(tag, l.listed(c, "&filter[tag]="+strings.ReplaceAll(tag, " ", "%20")), ids)
	}
	same("what Sam sees", l.listed(sam, ""), want["tag 7"])
	for _, i := range []int{1, l.bulk / 2, l.bulk} {
		id := fmt.Sprintf("bulk%d", i)
		if l.tags[id] == "" {
			same(id, l.listed(c, fmt.Sprintf("&filter[tag]=of%%20%d", i)), []string{id})
		}
	}
	l.p.add("written", len(l.tags))
	l.p.add("comparisons", checks)
}

// listed returns the ids of all records of a list.
func (l *longChange) listed(c *client, query string) (ids []string) {
	l.p.t.Helper()
	list, err := c.every("/public/v1/data/bulk", query)
	if err != nil {
		l.p.fail("list: %v", err)
	}
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}
