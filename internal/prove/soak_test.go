package prove

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// soakManifest is the manifest of a tenant that uses everything. Its parameters are its name, and what an apply changes
// from time to time: stage is alternately indexed and not.
const soakManifest = `
tenant: %[1]s
hosts: [%[1]s.localhost]
public_api: {enabled: true, log_standard_requests: true}
unauthenticated_per_ip_per_minute: 100000000
external_identity:
  enabled: true
  activation_mode: none
  default_permission_set: portal
  rate_limit_per_minute: 100000000
  limits: {login_per_ip_per_minute: 1000000, login_per_email_per_15_minutes: 1000000, refresh_per_token_per_minute: 1000000}
entities:
  - {name: account, sharing: public_read_write, fields: [{name: name, type: text, required: true, unique: true}]}
  - name: contact
    fields:
      - {name: email, type: text, required: true, unique: true}
      - {name: score, type: number, indexed: true}
      - {name: notes, type: text, searchable: true}
      - {name: stage, type: text%[2]s}
      - {name: account, type: reference, entity: account}
  - {name: reading, keep: 1d, fields: [{name: value, type: number}]}
permission_sets:
  - {name: portal, entities: {contact: {create: true, read: true}, account: {read: true}}}
users:
  - {email: olivia@%[1]s.example, name: Olivia Owner, owner: true, password: the password of olivia}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal], password: the password of eva}
modules: [{name: pricing, source: "export const total = (n) => n * 1.19"}]
logic_components:
  - name: price
    config: {most: 20}
    source: |
      import { total } from "pricing";
      export default function handler({ n }) {
        const found = records.list("contact", { where: { score: { gte: n } }, limit: config.most });
        return { total: total(n), found: found.records.length };
      }
  - {name: broken, source: "export default () => { throw new Error('as it is meant') }"}
  - name: simple
    source: |
      export default function handler({ rawBody, headers, config }) {
        if (!safeCompare(hmacSha256(config.webhook_secret, rawBody), headers["x-signature"] ?? "")) fail("wrong signature");
        const event = JSON.parse(rawBody);
        return { providerEventId: event.id, eventKind: "reading", canonicalEvent: event };
      }
automations:
  - name: lead
    trigger: http.request
    input_schema: [{name: email, type: text, required: true, pattern: "@"}]
    outputs: [{name: id, type: text}]
    nodes:
      - {id: lead, type: record.upsert, entity: contact, by: email, fields: {email: "{{inputs.email}}", notes: of a form}}
      - {type: output, set: {id: "{{lead.id}}"}}
  - name: measured
    trigger: http.request
    input_schema: [{name: value, type: number, required: true}]
    nodes: [{type: record.create, entity: reading, fields: {value: "{{inputs.value}}"}}]
custom_endpoints:
  - {slug: price, target: {component: price}}
  - {slug: broken, target: {component: broken}, auth: token, rate_limit_per_minute: 100000000}
  - {slug: lead, target: {automation: lead}, auth: token, reply: result, rate_limit_per_minute: 100000000}
  - {slug: measured, target: {automation: measured}, auth: signed, verifier: simple, webhook_secret: a-secret-of-these-proofs, rate_limit_per_minute: 100000000}
`

const (
	soakTenants = 50
	soakClients = 12
	soakPause   = 10 * time.Millisecond // between two requests of a client
	soakSome    = 100                   // e-mail addresses of a tenant that forms repeat
	soakOld     = 200                   // readings that are already too old, each time
	soakLog     = 64 + 2*32             // MiB that SQLite leaves of its logs: the database's, and those of two days of the audit log
)

// soakTenant is a tenant of the soak, with what its callers have.
type soakTenant struct {
	name, key   string
	lead, token string // webhook tokens of lead and broken

	mu     sync.Mutex
	cookie string // a session of the console
}

// soak is a server that is used in every way for a long time.
type soak struct {
	p       *proof
	w       *world
	n       *node
	http    *http.Client
	tenants []*soakTenant
	events  atomic.Int64
	asked   atomic.Int64
	memory  *memory
	old     int // readings that came with their age
}

