package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Lock 4 (docs/architecture.md): db.For(tenant) passes the tenant as $1, and
// every statement binds it for each table it names. db refuses any other at run
// time; this test also reads the statements that no test runs.

// unbound are the statements that belong to no tenant, by folder and function.
var unbound = map[string]string{
	"access.Unfinished": "housekeeping asks who has something to do",
	"outbox.tenants":    "the outbox sends the mails of all tenants",
	"outbox.count":      "an operator watches the outbox",
	"tenant.ByHost":     "the host is what the tenant is found by",
	"tenant.List":       "an operator lists the tenants",
	"tenant.Deletions":  "a server asks which tenants are to go",
}

// manyRows are the functions whose INSERT gets its rows at run time.
var manyRows = map[string]string{
	"audit.insertMark":      "newInsert begins each row with $1",
	"audit.upsertUsage":     "newInsert begins each row with $1",
	"records.insertRows":    "insertOf and rowsOf begin each row with $1",
	"records.insertRecords": "rowsOf begins each row with $1",
	"records.insertMatches": "rowsOf begins each row with $1",
}

var boundLater = regexp.MustCompile(`(?is)^INSERT INTO\s+\w+\s*\(tenant_id\b[^)]*\)\s*VALUES\s+\?`)

// sqlText is one string expression of a source file that names a table; ?
// stands for what is added at run time.
type sqlText struct {
	folder, where, function, text string
	unscoped                      bool // the enclosing statement calls db.Unscoped
}

// tables are the tables that exist after all migrations.
func tables(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../db/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no migrations: ", err)
	}
	var list []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`).FindAllStringSubmatch(string(b), -1) {
			list = append(list, m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^DROP TABLE (\w+)`).FindAllStringSubmatch(string(b), -1) {
			list = slices.DeleteFunc(list, func(table string) bool { return table == m[1] })
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// naming matches a table name in a statement: the verb, then the table.
func naming(tables []string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(FROM|JOIN|INTO|UPDATE)\s+(` + strings.Join(tables, "|") + `)\b`)
}

func sqlTexts(t *testing.T, names *regexp.Regexp) []sqlText {
	t.Helper()
	var list []sqlText
	for _, f := range sources(t) {
		if f.isTest() || f.folder == "db" || f.folder == "db/dbtest" {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, f.path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			function := ""
			if fn, ok := decl.(*ast.FuncDecl); ok {
				function = fn.Name.Name
			}
			unscoped := false
			ast.Inspect(decl, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Unscoped" {
					unscoped = true
				}
				expr, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text, ok := folded(expr)
				if ok && names.MatchString(text) {
					list = append(list, sqlText{f.folder, fset.Position(n.Pos()).String(), f.folder + "." + function, text, unscoped})
				}
				return !ok
			})
		}
	}
	return list
}

// folded returns a string literal, or several joined with +.
func folded(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok1 := folded(e.X)
		right, ok2 := folded(e.Y)
		if e.Op != token.ADD || !ok1 && !ok2 {
			return "", false
		}
		if !ok1 {
			left = " ? "
		}
		if !ok2 {
			right = " ? "
		}
		return left + right, true
	}
	return "", false
}

var (
	boundCondition = regexp.MustCompile(`(?i)\btenant_id = \$1\b`)
	boundInsert    = regexp.MustCompile(`(?is)\bINTO\s+\w+\s*\(tenant_id\b[^)]*\)\s*(VALUES\s*\(\$1\b|SELECT\s+(DISTINCT\s+)?\$1\b)`)
)

// bindsTenant reports whether a statement binds the tenant once for each table.
func bindsTenant(names *regexp.Regexp, text string) bool {
	read, inserted := 0, 0
	for _, m := range names.FindAllStringSubmatch(text, -1) {
		if strings.EqualFold(m[1], "INTO") {
			inserted++
		} else {
			read++
		}
	}
	return len(boundInsert.FindAllString(text, -1)) == inserted && len(boundCondition.FindAllString(text, -1)) >= read
}

func TestDirectionEveryTextBindsTheTenant(t *testing.T) {
	names := naming(tables(t))
	texts := sqlTexts(t, names)
	if len(texts) < 60 {
		t.Errorf("only %d texts were found: the test does not read the sources as it should", len(texts))
	}
	excused := map[string]bool{}
	for _, s := range texts {
		if bindsTenant(names, s.text) {
			continue
		}
		if unbound[s.function] != "" && s.unscoped || manyRows[s.function] != "" && boundLater.MatchString(s.text) {
			excused[s.function] = true
			continue
		}
		t.Errorf("%s does not bind the tenant for each table:\n%s", s.where, s.text)
	}
	for _, excuses := range []map[string]string{unbound, manyRows} {
		for f := range excuses {
			if !excused[f] {
				t.Errorf("%s needs no excuse any more", f)
			}
		}
	}
}

func TestDirectionEachTableBelongsToOnePackage(t *testing.T) {
	all := tables(t)
	names := naming(all)
	owners := map[string]map[string]bool{}
	for _, s := range sqlTexts(t, names) {
		for _, m := range names.FindAllStringSubmatch(s.text, -1) {
			table := strings.ToLower(m[2])
			if owners[table] == nil {
				owners[table] = map[string]bool{}
			}
			owners[table][s.folder] = true
		}
	}
	for _, table := range all {
		list := slices.Sorted(maps.Keys(owners[table]))
		if len(list) != 1 {
			t.Errorf("table %s is touched by %d packages: %v", table, len(list), list)
		}
	}
}

func TestDirectionTheTenantTestBites(t *testing.T) {
	names := naming([]string{"a", "b"})
	for text, want := range map[string]bool{
		`SELECT x FROM a WHERE tenant_id = $1 AND y = $2`:                                 true,
		`SELECT x FROM a WHERE tenant_id = $10`:                                           false,
		`SELECT x FROM a WHERE y = $1`:                                                    false,
		`SELECT x FROM a JOIN b ON b.x = a.x WHERE a.tenant_id = $1`:                      false,
		`SELECT x FROM a JOIN b ON b.tenant_id = $1 AND b.x = a.x WHERE a.tenant_id = $1`: true,
		`INSERT INTO a (tenant_id, x) VALUES ($1, $2)`:                                    true,
		`INSERT INTO a (x, tenant_id) VALUES ($1, $2)`:                                    false,
		`INSERT INTO a (tenant_id, x) VALUES ($2, $1)`:                                    false,
		`INSERT INTO a (tenant_id, x) SELECT $1, y FROM b WHERE tenant_id = $1`:           true,
		`INSERT INTO a (tenant_id, x) SELECT $1, y FROM b`:                                false,
		`UPDATE a SET x = 1`:                                                              false,
		`DELETE FROM b WHERE tenant_id = $1`:                                              true,
	} {
		if got := bindsTenant(names, text); got != want {
			t.Errorf("binds the tenant: %v, want %v: %s", got, want, text)
		}
	}
}
