package endpoint_test

import (
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

// TestRunsWithNULAreRecorded: PostgreSQL has no texts with U+0000. (One error with it
// cost a tenant all runs of the same transaction, and all tenants waited while it was
// tried again.)
func TestRunsWithNULAreRecorded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(also(`
  - name: odd
    source: |
      export default function handler(inputs) {
        const odd = "a\u0000b\ud800c"
        console.log(odd, {odd})
        if (inputs.do === "fail") fail(odd, {code: odd, details: {[odd]: odd}})
        if (inputs.do === "throw") throw new Error(odd)
        if (inputs.do === "get") return records.get("order", odd)
        return {["a\u0000b"]: odd}
      }
`) + endpoints("{slug: key, target: {component: odd}}", "{slug: token, target: {component: odd}, auth: token}"))
		w.Apply(quiet)
		olivia, hook := w.Key("olivia@acme.example"), w.Webhook("token")
		runs := 0
		for _, do := range []string{"fail", "throw", "get", "return"} {
			code := map[bool]string{true: "200", false: "422 EXECUTION_ERROR"}[do == "return"]
			for _, a := range []*gatetest.Answer{olivia.Post(custom+"key", `{"do": "`+do+`"}`), hook.Post(custom+"token", `{"do": "`+do+`"}`)} {
				if got(a) != code {
					t.Errorf("%s: %s %s", do, got(a), a.Body)
				}
			}
			runs += 2
		}
		for begun := time.Now(); count(t, w, "runs") < runs && time.Since(begun) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		}
		if n := count(t, w, "runs"); n != runs {
			t.Errorf("%d runs of %d are kept", n, runs)
		}
		if w.Nodes[0].Log.Contains("run.not_kept") {
			t.Error("the log says that runs were not kept")
		}
	})
}
