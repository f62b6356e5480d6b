package endpoint_test

import (
	"strings"

	"gatehouse/internal/gatetest"
)

// large has records of a megabyte, and targets that list them.
const large = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: big
    fields: [{name: extra, type: json}]
users: [{email: olivia@acme.example, name: Olivia, owner: true}]
logic_components:
  - name: page
    timeout_ms: 30000
    source: |
      export default () => { const p = records.list("big", {limit: 200}); return {n: p.records.length, more: p.nextCursor !== null} }
  - name: all
    timeout_ms: 30000
    source: |
      export default () => {
        const pages = []
        let cursor = null, failed
        try {
          do { const p = records.list("big", {limit: 200, cursor}); pages.push(p.records.length); cursor = p.nextCursor } while (cursor)
        } catch (e) { failed = {code: e.code, message: e.message} }
        let one
        try { one = records.create("big", {extra: {pad: "p".repeat(200000)}}).id } catch (e) { one = e.code }
        return {pages, failed, one, small: records.create("big", {}).id !== undefined}
      }
  - name: uncaught
    timeout_ms: 30000
    source: |
      export default () => { let cursor = null; do { cursor = records.list("big", {cursor}).nextCursor } while (cursor) }
automations:
  - name: page_flow
    trigger: http.request
    outputs: [{name: more, type: boolean}, {name: second, type: text}, {name: third, type: text}]
    nodes:
      - {id: l, type: record.list, entity: big, limit: 200}
      - {id: out, type: output, set: {more: "{{l.hasMore}}", second: "{{l.records.1.id}}"}}
      - {id: none, type: output, set: {third: "{{l.records.2.id}}"}}
  - name: lists_flow
    trigger: http.request
    nodes:
      - {id: one, type: record.list, entity: big, limit: 200}
      - {id: two, type: record.list, entity: big, limit: 200}
      - {id: three, type: record.list, entity: big, limit: 200}
      - {id: four, type: record.list, entity: big, limit: 200}
      - {id: five, type: record.list, entity: big, limit: 200}
  - name: three_flow
    trigger: http.request
    outputs: [{name: more, type: boolean}]
    nodes:
      - {id: one, type: record.list, entity: big, limit: 200}
      - {id: two, type: record.list, entity: big, limit: 200}
      - {id: three, type: record.list, entity: big, limit: 200}
      - {id: look, type: if, when: "len(one.records) + len(two.records) + len(three.records) > 0", then: [{id: out, type: output, set: {more: "{{three.hasMore}}"}}]}
custom_endpoints:
  - {slug: page, target: {component: page}}
  - {slug: all, target: {component: all}}
  - {slug: uncaught, target: {component: uncaught}}
  - {slug: page-flow, target: {automation: page_flow}}
  - {slug: lists-flow, target: {automation: lists_flow}}
  - {slug: three-flow, target: {automation: three_flow}}
`

const customPath = "/public/v1/custom/"

// withLarge returns the owner of n records of a megabyte.
func withLarge(w *gatetest.World, n int) *gatetest.Actor {
	w.Apply(large)
	olivia := w.Key("olivia@acme.example", gatetest.RateLimit(1_000_000))
	for range n {
		olivia.Post("/public/v1/data/big", `{"extra": {"pad": "`+strings.Repeat("p", 1_000_000)+`"}}`).Want(201, "")
	}
	return olivia
}
