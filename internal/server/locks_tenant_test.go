package server_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// tenantNames are the functions that name a tenant by something else than a
// configuration, a viewer or their own caller, with where they have it from.
var tenantNames = map[string]string{
	"access.Directory.ByHost":      "the database, by the request's host",
	"apikey.store.touch":           "the keys that were used",
	"audit.Log.Query":              "the operator who reads the log",
	"audit.query.read":             "as audit.Log.Query",
	"audit.Recorder.write":         "the events that wait, each with the tenant of its configuration",
	"audit.Recorder.writeUsage":    "as audit.Recorder.write",
	"audit.Recorder.rememberUsers": "as audit.Recorder.write",
	"audit.dbStore.expire":         "the database",
	"db.DB.Purge":                  "tenant.Delete",
	"db.DB.purgeDay":               "tenant.Delete",
	"endpoint.history.flush":       "the runs that wait, each with the tenant of its configuration",
	"endpoint.store.expire":        "the database",
	"identity.Service.sweep":       "the database",
	"identity.Service.tellClashes": "the database",
	"outbox.Outbox.look":           "the database",
	"outbox.store.claim":           "the database",
	"outbox.store.renew":           "the database",
	"outbox.store.remove":          "the database",
	"outbox.store.postpone":        "the database",
	"outbox.store.release":         "the database",
	"records.housekeep":            "the database",
	"tenant.RunDeletions":          "the database",
}

// takesTenant is a function whose parameter names the tenant of a handle.
type takesTenant struct {
	function string // as node.function has it
	param    int
	params   int
}

// TestLockTenantsAreBound is the other half of lock 4: nothing that a request says
// is bound as a tenant. What db.For is given is followed through the functions
// that hand it on, as far as a configuration, a viewer, a command, whose operator
// names it, or a function on the list.
func TestLockTenantsAreBound(t *testing.T) {
	all := allow("a tenant's name that is not from a configuration or a viewer", tenantNames)
	found := map[takesTenant]bool{}
	calls := allCalls(t)
	next := []takesTenant{{"db.DB.For", 0, 1}}
	for len(next) > 0 {
		to := next[0]
		next = next[1:]
		if found[to] {
			continue
		}
		found[to] = true
		for _, c := range calls {
			if !c.means(to) {
				continue
			}
			arg := c.Args[to.param]
			if ofConfiguration(arg, c.caller) || c.file.folder == "cmd/gatehouse" {
				continue
			}
			if id, ok := arg.(*ast.Ident); ok {
				if at, of, _ := parameter(c.caller, id.Name); at >= 0 {
					next = append(next, takesTenant{c.function, at, of})
					continue
				}
			}
			all.at(t, c.node)
		}
	}
	all.end(t)
	if len(found) < 30 {
		t.Errorf("only %d functions take a tenant's name: the test does not find them", len(found))
	}
}

// ofConfiguration reports whether e is x.Tenant.ID, x.Tenant(), or t.ID of a
// parameter t that is a tenant.
func ofConfiguration(e ast.Expr, caller *ast.FuncType) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		sel, ok := call.Fun.(*ast.SelectorExpr)
		return ok && len(call.Args) == 0 && sel.Sel.Name == "Tenant"
	}
	name := typeName(e)
	if x, isID := strings.CutSuffix(name, ".ID"); isID {
		if _, _, is := parameter(caller, x); is == "tenant.Tenant" {
			return true
		}
	}
	return strings.HasSuffix(name, ".Tenant.ID")
}

// parameter returns the place of a parameter, -1 for none, how many there are, and its type.
func parameter(fn *ast.FuncType, name string) (at, of int, is string) {
	at = -1
	for _, f := range fn.Params.List {
		for _, id := range f.Names {
			if id.Name == name {
				at, is = of, typeName(f.Type)
			}
			of++
		}
	}
	return at, of, is
}

// callSite is a call and the function that makes it.
type callSite struct {
	node
	*ast.CallExpr
	caller *ast.FuncType
}

func allCalls(t *testing.T) (list []callSite) {
	t.Helper()
	walk(t, func(n node) bool {
		decl, ok := n.Node.(*ast.FuncDecl)
		if !ok || decl.Body == nil {
			return !ok
		}
		ast.Inspect(decl.Body, func(x ast.Node) bool {
			if c, ok := x.(*ast.CallExpr); ok {
				at := n
				at.Node = c
				list = append(list, callSite{at, c, decl.Type})
			}
			return true
		})
		return false
	})
	return list
}

// means reports whether a call can be of a function, going by names.
func (c callSite) means(to takesTenant) bool {
	if len(c.Args) != to.params {
		return false
	}
	parts := strings.Split(to.function, ".")
	folder, name := parts[0], parts[len(parts)-1]
	here := c.file.folder == folder
	switch fn := c.Fun.(type) {
	case *ast.Ident:
		return len(parts) == 2 && fn.Name == name && here
	case *ast.SelectorExpr:
		x := typeName(fn.X)
		switch {
		case fn.Sel.Name != name:
			return false
		case len(parts) == 2: // a function of a package
			return x == folder[strings.LastIndex(folder, "/")+1:]
		case strings.HasSuffix(strings.ToLower(parts[1]), "store"): // which a feature has in a field of that name
			return here && (strings.HasSuffix(x, "store") || strings.HasPrefix(c.function, folder+"."+parts[1]+"."))
		}
		return here && !strings.HasSuffix(x, "store") || ast.IsExported(name) && slices.Contains(c.file.imports, folder)
	}
	return false
}