// sample is the size of the server and its data at an instant.
type sample struct {
	asked                     int64 // requests until then
	memory, goroutines, files float64
	log, disk                 float64 // bytes of SQLite's logs, of everything else on disk
}

// A server that is used in every way for half an hour is not larger at its end than after five minutes: its memory,
// goroutines and descriptors. SQLite's logs stay within their bound. What is on disk grows by what is to be kept, as much
// for each request in the second half as before, and what is too old is deleted as fast as it comes.
func TestProveASoak(t *testing.T) {
	asShipped(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "SOAK-1", engine)
		s := newSoak(p, engine)
		defer s.http.CloseIdleConnections()
		lasts := time.Duration(scale(6, 1800)) * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), lasts)
		defer cancel()
		var load sync.WaitGroup
		for i := range scale(4, soakClients) {
			load.Go(func() { s.client(ctx, rand.New(rand.NewPCG(p.seed, uint64(i)))) })
		}
		samples := s.watch(ctx, lasts)
		load.Wait()
		s.judge(samples)
		s.expired()
		p.tried(int(s.asked.Load()))
		if s.n.panicked() || !s.n.running() {
			p.fail("the process did not stay as it was: %s%s", s.n.stdout(), s.n.stderr())
		}
	})
}

func newSoak(p *proof, engine db.Engine) *soak {
	p.t.Helper()
	s := &soak{p: p, w: bare(p.t, engine), http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	for i := range scale(3, soakTenants) {
		t := &soakTenant{name: fmt.Sprintf("tenant%d", i)}
		if i == 0 {
			t.name = "acme"
		}
		s.w.apply(fmt.Sprintf(soakManifest, t.name, ""))
		t.key = strings.TrimSpace(s.w.must("key", "create", "--tenant", t.name, "--user", "olivia@"+t.name+".example", "--name", "soak", "--rate-limit", "100000000"))
		t.lead = strings.TrimSpace(s.w.must("endpoint", "token", "--tenant", t.name, "--slug", "lead"))
		t.token = strings.TrimSpace(s.w.must("endpoint", "token", "--tenant", t.name, "--slug", "broken"))
		s.tenants = append(s.tenants, t)
	}
	s.n = s.w.start()
	s.memory = s.n.watch(p.t.Context())
	return s
}

// client does one thing after the other, for a tenant by chance each.
func (s *soak) client(ctx context.Context, random *rand.Rand) {
	rare := []func(*soakTenant, *rand.Rand){s.customer, s.staff, s.failing, s.quits, s.tail}
	for ctx.Err() == nil {
		t := s.tenants[random.IntN(len(s.tenants))]
		s.work(t, random)
		s.webhooks(t, random)
		if random.IntN(4) == 0 {
			rare[random.IntN(len(rare))](t, random)
		}
	}
}

// ask sends a request of a tenant and returns the data of its answer, which has the status. headers are pairs of name
// and value. An answer that the tenant has to try again is counted, and no failure unless there are many.
func (s *soak) ask(t *soakTenant, status int, method, path, body string, headers ...string) (data json.RawMessage, got http.Header) {
	time.Sleep(soakPause)
	r, err := http.NewRequest(method, s.n.public+path, strings.NewReader(body))
	if err != nil {
		s.p.fail("%v", err)
		return nil, nil
	}
	r.Host = t.name + ".localhost"
	r.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	a, err := exchange(s.http, r)
	s.asked.Add(1)
	switch {
	case err != nil:
		s.p.fail("%s %s: %v", method, path, err)
		return nil, nil
	case a.status == http.StatusServiceUnavailable:
		s.p.add("to_try_again", 1)
		return nil, nil
	case a.status != status:
		s.p.fail("%s of %s, expected %d", a, t.name, status)
		return nil, nil
	}
	var env struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(a.body, &env); err != nil && len(a.body) > 0 {
		s.p.fail("%s: %v", a, err)
	}
	return env.Data, a.header
}

// idOf returns the id of a record, "" if there is none.
func idOf(data json.RawMessage) string {
	var r record
	_ = json.Unmarshal(data, &r) // without data there is no id
	return r.ID
}

// work is what an integration does with records. What it creates it deletes.
func (s *soak) work(t *soakTenant, random *rand.Rand) {
	auth := []string{"Authorization", "Bearer " + t.key}
	const data = "/public/v1/data/"
	account, _ := s.ask(t, 201, "POST", data+"account", fmt.Sprintf(`{"name":"account %d"}`, s.events.Add(1)), auth...)
	made, _ := s.ask(t, 201, "POST", data+"contact", fmt.Sprintf(`{"email":"c%d@soak.example","score":%d,"notes":"pump and valve %s","stage":"new","account":%q}`,
		s.events.Add(1), random.IntN(1000), strings.Repeat("x", random.IntN(2000)), idOf(account)), auth...)
	id := idOf(made)
	if id == "" || idOf(account) == "" {
		return
	}
	_, header := s.ask(t, 200, "GET", data+"contact/"+id, "", auth...)
	s.ask(t, 200, "PATCH", data+"contact/"+id, `{"score":7,"notes":"`+strings.Repeat("y ", random.IntN(1000))+`"}`, append(auth, "If-Match", header.Get("ETag"))...)
	s.ask(t, 200, "GET", data+"contact?filter[score][gte]=5&sort=-score&limit=20&include=account&count=true", "", auth...)
	s.ask(t, 200, "GET", data+"contact?search=pum*&limit=5", "", auth...)
	s.ask(t, 200, "GET", data+"contact?limit=100", "", auth...)
	var items []string
	for range 10 {
		items = append(items, fmt.Sprintf(`{"op":"upsert","by":"email","fields":{"email":"b%d@soak.example","score":%d}}`, random.IntN(soakSome)*10+len(items), random.IntN(1000)))
	}
	s.ask(t, 200, "POST", data+"contact/batch", `{"items":[`+strings.Join(items, ",")+`]}`, append(auth, "Idempotency-Key", fmt.Sprint("soak ", s.events.Add(1)))...)
	s.ask(t, 200, "POST", "/public/v1/custom/price", `{"n":5}`, auth...)
	s.ask(t, 200, "DELETE", data+"contact/"+id, "", auth...)
	s.ask(t, 200, "DELETE", data+"account/"+idOf(account), "", auth...)
}

// webhooks are a form and a signed delivery.
func (s *soak) webhooks(t *soakTenant, random *rand.Rand) {
	s.ask(t, 200, "POST", "/public/v1/custom/lead", fmt.Sprintf("email=f%d%%40soak.example", random.IntN(soakSome)),
		"Content-Type", "application/x-www-form-urlencoded", "X-Webhook-Token", t.lead)
	event := fmt.Sprintf(`{"id":"e%d","value":%d}`, s.events.Add(1), random.IntN(100))
	mac := hmac.New(sha256.New, []byte("a-secret-of-these-proofs"))
	mac.Write([]byte(event))
	s.ask(t, 202, "POST", "/public/v1/custom/measured", event, "X-Signature", hex.EncodeToString(mac.Sum(nil)))
}

// customer is a visit of an end-user.
func (s *soak) customer(t *soakTenant, _ *rand.Rand) {
	var tokens struct {
		Access  string `json:"accessToken"`
		Refresh string `json:"refreshToken"`
	}
	take := func(data json.RawMessage, _ http.Header) { _ = json.Unmarshal(data, &tokens) } // of a failure nothing
	take(s.ask(t, 200, "POST", auth+"login", members("email", eva, "password", "the password of eva")))
	if tokens.Refresh == "" {
		return
	}
	take(s.ask(t, 200, "POST", auth+"refresh", members("refreshToken", tokens.Refresh)))
	s.ask(t, 200, "GET", auth+"me", "", "Authorization", "Bearer "+tokens.Access)
	s.ask(t, 200, "GET", contact, "", "Authorization", "Bearer "+tokens.Access)
	s.ask(t, 200, "POST", auth+"logout", members("refreshToken", tokens.Refresh), "Authorization", "Bearer "+tokens.Access)
}

// session returns the cookie of the owner in the console, who signs in once.
func (s *soak) session(t *soakTenant) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cookie == "" {
		_, header := s.ask(t, 200, "POST", adminAPI+"session", members("email", "olivia@"+t.name+".example", "password", "the password of olivia"), "Origin", "http://"+t.name+".localhost")
		for _, c := range (&http.Response{Header: header}).Cookies() {
			t.cookie = c.Name + "=" + c.Value
		}
	}
	return t.cookie
}

