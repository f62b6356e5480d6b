//go:build !race

package server_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ban is a forbidden import, and why (docs/architecture.md, "Layout"). Names
// are folders; ours have no internal/ in front. A name that ends in /... covers
// the folders below as well; "*" is every folder of ours.
type ban struct {
	from []string
	to   []string
	why  string
}

var (
	leaves   = []string{"fault", "clock", "credential", "email", "secret", "ratelimit", "admission", "background", "mail", "failpoint", "number", "wtf8"}
	runtimes = []string{"inputs", "automation", "component", "enginewasm", "enginewasm/fuel"}
	base     = []string{"user", "session", "schema", "tenant", "custom"}
	kernel   = slices.Concat([]string{"db", "access", "records", "httpapi", "outbox", "config", "signin"}, base)
	features = []string{"data", "apikey", "endpoint", "identity", "audit", "manifest", "admin", "openapi", "typings", "staff", "console", "transfer"}
	helpers  = []string{"gatetest", "gatetest/enginecache", "gatetest/program", "gatetest/typescript", "db/dbtest", "tenant/tenanttest", "prove"}
	engines  = []string{"database/sql", "github.com/jackc/...", "zombiezen.com/...", "modernc.org/..."}
)

func bans() []ban {
	list := []ban{
		{leaves, []string{"*"}, "a leaf imports nothing of ours, so that anything may import it"},
		{[]string{"db"}, append(slices.Clone(base), "access", "records", "httpapi"), "storage knows nothing of what it stores"},
		{base, []string{"access"}, "access decides over users, not the other way round"},
		{append(slices.Clone(base), "access"), []string{"records"}, "records is above the rules that it applies"},
		{append(slices.Clone(base), "access", "records", "db"), []string{"httpapi", "net/http"}, "the store serves components and flows too, which know no HTTP"},
		{slices.Concat(kernel, leaves, runtimes), features, "the kernel does not know what is built on it"},
		{slices.Concat(kernel, leaves, runtimes, features), []string{"server"}, "the composition root is imported by cmd alone"},
		{runtimes, append(slices.Clone(kernel), "net/http"), "what runs a customer's code knows neither HTTP nor SQL nor records: it is handed what it may do"},
		{append(slices.Clone(leaves), "db", "access", "records", "httpapi", "user", "schema", "tenant"), runtimes, "only definitions and features know what runs them"},
		{slices.Concat(kernel, leaves, runtimes, features, []string{"server", "cmd/gatehouse"}), append(slices.Clone(helpers), "testing"), "test helpers stay out of the binary"},
	}
	for _, f := range features {
		others := slices.DeleteFunc(slices.Clone(features), func(other string) bool { return other == f })
		list = append(list, ban{[]string{f}, others, "a feature imports no other: what they share belongs in the kernel, who needs whom is wired in server"})
	}
	all := slices.Concat(leaves, runtimes, base, features, []string{"access", "records", "httpapi", "config", "server", "cmd/gatehouse"})
	return append(list, ban{all, engines, "both engines are behind db"})
}

func (b ban) forbids(from, to string) bool {
	return slices.Contains(b.from, place(from)) && matchesAny(b.to, place(to))
}

// place returns the folder of the layout that a folder belongs to: a folder
// below a feature belongs to the feature.
func place(folder string) string {
	if top, _, below := strings.Cut(folder, "/"); below && slices.Contains(slices.Concat(runtimes, features), top) {
		return top
	}
	return folder
}

func matchesAny(list []string, name string) bool {
	return slices.ContainsFunc(list, func(pattern string) bool {
		switch folder, below := strings.CutSuffix(pattern, "/..."); {
		case pattern == "*":
			return !strings.Contains(name, ".") && isOurs(name)
		case below:
			return name == folder || strings.HasPrefix(name, folder+"/")
		default:
			return name == pattern
		}
	})
}

func isOurs(name string) bool {
	return slices.Contains(slices.Concat(leaves, kernel, runtimes, features, helpers, []string{"server", "cmd/gatehouse"}), name)
}

// goFile is a source file of ours: its folder and imports in the form of a ban,
// and its name.
type goFile struct {
	folder, name, path string
	imports            []string
}

