package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// How much one tenant may delay another.
const (
	neighbourWait = 50 * time.Millisecond  // on the p99 of each kind of request
	neighbourMost = 500 * time.Millisecond // for any request
	// The victim's requests take a tenth of what the server can answer. In the sample
	// they take less: it is measured in half a second, in which other tests may rest that
	// take most of the machine afterwards.
	neighbourShare       = 10
	neighbourSampleShare = 30

	// victims limits the victim's concurrent requests of one kind. It is high enough
	// that every request is sent when it is due, even if each waits half a second.
	victims = 600
)

// stormManifest is the manifest of the tenant that causes the storm; %s is the part of
// a field's definition that apply changes, so that the field is alternately indexed
// and not indexed.
const stormManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: true}
unauthenticated_per_ip_per_minute: 100000000
external_identity:
  enabled: true
  activation_mode: none
  default_permission_set: portal
  rate_limit_per_minute: 100000000
  limits: {login_per_ip_per_minute: 1000000, login_per_email_per_15_minutes: 100000}
entities:
  - {name: made, fields: [{name: n, type: number, indexed: true}, {name: note, type: text}]}
  - {name: large, fields: [{name: doc, type: text}, {name: n, type: number}]}
  - {name: bulk, fields: [{name: tag, type: text%s}]}
permission_sets: [{name: portal, entities: {made: {create: true, read: true}}}]
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal], password: the password of eva}
logic_components:
  - name: many
    source: |
      export default function handler() {
        for (let n = 0; n < 99; n++) records.create("made", { n, note: "x".repeat(30000) });
        return 1;
      }
  - {name: hungry, source: "export default function handler() { const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1)); }"}
  - {name: busy, source: "export default function handler() { for (;;) {} }"}
  - {name: form, source: "export default (inputs) => Object.keys(inputs).length"}
automations:
  - name: flow
    trigger: http.request
    input_schema: [{name: outer, type: json, required: true}, {name: inner, type: json, required: true}]
    nodes:
      - id: rows
        type: each
        in: "{{inputs.outer}}"
        as: row
        do:
          - id: columns
            type: each
            in: "{{inputs.inner}}"
            as: column
            do: [{id: made, type: record.create, entity: made, fields: {n: "{{column}}", note: of a flow}}]
custom_endpoints:
  - {slug: many, target: {component: many}}
  - {slug: hungry, target: {component: hungry}}
  - {slug: busy, target: {component: busy}}
  - {slug: flow, target: {automation: flow}}
  - {slug: form, target: {component: form}, auth: token, max_body_bytes: 10485760, rate_limit_per_minute: 100000000}