// staff looks around in the console, and makes and deletes a key.
func (s *soak) staff(t *soakTenant, _ *rand.Rand) {
	head := []string{"Cookie", s.session(t), "Origin", "http://" + t.name + ".localhost"}
	for _, path := range []string{"overview", "runs?limit=20", "events?limit=20", "audit?limit=50", "data/contact?limit=50", "config/automation/lead", "usage", "users"} {
		s.ask(t, 200, "GET", adminAPI+path, "", head...)
	}
	key, _ := s.ask(t, 201, "POST", adminAPI+"keys", `{"name":"for a moment"}`, head...)
	if id := idOf(key); id != "" {
		s.ask(t, 200, "DELETE", adminAPI+"keys/"+id, "", head...)
	}
}

// failing are deliveries that fail: what they sent is kept for a retry.
func (s *soak) failing(t *soakTenant, random *rand.Rand) {
	s.ask(t, 422, "POST", "/public/v1/custom/broken", `{"pad":"`+strings.Repeat("z", random.IntN(20_000))+`"}`, "X-Webhook-Token", t.token)
	s.ask(t, 422, "POST", "/public/v1/custom/lead", `{"email":"nobody"}`, "X-Webhook-Token", t.lead)
	s.ask(t, 401, "GET", "/public/v1/me", "", "Authorization", "Bearer nothing")
}

