package data_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// acme has fields of every type and users of every kind.
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
      - {name: vip, type: boolean, indexed: true}
      - {name: born, type: date, indexed: true}
      - {name: seen, type: datetime, indexed: true}
      - {name: stage, type: select, options: [new, won, lost], indexed: true}
      - {name: tags, type: multiselect, options: [a, b, c]}
      - {name: account, type: reference, entity: account}
      - {name: note, type: text, searchable: true}
      - {name: secret_score, type: number, indexed: true}
      - {name: extra, type: json}
user_fields: [{name: company, type: text}, {name: level, type: number}]
roles: [{name: ceo}, {name: sales, parent: ceo}]
permission_sets:
  - name: sales
    entities:
      contact: {create: true, read: true, update: true, delete: true, fields: {secret_score: {read: false}, note: {read: true, edit: false}}}
      account: {create: true, read: true}
  - name: all
    all_entity_access: true
  - name: people
    entities: {user: {read: true, update: true, fields: {locale: {read: true, edit: false}, email: {read: false}, level: {read: true, edit: false}}}}
  - name: onlookers
    entities: {user: {read: true}}
  - name: endpoints
    system: [manage_endpoints, login_as]
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo}
  - {email: sam@acme.example, name: Sam Seller, role: sales, permission_sets: [sales]}
  - {email: alma@acme.example, name: Alma All, permission_sets: [all, endpoints]}
  - {email: petra@acme.example, name: Petra People, permission_sets: [people]}
  - {email: otto@acme.example, name: Otto Onlooker, permission_sets: [onlookers]}
  - {email: nina@acme.example, name: Nina Nobody}
`

const contact = "/public/v1/data/contact"

// failing fails the test unless the answer is VALIDATION and names these
// fields, each with a reason, and no others.
func failing(t *testing.T, a *gatetest.Answer, fields ...string) {
	t.Helper()
	slices.Sort(fields)
	if a.Status != 400 || a.Code() != "VALIDATION" || !slices.Equal(a.Fields(), fields) {
		t.Errorf("%.100s: %d %s: fields %q, want %q: %.300s", a.Call, a.Status, a.Code(), a.Fields(), fields, a.Body)
	}
}

// invalid fails the test unless the answer is VALIDATION with a message that contains
// the words.
func invalid(t *testing.T, what string, a *gatetest.Answer, words string) {
	t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.Body, &e); err != nil || a.Status != 400 || e.Error.Code != "VALIDATION" {
		t.Errorf("%s: %d: %.300s", what, a.Status, a.Body)
	}
	if !strings.Contains(strings.ToLower(e.Error.Message), words) {
		t.Errorf("%s: the message does not say %q: %s", what, words, e.Error.Message)
	}
}
