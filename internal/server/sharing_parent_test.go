package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// dealers is a tenant whose lines are seen as their order, and orders as their
// account (contract A21).
const dealers = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
external_identity: {enabled: true, default_permission_set: portal}
unauthenticated_per_ip_per_minute: 100000
entities:
  - {name: account, fields: [{name: name, type: text}]}
  - name: order
    sharing: {controlled_by: account}
    fields: [{name: account, type: reference, entity: account, required: true}]
  - name: line
    sharing: {controlled_by: order}
    fields:
      - {name: order, type: reference, entity: order, required: true, indexed: true}
      - {name: sku, type: text, unique: true}
      - {name: item, type: text, indexed: true}
  - {name: note, fields: [{name: line, type: reference, entity: line, indexed: true}]}
permission_sets:
  - name: seller
    entities:
      user: {read: true}
      account: {create: true, read: true, update: true, delete: true, assign_owner: true}
      order: {create: true, read: true, update: true, delete: true, assign_owner: true}
      line: {create: true, read: true, update: true, delete: true, assign_owner: true}
      note: {create: true, read: true, update: true, delete: true}
  - name: portal
    entities:
      account: {read: true, update: true}
      order: {create: true, read: true, update: true, delete: true}
      line: {create: true, read: true, update: true, delete: true}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: sam@acme.example, name: Sam, permission_sets: [seller]}
  - {email: dan@acme.example, name: Dan, permission_sets: [seller]}
  - {email: eva@customer.example, name: Eva, type: external, permission_sets: [portal]}
`

const data = "/public/v1/data/"

// absent is the id of no record.
const absent = "01890000-0000-7000-8000-000000000000"

var requestID = regexp.MustCompile(`"(request_?[iI]d)": ?"[^"]*"`)

// dealt is an account with an order and a line.
func dealt(a *gatetest.Actor, sku string) (account, order, line string) {
	account = a.Post(data+"account", `{}`).Want(201, "").ID()
	order = a.Post(data+"order", fmt.Sprintf(`{"account": %q}`, account)).Want(201, "").ID()
	line = a.Post(data+"line", fmt.Sprintf(`{"order": %q, "sku": %q, "item": "pump"}`, order, sku)).Want(201, "").ID()
	return account, order, line
}

// TestWhatIsBelowAHiddenParentIsAbsent asks for records below a parent that one does
// not see, of the own and of another tenant, in every way: each answer is the one for
// a record that does not exist.
func TestWhatIsBelowAHiddenParentIsAbsent(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(dealers)
		w.Apply(strings.ReplaceAll(dealers, "acme", "other"))
		sam, dan := w.Key("sam@acme.example"), w.Key("dan@acme.example")
		_, ownOrder, ownLine := dealt(dan, "own")
		far := w.KeyOf("other", "other.localhost", "sam@other.example")
		hiddenAccount, hiddenOrder, hiddenLine := dealt(sam, "hidden")
		farAccount, farOrder, farLine := dealt(far, "far")
		attempts := 0
		for _, c := range []struct{ method, path, body, kind string }{
			{"GET", "line/%s", "", "line"},
			{"PATCH", "line/%s", `{}`, "line"},
			{"PATCH", "line/%s", `{"item": "mine"}`, "line"},
			{"PATCH", "line/%s", `{"order": "` + ownOrder + `"}`, "line"},
			{"PATCH", "line/%s", `{"owner_id": "` + w.UserID("acme", "dan@acme.example") + `"}`, "line"},
			{"DELETE", "line/%s", "", "line"},
			{"GET", "line/%s/shares", "", "line"},
			{"POST", "line/%s/shares", `{"user": "dan@acme.example", "access": "edit"}`, "line"},
			{"DELETE", "line/%s/shares", `{"user": "dan@acme.example"}`, "line"},
			{"GET", "order/%s", "", "order"},
			{"PATCH", "order/%s", `{}`, "order"},
			{"DELETE", "order/%s", "", "order"},
			{"GET", "account/%s", "", "account"},
			{"GET", "account/%s/shares", "", "account"},
			{"POST", "account/%s/shares", `{"user": "dan@acme.example", "access": "edit"}`, "account"},
			{"DELETE", "account/%s", "", "account"},
			{"POST", "line", `{"order": "%s", "item": "x"}`, "order"},
			{"POST", "line", `{"order": "%s", "sku": "hidden"}`, "order"},
			{"POST", "line", `{"order": "%s", "owner_id": "` + absent + `"}`, "order"},
			{"POST", "order", `{"account": "%s"}`, "account"},
			{"POST", "note", `{"line": "%s"}`, "line"},
			{"PATCH", "line/" + ownLine, `{"order": "%s"}`, "order"},
			{"PATCH", "line/" + ownLine, `{"order": "%s", "sku": "hidden"}`, "order"},
			{"PATCH", "order/" + ownOrder, `{"account": "%s"}`, "account"},
			{"GET", "line?filter%%5Border%%5D=%s", "", "order"},
			{"GET", "note?filter%%5Bline%%5D=%s", "", "line"},
		} {
			ask := func(id string) string {
				attempts++
				path, body := c.path, c.body
				if strings.Contains(c.path, "%") {
					path = fmt.Sprintf(c.path, id)
				}
				if strings.Contains(c.body, "%s") {
					body = fmt.Sprintf(c.body, id)
				}
				answer := dan.Do(c.method, data+path, body)
				if answer.Status < 400 && c.method != "GET" {
					t.Errorf("%s %s %s succeeds: %s", c.method, path, body, answer.Body)
				}
				text := requestID.ReplaceAllString(string(answer.Body), "")
				return fmt.Sprint(answer.Status, " ", strings.ReplaceAll(text, id, "ID"))
			}
			nothing := ask(absent)
			hidden, foreign := map[string]string{"line": hiddenLine, "order": hiddenOrder, "account": hiddenAccount}[c.kind],
				map[string]string{"line": farLine, "order": farOrder, "account": farAccount}[c.kind]
			for about, id := range map[string]string{"hidden": hidden, "of another tenant": foreign, "of another type": map[string]string{"line": ownOrder, "order": ownLine, "account": ownLine}[c.kind]} {
				if got := ask(id); got != nothing {
					t.Errorf("%s %s %s: %s: %s\nabsent: %s", c.method, c.path, c.body, about, got, nothing)
				}
			}
		}
		for path, want := range map[string]int{"line": 1, "order": 1, "account": 1, "line?filter%5Bsku%5D=hidden": 0, "line?filter%5Bsku%5D=own": 1, "line?filter%5Bitem%5D=pump": 1, "note": 0} {
			if n := len(dan.Get(data+path).Want(200, "").Records()); n != want {
				t.Errorf("%s shows %d records, want %d", path, n, want)
			}
		}
		for _, body := range []string{`{"order": null}`, `{"order": [%q]}`, `{"order": {"id": %q}}`, `{"order": "%s "}`, `{"parent": %q}`, `{"order_id": %q}`} {
			attempts++
			if strings.Contains(body, "%") {
				body = fmt.Sprintf(body, hiddenOrder)
			}
			dan.Patch(data+"line/"+ownLine, body).Want(400, "VALIDATION")
		}
		t.Logf("%d attempts, 0 succeed", attempts)
	})
}