// quits are clients that hang up: in the middle of a body, and with an answer that they did not read.
func (s *soak) quits(t *soakTenant, random *rand.Rand) {
	for _, text := range []string{
		fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s.localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n{", contact, t.name, t.key),
		fmt.Sprintf("GET %s?limit=200 HTTP/1.1\r\nHost: %s.localhost\r\nAuthorization: Bearer %s\r\n\r\n", contact, t.name, t.key),
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.n.public, "http://"))
		if err != nil {
			s.p.fail("%v", err)
			return
		}
		_, err = conn.Write([]byte(text))
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		if err = errors.Join(err, conn.Close()); err != nil {
			s.p.fail("%v", err)
		}
	}
}

// tail follows the audit log for a moment.
func (s *soak) tail(t *soakTenant, _ *rand.Rand) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.n.public+adminAPI+"audit/tail", nil)
	if err != nil {
		s.p.fail("%v", err)
		return
	}
	r.Host = t.name + ".localhost"
	r.Header.Set("Cookie", s.session(t))
	res, err := s.http.Do(r)
	if err != nil {
		s.p.fail("the tail: %v", err)
		return
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		s.p.fail("the tail: %s", res.Status)
	}
	time.AfterFunc(300*time.Millisecond, cancel)
	_, _ = io.Copy(io.Discard, res.Body) // until then
}

// watch takes sixty samples until ctx ends, and does what an operator does meanwhile.
func (s *soak) watch(ctx context.Context, lasts time.Duration) (all []sample) {
	every := scale(20, 1)
	for {
		select {
		case <-ctx.Done():
			return all
		case <-time.After(lasts / 60):
			if all = append(all, s.sample()); len(all)%every == 0 {
				s.operate(s.tenants[len(all)%len(s.tenants)])
			}
		}
	}
}

