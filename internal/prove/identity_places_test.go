package prove

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"gatehouse/internal/db"
)

// place is a place where a secret could be left. has is what it must contain.
type place struct {
	content []byte
	has     []string
}

// stored returns what the server stores: with SQLite, the files of its folder and a
// backup; with PostgreSQL, every row of every table. It leaves out mails and the
// compiled JavaScript engine.
func (s *vault) stored(running bool) map[string]place {
	s.w.t.Helper()
	if s.w.engine == db.Postgres {
		return s.tables()
	}
	all := map[string]place{}
	err := filepath.WalkDir(s.w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && (d.Name() == "outbox" || d.Name() == "cache") {
				return fs.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path)
		all[d.Name()] = place{content: content}
		return err
	})
	if err != nil {
		s.w.t.Fatal(err)
	}
	// While the server runs, the newest rows are in the log only; afterwards all rows are
	// in the file.
	newest := db.FileName
	if running {
		newest += "-wal"
	}
	all[newest] = place{all[newest].content, []string{"Anna Openly", "anna@customer.example", "$argon2id$"}}
	file := filepath.Join(s.w.t.TempDir(), "backup")
	s.w.must("backup", file)
	content, err := os.ReadFile(file)
	if err != nil {
		s.w.t.Fatal(err)
	}
	all["backup"] = place{content, []string{"Anna Openly", "$argon2id$"}}
	return all
}

// tables returns every row of every table as text, with bytes in hex.
func (s *vault) tables() map[string]place {
	s.w.t.Helper()
	ctx := s.p.t.Context()
	conn, err := pgx.Connect(ctx, s.w.url)
	if err != nil {
		s.w.t.Fatal(err)
	}
	defer conn.Close(ctx)
	texts := func(sql string) []string {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			s.w.t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			s.w.t.Fatal(err)
		}
		return list
	}
	all := map[string]place{}
	for _, table := range texts(`SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`) {
		all["table "+table] = place{content: []byte(strings.Join(texts("SELECT t::text FROM "+table+" t"), "\n"))}
	}
	for table, has := range map[string][]string{
		"users": {"Anna Openly", "$argon2id$"}, "audit_marks": {"/data/contact"}, "config_changes": {"webhook_secret", "jwt_key"},
		"refresh_tokens": {"acme"}, "one_time_tokens": {"acme"}, "jwt_keys": {"acme"}, "api_keys": {"svc_api_"}, "runs": {"keyed"},
	} {
		all["table "+table] = place{all["table "+table].content, has}
	}
	return all
}

// printed returns what the server and the commands print.
func (s *vault) printed() map[string]place {
	s.w.t.Helper()
	all := map[string]place{}
	for name, file := range map[string]string{"standard output": s.n.out, "standard error": s.n.errors} {
		content, err := os.ReadFile(file)
		if err != nil {
			s.w.t.Fatal(err)
		}
		all[name] = place{content: content}
	}
	all["standard output"] = place{all["standard output"].content, []string{"public_api.request", "identity.login_blocked", auth + "login"}}
	say := func(has []string, args ...string) string {
		out, words, code := s.w.run(append(args, "--tenant", "acme")...)
		if code != 0 {
			s.w.t.Fatalf("%s: exit %d: %s", args, code, words)
		}
		all["gatehouse "+strings.Join(args, " ")] = place{[]byte(out + words), has}
		return out
	}
	say([]string{auth + "login", "/public/v1/data/contact", "[redacted]"}, "audit", "--json")
	say([]string{auth + "login"}, "audit")
	say([]string{eva, "signed"}, "export")
	say([]string{"anna@customer.example"}, "user", "list", "--json")
	say([]string{owner}, "key", "list", "--json")
	runs := say([]string{"keyed", "signed", "broken"}, "run", "list", "--json", "--limit", "0")
	for line := range strings.Lines(runs) {
		var run struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(line), &run); err != nil {
			s.w.t.Fatal(err)
		}
		say([]string{run.ID}, "run", "show", "--id", run.ID)
	}
	return all
}

// forms returns the forms in which a text may be written: unchanged, as JSON, in a URL,
// in hex, and in base64 at any position in a longer text.
func forms(secret string) map[string]string {
	b := []byte(secret)
	inHTML, plain := inside(secret, true), inside(secret, false)
	all := map[string]string{
		"plain": secret, "JSON": plain, "JSON in HTML": inHTML, "JSON in JSON": inside(plain, false),
		"JSON in HTML in JSON": inside(inHTML, true), "Go": strings.Trim(strconv.Quote(secret), `"`),
		"in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret),
		"hex": hex.EncodeToString(b), "HEX": strings.ToUpper(hex.EncodeToString(b)),
	}
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), b...))
			// The first and the last characters depend on the adjacent bytes.
			all[fmt.Sprintf("%s after %d", name, before)] = text[4*min(before, 1) : len(text)-4]
		}
	}
	return all
}

// inside returns a text as JSON writes it between the quotes, with or without escapes for
// HTML.
func inside(text string, html bool) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string written to memory cannot fail
	s := strings.TrimSpace(b.String())
	return s[1 : len(s)-1]
}

// Every form is found.
func TestFormsOfASecret(t *testing.T) {
	const secret = `Pä"s <VERYSECRET> \ & +/`
	within := "before " + secret + " after"
	b := []byte(within)
	inJSON := quoted(within)
	for name, text := range map[string]string{
		"plain": within, "JSON": inJSON, "JSON twice": quoted(inJSON), "Go": fmt.Sprintf("%q", within), "hex": hex.EncodeToString(b),
		"a query": url.QueryEscape(within), "a path": url.PathEscape(within),
		"base64, 0": base64.StdEncoding.EncodeToString([]byte(within)), "base64, 1": base64.StdEncoding.EncodeToString([]byte("." + within)),
		"base64url, 2": base64.URLEncoding.EncodeToString([]byte(".." + within)),
	} {
		found := slices.ContainsFunc(slices.Collect(maps.Values(forms(secret))), func(form string) bool { return strings.Contains(text, form) })
		if !found {
			t.Errorf("not found in %s: %s", name, text)
		}
	}
}