`

// victimManifest is the manifest of the other tenant.
const victimManifest = `
tenant: bravo
hosts: [bravo.localhost]
public_api: {enabled: true, log_standard_requests: true}
entities: [{name: contact, fields: [{name: first_name, type: text, required: true}, {name: score, type: number, indexed: true}]}]
users: [{email: bea@bravo.example, name: Bea Owner, owner: true}]
`

// neighbourStorm has two tenants and the server that serves them.
type neighbourStorm struct {
	p       *proof
	w       *world
	n       *node
	victim  string // its key
	clients stormClients
	bulk    int
	meters  map[string]*meter // of the victim's requests, by kind
	idle    map[string][]time.Duration
}

// One tenant causes as much load as it can: 24 runs at their limits (16 that create
// records, 8 that use up memory or time), 8 clients that list large records, an apply
// that indexes a field of many records, a storm of logins, forms and JSON of 9 MiB, and
// batches that change as many large records as they may, or more. Another tenant's
// requests, at a tenth of the server's capacity, are hardly delayed.
// GATEHOUSE_PROVE_STORM names the parts to run; if it is not set, all run.
func TestProveANeighboursStorm(t *testing.T) {
	asShipped(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "FAIR-storm", engine)
		s := newNeighbourStorm(p, engine)
		s.n = s.w.start()
		s.measure()
		s.judge()
		if s.n.panicked() || !s.n.running() {
			p.fail("the process did not stay as it was: %s%s", s.n.stdout(), s.n.stderr())
		}
	})
}

func newNeighbourStorm(p *proof, engine db.Engine) *neighbourStorm {
	p.t.Helper()
	s := &neighbourStorm{
		p: p, w: bare(p.t, engine), bulk: scale(20_000, 300_000), meters: map[string]*meter{}, idle: map[string][]time.Duration{},
	}
	s.w.apply(victimManifest)
	s.victim = strings.TrimSpace(s.w.must("key", "create", "--tenant", "bravo", "--user", "bea@bravo.example", "--name", "prove", "--rate-limit", "100000000"))
	s.w.apply(fmt.Sprintf(stormManifest, ""))
	s.w.token = s.w.key(owner)
	s.clients.Token, s.clients.Changed = s.w.token, max(1, (7<<20)/(scale(100, 500)<<10))
	s.clients.Hook = strings.TrimSpace(s.w.must("endpoint", "token", "--tenant", "acme", "--slug", "form"))
	s.fill()
	return s
}

// fill writes the tenant's records.
func (s *neighbourStorm) fill() {
	s.p.t.Helper()
	s.w.fill("bulk", 1, s.bulk, `{"tag":"#of a tag"}`)
	s.w.fill("large", 1, 200, `{"doc":"#`+strings.Repeat("large ", scale(100, 500)<<10/6)+`"}`)
}

// measure sends the victim's requests, alone and in the storm.
func (s *neighbourStorm) measure() {
	t := s.p.t
	t.Helper()
	c := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 3 * victims}}
	t.Cleanup(c.CloseIdleConnections)
	const contacts = "/public/v1/data/contact"
	ask := func(status int, method, path, body string) func(int) {
		return func(int) {
			a, err := s.send(t.Context(), c, "bravo.localhost", s.victim, method, path, body)
			if err != nil || a.status != status {
				s.p.fail("of the victim: %v %v", a, err)
			}
		}
	}
	create := ask(http.StatusCreated, "POST", contacts, `{"first_name":"Carla","score":7}`)
	for n := range 60 {
		create(n)
	}
	s.clients.Public, s.clients.Large = s.n.public, s.ids(c, "large")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asking sync.WaitGroup
	begin, share := map[string]int{}, neighbourSampleShare
	if proving {
		share = neighbourShare
	}
	for kind, fn := range map[string]func(int){
		"me": ask(http.StatusOK, "GET", "/public/v1/me", ""), "list": ask(http.StatusOK, "GET", contacts+"?limit=50", ""), "create": create,
	} {
		m := &meter{p: s.p, ask: fn, most: victims, took: map[bool][]time.Duration{}}
		begin[kind] = max(1, m.capacity(time.Duration(scale(500, 5000))*time.Millisecond)/share)
		s.p.set(kind+"_per_second", int64(begin[kind]))
		s.meters[kind] = m
	}
	for kind, m := range s.meters {
		asking.Go(func() { m.run(ctx, begin[kind]) })
	}
	time.Sleep(500 * time.Millisecond)
	for _, m := range s.meters {
		m.take()
	}
	time.Sleep(time.Duration(scale(2, 30)) * time.Second)
	for kind, m := range s.meters {
		s.idle[kind], _ = m.take() // idle times are taken before the storm only, because its effects outlast it
	}
	s.rage(time.Duration(scale(5, 60)) * time.Second)
	ended := time.Now()
	for kind, m := range s.meters {
		if !m.catchUp(ended) {
			s.p.fail("%s: what was due in the storm was not answered %s later", kind, patience)
		}
	}
	cancel()
	asking.Wait()
}

// rage runs the parts of the storm for a time.
func (s *neighbourStorm) rage(lasts time.Duration) {
	ctx, cancel := context.WithTimeout(s.p.t.Context(), lasts)
	defer cancel()
	for _, m := range s.meters {
		m.turn(true)
	}
	var parts sync.WaitGroup
	s.clients.Lasts, s.clients.Parts = lasts, slices.Sorted(maps.Keys(stormParts))
	applies := true
	if chosen := os.Getenv("GATEHOUSE_PROVE_STORM"); chosen != "" {
		isApply := func(part string) bool { return part == "apply" }
		s.clients.Parts = strings.Split(chosen, ",")
		applies = slices.ContainsFunc(s.clients.Parts, isApply)
		s.clients.Parts = slices.DeleteFunc(s.clients.Parts, isApply)
	}
	if applies {
		parts.Go(func() { s.applies(ctx) })
	}
	parts.Go(func() {
		after, err := s.clients.apart(s.p.t, filepath.Join(s.w.logs, "clients.json"))
		if err != nil {
			s.p.fail("the clients: %v", err)
		}
		for kind, n := range after.Answers {
			s.p.add(kind, n)
		}
		for _, fault := range after.Faults {
			s.p.fail("%s", fault)
		}
	})
	<-ctx.Done()
	for _, m := range s.meters {
		m.turn(false)
	}
	parts.Wait()
}

// judge compares the victim's times alone with those in the storm.
func (s *neighbourStorm) judge() {
	s.p.t.Helper()
	s.p.set("longest_turn_ms", s.longestTurn())
	for kind, m := range s.meters {
		idle := s.idle[kind]
		_, storm := m.take()
		for name, took := range map[string][]time.Duration{"idle": idle, "storm": storm} {
			s.p.set(kind+"_"+name+"_count", int64(len(took)))
			s.p.set(kind+"_"+name+"_p50_us", quantile(took, 0.5).Microseconds())
			s.p.set(kind+"_"+name+"_p99_us", quantile(took, 0.99).Microseconds())
			s.p.set(kind+"_"+name+"_most_us", quantile(took, 1).Microseconds())
		}
		if len(storm) == 0 || len(idle) == 0 {
			s.p.fail("%s: nothing was measured", kind)
			continue
		}
		s.p.tried(len(storm))
		if d := quantile(storm, 0.99) - quantile(idle, 0.99); d > strictly(neighbourWait) {
			s.p.fail("%s: p99 is %s longer in the storm, at most %s is meant", kind, d, neighbourWait)
		}
		if d := quantile(storm, 1); d > strictly(neighbourMost) {
			s.p.fail("%s: the slowest took %s in the storm, at most %s is meant", kind, d, neighbourMost)
		}
	}
}

// longestTurn returns the longest turn that one write had at the database, in
// milliseconds, from /metrics.
func (s *neighbourStorm) longestTurn() int64 {
	seconds, err := s.n.metric("gatehouse_database_longest_write_seconds")
	if err != nil {
		s.p.fail("%v", err)
	}
	return int64(seconds * 1000)
}

// send sends one request and reads its answer to the end.
func (s *neighbourStorm) send(ctx context.Context, c *http.Client, to, token, method, path, body string) (*answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.n.public+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = to
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return exchange(c, r)
}

// ids lists the storm's records of an entity, page by page.
func (s *neighbourStorm) ids(c *http.Client, entity string) (ids []string) {
	s.p.t.Helper()
	for cursor := ""; ; {
		a, err := s.send(s.p.t.Context(), c, host, s.w.token, "GET", "/public/v1/data/"+entity+"?limit=200&fields=n"+cursor, "")
		var page struct {
			Data []struct{ ID string }
			Meta struct{ NextCursor string }
		}
		if err == nil {
			err = json.Unmarshal(a.body, &page)
		}
		if err != nil || a.status != http.StatusOK {
			s.p.t.Fatalf("%v %v", a, err)
		}
		for _, one := range page.Data {
			ids = append(ids, one.ID)
		}
		if page.Meta.NextCursor == "" {
			return ids
		}
		cursor = "&cursor=" + url.QueryEscape(page.Meta.NextCursor)
	}
}

// applies applies the manifest again and again, with the field alternately indexed and
// not indexed.
func (s *neighbourStorm) applies(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		file := filepath.Join(s.w.logs, "storm.yaml")
		text := fmt.Sprintf(stormManifest, []string{", indexed: true", ""}[n%2])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			s.p.fail("%v", err)
			return
		}
		begun := time.Now()
		out, err := s.w.command(ctx, "apply", "-f", file).CombinedOutput()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.p.fail("apply: %v: %s", err, out)
			return
		}
		s.p.add("applies", 1)
		s.p.most("slowest_apply", time.Since(begun))
	}
}
