package endpoint_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gatehouse/internal/config"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
)

const priced = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
users: [{email: olivia@acme.example, name: Olivia, owner: true}]
modules:
  - {name: rates, source: "export const tax = %s"}
  - name: signer
    source: |
      export const sign = (text) => hmacSha256(secrets.PAYMENT_KEY, text)
logic_components:
  - name: price
    config: {currency: EUR}
    source: |
      import { tax } from "rates"
      export default ({ net }) => ({ gross: net * (1 + tax), currency: config.currency })
  - name: leak
    secrets: {PAYMENT_KEY: sk_live_0123456789}
    source: |
      import { sign } from "signer"
      export default ({ how }) => {
        console.log("the key", secrets)
        if (how === "throw") throw new Error("no " + secrets.PAYMENT_KEY)
        if (how === "fail") fail("no " + secrets.PAYMENT_KEY, { details: { key: secrets.PAYMENT_KEY } })
        if (how === "refused") records.get("nothing", secrets.PAYMENT_KEY)
        return { key: secrets.PAYMENT_KEY, signed: sign("a") }
      }
automations:
  - name: flow
    trigger: http.request
    outputs: [{name: key, type: text}]
    nodes:
      - {id: called, type: component, component: leak, inputs: {}, outputs: {key: key}}
custom_endpoints:
  - {slug: price, target: {component: price}}
  - {slug: leak, target: {component: leak}}
  - {slug: flow, target: {automation: flow}}
`

// TestModulesAndSettings runs components with a module, config and secrets, before and
// after the module changes.
func TestModulesAndSettings(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(fmt.Sprintf(priced, "0.5"))
		olivia := w.Key("olivia@acme.example")
		price := func() string { return string(olivia.Post("/public/v1/custom/price", `{"net":2}`).Want(200, "").Body) }
		if got := price(); !strings.Contains(got, `"gross":3`) || !strings.Contains(got, `"currency":"EUR"`) {
			t.Errorf("answered %s", got)
		}
		w.Apply("tenant: acme\nmodules: [{name: rates, source: 'export const tax = 1'}]\n")
		if got := price(); !strings.Contains(got, `"gross":4`) {
			t.Errorf("after the module changed: %s", got)
		}
		if _, err := w.TryApply("tenant: acme\nmodules: []\n", manifest.Options{Prune: true}); err == nil {
			t.Error("modules in use were removed")
		}
	})
}

// TestSecretsAreNotTold: not by answers, runs, the change history, the audit log or lines.
func TestSecretsAreNotTold(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(fmt.Sprintf(priced, "0.5"))
		olivia, told := w.Key("olivia@acme.example"), ""
		for _, slug := range []string{"leak", "flow"} {
			for _, how := range []string{"throw", "fail", "refused", "return"} {
				a := olivia.Post("/public/v1/custom/"+slug, `{"how":"`+how+`"}`)
				told += string(a.Body)
			}
		}
		if !strings.Contains(told, `"key":"[redacted]"`) || !strings.Contains(told, `"signed":"`) || !strings.Contains(told, "no [redacted]") {
			t.Errorf("answered %s", told)
		}
		staff := w.Staff("olivia@acme.example")
		tried := func(draft string) string {
			return string(staff.Post("/admin/v1/runs", `{"target":{"kind":"component","name":"leak"},"input":{}`+draft+`}`).Want(200, "").Body)
		}
		told += tried("")
		reversed := tried(`,"draft":{"source":"export default () => secrets.PAYMENT_KEY.split('').reverse().join('')"}`)
		if !strings.Contains(reversed, "YEK_TNEMYAP") { // of what stands for it
			t.Errorf("a draft returned %s", reversed)
		}
		told += reversed
		if got := tried(`,"draft":{"source":"export default () => 1","secrets":{"OTHER":"long-enough"}}`); !strings.Contains(got, "expected null") {
			t.Errorf("a secret in a draft: %s", got)
		}
		var list []map[string]any
		eventually(t, "eight runs", func() bool { // they are written after the answer
			list = nil
			staff.Get("/admin/v1/runs").Want(200, "").Data(&list)
			return len(list) == 8
		})
		for _, one := range list {
			told += string(staff.Get("/admin/v1/runs/"+one["id"].(string)).Want(200, "").Body)
		}
		state, err := config.Load(t.Context(), w.DB().For("acme"))
		if err != nil {
			t.Fatal(err)
		}
		audited, err := json.Marshal(w.AuditLog("acme"))
		if err != nil {
			t.Fatal(err)
		}
		told += string(state.Export().AsJSON()) + string(audited)
		for _, hidden := range []string{"sk_live", "9876543210"} {
			if strings.Contains(told, hidden) {
				t.Errorf("%s is told: %s", hidden, told)
			}
		}
	})
}
