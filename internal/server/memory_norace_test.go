//go:build !race

package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
)

// large is a tenant whose records may be large and whose endpoint takes large bodies.
const large = `
tenant: %s
hosts: [%s]
public_api: {enabled: true, log_standard_requests: false}
entities:
  - name: contact
    fields: [{name: first_name, type: text}, {name: extra, type: json}]
users: [{email: olivia@acme.example, name: Olivia, owner: true}]
logic_components:
  - name: size
    inputs: [{name: text, type: text}]
    source: "export default inputs => ({size: (inputs.text ?? '').length})"
  - name: answer
    inputs: [{name: size, type: number}]
    source: |
      export default ({size}) => { records.create("contact", {first_name: "made"}); return "x".repeat(size) }
  - name: lists
    source: 'export default () => { try { return records.list("contact").records.length } catch (e) { return 0 } }'
  - {name: pad, source: 'export default () => "x".repeat(200000)'}
  - {name: spin, source: 'export default () => { for (const t = Date.now(); Date.now() - t < 500;); }'}
  - name: many
    source: |
      export default () => { const e = {}; for (let i = 0; i < 20000; i++) e["m" + i] = 1; return {providerEventId: "1", canonicalEvent: e} }
  - name: wordy
    source: 'export default () => ({providerEventId: "1", canonicalEvent: {pad: "x".repeat(500000)}})'
automations:
  - {name: pad_flow, trigger: http.request, nodes: [{id: p, type: component, component: pad}]}
  - name: lists_flow
    trigger: http.request
    nodes: [{id: l, type: record.list, entity: contact}]
custom_endpoints:
  - {slug: pad-flow, target: {automation: pad_flow}}
  - {slug: signed, target: {component: size}, auth: signed, verifier: wordy, webhook_secret: a-secret-of-the-test}
  - {slug: many, target: {component: spin}, auth: signed, verifier: many, webhook_secret: a-secret-of-the-test}
  - {slug: lists, target: {component: lists}}
  - {slug: lists-flow, target: {automation: lists_flow}}
  - {slug: size, target: {component: size}, max_body_bytes: 10485760}
  - {slug: answer, target: {component: answer}}
`

// share is what one tenant may hold of a budget.
const share = 32 << 20

// crowd provisions two tenants with large records, and returns an owner of each.
func crowd(t *testing.T, w *gatetest.World) (olivia, olga *gatetest.Actor) {
	t.Helper()
	w.Apply(fmt.Sprintf(large, "acme", gatetest.Host))
	w.Apply(fmt.Sprintf(large, "other", "other.localhost"))
	olivia = w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000))
	olga = w.KeyOf("other", "other.localhost", "olivia@acme.example", gatetest.RateLimit(1_000_000))
	for _, who := range []*gatetest.Actor{olivia, olga} {
		for range 3 {
			who.Post(contact, record(1_000_000)).Want(201, "")
		}
	}
	return olivia, olga
}

func record(size int) string { return `{"extra": {"pad": "` + strings.Repeat("p", size) + `"}}` }

// stuck returns a connection whose client reads the status of its answer and nothing
// more; the status is 0 if none came in time.
func stuck(t *testing.T, who *gatetest.Actor, method, path, body string, length int, patience time.Duration) (c net.Conn, status int) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(who.Node.URL, "http://"))
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	_ = c.(*net.TCPConn).SetReadBuffer(4096)
	go func() {
		_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, path, who.Host, who.Token, length, body)
	}()
	_ = c.SetReadDeadline(time.Now().Add(patience)) // without the deadline the test would hang
	line := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(bufio.NewReaderSize(c, 16), line); err != nil {
		return c, 0
	}
	status, _ = strconv.Atoi(string(line[len(line)-3:]))
	return c, status
}

// tooManyOpen opens n stuck connections at once and counts their answers.
func tooManyOpen(t *testing.T, who *gatetest.Actor, n int, method, path, body string, length int, patience time.Duration) (statuses map[int]int, leave func()) {
	t.Helper()
	statuses = map[int]int{}
	var conns []net.Conn
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range n {
		wait.Go(func() {
			c, status := stuck(t, who, method, path, body, length, patience)
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
			conns = append(conns, c)
		})
	}
	wait.Wait()
	return statuses, func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}
}

// fill uses up what is left of the budget with unread answers of each path, until
// one is refused.
func fill(t *testing.T, who *gatetest.Actor, paths ...string) (leave func()) {
	t.Helper()
	var conns []net.Conn
	for _, path := range paths {
		for status := 200; status == 200; {
			var c net.Conn
			c, status = stuck(t, who, "GET", path, "", 0, 20*time.Second)
			conns = append(conns, c)
		}
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

func emptied(t *testing.T, what string, used func() int64) {
	t.Helper()
	for begun := time.Now(); used() != 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("%s: %d bytes are still held", what, used())
		}
	}
}

