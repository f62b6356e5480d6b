package endpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// responding is a tenant whose component makes a record and returns what its inputs say: with
// respond() where they have the member respond.
func responding() string {
	return strings.Replace(also(`
  - name: answers
    source: |
      export default async function handler(inputs) {
        records.create("counter", {n: 1})
        if (inputs.long) return respond({body: "x".repeat(inputs.long)})
        return "respond" in inputs ? respond(inputs.respond) : inputs
      }
`), "automations:\n", `automations:
  - name: ignores
    trigger: http.request
    input_schema: [{name: say, type: json}]
    outputs: [{name: ignored, type: boolean}, {name: more, type: json}]
    nodes:
      - {id: kept, type: record.create, entity: counter, fields: {n: 2}}
      - {id: out, type: output, set: {ignored: "{{inputs.say.ignored}}"}}
  - name: responds
    trigger: http.request
    input_schema: [{name: respond, type: json}]
    outputs: []
    nodes: [{id: called, type: component, component: answers, inputs: {respond: "{{inputs.respond}}"}}]
`, 1) + endpoints(append(append(three("c", "component: answers"), three("a", "automation: ignores")...),
		"{slug: receipt-c, target: {component: answers}, auth: token, reply: receipt}", "{slug: receipt-a, target: {automation: ignores}, auth: token, reply: receipt}",
		"{slug: token-f, target: {automation: responds}, auth: token}")...)
}

// TestRespond: a component chooses status, type, headers and body of its answer, where the endpoint
// answers with the result.
func TestRespond(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(responding())
		call := callers(w, "sam@acme.example")
		for given, want := range map[string]string{
			`{}`:                               "200 text/plain; charset=utf-8 ",
			`null`:                             "200 text/plain; charset=utf-8 ",
			`{"body": "Größe"}`:                "200 text/plain; charset=utf-8 Größe",
			`{"status": 201, "body": {"a":1}}`: `201 application/json {"a":1}`,
			`{"headers": {"content-type": "text/xml"}, "body": "<Response/>"}`: "200 text/xml; charset=utf-8 <Response/>",
			`{"headers": {"Content-Type": "application/json"}, "body": "[1]"}`: "200 application/json [1]",
			`{"status": 204}`: "204  ",
		} {
			for _, mode := range []string{"key", "token"} {
				a := call[mode](mode+"-c", `{"respond": `+given+`}`)
				if got := fmt.Sprint(a.Status, " ", a.Header.Get("Content-Type"), " ", string(a.Body)); got != want {
					t.Errorf("%s, %s: %q, want %q", mode, given, got, want)
				}
				if (a.Header.Get("X-Event-Id") != "") != (mode == "token") || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
					a.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
					t.Errorf("%s, %s: headers %v", mode, given, a.Header)
				}
			}
		}
		a := call["token"]("token-c", `{"respond": {"status": 201, "headers": {"LOCATION": "/public/v1/data/counter/1", "Link": "<x>; rel=next", "content-language": "de", "Content-Disposition": "attachment; filename=a.csv", "Content-Type": "text/csv; charset=UTF-8"}, "body": "a,b"}}`)
		if a.Status != 201 || header(t, a, "Location") != "/public/v1/data/counter/1" || header(t, a, "Link") != "<x>; rel=next" || header(t, a, "Content-Language") != "de" ||
			header(t, a, "Content-Disposition") != "attachment; filename=a.csv" || header(t, a, "Content-Type") != "text/csv; charset=utf-8" || header(t, a, "Cache-Control") != "no-store" {
			t.Errorf("%d %v", a.Status, a.Header)
		}
		// A receipt is a receipt.
		for slug, mode := range map[string]string{"receipt-c": "token", "signed-c": "signed"} {
			a := call[mode](slug, `{"respond": {"body": "x"}}`)
			if a.Status != 202 || !strings.HasPrefix(string(a.Body), `{"received":true,"event_id":`) || header(t, a, "Content-Type") != "application/json" {
				t.Errorf("%s: %d %s", slug, a.Status, a.Body)
			}
		}
		// A caller's data is no answer.
		same(t, "an echo", call["key"]("key-c", `{"status": 201, "headers": {"Link": "x"}, "body": "<script>"}`).Body,
			`{"data": {"status": 201, "headers": {"Link": "x"}, "body": "<script>"}, "meta": {}}`)
		b := call["token"]("token-f", `{"respond": {"body": "x"}}`).Want(422, "EXECUTION_ERROR")
		if !strings.Contains(string(b.Body), "only where the component is what the endpoint runs") {
			t.Errorf("%s", b.Body)
		}
	})
}

