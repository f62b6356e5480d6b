package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// webhooks is a tenant whose webhooks fail until there is a contact Ada. Its
// audit log, which would hold the bodies, is off.
const webhooks = acmeManifest + `
logic_components:
  - name: greet
    inputs: [{name: name, type: text, required: true}]
    source: |
      export default function handler(inputs, ctx) {
        console.log("greeting", inputs.name.length)
        const made = records.create("contact", {first_name: inputs.name})
        if (!records.list("contact", {}).records.some(r => r.first_name === "Ada")) {
          throw new RangeError("there is no Ada")
        }
        return {id: made.id, by: ctx.user.email}
      }
automations:
  - name: greeting
    trigger: http.request
    input_schema: [{name: name, type: text, required: true}]
    outputs: [{name: id, type: text}]
    nodes:
      - {id: named, type: set, values: {first: "{{inputs.name.first}}"}}
      - {id: greeted, type: component, component: greet, inputs: {name: "{{inputs.name}}"}, outputs: {id: id}}
custom_endpoints:
  - {slug: key, target: {component: greet}}
  - {slug: hook, target: {component: greet}, auth: token}
  - {slug: flow, target: {automation: greeting}, auth: token}
`

// served runs `gatehouse serve` beside the commands of a test and returns its address, and a
// function that stops it.
func (x *cli) served() (url string, stop func()) {
	x.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.ctx()))
	out, in := io.Pipe()
	var words strings.Builder
	done := make(chan int, 1)
	go func() {
		code := run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, x.place...), func(name string) string { return x.env[name] },
			strings.NewReader(""), in, &words)
		_ = in.Close() // closing it cannot fail
		done <- code
	}()
	address := make(chan string, 1)
	go func() {
		lines := json.NewDecoder(out)
		for {
			var line struct{ Event, Addr string }
			if err := lines.Decode(&line); err != nil {
				_, _ = io.Copy(io.Discard, out) // so that the server does not block
				return
			}
			if line.Event == "server.listening" {
				address <- line.Addr
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != 0 {
			x.t.Errorf("serve: status %d: %s", code, words.String())
		}
	})
	x.t.Cleanup(stop)
	select {
	case a := <-address:
		return "http://" + a, stop
	case <-time.After(20 * time.Second):
		x.t.Fatal("it does not listen")
		return "", nil
	}
}