// TestAnswersThatNobodyReadsAreBounded: clients that do not read hold at most
// their tenant's share, whatever they ask for, and others are served meanwhile.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		olivia, olga := crowd(t, w)
		budget := w.Nodes[0].Server.Answers()
		id := olivia.Get(contact+"?limit=1").Want(200, "").Records()[0]["id"].(string)
		for what, path := range map[string]string{"lists": contact + "?limit=200", "single records": contact + "/" + id} {
			statuses, leave := tooManyOpen(t, olivia, 60, "GET", path, "", 0, 20*time.Second)
			if held := budget.Held("acme"); held > share || held < share*3/4 {
				t.Errorf("%s: %d bytes are held", what, held)
			}
			filled := fill(t, olivia, path, contact+"/"+id)
			if statuses[200] < 8 || statuses[200] > 40 || statuses[503] != 60-statuses[200] {
				t.Errorf("%s: answered %v", what, statuses)
			}
			refused(t, olivia.Get(path))
			olivia.Get(me).Want(200, "")
			olga.Get(me).Want(200, "")
			if n := len(olga.Get(contact).Want(200, "").Records()); n != 2 {
				t.Errorf("the other tenant's page has %d records", n)
			}
			// A refused change was not made.
			refused(t, olivia.Patch(contact+"/"+id, `{"first_name": "changed"}`))
			refused(t, olivia.Post(contact, record(1_000_000)))
			refused(t, olivia.Post("/public/v1/custom/answer", `{"size": 1000000}`))
			refused(t, olivia.Post("/public/v1/custom/lists", `{}`))
			refused(t, olivia.Post("/public/v1/custom/lists-flow", `{}`))
			refused(t, olivia.Post("/public/v1/custom/pad-flow", `{}`))
			leave()
			filled()
			emptied(t, what, budget.Used)
		}
		if name := olivia.Get(contact+"/"+id).Want(200, "").Record()["first_name"]; name != nil {
			t.Errorf("a refused change was made: %v", name)
		}
		if p := olivia.Get(contact+"?limit=2").Want(200, ""); p.Records()[0]["id"] != id {
			t.Error("a refused creation was made")
		}
		olivia.Post("/public/v1/custom/answer", `{"size": 1000000}`).Want(200, "")
		emptied(t, "an endpoint's answer", budget.Used)
	})
}

// TestBodiesAreBounded: memory grows with the bytes received, not with the
// length announced, and all large bodies together are bounded.
func TestBodiesAreBounded(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	olivia, olga := crowd(t, w)
	const path, most = "/public/v1/custom/size", 10 << 20
	budget := w.Nodes[0].Server.Bodies()
	body := func(size int) string { return `{"text": "` + strings.Repeat("t", size-12) + `"}` }
	olivia.Post(path, body(1<<20)).Want(200, "") // compiles the component
	emptied(t, "a body", budget.Used)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	statuses, leave := tooManyOpen(t, olivia, 20, "POST", path, "", most, time.Second)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; statuses[0] != 20 || took > 30 {
		t.Errorf("20 bodies of which nothing came took %d MiB, answered %v", took, statuses)
	}
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are held of bodies of which nothing came", used)
	}
	leave()

	statuses, leave = tooManyOpen(t, olivia, 12, "POST", path, body(7<<20), most, 3*time.Second)
	if held := budget.Held("acme"); held > share || held < share/2 || statuses[503] < 6 || statuses[0]+statuses[503] != 12 {
		t.Errorf("%d bytes are held, answered %v", held, statuses)
	}
	refused(t, olivia.Post(path, body(most-4096)))
	olivia.Post(path, body(10_000)).Want(200, "")
	const signed = "/public/v1/custom/signed"
	var open []func()
	for _, size := range []int{256 << 10, 128 << 10} { // they use up the rest
		_, closes := tooManyOpen(t, olivia, 60, "POST", path, body(size), size+1, time.Millisecond)
		open = append(open, closes)
		for begun := time.Now(); budget.Held("acme") <= share-int64(size)+admission.Free; time.Sleep(10 * time.Millisecond) {
			if time.Since(begun) > 20*time.Second {
				t.Fatalf("%d bytes are held", budget.Held("acme"))
			}
		}
	}
	w.Anyone().Post(signed, `{}`).Want(503, "OVERLOADED") // the verifier's result is charged like a body
	olga.Post(path, body(1<<20)).Want(200, "")
	leave()
	for _, closes := range open {
		closes()
	}
	emptied(t, "bodies that broke off", budget.Used)
	w.Anyone().Post(signed, `{}`).Want(202, "")
	emptied(t, "a delivery", budget.Used)
	var size struct{ Size int }
	if olivia.Post(path, body(most-4096)).Want(200, "").Data(&size); size.Size != most-4096-12 {
		t.Errorf("a body of 10 MiB arrived as %d", size.Size)
	}
}

// TestErrorsThatNobodyReadsAreBounded: an error can be as large as a page.
func TestErrorsThatNobodyReadsAreBounded(t *testing.T) {
	w := gatetest.New(t, "sqlite")
	olivia, olga := crowd(t, w)
	budget := w.Nodes[0].Server.Answers()
	body := `{"` + strings.Repeat("<", 400_000) + `": 1}` // escaped it is six times as long
	statuses, leave := tooManyOpen(t, olivia, 30, "POST", contact, body, len(body), 20*time.Second)
	if held := budget.Held("acme"); held > share || held < share*3/4 || statuses[400] < 8 || statuses[400]+statuses[503] != 30 {
		t.Errorf("%d bytes are held, answered %v", held, statuses)
	}
	refused(t, olivia.Post(contact, body))
	olivia.Post(contact, `{"unknown": 1}`).Want(400, "VALIDATION")
	olga.Get(me).Want(200, "")
	leave()
	emptied(t, "errors", budget.Used)
}

// TestTheMembersOfAnEventAreCharged: many small members take far more memory than
// the text from which they were read.
func TestTheMembersOfAnEventAreCharged(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	w.Apply(fmt.Sprintf(large, "acme", gatetest.Host))
	bodies, done, most := w.Nodes[0].Server.Bodies(), make(chan struct{}), int64(0)
	go func() {
		defer close(done)
		w.Anyone().Post("/public/v1/custom/many", "{}").Want(202, "")
	}()
	for running := true; running; time.Sleep(time.Millisecond) {
		most = max(most, bodies.Used())
		select {
		case <-done:
			running = false
		default:
		}
	}
	if most < 20_000*100 {
		t.Errorf("%d bytes are held for 20,000 members", most)
	}
	emptied(t, "bodies", bodies.Used)
}
