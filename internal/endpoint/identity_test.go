package endpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// who are components and flows that return the user that they run as: the name is the
// execution context.
func who() (components, automations string) {
	for name, context := range contexts {
		components += fmt.Sprintf(`  - name: who_%s
    execution_context: %s
    source: |
      export default function handler(inputs, ctx) {
        const made = records.create("counter", {n: 1})
        return {user: ctx.user.email, owner: made.owner_id, sees: records.get("counter", inputs.hidden) !== null,
          lists: records.list("counter", {where: {n: 7}}).records.some(r => r.id === inputs.hidden)}
      }
`, name, context)
		automations += fmt.Sprintf(`  - name: flow_%s
    trigger: http.request
    execution_context: %s
    input_schema: [{name: hidden, type: text}]
    outputs: [{name: owner, type: text}, {name: seen, type: text}]
    nodes:
      - {id: made, type: record.create, entity: counter, fields: {n: 1}}
      - {id: found, type: record.get, entity: counter, record_id: "{{inputs.hidden}}"}
      - {id: out, type: output, set: {owner: "{{made.owner_id}}"}}
      - {id: out2, type: output, set: {seen: "{{found.id}}"}}
`, name, context)
		for inner := range contexts {
			automations += fmt.Sprintf(`  - name: calls_%s_%s
    trigger: http.request
    execution_context: %s
    input_schema: [{name: hidden, type: text}]
    outputs: [{name: user, type: text}, {name: owner, type: text}, {name: sees, type: boolean}, {name: lists, type: boolean}]
    nodes:
      - {id: called, type: component, component: who_%s, inputs: {hidden: "{{inputs.hidden}}"}, outputs: {user: user, owner: owner, sees: sees, lists: lists}}
`, name, inner, context, inner)
		}
	}
	return components, automations
}

// contexts are the kinds of execution context; specific_user is uma.
var contexts = map[string]string{"caller": "caller", "system": "system", "specific": "{specific_user: uma@acme.example}"}

// TestActingUser: a target runs as its execution context says, else as the endpoint's
// run_as, else as the key's user; for a webhook, as the user who defined the endpoint,
// which is the tenant owner after apply (contract X2). A target that a flow calls
// runs as the flow does unless it has a context of its own.
func TestActingUser(t *testing.T) {
	const rita, uma, olivia = "rita@acme.example", "uma@acme.example", "olivia@acme.example"
	components, automations := who()
	type target struct{ name, outer, inner string }
	var targets []target
	for name := range contexts {
		targets = append(targets, target{"component: who_" + name, name, "caller"}, target{"automation: flow_" + name, name, "caller"})
		for inner := range contexts {
			targets = append(targets, target{"automation: calls_" + name + "_" + inner, name, inner})
		}
	}
	slug := func(mode string, i int, runAs bool) string { return fmt.Sprintf("%s-%d-%v", mode, i, runAs) }
	var lines []string
	for i, target := range targets {
		for _, runAs := range []bool{false, true} {
			more := map[bool]string{true: ", run_as: " + rita}[runAs]
			lines = append(lines, fmt.Sprintf("{slug: %s, target: {%s}, external_users: true%s}", slug("key", i, runAs), target.name, more),
				fmt.Sprintf("{slug: %s, target: {%s}, auth: token%s}", slug("token", i, runAs), target.name, more),
				signed(slug("signed", i, runAs), target.name, more))
		}
	}
	manifest := also(components) + automations + endpoints(lines...) + "external_identity: {enabled: true, activation_mode: none}\n"

	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(manifest)
		hidden := w.Key(olivia).Post("/public/v1/data/counter", `{"n": 7}`).Want(201, "").ID()
		ids := map[string]string{}
		for _, email := range []string{olivia, "sam@acme.example", "eva@customer.example", rita, uma} {
			ids[email] = w.UserID("acme", email)
		}
		for _, who := range []string{"sam@acme.example", "eva@customer.example"} {
			call := callers(w, who)
			for i, target := range targets {
				for _, mode := range modes {
					if who == "eva@customer.example" && mode != "key" {
						continue
					}
					for _, runAs := range []bool{false, true} {
						want, sees := who, false
						if mode != "key" {
							want, sees = olivia, true
						}
						if runAs {
							want, sees = rita, false
						}
						for _, context := range []string{target.outer, target.inner} {
							switch context {
							case "specific":
								want, sees = uma, false
							case "system":
								sees = true
							}
						}
						name := fmt.Sprintf("%s by %s, %s, run_as %v", target.name, mode, who, runAs)
						before := count(t, w, "records")
						a := call[mode](slug(mode, i, runAs), `{"hidden": "`+hidden+`"}`)
						if a.Status >= 400 {
							t.Errorf("%s: %d %s", name, a.Status, a.Body)
							continue
						}
						if n := count(t, w, "records") - before; n != 1 {
							t.Errorf("%s: %d records", name, n)
						}
						if owner := newest(w); owner != ids[want] {
							t.Errorf("%s: what it made is of %s, want %s %s", name, owner, want, ids[want])
						}
						if mode == "signed" {
							continue
						}
						data := a.Record()
						seen, _ := data["sees"].(bool)
						if s, ok := data["seen"]; ok {
							seen = s == hidden
						} else if data["user"] != want || data["lists"] != sees {
							t.Errorf("%s: ctx.user is %v, want %v; lists it: %v, want %v", name, data["user"], want, data["lists"], sees)
						}
						if seen != sees || data["owner"] != ids[want] {
							t.Errorf("%s: sees what olivia has: %v, want %v; owner %v", name, seen, sees, data["owner"])
						}
					}
				}
			}
		}
	})
}