// deliver posts to a webhook of the tenant acme.
func deliver(t *testing.T, url, slug, token, key, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/public/v1/custom/"+slug, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "acme.localhost"
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Webhook-Token", token)
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// one decodes a command's output, which must be one JSON object.
func one(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

// rows counts the rows of a table of the tenant acme.
func (x *cli) rows(table string) (n int) {
	x.t.Helper()
	err := x.open().For("acme").Query(x.ctx(), `SELECT COUNT(*) FROM `+table+` WHERE tenant_id = $1`, func(r db.Row) error {
		n = int(r.Int(0))
		return nil
	})
	if err != nil {
		x.t.Fatal(err)
	}
	return n
}

func TestExecShowsARunAndKeepsNothing(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		x.stdin = webhooks
		x.ok("apply", "-f", "-")
		input := filepath.Join(t.TempDir(), "input.json")
		if err := os.WriteFile(input, []byte(`{"name": "Ada"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		exec := func(kind, name string, more ...string) []string {
			return append([]string{"run", "exec", "--tenant", "acme", kind, name, "--as", "sam@acme.example"}, more...)
		}
		// Lists read what is stored, so they do not include Ada yet.
		stdout, words, code := x.raw(append(exec("--component", "greet", "--input", input), x.place...)...)
		m := one(t, stdout)
		if text := fmt.Sprint(m["error"]); code != 1 || !strings.HasPrefix(text, "RangeError: there is no Ada (greet:5:") || m["code"] != "EXECUTION_ERROR" {
			t.Errorf("status %d, %s", code, stdout)
		}
		if !strings.Contains(words, "gatehouse: the run failed") || !strings.Contains(stdout, `"text": "greeting 3"`) {
			t.Errorf("%s%s", words, stdout)
		}
		stdout, _, code = x.raw(append(exec("--automation", "greeting", "--input", input), x.place...)...)
		m = one(t, stdout)
		if trace, _ := m["trace"].([]any); code != 1 || len(trace) != 2 || !strings.HasPrefix(fmt.Sprint(m["skipped"]), "1 skipped: named: inputs.name.first") || !strings.Contains(fmt.Sprint(trace), "greeted") || !strings.Contains(stdout, "greeting 3") {
			t.Errorf("status %d: %s", code, stdout)
		}
		x.fails(1, "--cache: ", exec("--component", "greet", "--input", input, "--cache", "/dev/null/no")...)
		// A run from standard input succeeds.
		x.add("Ada")
		x.stdin = `{"name": "Bob"}`
		stdout, words = x.ok(exec("--component", "greet", "--input", "-", "--as", "olivia@acme.example")...)
		m = one(t, stdout)
		if data, _ := m["data"].(map[string]any); m["error"] != nil || data["by"] != "olivia@acme.example" || !strings.Contains(words, "Nothing was kept.") {
			t.Errorf("%s%s", stdout, words)
		}
		stdout, _ = x.ok(exec("--automation", "greeting", "--input", "-", "--as", "olivia@acme.example")...)
		if meta, _ := one(t, stdout)["meta"].(map[string]any); meta["nodesExecuted"] != 1. {
			t.Errorf("%s", stdout)
		}
		if r, e, n := x.rows("records"), x.rows("events"), x.rows("runs"); r != 1 || e != 0 || n != 0 {
			t.Errorf("%d records, %d events and %d runs", r, e, n)
		}

		if x.config.URL == "" {
			x.fails(1, "gatehouse: Input validation failed: [name: required]\n", exec("--component", "greet", "--input", x.file(`{}`))...)
			x.fails(1, "The body", exec("--component", "greet", "--input", x.file(`[]`))...)
			x.fails(1, `there is no component "nothing"`, exec("--component", "nothing", "--input", input)...)
			x.fails(1, `there is no automation "greet"`, exec("--automation", "greet", "--input", input)...)
		}
		x.fails(2, "one of --component and --automation", exec("--component", "greet", "--automation", "greeting", "--input", input)...)
		x.fails(2, "one of --component and --automation", "run", "exec", "--tenant", "acme", "--as", "sam@acme.example", "--input", input)
		x.fails(2, "--as is required", "run", "exec", "--tenant", "acme", "--component", "greet", "--input", input)
		x.fails(1, "there is no user", "run", "exec", "--tenant", "acme", "--component", "greet", "--input", input, "--as", "nobody@acme.example")
		x.fails(1, "no such file", exec("--component", "greet", "--input", "/nowhere")...)
	})
}

// file returns the path of a file with a text.
func (x *cli) file(text string) string {
	x.t.Helper()
	name := filepath.Join(x.t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
	return name
}

// add creates a contact as the owner.
func (x *cli) add(name string) {
	x.t.Helper()
	url, stop := x.served()
	defer stop()
	token, _ := x.ok("key", "create", "--tenant", "acme", "--user", "olivia@acme.example", "--name", "test")
	r, err := http.NewRequestWithContext(x.ctx(), http.MethodPost, url+"/public/v1/data/contact", strings.NewReader(`{"first_name": "`+name+`"}`))
	if err != nil {
		x.t.Fatal(err)
	}
	r.Host = "acme.localhost"
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + strings.TrimSpace(token)}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 201 {
		x.t.Fatalf("%s: %d", name, res.StatusCode)
	}
}

// TestAFailedDeliveryIsFoundExplainedAndRunAgain checks that a failed delivery is listed
// with its error and can be run again, once.
func TestAFailedDeliveryIsFoundExplainedAndRunAgain(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		x.stdin = strings.Replace(webhooks, "enabled: true", "enabled: true, log_standard_requests: false", 1)
		x.ok("apply", "-f", "-")
		url, stop := x.served()
		slugs := []string{"hook", "flow"}
		if x.config.URL != "" { // each command starts an engine, whose compiled code is not cached with PostgreSQL
			slugs = slugs[:1]
		}
		n := len(slugs)
		for _, slug := range slugs {
			token, _ := x.ok("endpoint", "token", "--tenant", "acme", "--slug", slug)
			for _, key := range []string{"k1", ""} {
				if status, answer := deliver(t, url, slug, strings.TrimSpace(token), key, `{"name": "Zacharias Zuckmantel"}`); status != 422 {
					t.Fatalf("%d %s", status, answer)
				}
			}
		}
		stop() // writes the runs that are still buffered
		x.sealed("Zacharias")
		runs := x.lines("run", "list", "--tenant", "acme", "--errors")
		const members = "auth cpu_ms duration_ms endpoint error error_code event_id id kind request_id skipped started_at status target tries user"
		if len(runs) != 2*n || keysOf(runs[0]) != members {
			t.Fatalf("%v", runs)
		}
		if list := x.lines("run", "list", "--tenant", "acme", "--slug", "hook", "--limit", "1"); len(list) != 1 || list[0]["id"] != runs[2*n-2]["id"] {
			t.Errorf("%v", list)
		}
		for _, r := range runs {
			same := x.lines("run", "list", "--tenant", "acme", "--request-id", fmt.Sprint(r["request_id"]))
			if len(same) != 1 || same[0]["id"] != r["id"] {
				t.Errorf("the runs of request %v are %v", r["request_id"], same)
			}
			since := x.lines("run", "list", "--tenant", "acme", "--since", fmt.Sprint(r["started_at"]))
			if want := slices.IndexFunc(runs, func(o map[string]any) bool { return o["id"] == r["id"] }) + 1; len(since) != want {
				t.Errorf("%d runs since %v, want %d", len(since), r["started_at"], want)
			}
		}
		x.fails(2, "expected the id that the answer's header X-Request-Id has", "run", "list", "--tenant", "acme", "--request-id", "x")
		x.fails(2, "--limit -1: expected 0 or more", "run", "list", "--tenant", "acme", "--limit", "-1")
		for i, r := range runs { // newest first
			slug, target, kind := "flow", "greeting", "automation"
			skipped := any("1 skipped: named: inputs.name.first reads first out of text, which is not an object or a list")
			if i >= 2*n-2 {
				slug, target, kind, skipped = "hook", "greet", "component", nil
			}
			if r["endpoint"] != slug || r["target"] != target || r["kind"] != kind || r["status"] != "failed" || r["skipped"] != skipped || r["error_code"] != "EXECUTION_ERROR" ||
				r["auth"] != "token" || r["user"] != "olivia@acme.example" || r["tries"] != 1. || r["event_id"] == nil {
				t.Errorf("%v", r)
			}
			stdout, _ := x.ok("run", "show", "--tenant", "acme", "--id", fmt.Sprint(r["id"]))
			whole := one(t, stdout)
			if text := fmt.Sprint(whole["error"]); !strings.Contains(text, "there is no Ada") || !strings.Contains(text, "greet:5:") {
				t.Errorf("%s: the error is %q, want the place greet:5:…", slug, text)
			}
			if !strings.Contains(fmt.Sprint(whole["console"]), "greeting 20") {
				t.Errorf("the console is %v", whole["console"])
			}
			if trace, _ := whole["trace"].([]any); len(trace) != map[string]int{"flow": 2}[slug] {
				t.Errorf("%s: the trace is %v", slug, whole["trace"])
			}
			if i%2 == 1 {
				continue
			}
			// The cause of the failure still exists.
			if _, words, code := x.raw(append([]string{"run", "retry", "--tenant", "acme", "--id", fmt.Sprint(r["id"])}, x.place...)...); code != 1 ||
				!strings.Contains(words, "the run failed") {
				t.Errorf("status %d: %s", code, words)
			}
		}
		if r := x.rows("records"); r != 0 {
			t.Errorf("%d records", r)
		}
		x.add("Ada")
		for _, r := range runs {
			retry := []string{"run", "retry", "--tenant", "acme", "--id", fmt.Sprint(r["id"])}
			stdout, words := x.ok(retry...)
			if m := one(t, stdout); m["error"] != nil || !strings.Contains(words, "The delivery is processed.") {
				t.Errorf("%s%s", stdout, words)
			}
			stdout, words, code := x.raw(append(retry, x.place...)...)
			if code != 0 || stdout != "" || !strings.Contains(words, "nothing ran") {
				t.Errorf("%v, the second time: status %d, %s%s", r["endpoint"], code, stdout, words)
			}
		}
		if r, e, k := x.rows("records"), x.rows("events"), x.rows("event_keys"); r != 1+2*n || e != 2*n || k != n {
			t.Errorf("%d records, %d events, %d keys", r, e, k)
		}
		// The provider's own retry is a duplicate.
		url, stop = x.served()
		token, _ := x.ok("endpoint", "token", "--tenant", "acme", "--slug", "hook")
		if status, answer := deliver(t, url, "hook", strings.TrimSpace(token), "k1", `{"name": "Zacharias Zuckmantel"}`); status != 200 || answer != `{"duplicate":true}` {
			t.Errorf("%d %s", status, answer)
		}
		stop()
		processed := x.lines("run", "list", "--tenant", "acme")[0]
		x.fails(1, "is not the failed delivery of a webhook", "run", "retry", "--tenant", "acme", "--id", fmt.Sprint(processed["id"]))
		x.fails(1, `there is no run "x"`, "run", "retry", "--tenant", "acme", "--id", "x")
		x.fails(1, `there is no run "x"`, "run", "show", "--tenant", "acme", "--id", "x")
		x.fails(2, "--id is required", "run", "show", "--tenant", "acme")
		x.fails(1, `there is no endpoint "nope"`, "run", "list", "--tenant", "acme", "--slug", "nope")
		if list := x.lines("run", "list", "--tenant", "acme", "--slug", "key"); len(list) != 0 {
			t.Errorf("runs of an endpoint that was not called: %v", list)
		}
		for _, command := range [][]string{{"list"}, {"show", "--id", "x"}, {"retry", "--id", "x"}} {
			x.fails(1, `there is no tenant "globex"`, append(append([]string{"run"}, command...), "--tenant", "globex")...)
		}
	})
}

// sealed fails the test if a run's row, or any file of an SQLite database, contains a text.
func (x *cli) sealed(text string) {
	x.t.Helper()
	n := 0
	err := x.open().For("acme").Query(x.ctx(), `SELECT (SELECT sealed FROM failed_deliveries f WHERE f.tenant_id = $1 AND f.run_id = runs.run_id),
		error, trace, console FROM runs WHERE tenant_id = $1`, func(r db.Row) error {
		n++
		for i := range 4 {
			if strings.Contains(r.Text(i), text) {
				x.t.Errorf("a run holds %q: %s", text, r.Text(i))
			}
		}
		if r.Text(0) == "" {
			x.t.Error("a failed delivery has no payload")
		}
		return nil
	})
	if err != nil || n == 0 {
		x.t.Fatalf("%d runs, %v", n, err)
	}
	if x.config.Dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(x.config.Dir, "*"))
	if err != nil || len(files) < 2 {
		x.t.Fatalf("%v: %v", files, err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil && !strings.Contains(err.Error(), "is a directory") {
			x.t.Fatal(err)
		}
		if bytes.Contains(content, []byte(text)) {
			x.t.Errorf("%q stands in %s", text, name)
		}
	}
}
