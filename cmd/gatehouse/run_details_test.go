package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestAFailedRunSaysWhatWasWrong checks that the commands print the details of a refusal
// which the caller got: which fields were wrong.
func TestAFailedRunSaysWhatWasWrong(t *testing.T) {
	each(t, func(x *cli) {
		t := x.t
		x.stdin = acmeManifest + `
automations:
  - name: greeting
    trigger: http.request
    input_schema: [{name: name, type: json}]
    nodes: [{id: made, type: record.create, entity: contact, fields: {first_name: "{{inputs.name}}"}}]
custom_endpoints: [{slug: flow, target: {automation: greeting}, auth: token}]
`
		x.ok("apply", "-f", "-")
		const details = "map[code:VALIDATION fields:map[first_name:expected text] node:made]"
		says := func(stdout string) {
			t.Helper()
			m := one(t, stdout)
			trace, _ := m["trace"].([]any)
			if len(trace) != 1 {
				t.Fatalf("%s", stdout)
			}
			step, _ := trace[0].(map[string]any)
			if fmt.Sprint(m["error_details"]) != details || fmt.Sprint(step["details"]) != details {
				t.Errorf("%s", stdout)
			}
		}
		url, stop := x.served()
		token, _ := x.ok("endpoint", "token", "--tenant", "acme", "--slug", "flow")
		if status, answer := deliver(t, url, "flow", strings.TrimSpace(token), "", `{"name": [5]}`); status != 422 {
			t.Fatalf("%d %s", status, answer)
		}
		stop() // writes the run
		run := x.lines("run", "list", "--tenant", "acme", "--errors")[0]
		stdout, _ := x.ok("run", "show", "--tenant", "acme", "--id", fmt.Sprint(run["id"]))
		says(stdout)
		x.stdin = `{"name": [5]}`
		stdout, _, _ = x.raw(append([]string{"run", "exec", "--tenant", "acme", "--automation", "greeting", "--as", "olivia@acme.example", "--input", "-"}, x.place...)...)
		says(stdout)
		stdout, _, _ = x.raw(append([]string{"run", "retry", "--tenant", "acme", "--id", fmt.Sprint(run["id"])}, x.place...)...)
		says(stdout)
	})
}
