package prove

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"gatehouse/internal/db"
)

// shopManifest has a webhook with a secret token that leads to a component and
// one with a provider's signature that leads to a flow. A delivery to either
// makes two records of its ref and adds one to a counter.
const shopManifest = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true, log_standard_requests: true}
unauthenticated_per_ip_per_minute: 100000000
entities:
  - name: effect
    fields: [{name: ref, type: text, indexed: true}, {name: half, type: number}]
  - name: counter
    fields: [{name: total, type: number}]
users: [{email: olivia@acme.example, name: Olivia Owner, owner: true}]
logic_components:
  - name: book
    source: |
      export default function handler({ ref, counter }) {
        const { total } = records.get("counter", counter);
        records.create("effect", { ref, half: 1 });
        records.create("effect", { ref, half: 2 });
        records.update("counter", counter, { total: total + 1 });
        return { total: total + 1 };
      }
  - name: next
    source: "export default ({ total }) => ({ total: total + 1 })"
  - name: simple
    source: |
      export default function handler({ rawBody, headers, config }) {
        if (!safeCompare(hmacSha256(config.webhook_secret, rawBody), headers["x-signature"] ?? "")) fail("wrong signature");
        const event = JSON.parse(rawBody);
        return { providerEventId: event.ref, eventKind: "booking", canonicalEvent: event };
      }
automations:
  - name: book_flow
    trigger: http.request
    input_schema: [{name: ref, type: text, required: true}, {name: counter, type: text, required: true}]
    nodes:
      - {id: was, type: record.get, entity: counter, record_id: "{{inputs.counter}}"}
      - {id: one, type: record.create, entity: effect, fields: {ref: "{{inputs.ref}}", half: 1}}
      - {id: more, type: component, component: next, inputs: {total: "{{was.total}}"}}
      - {id: two, type: record.create, entity: effect, fields: {ref: "{{inputs.ref}}", half: 2}}
      - {id: is, type: record.update, entity: counter, record_id: "{{inputs.counter}}", fields: {total: "{{more.total}}"}}
custom_endpoints:
  - {slug: token, target: {component: book}, auth: token, reply: receipt, rate_limit_per_minute: 100000000}
  - {slug: signed, target: {automation: book_flow}, auth: signed, verifier: simple, webhook_secret: a-secret-of-these-proofs, rate_limit_per_minute: 100000000}