// operate changes a tenant's configuration there and back, and makes a backup; and records come with their age, as those of
// an import have them.
func (s *soak) operate(t *soakTenant) {
	s.w.apply(fmt.Sprintf(soakManifest, t.name, ", indexed: true"))
	s.w.fill("reading", s.old+1, s.old+soakOld, `{"value":#}`)
	s.old += soakOld
	if s.w.engine == db.SQLite {
		file := filepath.Join(s.w.logs, "backup")
		s.w.must("backup", file)
		if err := os.RemoveAll(file); err != nil {
			s.p.fail("%v", err)
		}
	}
	s.w.apply(fmt.Sprintf(soakManifest, t.name, ""))
}

func (s *soak) sample() (is sample) {
	is.asked = s.asked.Load()
	is.memory = float64(s.memory.now())
	for name, at := range map[string]*float64{"go_goroutines": &is.goroutines, "process_open_fds": &is.files} {
		value, err := s.n.metric(name)
		if err != nil {
			s.p.fail("%v", err)
		}
		*at = value
	}
	if s.w.engine == db.Postgres {
		size, err := strconv.ParseFloat(one(s.p.t, s.w.url, `SELECT pg_database_size(current_database())::text`), 64)
		if err != nil {
			s.p.fail("%v", err)
		}
		is.disk = size
	}
	err := filepath.WalkDir(s.w.dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.IsDir() {
			return nil
		}
		info, err := entry.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case strings.HasSuffix(path, "-wal"):
			is.log += float64(info.Size())
		default:
			is.disk += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		s.p.fail("%v", err)
	}
	return is
}

// middle returns the median of a figure.
func middle(of []sample, figure func(sample) float64) float64 {
	values := make([]float64, len(of))
	for i := range of {
		values[i] = figure(of[i])
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// judge compares the second half with what was between the first sixth and it.
func (s *soak) judge(samples []sample) {
	sixth := len(samples) / 6
	before, after := samples[sixth:3*sixth], samples[3*sixth:]
	flat := func(name string, unit, factor, slack float64, figure func(sample) float64) {
		was, is := middle(before, figure)/unit, middle(after, figure)/unit
		s.p.set(name+"_before", int64(was))
		s.p.set(name+"_after", int64(is))
		if proving && is > was*factor+slack {
			s.p.fail("%s grew from %.0f to %.0f", name, was, is)
		}
	}
	const mib = 1 << 20
	flat("memory_mib", mib, 1.05, 8, func(x sample) float64 { return x.memory })
	flat("goroutines", 1, 1.05, 5, func(x sample) float64 { return x.goroutines })
	flat("descriptors", 1, 1.05, 5, func(x sample) float64 { return x.files })
	for _, x := range samples {
		s.p.highest("log_most_mib", int64(x.log/mib))
	}
	if most := s.p.figures["log_most_mib"].(int64); proving && most > soakLog {
		s.p.fail("SQLite's logs had %d MiB", most)
	}
	grown := func(part []sample) float64 {
		first, last := part[0], part[len(part)-1]
		return (last.disk - first.disk) / float64(max(last.asked-first.asked, 1))
	}
	was, is := grown(before), grown(after)
	s.p.set("disk_bytes_a_request_before", int64(was))
	s.p.set("disk_bytes_a_request_after", int64(is))
	if proving && is > was*1.1 {
		s.p.fail("each request leaves %.0f bytes on disk, and left %.0f", is, was)
	}
	if again, _ := s.p.figures["to_try_again"].(int); int64(again)*1000 > samples[len(samples)-1].asked {
		s.p.fail("%d of %d requests were to be sent again", again, samples[len(samples)-1].asked)
	}
}

// expired waits until nothing is left that was to be deleted by now.
func (s *soak) expired() {
	left := int64(1)
	for until := time.Now().Add(3 * time.Minute); left > 0 && time.Now().Before(until); time.Sleep(time.Second) {
		s.w.database(func(h db.Handle) error {
			return h.Query(context.Background(), `SELECT count(*) FROM records WHERE tenant_id = $1 AND entity = 'reading' AND created_at < 1000000000000`,
				func(r db.Row) error { left = r.Int(0); return nil })
		})
		if !proving {
			break // it has minutes
		}
	}
	s.p.set("old_left", left)
	if proving && left != 0 {
		s.p.fail("%d readings are left that are too old", left)
	}
}
