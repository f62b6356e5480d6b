package main

import (
	"strings"
	"testing"
)

func TestTheChangeHistoryIsRead(t *testing.T) {
	each(t, func(x *cli) {
		x.stdin = strings.Replace(acmeManifest, "name: Acme GmbH", "name: Acme AG", 1)
		x.stdin = strings.Replace(x.stdin, "role: sales, permission_sets", "role: ceo, permission_sets", 1)
		x.ok("apply", "-f", "-")
		x.ok("key", "create", "--tenant", "acme", "--user", "sam@acme.example", "--name", "shop")
		all := x.lines("history", "--tenant", "acme")
		if len(all) < 8 || all[0]["kind"] != "api_key" || all[0]["action"] != "create" || all[0]["actor"] != "operator" ||
			keysOf(all[0]) != "action actor after before id kind name time" {
			t.Fatalf("%v", all)
		}
		for i, c := range all[1:] {
			if c["time"].(string) > all[i]["time"].(string) {
				t.Errorf("%v comes after %v", c["time"], all[i]["time"])
			}
		}
		users := x.lines("history", "--tenant", "acme", "--kind", "user", "--limit", "1")
		if len(users) != 1 || users[0]["name"] != "sam@acme.example" || users[0]["action"] != "update" {
			t.Fatalf("%v", users)
		}
		if before, _ := users[0]["before"].(map[string]any); before["role"] != "sales" {
			t.Errorf("before: %v", before)
		}
		table, _ := x.ok("history", "--tenant", "acme", "--kind", "user")
		rows := strings.Split(strings.TrimSpace(table), "\n")
		if len(rows) != 4 || !strings.HasPrefix(rows[0], "TIME") || !strings.HasSuffix(rows[1], "update user sam@acme.example: role sales → ceo") ||
			!strings.Contains(rows[1], "operator: apply") {
			t.Errorf("%s", table)
		}
		x.fails(1, `no change of kind "users"; it has api_key, entity, permission_set, role, tenant, user`, "history", "--tenant", "acme", "--kind", "users")
		x.fails(1, `there is no tenant "globex"`, "history", "--tenant", "globex")
		x.fails(2, "--tenant is required", "history")
		x.fails(2, "expected 0 or more", "history", "--tenant", "acme", "--limit", "-1")
	})
}

func TestAMistypedTenantIsDeleted(t *testing.T) {
	each(t, func(x *cli) {
		x.fails(2, "--confirm is required", "tenant", "delete", "--tenant", "acme")
		x.fails(2, "--confirm acmee is another name than --tenant acme", "tenant", "delete", "--tenant", "acme", "--confirm", "acmee")
		x.fails(1, `there is no tenant "globex"`, "tenant", "delete", "--tenant", "globex", "--confirm", "globex")
		stdout, words := x.ok("tenant", "delete", "--tenant", "acme", "--confirm", "acme")
		if stdout != "" || !strings.HasPrefix(words, "Tenant acme is deleted: ") || !strings.Contains(words, "after a minute; then the name is free.") {
			x.t.Errorf("%q %q", stdout, words)
		}
		if list := x.lines("tenant", "list"); len(list) != 0 {
			x.t.Errorf("%v", list)
		}
		x.fails(1, `there is no tenant "acme"`, "export", "--tenant", "acme")
		x.stdin = acmeManifest
		x.fails(1, "tenant acme is being deleted: its name is free 60 s after that began", "apply", "-f", "-")
	})
}
