package server_test

import (
	"testing"

	"gatehouse/internal/gatetest"
)

// acme is the tenant of most tests here: contacts that belong to accounts, a
// small role tree, and staff of every kind.
const acme = `
tenant: acme
display_name: Acme GmbH
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: account
    fields: [{name: name, type: text, required: true}]
  - name: contact
    fields:
      - {name: first_name, type: text, required: true}
      - {name: email, type: text, unique: true}
      - {name: score, type: number, indexed: true}
      - {name: stage, type: select, options: [new, won, lost]}
      - {name: tags, type: multiselect, options: [a, b, c]}
      - {name: account, type: reference, entity: account}
      - {name: extra, type: json}
roles: [{name: ceo}, {name: sales, parent: ceo}, {name: support, parent: ceo}]
permission_sets:
  - name: sales
    entities:
      contact: {create: true, read: true, update: true, delete: true}
      account: {create: true, read: true}
  - name: reader
    entities:
      contact: {read: true, fields: {score: {read: false}}}
sharing_rules:
  - {entity: contact, where: {stage: won}, share_with_role: support, access: edit}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [sales]}
  - {email: rita@acme.example, name: Rita Reader, role: support, permission_sets: [reader]}
`

func TestARecordFromCreateToDelete(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam, rita := w.Key("sam@acme.example"), w.Key("rita@acme.example")

		made := sam.Post("/public/v1/data/contact", `{"first_name":"Ada","email":"ada@x.example","score":7}`).Want(201, "")
		one := "/public/v1/data/contact/" + made.ID()
		if got := made.Record()["owner_id"]; got != w.UserID("acme", "sam@acme.example") {
			t.Errorf("owner_id %v", got)
		}
		sam.Get(one).Want(200, "")
		rita.Get(one).Want(404, "NOT_FOUND")

		sam.Patch(one, `{"stage":"won"}`).Want(200, "")
		seen := rita.Get(one).Want(200, "").Record()
		if _, shown := seen["score"]; shown || seen["first_name"] != "Ada" {
			t.Errorf("rita sees %v", seen)
		}
		if n := len(rita.Get("/public/v1/data/contact").Want(200, "").Records()); n != 1 {
			t.Errorf("rita lists %d records", n)
		}
		rita.Patch(one, `{"first_name":"Eve"}`).Want(403, "FORBIDDEN")

		sam.Post("/public/v1/data/contact", `{"first_name":"Eve","email":"ada@x.example"}`).Want(409, "CONFLICT")
		bad := sam.Post("/public/v1/data/contact", `{"email":5,"nope":1,"stage":"x","account":"y"}`).Want(400, "VALIDATION")
		if got := bad.Fields(); len(got) != 5 {
			t.Errorf("failing fields: %v", got)
		}
		sam.Delete(one).Want(200, "")
		sam.Get(one).Want(404, "NOT_FOUND")
		sam.Get("/public/v1/data/contacts").Want(404, "NOT_FOUND")
		sam.Get("/public/v1/me").Want(200, "")
		w.Anyone().Get("/public/v1/me").Want(401, "UNAUTHORIZED")
	})
}
