package endpoint_test

import (
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

const sharing = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities: [{name: order, fields: [{name: number, type: text}]}]
permission_sets: [{name: work, entities: {order: {create: true, read: true, update: true, delete: true}}}]
users:
  - {email: olivia@acme.example, name: O, owner: true}
  - {email: sam@acme.example, name: S, permission_sets: [work]}
  - {email: ned@acme.example, name: N, permission_sets: [work]}
logic_components:
  - name: as_ned
    execution_context: {specific_user: ned@acme.example}
    inputs: [{name: id, type: text}]
    source: |
      export default ({id}) => ({sees: records.get("order", id) !== null, lists: records.list("order").records.length})
  - name: share
    execution_context: system
    inputs: [{name: id, type: text}, {name: fails, type: boolean}]
    source: |
      export default ({id, fails}) => {
        const made = records.share("order", id, {user: "ned@acme.example", access: "read"});
        let refused; try { records.share("order", id, {user: "ned@acme.example", acess: "read"}) } catch (e) { refused = [e.code, Object.keys(e.details.fields)] }
        if (fails) fail("no");
        return {access: made.access, refused};
      }
  - name: unshare
    inputs: [{name: id, type: text}]
    source: |
      export default ({id}) => records.unshare("order", id, {user: "ned@acme.example"})
automations:
  - name: flow
    trigger: http.request
    execution_context: system
    input_schema: [{name: id, type: text}, {name: fails, type: boolean}]
    outputs: [{name: sees, type: boolean}, {name: lists, type: number}]
    nodes:
      - {id: shared, type: record.share, entity: order, record_id: "{{inputs.id}}", user: ned@acme.example, access: edit}
      - {id: ned, type: component, component: as_ned, inputs: {id: "{{inputs.id}}"}, outputs: {sees: sees, lists: lists}}
      - {type: if, when: inputs.fails, then: [{type: fail, message: "no"}]}
  - name: taken
    trigger: http.request
    execution_context: system
    input_schema: [{name: id, type: text}]
    outputs: [{name: gone, type: boolean}]
    nodes:
      - {id: taken, type: record.unshare, entity: order, record_id: "{{inputs.id}}", user: ned@acme.example}
      - {type: output, set: {gone: "{{taken.deleted}}"}}
custom_endpoints:
  - {slug: share, target: {component: share}}
  - {slug: unshare, target: {component: unshare}}
  - {slug: flow, target: {automation: flow}}
  - {slug: taken, target: {automation: taken}}
`

// TestRunsShareRecords: a later read of the run as another user sees the share,
// a list does not, and a run that fails leaves none (contract A16, X1, X4).
func TestRunsShareRecords(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(sharing)
		const custom, order = "/public/v1/custom/", "/public/v1/data/order"
		sam, ned := w.Key("sam@acme.example"), w.Key("ned@acme.example")
		id := sam.Post(order, `{"number":"1"}`).Want(201, "").ID()
		for _, slug := range []string{"share", "flow"} {
			sam.Post(custom+slug, `{"id":"`+id+`","fails":true}`).Want(422, "EXECUTION_ERROR")
			ned.Get(order+"/"+id).Want(404, "NOT_FOUND")
		}
		answers := func(slug, data string) {
			t.Helper()
			if got := string(sam.Post(custom+slug, `{"id":"`+id+`"}`).Want(200, "").Body); !strings.HasPrefix(got, `{"data":`+data) {
				t.Errorf("%s: %s", slug, got)
			}
		}
		answers("flow", `{"sees":true,"lists":0}`)
		answers("flow", `{"sees":true,"lists":1}`)
		ned.Patch(order+"/"+id, `{"number":"2"}`).Want(200, "")
		answers("taken", `{"gone":true}`)
		ned.Get(order+"/"+id).Want(404, "NOT_FOUND")
		answers("share", `{"access":"read","refused":["VALIDATION",["access","acess"]]}`)
		ned.Get(order+"/"+id).Want(200, "")
		// sam may not see ned at /data/user, so not name him.
		sam.Post(custom+"unshare", `{"id":"`+id+`"}`).Want(422, "EXECUTION_ERROR")
		ned.Post(custom+"unshare", `{"id":"`+id+`"}`).Want(422, "EXECUTION_ERROR")
		w.Key("olivia@acme.example").Post(custom+"unshare", `{"id":"`+id+`"}`).Want(200, "")
		ned.Get(order+"/"+id).Want(404, "NOT_FOUND")
	})
}
