package server_test

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests in this file hold the locks of docs/architecture.md over the syntax
// tree: each lists the functions that may do what is locked, with the reason.

// TestLockViewersOfTheSystem is lock 1: a viewer that may do everything is made
// where nobody's request decides it, or where a tenant's own definition says so.
func TestLockViewersOfTheSystem(t *testing.T) {
	all := allow("a viewer that may do everything (access.System, access.SystemAs)", map[string]string{
		"access.Directory.Viewer": "makes a viewer of a row of users",
		"access.Directory.Renew":  "renews a viewer that was one already",
		"access.System":           "the constructor",
		"access.SystemAs":         "the constructor in a user's name",
		"records.clearPage":       "a deleted record's references go, whoever may see the records that hold them",
		"records.unsharePage":     "shares with a role that is gone go, whoever may see their records",
		"endpoint.Service.under":  "execution_context: system, which a tenant's admin declared",
		"cmd/gatehouse.env.share": "an operator's command",
		"cmd/gatehouse.seedDemo":  "an operator's command: the demo's records",
	})
	walk(t, func(n node) bool {
		switch x := n.Node.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "access" && strings.HasPrefix(x.Sel.Name, "System") && x.Sel.Name != "SystemPermissions" {
				all.at(t, n)
			}
		case *ast.CallExpr:
			if fn, ok := x.Fun.(*ast.Ident); ok && n.file.folder == "access" && (fn.Name == "System" || fn.Name == "SystemAs" || fn.Name == "viewerOf") {
				all.at(t, n)
			}
		case *ast.ImportSpec:
			if x.Path.Value == `"gatehouse/internal/access"` && x.Name != nil {
				t.Errorf("%s: package access goes by another name, under which this test does not find it", n.pos())
			}
		}
		return true
	})
	all.end(t)
}

// configuration lists the tables that a request is decided by. Only tenant.Configure
// writes them.
var configuration = []string{
	"tenants", "tenant_hosts", "config_changes", "entities", "fields", "field_members", "roles", "permission_sets", "sharing_rules", "builds",
	"users", "user_permission_sets", "logic_components", "automations", "custom_endpoints", "api_keys", "jwt_keys",
}

// TestLockConfigurationIsWrittenByConfigure: what writes configuration takes a
// tenant.ConfigTx, which only tenant.Configure makes.
func TestLockConfigurationIsWrittenByConfigure(t *testing.T) {
	all := allow("writing configuration without a tenant.ConfigTx", map[string]string{
		"tenant.Delete":           "deletes the tenant with all that it has",
		"access.MoveBuild":        "notes how far a build has come; no reader looks at it",
		"user.insert":             "serves Insert, which takes a ConfigTx, and Register, whose users get what the settings give them",
		"user.addSets":            "as user.insert",
		"user.UpdateProfile":      "name, locale and custom fields, which decide nothing",
		"user.Activate":           "what an end-user may do about themselves, under tenant.Fence",
		"user.ChangePassword":     "as user.Activate",
		"user.ResetPassword":      "as user.Activate",
		"tenant.Configure":        "is the write path, and keeps the change history",
		"apikey.store.touch":      "when a key was last used decides nothing",
		"identity.store.firstKey": "the first signing key is made where it is asked for, under tenant.Fence",
		"identity.store.dropKeys": "deletes keys that no valid token names",
	})
	writes := regexp.MustCompile(`(?i)\b(INTO|UPDATE|DELETE\s+FROM)\s+(` + strings.Join(configuration, "|") + `)\b`)
	for _, s := range sqlTexts(t, naming(tables(t))) {
		if writes.MatchString(s.text) && !s.params["tenant.ConfigTx"] && !(s.file.folder == "tenant" && s.params["ConfigTx"]) {
			all.at(t, s.node)
		}
	}
	all.end(t)
}

// TestLockNoHTTPWhereStorageIs: a file that imports db has no handlers. The
// composition root opens the database and serves, in files that are listed with
// what they take of HTTP.
func TestLockNoHTTPWhereStorageIs(t *testing.T) {
	may := map[string][]string{
		"apikey/store.go":        {"httpapi.ParseAllowlist"},
		"server/server.go":       {"httpapi.TrustedProxies", "httpapi.Route", "http.Server", "http.ConnState", "http.StateNew", "http.StateClosed", "http.StateHijacked"},
		"cmd/gatehouse/serve.go": {"httpapi.ParseTrustedProxies"},
	}
	for _, f := range product(t) {
		if !slices.Contains(f.imports, "db") || !slices.Contains(f.imports, "httpapi") && !slices.Contains(f.imports, "net/http") {
			continue
		}
		file := f.folder + "/" + f.name
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if name := typeName(sel); (strings.HasPrefix(name, "http.") || strings.HasPrefix(name, "httpapi.")) && !slices.Contains(may[file], name) {
					t.Errorf("%s: %s stands where db is imported: a handler belongs in a file without storage", f.fset.Position(sel.Pos()), name)
				}
			}
			return true
		})
	}
	for _, f := range product(t) {
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Assign.IsValid() && strings.HasPrefix(typeName(spec.Type), "http") {
				t.Errorf("%s: another name for a type of HTTP hides it from this test", f.fset.Position(spec.Pos()))
			}
			return true
		})
	}
}

// TestLockTenantsAreBound is lock 4's other half: whoever binds a handle to a
// tenant has the tenant from the directory, from the database or from an operator.
func TestLockTenantsAreBound(t *testing.T) {
	seen := map[string]bool{}
	walk(t, func(n node) bool {
		if call, ok := n.Node.(*ast.CallExpr); ok && len(call.Args) == 1 {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "For" {
				seen[n.function] = true
			}
		}
		return true
	})
	t.Log(strings.Join(slices.Sorted(maps.Keys(seen)), "\n"))
}