// TestAReadShareOfAnAccountOpensNoChange: whoever may only read an account changes
// nothing below it, and gives it to nobody.
func TestAReadShareOfAnAccountOpensNoChange(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(dealers)
		sam, eva, olivia := w.Key("sam@acme.example"), w.Key("eva@customer.example"), w.Key("olivia@acme.example")
		account, order, line := dealt(sam, "a")
		mine, mineOrder, _ := dealt(olivia, "b")
		olivia.Patch(data+"account/"+mine, fmt.Sprintf(`{"owner_id": %q}`, w.UserID("acme", "eva@customer.example"))).Want(200, "")
		sam.Post(data+"account/"+account+"/shares", `{"user": "eva@customer.example", "access": "read"}`).Want(201, "")
		eva.Get(data+"line/"+line).Want(200, "")
		for _, c := range []struct {
			method, path, body string
		}{
			{"PATCH", "line/" + line, `{"item": "x"}`},
			{"PATCH", "line/" + line, fmt.Sprintf(`{"order": %q}`, mineOrder)},
			{"PATCH", "order/" + order, fmt.Sprintf(`{"account": %q}`, mine)},
			{"DELETE", "line/" + line, ""},
			{"DELETE", "order/" + order, ""},
			{"POST", "line", fmt.Sprintf(`{"order": %q}`, order)},
			{"POST", "order", fmt.Sprintf(`{"account": %q}`, account)},
			{"PATCH", "order/" + mineOrder, fmt.Sprintf(`{"account": %q}`, account)},
			{"PATCH", "account/" + account, `{"name": "x"}`},
			{"DELETE", "account/" + account, ""},
			{"POST", "account/" + account + "/shares", `{"user": "eva@customer.example", "access": "edit"}`},
			{"DELETE", "account/" + account + "/shares", `{"user": "eva@customer.example"}`},
		} {
			eva.Do(c.method, data+c.path, c.body).Want(403, "FORBIDDEN")
		}
		// What a traversal has not shown yet is gone with the share.
		for i := range 7 {
			sam.Post(data+"line", fmt.Sprintf(`{"order": %q, "item": "n%d"}`, order, i)).Want(201, "")
		}
		first := eva.Get(data+"line?limit=3").Want(200, "")
		meta := first.Meta()
		if len(first.Records()) != 3 || !meta.HasMore {
			t.Fatalf("the first page: %s", first.Body)
		}
		sam.Do("DELETE", data+"account/"+account+"/shares", `{"user": "eva@customer.example"}`).Want(200, "")
		rest := eva.Get(data+"line?limit=3&cursor="+*meta.NextCursor).Want(200, "").Records()
		for _, r := range rest {
			if r["order"] == order {
				t.Errorf("the next page shows %v", r)
			}
		}
		// An order that is moved below the own account is seen from the next page on.
		olivia.Patch(data+"order/"+order, fmt.Sprintf(`{"account": %q}`, mine)).Want(200, "")
		if rest := eva.Get(data+"line?limit=200&cursor="+*meta.NextCursor).Want(200, "").Records(); len(rest) != 5+1 {
			t.Errorf("after the move the rest of the traversal shows %d lines", len(rest))
		}
		eva.Delete(data+"line/"+line).Want(200, "")
	})
}