// sources lists the Go files of the product and its tests.
func sources(t *testing.T) []goFile {
	t.Helper()
	const root = "../.."
	var list []goFile
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			f := goFile{folder: shortName(path.Dir(filepath.ToSlash(rel))), name: d.Name(), path: p}
			for _, spec := range parsed.Imports {
				name, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				f.imports = append(f.imports, shortName(strings.TrimPrefix(name, "gatehouse/")))
			}
			list = append(list, f)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func shortName(folder string) string { return strings.TrimPrefix(folder, "internal/") }

func (f goFile) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// reached returns the folders that are part of the binary built from a folder.
func reached(files []goFile, from string) map[string]bool {
	imports := map[string][]string{}
	for _, f := range files {
		if !f.isTest() {
			imports[f.folder] = append(imports[f.folder], f.imports...)
		}
	}
	found := map[string]bool{}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if _, ours := imports[next[0]]; ours && !found[next[0]] {
			found[next[0]] = true
			next = append(next, imports[next[0]]...)
		}
	}
	return found
}

func TestDirectionOfImports(t *testing.T) {
	rules := bans()
	files := sources(t)
	inBinary := reached(files, "cmd/gatehouse")
	seen := 0
	for _, f := range files {
		if f.isTest() {
			continue
		}
		if inBinary[f.folder] && !isOurs(place(f.folder)) {
			t.Errorf("%s: the folder %s has no place in the layout: docs/architecture.md and this test should name it", f.path, f.folder)
		}
		for _, to := range f.imports {
			seen++
			for _, rule := range rules {
				if rule.forbids(f.folder, to) {
					t.Errorf("%s imports %s: %s", f.path, to, rule.why)
				}
			}
		}
	}
	if seen < 100 || len(inBinary) < 15 {
		t.Errorf("only %d imports were looked at, %d folders in the binary: the test does not find the sources", seen, len(inBinary))
	}
}

// TestDirectionBitesWhereItShould checks that invented forbidden imports are
// found.
func TestDirectionBitesWhereItShould(t *testing.T) {
	for _, bad := range [][2]string{
		{"clock", "fault"}, {"db", "tenant"}, {"user", "access"}, {"tenant", "records"}, {"access", "httpapi"}, {"records", "net/http"},
		{"httpapi", "data"}, {"fault", "server"}, {"data", "audit"}, {"manifest", "apikey"}, {"apikey", "server"}, {"automation", "db"},
		{"component/quickjs", "db"}, {"records", "component"}, {"component", "records"}, {"endpoint", "audit"},
		{"server", "gatetest"}, {"cmd/gatehouse", "gatetest/enginecache"}, {"server", "testing"}, {"cmd/gatehouse", "db/dbtest"}, {"records", "github.com/jackc/pgx/v5"}, {"server", "database/sql"},
	} {
		if !slices.ContainsFunc(bans(), func(b ban) bool { return b.forbids(bad[0], bad[1]) }) {
			t.Errorf("nobody forbids %s to import %s", bad[0], bad[1])
		}
	}
	for _, good := range [][2]string{
		{"data", "records"}, {"component", "enginewasm"}, {"custom", "inputs"}, {"manifest", "config"}, {"config", "automation"}, {"endpoint", "component"}, {"data", "fault"}, {"httpapi", "access"}, {"access", "user"}, {"user", "tenant"}, {"records", "db"},
		{"server", "audit"}, {"cmd/gatehouse", "server"}, {"gatetest", "server"}, {"db", "github.com/jackc/pgx/v5"},
	} {
		for _, b := range bans() {
			if b.forbids(good[0], good[1]) {
				t.Errorf("%s may not import %s: %s", good[0], good[1], b.why)
			}
		}
	}
}

// TestDirectionOfStorage is lock 5: SQL is in store*.go files only, where the
// test of lock 4 finds it.
func TestDirectionOfStorage(t *testing.T) {
	free := []string{"db", "db/dbtest", "tenant/tenanttest", "gatetest", "server", "cmd/gatehouse"}
	for _, f := range sources(t) {
		if f.isTest() || strings.HasPrefix(f.name, "store") || slices.Contains(free, f.folder) {
			continue
		}
		if slices.Contains(f.imports, "db") {
			t.Errorf("%s imports db: only store*.go files talk to the database, and server and cmd, which open it", f.path)
		}
	}
}
