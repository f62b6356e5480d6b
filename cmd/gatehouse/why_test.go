package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/records"
)

const whyManifest = `
tenant: acme
entities:
  - {name: contact, label: Contact, fields: [{name: first_name, type: text}, {name: stage, type: select, options: [new, won]}]}
roles: [{name: ceo}, {name: support, parent: ceo}, {name: sales, parent: support}, {name: other}]
permission_sets:
  - {name: clerk, entities: {contact: {read: true, fields: {stage: {read: true}}}, user: {read: true}}}
  - {name: editor, entities: {contact: {read: true, update: true}}}
  - {name: admin, all_entity_access: true}
sharing_rules:
  - {entity: contact, where: {stage: won}, share_with_role: sales, access: edit}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo}
  - {email: olaf@acme.example, name: Olaf, role: other, permission_sets: [clerk, editor]}
  - {email: rita@acme.example, name: Rita, role: support, permission_sets: [clerk]}
  - {email: cora@acme.example, name: Cora, role: ceo, permission_sets: [editor]}
  - {email: nina@acme.example, name: Nina}
  - {email: adam@acme.example, name: Adam, permission_sets: [admin]}
  - {email: eve@acme.example, name: Eve, type: external, permission_sets: [admin, clerk]}
`

// TestWhy lists the users and records that are asked about, with the expected text.
func TestWhy(t *testing.T) {
	each(t, func(x *cli) {
		x.stdin = whyManifest
		x.ok("apply", "-f", "-")
		session, userID := x.system()
		create := func(stage string) string {
			rec, err := session.Create(x.ctx(), "contact", []records.Member{
				{Name: "stage", Value: jsontext.Value(stage)}, {Name: "owner_id", Value: jsontext.Value(`"` + userID("olaf@acme.example") + `"`)},
			})
			if err != nil {
				x.t.Fatal(err)
			}
			return rec.ID()
		}
		shared, won := create(`"new"`), create(`"won"`)
		x.ok("share", "add", "--tenant", "acme", "--entity", "contact", "--record", shared, "--role", "sales", "--access", "edit")
		why := func(email, entity, record string, more ...string) []string {
			return append([]string{"why", "--tenant", "acme", "--user", email, "--entity", entity, "--record", record}, more...)
		}
		says := func(args []string, want ...string) {
			x.t.Helper()
			out, _ := x.ok(args...)
			for _, line := range want {
				if !strings.Contains(out, line+"\n") {
					x.t.Errorf("%v: it says\n%snot\n%s", args, out, line)
				}
			}
		}
		says(why("rita@acme.example", "contact", shared),
			"rita@acme.example (internal, role support) and contact "+shared+", owned by olaf@acme.example",
			"read: yes — shared with role sales (edit), of which support is an ancestor",
			"      permission set 'clerk' allows read on contact",
			"update: no — permission set 'clerk' does not allow update on contact",
			"        the record itself is open for it: shared with role sales (edit), of which support is an ancestor",
			"delete: no — permission set 'clerk' does not allow delete on contact",
			"        the user does not own the record, and has no role above its owner's; nothing else opens it for delete",
			"field stage: read by permission set 'clerk'; edit by no permission set")
		says(why("cora@acme.example", "contact", won),
			"update: yes — a rule shares records where stage = \"won\" with role sales (edit), of which ceo is an ancestor")
		says(why("olaf@acme.example", "contact", shared), "read: yes — the user owns it",
			"      permission set 'clerk', permission set 'editor' allows read on contact",
			"delete: no — none of permission set 'clerk', permission set 'editor' allows delete on contact",
			"field first_name: read by permission set 'clerk', permission set 'editor'; edit by permission set 'clerk', permission set 'editor'")
		says(why("nina@acme.example", "contact", shared), "read: no — the user has no permission set, so nothing allows read on contact",
			"      the user does not own the record, and no role, share, rule or default opens it for read")
		says(why("adam@acme.example", "contact", shared), "delete: yes — permission set 'admin' has all_entity_access")
		says(why("olivia@acme.example", "contact", shared), "delete: yes — the user owns the tenant", "        ownership of the tenant allows delete on contact")
		says(why("eve@acme.example", "contact", won), "The user is external: entity defaults and all_entity_access do not apply to them.",
			"read: no — the user does not own the record, and no role, share, rule or default opens it for read")
		says(why("rita@acme.example", "user", userID("eve@acme.example")), "read: yes — internal users reach every user",
			"delete: no — users are not deleted here", "field isOwner: read by permission set 'clerk'; edit by no permission set")
		says(why("eve@acme.example", "user", userID("rita@acme.example"), "--verb", "read"), "read: no — an external user reaches their own row alone")
		x.ok("user", "deactivate", "--tenant", "acme", "--email", "rita@acme.example")
		says(why("rita@acme.example", "contact", shared),
			"The user is deactivated: every API key of theirs is refused. With an active user it would be as follows.",
			"read: yes — shared with role sales (edit), of which support is an ancestor")

		lines := x.lines(why("rita@acme.example", "contact", shared, "--verb", "update", "--json")...)
		if len(lines) != 1 || keysOf(lines[0]) != "entity fields owner record user verbs ways" {
			x.t.Fatalf("%v", lines)
		}
		if got, want := fmt.Sprint(lines[0]["verbs"]), "[map[allowed:false code:FORBIDDEN permission_sets:[] reached:true verb:update]]"; got != want {
			x.t.Errorf("verbs %s, not %s", got, want)
		}

		x.fails(1, "there is no user with the e-mail address", why("nobody@acme.example", "contact", shared)...)
		x.fails(1, "there is no entity of that name", why("rita@acme.example", "contacts", shared)...)
		x.fails(1, "there is no such record", why("rita@acme.example", "contact", "x")...)
		x.fails(1, "there is no such user", why("rita@acme.example", "user", "x")...)
		x.fails(2, "expected read, update or delete", why("rita@acme.example", "contact", shared, "--verb", "create")...)
	})
}

// system returns a session that may do everything, and the ids of users.
func (x *cli) system() (session *records.Session, userID func(email string) string) {
	d := x.open()
	dir := access.NewDirectory(d)
	c, err := dir.Current(x.ctx(), "acme")
	if err != nil {
		x.t.Fatal(err)
	}
	in := &tenantDB{d, dir, c}
	return records.New(d, dir, clock.System(), nil).As(access.System(c, "test")), func(email string) string {
		u, err := in.user(x.ctx(), email)
		if err != nil {
			x.t.Fatal(err)
		}
		return string(u.ID)
	}
}
