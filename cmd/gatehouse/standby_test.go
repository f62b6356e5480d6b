package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

// TestCommandsThatReadRunAgainstAStandby checks that what only reads asks the database for no
// write, also at its start. A database that is read-only refuses what a standby refuses:
// every write, SELECT … FOR UPDATE and FOR SHARE. Package prove asks a real standby.
func TestCommandsThatReadRunAgainstAStandby(t *testing.T) {
	x := newCLI(t, dbtest.Config(t, db.Postgres))
	x.stdin = acmeManifest
	x.ok("apply", "-f", "-")
	x.ok("key", "create", "--tenant", "acme", "--user", "olivia@acme.example", "--name", "x")
	x.stdin = `{"first_name": "Ada"}` + "\n"
	x.ok("records", "import", "--tenant", "acme", "--entity", "contact", "--format", "ndjson", "--owned-by", "sam@acme.example", "-")
	out, _ := x.ok("records", "export", "--tenant", "acme", "--entity", "contact", "--format", "ndjson")
	var record struct{ ID string }
	if err := json.Unmarshal([]byte(out), &record); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	id := record.ID
	x.place = []string{"--database", x.config.URL + "&default_transaction_read_only=on"}
	for _, line := range []string{
		"tenant list", "export --tenant acme", "openapi --tenant acme", "openapi --tenant acme --as sam@acme.example", "types --tenant acme",
		"user list --tenant acme", "key list --tenant acme", "share list --tenant acme --entity contact --record " + id,
		"why --tenant acme --user sam@acme.example --entity contact --record " + id, "audit --tenant acme", "history --tenant acme",
		"run list --tenant acme", "records export --tenant acme --entity contact", "records export --tenant acme --entity contact --user sam@acme.example",
	} {
		if _, stderr, code := x.raw(append(strings.Fields(line), x.place...)...); code != 0 {
			t.Errorf("%s: status %d: %s", line, code, stderr)
		}
	}
	for _, line := range []string{"key create --tenant acme --user olivia@acme.example --name y", "user deactivate --tenant acme --email sam@acme.example"} {
		x.fails(1, "read-only", strings.Fields(line)...)
	}
}

// TestAStandbyOfAnOlderSchema checks that a command says why it cannot run against one.
func TestAStandbyOfAnOlderSchema(t *testing.T) {
	x := newCLI(t, dbtest.Config(t, db.Postgres))
	err := x.open().Unscoped("test").Write(x.ctx(), func(tx db.Tx) error {
		_, err := tx.Exec(x.ctx(), `DELETE FROM schema_migrations WHERE number > 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	x.place = []string{"--database", x.config.URL + "&default_transaction_read_only=on"}
	x.fails(1, "run the program once against the primary", "tenant", "list")
}