`

// shop is a world whose tenant has these webhooks, with the ids of its counters.
type shop struct {
	*world
	webhook  string // the token
	counters []string
}

// newShop makes the tenant, in a world of its own, with some counters.
func newShop(t testing.TB, engine db.Engine, counters int) *shop {
	t.Helper()
	s := &shop{world: bare(t, engine)}
	s.apply(shopManifest)
	s.token = s.key(owner)
	s.webhook = strings.TrimSpace(s.must("endpoint", "token", "--tenant", "acme", "--slug", "token"))
	n := s.start()
	defer n.kill()
	c := n.client(s.token)
	defer c.close()
	for range counters {
		a, err := c.do("POST", "/public/v1/data/counter", `{"total":0}`)
		if err != nil || a.status != http.StatusCreated {
			t.Fatal(a, err)
		}
		r, err := a.record()
		if err != nil {
			t.Fatal(err)
		}
		s.counters = append(s.counters, r.ID)
	}
	return s
}

// deliver sends one delivery to a webhook, "token" or "signed", as its provider
// would.
func (s *shop) deliver(c *http.Client, base, mode, ref, counter string) (*answer, error) {
	body := fmt.Appendf(nil, `{"ref":%q,"counter":%q}`, ref, counter)
	r, err := http.NewRequest("POST", base+"/public/v1/custom/"+mode, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Host = host
	r.Header.Set("Content-Type", "application/json")
	if mode == "token" {
		r.Header.Set("X-Webhook-Token", s.webhook)
		r.Header.Set("Idempotency-Key", ref)
	} else {
		mac := hmac.New(sha256.New, []byte("a-secret-of-these-proofs"))
		mac.Write(body)
		r.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
	}
	return exchange(c, r)
}

// provider returns the HTTP client of a provider.
func provider() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
}

// acknowledged returns the event that an answer acknowledges, or "" if it acknowledges
// none. first reports whether the answer is the receipt of the run itself.
func (a *answer) acknowledged() (event string, first bool) {
	var body struct {
		Received  bool   `json:"received"`
		EventID   string `json:"event_id"`
		Duplicate bool   `json:"duplicate"`
	}
	if json.Unmarshal(a.body, &body) != nil {
		return "", false
	}
	switch {
	case a.status == http.StatusAccepted && body.Received:
		return body.EventID, true
	case a.status == http.StatusOK && string(a.body) == `{"duplicate":true}`:
		return a.header.Get("X-Event-Id"), false
	}
	return "", false
}

// books counts what the database has of all deliveries.
type books struct{ events, keys, pairs, records, total int64 }

// kept reads the books of an idle database.
func (s *shop) kept(c *client) (books, error) {
	var b books
	for _, q := range []struct {
		into *int64
		sql  string
	}{
		{&b.events, `SELECT count(*) FROM events`},
		{&b.keys, `SELECT count(*) FROM event_keys`},
		{&b.pairs, `SELECT count(DISTINCT k.event_id) FROM event_keys k JOIN events e ON e.tenant_id = k.tenant_id AND e.event_id = k.event_id`},
		{&b.records, `SELECT count(*) FROM records WHERE entity = 'effect'`},
	} {
		n, err := s.number(q.sql)
		if err != nil {
			return b, err
		}
		*q.into = n
	}
	for _, id := range s.counters {
		a, err := c.do("GET", "/public/v1/data/counter/"+id, "")
		if err != nil {
			return b, err
		}
		var env struct {
			Data struct {
				Total int64 `json:"total"`
			} `json:"data"`
		}
		if err := json.Unmarshal(a.body, &env); err != nil || a.status != http.StatusOK {
			return b, fmt.Errorf("%s: %w", a, err)
		}
		b.total += env.Data.Total
	}
	return b, nil
}

// and returns the books expected after n more deliveries.
func (b books) and(n int) books {
	m := int64(n)
	return books{b.events + m, b.keys + m, b.pairs + m, b.records + 2*m, b.total + m}
}

// number queries the database directly.
func (s *shop) number(sql string) (n int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.engine == db.Postgres {
		conn, err := pgx.Connect(ctx, s.url)
		if err != nil {
			return 0, err
		}
		defer conn.Close(ctx)
		err = conn.QueryRow(ctx, sql).Scan(&n)
		return n, err
	}
	conn, err := sqlite.OpenConn(filepath.Join(s.dir, db.FileName), sqlite.OpenReadWrite)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	conn.SetBusyTimeout(10 * time.Second)
	err = sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(st *sqlite.Stmt) error {
		n = st.ColumnInt64(0)
		return nil
	}})
	return n, err
}

// half is an effect as the API shows it.
type half struct {
	Ref  string `json:"ref"`
	Half int    `json:"half"`
}

// effectsPage returns one answer of a list of effects.
func effectsPage(c *client, query string) (list []half, next string, err error) {
	a, err := c.do("GET", "/public/v1/data/effect?"+query, "")
	if err != nil {
		return nil, "", err
	}
	var env struct {
		Data []half `json:"data"`
		Meta struct {
			Next string `json:"nextCursor"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(a.body, &env); err != nil || a.status != http.StatusOK {
		return nil, "", fmt.Errorf("%s: %w", a, err)
	}
	return env.Data, env.Meta.Next, nil
}

// halves returns the effects of one delivery, by its ref.
func halves(c *client, ref string) (list []int, err error) {
	found, _, err := effectsPage(c, url.QueryEscape("filter[ref]")+"="+url.QueryEscape(ref))
	for _, e := range found {
		list = append(list, e.Half)
	}
	return list, err
}

// everyHalf returns the effects of all deliveries.
func everyHalf(c *client) (map[string][]int, error) {
	all := map[string][]int{}
	for cursor := ""; ; {
		list, next, err := effectsPage(c, "limit=200"+cursor)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			all[e.Ref] = append(all[e.Ref], e.Half)
		}
		if next == "" {
			return all, nil
		}
		cursor = "&cursor=" + next
	}
}