// newest returns the owner of the newest record.
func newest(w *gatetest.World) string {
	w.T.Helper()
	owner, _ := w.Key("olivia@acme.example").Get("/public/v1/data/counter?limit=1").Want(200, "").Records()[0]["owner_id"].(string)
	return owner
}

// TestActingUserMustBeActive: otherwise 422, and nothing is committed.
func TestActingUserMustBeActive(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		components, automations := who()
		var lines []string
		for _, target := range []string{"component: who_caller", "component: who_specific", "component: who_system", "automation: flow_caller", "automation: flow_specific"} {
			name := strings.ReplaceAll(strings.ReplaceAll(target, ": ", "-"), "_", "-")
			lines = append(lines, fmt.Sprintf("{slug: key-%s, target: {%s}, run_as: rita@acme.example}", name, target),
				fmt.Sprintf("{slug: token-%s, target: {%s}, auth: token, run_as: rita@acme.example}", name, target),
				signed("signed-"+name, target, ", run_as: rita@acme.example"))
		}
		w.Apply(also(components) + automations + endpoints(lines...))
		call := callers(w, "sam@acme.example")
		try := func(name string, works bool) {
			t.Helper()
			for _, mode := range modes {
				before := kept(t, w)
				a := call[mode](mode+"-"+name, `{"hidden": "x"}`)
				if works == (a.Status >= 400) || !works && got(a) != "422 EXECUTION_ERROR" {
					t.Errorf("%s-%s: %d %s", mode, name, a.Status, a.Body)
				}
				if did := kept(t, w) != before; did != works {
					t.Errorf("%s-%s: something was done: %v", mode, name, did)
				}
			}
		}
		w.SetActive("acme", "rita@acme.example", false)
		try("component-who-caller", false)
		try("component-who-system", false)
		try("automation-flow-caller", false)
		try("component-who-specific", true) // run_as is not used
		w.SetActive("acme", "rita@acme.example", true)
		w.SetActive("acme", "uma@acme.example", false)
		try("automation-flow-specific", false)
		try("automation-flow-caller", true)
		w.SetActive("acme", "rita@acme.example", false)
		w.SetActive("acme", "uma@acme.example", true)
		try("automation-flow-specific", true)
	})
}

// TestWebhookOfDeactivatedAuthor does not run: it has no user to run as.
func TestWebhookOfDeactivatedAuthor(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(echoes + "  - {slug: as-rita, target: {component: act}, auth: token, run_as: rita@acme.example}\n")
		call := callers(w, "sam@acme.example")
		w.SetActive("acme", "olivia@acme.example", false)
		call["token"]("token-act", ok).Want(422, "EXECUTION_ERROR")
		call["signed"]("signed-act", ok).Want(422, "EXECUTION_ERROR")
		call["key"]("key-act", ok).Want(200, "")
		call["token"]("as-rita", ok).Want(200, "")
		if n := kept(t, w); n != "2 records, 1 events, 0 keys" {
			t.Error(n)
		}
	})
}

// TestPermissionsOfActingUser: a target may do what the acting user may. Anything else
// is an error, which a component can catch.
func TestPermissionsOfActingUser(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		src := strings.Replace(orders, "counter: {create: true, read: true, update: true}", "counter: {read: true}", 1)
		w.Apply(src + endpoints(three("act", "component: act")...))
		call := callers(w, "sam@acme.example")
		a := call["key"]("key-act", ok).Want(422, "EXECUTION_ERROR")
		if !strings.Contains(string(a.Body), "counter") && !strings.Contains(string(a.Body), "create") {
			t.Errorf("%s", a.Body)
		}
		call["token"]("token-act", ok).Want(200, "") // as olivia
	})
}