// TestAWrongResponse is 422, and nothing was done.
func TestAWrongResponse(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(responding())
		call := callers(w, "sam@acme.example")
		for given, want := range map[string]string{
			`{"status": 199}`: "respond: status: expected a whole number from 200 to 299", `{"status": 301, "headers": {"Location": "https://evil.example"}}`: "status",
			`{"status": 404}`: "status", `{"status": 100}`: "status", `{"status": "200"}`: "status", `{"status": 200.5}`: "status", `{"status": true}`: "status",
			`{"headers": {"Content-Type": "text/html"}, "body": "<script>alert(1)</script>"}`: "headers: Content-Type: expected one of application/json, application/xml, text/csv, text/plain, text/xml",
			`{"headers": {"Content-Type": "text/plain\r\nX-Evil: 1"}}`:                        "headers: Content-Type",
			`{"headers": {"Content-Type": ["text/plain"]}}`:                                   "headers: expected an object of texts",
			`{"headers": {"Content-Type": "text/plain", "content-type": "text/html"}}`:        "Content-Type is there twice",
			`{"headers": {"Link": "a", "LINK": "b"}}`:                                         "Link is there twice",
			`{"headers": {"Link": "a\r\nSet-Cookie: session=1"}}`:                             "headers: Link: expected a text of at most 1024 characters of printable ASCII",
			`{"headers": {"Link": "a\nb"}}`:                                                   "headers: Link", `{"headers": {"Link": "ü"}}`: "headers: Link",
			`{"headers": {"Link": 1}}`: "headers: Link", `{"headers": {"Link": null}}`: "headers: Link",
			`{"headers": {"Link": "` + strings.Repeat("x", 1025) + `"}}`: "headers: Link",
			`{"headers": {"Set-Cookie": "a=b"}}`:                         `headers: "Set-Cookie" may not be set: expected Content-Type, Content-Disposition, Content-Language, Link, Location`,
			`{"headers": {"X-Accel-Redirect": "/etc/passwd"}}`:           "may not be set", `{"headers": {"Access-Control-Allow-Origin": "*"}}`: "may not be set",
			`{"headers": {"Content-Length": "0"}}`: "may not be set", `{"headers": {"Transfer-Encoding": "chunked"}}`: "may not be set",
			`{"headers": {"X-Event-Id": "1"}}`: "may not be set", `{"headers": {"Cache-Control": "public"}}`: "may not be set",
			`{"headers": {"Link\r\nSet-Cookie": "1"}}`: "may not be set", `{"headers": {"": "1"}}`: "may not be set", `{"headers": {"Link ": "1"}}`: "may not be set",
			`{"headers": "Link: a"}`: "headers: expected an object of texts", `{"headers": [["Link", "a"]]}`: "headers: expected an object of texts",
			`{"headers": {"Link": {"a": 1}}}`: "headers: expected an object of texts",
			`{"body": 5}`:                     "body: expected a text, an object or a list", `{"body": false}`: "body",
			`{"headers": {"Content-Type": "text/plain"}, "body": [1]}`: "body: an object or a list goes with application/json only",
			`{"status": 204, "body": "x"}`:                             "body: an answer with status 204 has none", `{"status": 205, "body": [1]}`: "body: an answer with status 205 has none",
		} {
			a := call["token"]("token-c", `{"respond": `+given+`}`).Want(422, "EXECUTION_ERROR")
			if !strings.Contains(strings.ReplaceAll(string(a.Body), `\"`, `"`), want) {
				t.Errorf("%s: %s", given, a.Body)
			}
		}
		if a := call["token"]("token-c", `{"long": 1048000}`); a.Status != 200 || len(a.Body) != 1048000 {
			t.Errorf("%d, %d bytes", a.Status, len(a.Body))
		}
		if n := kept(t, w); n != "1 records, 1 events, 0 keys" {
			t.Error(n)
		}
		call["token"]("token-c", `{"long": 1048576}`).Want(422, "EXECUTION_ERROR") // what a component returns has 1 MiB
	})
}

// TestIgnored: a target that did nothing with a delivery says so beside the receipt, which is a 202 and
// keeps the event. Only true does.
func TestIgnored(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(responding())
		call := callers(w, "sam@acme.example")
		n := 0
		for given, want := range map[string]bool{
			`{"ignored": true}`: true, `{"a": {"ignored": false}, "ignored": true, "b": [1]}`: true,
			`{"ignored": false}`: false, `{"ignored": "true"}`: false, `{"ignored": 1}`: false, `{"a": {"ignored": true}}`: false, `{}`: false,
			`{"respond": {"body": {"ignored": true}}}`: false,
		} {
			for slug, mode := range map[string]string{"receipt-c": "token", "signed-c": "signed", "receipt-a": "token", "signed-a": "signed"} {
				body := given
				if strings.HasSuffix(slug, "-a") {
					if !strings.HasPrefix(given, `{"ignored"`) || strings.Contains(given, `"true"`) || strings.Contains(given, "1") {
						continue
					}
					body = `{"say": ` + given + `}`
				}
				a := call[mode](slug, body)
				n++
				id := header(t, a, "X-Event-Id")
				expected := `{"received":true,"event_id":"` + id + `"}`
				if want {
					expected = `{"received":true,"ignored":true,"event_id":"` + id + `"}`
				}
				if a.Status != 202 || string(a.Body) != expected {
					t.Errorf("%s, %s: %d %s, want %s", slug, given, a.Status, a.Body, expected)
				}
			}
		}
		if events := count(t, w, "events"); events != n {
			t.Errorf("%d events of %d deliveries", events, n)
		}
		// With a result it is a member like any other.
		same(t, "a result", call["key"]("key-c", `{"ignored": true}`).Body, `{"data": {"ignored": true}, "meta": {}}`)
	})
}
