package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/gatetest/typescript"
	"gatehouse/internal/httpapi"
)

// TestGoldenAdminTypes keeps the TypeScript types of the admin API, which the console
// uses, equal to the Go types of its routes.
func TestGoldenAdminTypes(t *testing.T) {
	w := gatetest.New(t, db.SQLite)
	routes := slices.DeleteFunc(w.Nodes[0].Server.Surface(), func(r httpapi.Route) bool { return !strings.HasPrefix(r.Pattern, "/admin/") })
	got := typescript.Admin(routes)
	const file = "../../web/src/api/admin.ts"
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the types of the admin API changed; if it is meant, run: go test ./internal/server -run TestGoldenAdminTypes -update\n%s", got)
	}
}
