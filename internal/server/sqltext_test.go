//go:build !race

package server_test

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
)

// Lock 4 (docs/architecture.md): db.For(tenant) passes the tenant as $1 and refuses
// a text that does not bind it for every table. This test applies the same function
// (db.TenantProblem) to all texts, including those that no test runs.

// unscoped are the functions that work on all tenants, with the reason.
var unscoped = map[string]string{
	"access.Unfinished":    "housekeeping asks who has something to do",
	"schema.Keeping":       "retention asks who has something to do",
	"outbox.store.tenants": "the outbox sends the mails of all tenants",
	"outbox.store.count":   "an operator watches the outbox",
	"tenant.ByHost":        "the host is what the tenant is found by",
	"tenant.Having":        "housekeeping asks who has something to do",
	"tenant.List":          "an operator lists the tenants",
	"tenant.Deletions":     "a server asks which tenants are to go",
}

// manyRows are the functions whose INSERT gets its rows at run time.
var manyRows = map[string]string{
	"audit.insertMark":      "newInsert begins each row with $1",
	"audit.upsertUsage":     "newInsert begins each row with $1",
	"audit.upsertKeys":      "newInsert begins each row with $1",
	"records.insertRows":    "insertOf and rowsOf begin each row with $1",
	"records.insertRecords": "rowsOf begins each row with $1",
	"records.insertMatches": "rowsOf begins each row with $1",
}

var boundLater = regexp.MustCompile(`(?is)^INSERT INTO\s+\w+\s*\(tenant_id\b[^)]*\)\s*VALUES\s+` + regexp.QuoteMeta(hole))

// nameless finds a text that names its table at run time: no test can read it.
var nameless = regexp.MustCompile(`\b(FROM|JOIN|INTO|UPDATE)\s+(%|\{|` + regexp.QuoteMeta(hole) + `)`)

// sqlText is one string expression that names a table.
type sqlText struct {
	node
	text string
}

// tables returns the tables that exist after all migrations.
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
	walk(t, func(n node) bool {
		expr, ok := n.Node.(ast.Expr)
		if n.file.folder == "db" || !ok {
			return n.file.folder != "db"
		}
		if _, name := expr.(*ast.Ident); name { // a constant is read where it is written
			return false
		}
		text, ok := n.file.folded(expr)
		if ok && (names.MatchString(text) || nameless.MatchString(text)) {
			list = append(list, sqlText{n, text})
		}
		return !ok
	})
	return list
}

func TestDirectionEveryTextBindsTheTenant(t *testing.T) {
	names := naming(tables(t))
	texts := sqlTexts(t, names)
	if len(texts) < 60 {
		t.Errorf("only %d texts were found: the test does not read the sources as it should", len(texts))
	}
	later := allow("an INSERT whose rows are bound at run time", manyRows)
	for _, s := range texts {
		if nameless.MatchString(s.text) {
			t.Errorf("%s names its table at run time, where no test can read it:\n%s", s.pos(), s.text)
		}
		problem := db.TenantProblem(s.text)
		switch {
		case problem == "" || unscoped[s.function] != "":
		case boundLater.MatchString(s.text):
			later.at(t, s.node)
		default:
			t.Errorf("%s: %s:\n%s", s.pos(), problem, s.text)
		}
	}
	later.end(t)
}

// A text in a constant may be used anywhere, so it is Unscoped itself that is listed.
func TestDirectionUnscoped(t *testing.T) {
	all := allow("db.Unscoped", unscoped)
	walk(t, func(n node) bool {
		if sel, ok := n.Node.(*ast.SelectorExpr); ok && sel.Sel.Name == "Unscoped" && n.file.folder != "db" {
			all.at(t, n)
		}
		return true
	})
	all.end(t)
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
			owners[table][s.file.folder] = true
		}
	}
	for _, table := range all {
		if table == "housekeeping" { // by db itself, whose texts are not read here
			continue
		}
		list := slices.Sorted(maps.Keys(owners[table]))
		if len(list) != 1 {
			t.Errorf("table %s is touched by %d packages: %v", table, len(list), list)
		}
	}
}
