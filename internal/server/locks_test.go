//go:build !race

package server_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests in this file check the locks of docs/architecture.md in the syntax
// tree: each lists the functions that may do what is locked, with the reason.

// TestLockViewersOfTheSystem is lock 1: a viewer that may do everything is created
// only where no request decides it, or where a tenant's own definition says so.
func TestLockViewersOfTheSystem(t *testing.T) {
	all := allow("a viewer that may do everything (access.System, access.SystemAs)", map[string]string{
		"access.Directory.Viewer":       "makes a viewer of a row of users",
		"access.Directory.Renew":        "renews a viewer that was one already",
		"access.ViewerIn":               "makes a viewer of a row of users, in a transaction that changes the configuration",
		"access.Loses":                  "compares the rights of two users, and hands out neither viewer",
		"access.Viewer.LacksMatchesOf":  "compares what a user would reach with the viewer's, and hands out neither",
		"access.System":                 "the constructor",
		"access.SystemAs":               "the constructor in a user's name",
		"records.clearPage":             "a deleted record's references go, whoever may see the records that hold them",
		"records.dropLeft":              "records go with their parent, whoever may see them",
		"records.expirePage":            "records are deleted when they are old, whoever may see them",
		"endpoint.Service.under":        "execution_context: system, which a tenant's admin declared",
		"cmd/gatehouse.flags.onShares":  "an operator's command",
		"cmd/gatehouse.flags.onRecords": "an operator's command, without --user",
		"cmd/gatehouse.openapiCommand":  "an operator's command: it reads no records",
		"cmd/gatehouse.seedDemo":        "an operator's command: the demo's records",
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

// configuration lists the tables that decide what a request may do. Only
// tenant.Configure writes them.
var configuration = []string{
	"tenants", "tenant_hosts", "config_changes", "entities", "fields", "field_members", "roles", "permission_sets", "sharing_rules", "builds",
	"users", "user_permission_sets", "logic_components", "automations", "custom_endpoints", "api_keys", "jwt_keys",
}

// TestLockConfigurationIsWrittenByConfigure: a function that writes configuration
// takes a tenant.ConfigTx, which only tenant.Configure creates.
func TestLockConfigurationIsWrittenByConfigure(t *testing.T) {
	all := allow("writing configuration without a tenant.ConfigTx", map[string]string{
		"tenant.Delete":           "deletes the tenant with all that it has",
		"access.MoveBuild":        "notes how far a build has come; no reader looks at it",
		"user.insert":             "serves Insert, which takes a ConfigTx, and Register, whose users get what the settings give them",
		"user.addSets":            "as user.insert",
		"user.UpdateProfile":      "name, locale and custom fields; of a managed one records.Session raises the version of the people",
		"user.Activate":           "what an end-user may do about themselves, under tenant.Fence",
		"user.ChangePassword":     "as user.Activate",
		"user.ResetPassword":      "as user.Activate",
		"tenant.Configure":        "is the write path, and keeps the change history",
		"apikey.store.touch":      "when a key was last used decides nothing",
		"identity.store.firstKey": "the first signing key is made where it is asked for, under tenant.Fence",
		"identity.store.sweep":    "deletes keys that no valid token names",
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
// composition root opens the database and serves; its files are listed with what
// they use of HTTP.
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

// TestLockEachAnswerIsRecorded: ServeHTTP has one path, and only send writes its
// answer, after record.
func TestLockEachAnswerIsRecorded(t *testing.T) {
	writes := allow("the answer to a request (http.ResponseWriter)", map[string]string{
		"server.exchange":                 "holds it",
		"server.Server.ServeHTTP":         "hands it to the exchange",
		"server.exchange.answer":          "sets headers",
		"server.exchange.send":            "writes the answer, last of all",
		"server.exchange.sendStream":      "writes an answer that is a stream, for send",
		"server.exchange.authenticate":    "sets a header",
		"server.exchange.refuseRoute":     "sets the header Allow",
		"server.exchange.answerPreflight": "sets headers",
		"server.checkSession":             "sets a header",
		"server.checkPage":                "sets the header Allow",
		"server.healthz":                  "the operator's listener",
		"server.Server.readyz":            "the operator's listener",
		"server.say":                      "the operator's listener",
		"mail/mailtest.Serve":             "the mails of a test",
	})
	steps := []string{}
	walk(t, func(n node) bool {
		if n.file.folder == "cmd/gatehouse" {
			return false
		}
		switch x := n.Node.(type) {
		case *ast.SelectorExpr:
			if name := typeName(x); name == "http.ResponseWriter" || n.file.folder == "server" && name == "x.w" {
				writes.at(t, n)
			}
		case *ast.FuncDecl:
			if n.function == "server.Server.ServeHTTP" {
				for _, s := range x.Body.List {
					ast.Inspect(s, func(inner ast.Node) bool {
						switch inner := inner.(type) {
						case *ast.IfStmt, *ast.SwitchStmt, *ast.ReturnStmt, *ast.ForStmt, *ast.SelectStmt, *ast.BranchStmt, *ast.FuncLit:
							t.Errorf("%s: ServeHTTP has a second path", n.file.fset.Position(inner.Pos()))
						case *ast.CallExpr:
							steps = append(steps, typeName(inner.Fun))
						}
						return true
					})
				}
			}
		}
		return true
	})
	writes.end(t)
	if n := len(steps); n < 4 || !slices.Equal(steps[n-4:], []string{"x.contained", "x.answer", "x.record", "x.send"}) {
		t.Errorf("ServeHTTP ends with %v", steps)
	}
}

// TestLockRecordsAreBehindAViewer is lock 3: apart from Session and Part, which
// have a viewer, nothing that package records exports returns a record.
func TestLockRecordsAreBehindAViewer(t *testing.T) {
	all := allow("offering something of records without a viewer", map[string]string{
		"records.Store.As":          "returns the store as a viewer may use it",
		"records.Store.Begin":       "returns a unit of work, which has to be asked for by a viewer, too",
		"records.Store.Share":       "is wiring",
		"records.Unit.As":           "returns the unit as a viewer may use it",
		"records.Unit.Changed":      "tells nothing of a record",
		"records.Unit.Used":         "counts, and tells nothing of a record",
		"records.Unit.Touched":      "names what viewers of the unit read",
		"records.Unit.Commit":       "stores what viewers of the unit changed, and asks again whether they may",
		"records.Unit.Close":        "gives memory back",
		"records.Transition.Visits": "counts what a change of configuration looks at, and hands out no record",
		"records.Transition.Run":    "brings records in line with a change of configuration, in a ConfigTx",
		"records.Prepare":           "makes such a change ready, for apply",
		"records.Check":             "counts what stands against such a change, for apply",
		"records.Refusal":           "as Check",
		"records.Holding":           "counts who holds a field's value, for apply",
		"records.CountUpTo":         "counts an entity type's records, for whoever reaches all of them",
		"records.Exists":            "tells apply whether there is a record that a manifest names, in a ConfigTx",
		"records.Owns":              "says whether a user owns anything, for the rights of a change of configuration",
		"records.Shared":            "says whether anything is shared with a user, for the same",
		"records.Undo":              "undoes Prepare",
		"records.Sweep":             "deletes rows that no configuration names",
		"records.RunRetention":      "deletes records that are older than they are kept",
		"records.Old":               "counts such records, for apply",
		"records.RunHousekeeping":   "runs Undo and Sweep",
		"records.New":               "makes the store",
	})
	walk(t, func(n node) bool {
		fn, ok := n.Node.(*ast.FuncDecl)
		if !ok || n.file.folder != "records" || !fn.Name.IsExported() {
			return true
		}
		of := receiver(fn)
		takes := slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
			return strings.HasPrefix(typeName(p.Type), "db.") || typeName(p.Type) == "tenant.ConfigTx"
		})
		if of == "Store." || of == "Unit." || takes {
			all.at(t, n)
		}
		return true
	})
	all.end(t)
}

// TestLockNoThreeStringsInARow: a call that swaps two of them compiles unnoticed.
func TestLockNoThreeStringsInARow(t *testing.T) {
	walk(t, func(n node) bool {
		fn, ok := n.Node.(*ast.FuncType)
		if !ok {
			return true
		}
		for _, list := range []*ast.FieldList{fn.Params, fn.Results} {
			if list != nil && threeInARow(list.List) {
				t.Errorf("%s: %s has three strings in a row: give one a type of its own", n.pos(), n.function)
			}
		}
		return true
	})
}

func threeInARow(fields []*ast.Field) bool {
	row := 0
	for _, f := range fields {
		if id, ok := f.Type.(*ast.Ident); !ok || id.Name != "string" {
			row = 0
		} else if row += max(1, len(f.Names)); row > 2 {
			return true
		}
	}
	return false
}
