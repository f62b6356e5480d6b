//go:build !race

package server_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// TestLockTenantIDs is the other half of lock 4. The argument of db.For is a
// tenant.ID, so the compiler rejects a string; this test lists the functions that
// convert a string to a tenant.ID. No text from a request is converted to one.
func TestLockTenantIDs(t *testing.T) {
	all := allow("making a tenant.ID of a string", map[string]string{
		"tenant.Load":                   "a row of tenants",
		"tenant.ByHost":                 "a row of tenants, found by the request's host",
		"tenant.List":                   "rows of tenants",
		"tenant.Having":                 "rows of tenants",
		"tenant.Deletions":              "rows of tenants that are being deleted",
		"access.Unfinished":             "rows of builds",
		"schema.Keeping":                "rows of entities",
		"outbox.store.tenants":          "rows of mails",
		"db.handle.Tenant":              "the id that For was given",
		"config.decoder.tenantID":       "the manifest that an operator applies",
		"cmd/gatehouse.flags.forTenant": "the command line of an operator",
	})
	ids := []string{"tenant.ID", "db.TenantID"}
	named := func(n node, e ast.Expr) bool { // e is the type tenant.ID, or a pointer to it
		name := typeName(ast.Unparen(e))
		return slices.Contains(ids, name) || slices.Contains(ids, n.file.folder+"."+name)
	}
	walk(t, func(n node) bool {
		switch x := n.Node.(type) {
		case *ast.CallExpr:
			star, ok := ast.Unparen(x.Fun).(*ast.StarExpr) // (*string)(&id) lets something write to an id
			if named(n, x.Fun) || ok && typeName(star.X) == "string" {
				all.at(t, n)
			}
		case *ast.Field:
			if x.Tag != nil && strings.Contains(x.Tag.Value, "json:") && named(n, x.Type) {
				t.Errorf("%s: a tenant.ID is read from JSON: read a string, and compare it", n.pos())
			}
		case *ast.TypeSpec:
			if named(n, x.Type) && n.function != "tenant.ID" {
				t.Errorf("%s: another name for tenant.ID hides it from this test", n.pos())
			}
		case *ast.ImportSpec:
			if x.Name != nil && (x.Path.Value == `"gatehouse/internal/tenant"` || x.Path.Value == `"gatehouse/internal/db"`) {
				t.Errorf("%s: a package goes by another name, under which this test does not find it", n.pos())
			}
		}
		return true
	})
	all.end(t)
}
