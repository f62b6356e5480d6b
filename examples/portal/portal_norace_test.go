//go:build !race

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/gatetest/program"
	"gatehouse/internal/mail/mailtest"
)

var only = flag.String("scripts", "", "run only these scripts of browser, by name without .test.mjs, on every engine")

// scripts are those that each engine runs in "make test"; the README's commands tell the
// company's story on SQLite. A context with its page costs a second or two of both cores.
var scripts = map[db.Engine][]string{db.SQLite: {"portal"}, db.Postgres: {"account", "company"}}

// TestInABrowser uses the portal in a real Chromium, with a real server process at
// another origin. The scripts in browser each tell of one thing: portal.test.mjs of what
// users do, account.test.mjs of what can go wrong with an account, company.test.mjs of
// what the customers of one company share. With GATEHOUSE_PROVE=1 every engine runs all
// of them. With -artifacts the screenshots are kept.
func TestInABrowser(t *testing.T) {
	install(t)
	browsers := map[string]string{"chromium": "", "chromium-headless-shell": ""}
	for name := range browsers {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		browsers[name] = path
	}
	prove := os.Getenv("GATEHOUSE_PROVE") == "1"
	t.Setenv("GATEHOUSE_MASTER_KEY", strings.Repeat("5e", 32)) // which PostgreSQL needs
	for _, engine := range dbtest.Engines {
		names := scripts[engine]
		switch {
		case *only != "":
			names = strings.Split(*only, ",")
		case prove:
			names = []string{"portal", "account", "company"}
		}
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel() // a script waits for its page more than it computes
			w := begin(t, engine)
			setting := map[string]any{
				"portal": w.portal, "stranger": w.stranger, "api": w.api, "mails": w.mails, "staffKey": w.key(t, "robin"), "shopKey": w.key(t, "shop"),
				"chromium": browsers["chromium"], "headless": browsers["chromium-headless-shell"], "failures": t.ArtifactDir(), "program": w.program, "flags": w.flags, "long": prove,
			}
			if artifacts := flag.Lookup("test.artifacts"); artifacts != nil && artifacts.Value.String() == "true" {
				setting["pictures"] = t.ArtifactDir()
			}
			runScripts(t, setting, names)
		})
	}
}

// runScripts runs scripts of browser in one process of Node and one browser. It prints
// what they say, step by step.
func runScripts(t *testing.T, setting map[string]any, names []string) {
	t.Helper()
	text, err := json.Marshal(setting)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", append([]string{"browser/run.mjs"}, names...)...)
	node.Env = append(os.Environ(), "PORTAL_TEST="+string(text))
	out, err := node.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("the scripts failed: %v", err)
	}
	if !bytes.HasSuffix(out, []byte("the end\n")) {
		t.Fatal("the scripts did not reach their end")
	}
}

// world has the servers that run during the test: the product, the portal, the same
// portal at an origin that the tenant does not list, and a server that shows the mails.
type world struct {
	program                 string
	flags                   []string // of every command: where the data are
	api                     string   // the tenant's origin
	portal, stranger, mails string   // origins
}

func begin(t *testing.T, engine db.Engine) *world {
	t.Helper()
	w := &world{program: program.Build(t)}
	config := dbtest.Config(t, engine)
	data := config.Dir
	if config.URL != "" {
		data = t.TempDir()
		w.flags = []string{"--database", config.URL}
	}
	w.flags = append(w.flags, "--data", data)
	if cache := enginecache.Dir(); cache != "" {
		w.flags = append(w.flags, "--cache", cache)
	}

	pages, strangers := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil) // their addresses are known before they start
	t.Cleanup(pages.Close)
	t.Cleanup(strangers.Close)
	mails := httptest.NewServer(mailtest.Serve(filepath.Join(data, "outbox")))
	t.Cleanup(mails.Close)
	w.portal, w.stranger, w.mails = "http://"+pages.Listener.Addr().String(), "http://"+strangers.Listener.Addr().String(), mails.URL

	// The pages do not use the tenant's base URL; only app_url and the origin must match.
	text, err := os.ReadFile("manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("http://127.0.0.1:8090")); n != 2 {
		t.Fatalf("manifest.yaml names the portal %d times, not as app_url and as an origin", n)
	}
	manifest := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(manifest, bytes.ReplaceAll(text, []byte("http://127.0.0.1:8090"), []byte(w.portal)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.command(t, "apply", "-f", manifest)

	w.api = "http://" + program.Serve(t, exec.Command(w.program, append([]string{"serve", "--listen", "127.0.0.1:0"}, w.flags...)...))
	h, err := handler(w.api)
	if err != nil {
		t.Fatal(err)
	}
	pages.Config.Handler, strangers.Config.Handler = h, h
	pages.Start()
	strangers.Start()
	return w
}

// command runs a command of the program on the test's data and returns what it prints.
func (w *world) command(t *testing.T, args ...string) string {
	t.Helper()
	return tool(t, "", w.program, append(args, w.flags...)...)
}

// key returns a new API key of one of the manifest's staff.
func (w *world) key(t *testing.T, name string) string {
	t.Helper()
	return strings.TrimSpace(w.command(t, "key", "create", "--tenant", "portal", "--user", name+"@fernhill.example", "--name", "test"))
}

// install installs Node, Chromium and the library of browser/package-lock.json where
// they are missing. Tests that run at the same time wait for each other.
func install(t *testing.T) {
	t.Helper()
	tool(t, "", "../../scripts/need", "npm", "chromium", "chromium-headless-shell")
	lock, err := os.Open("browser/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(lock)
	if err != nil {
		t.Fatal(err)
	}
	const stamp = "browser/node_modules/.installed"
	want := fmt.Sprintf("%x", sha256.Sum256(text))
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return
	}
	tool(t, "browser", "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if err := os.WriteFile(stamp, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tool runs a command to its end and returns its standard output.
func tool(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	command.Dir = dir
	var words bytes.Buffer
	command.Stderr = &words
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, words.String())
	}
	return string(out)
}

// TestStaticServer checks the paths and headers of the page, and that the page names
// the API that the server was given.
func TestStaticServer(t *testing.T) {
	h, err := handler("https://api.fernhill.example/")
	if err != nil {
		t.Fatal(err)
	}
	get := func(target string) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, target, http.NoBody))
		return rec
	}
	for _, target := range []string{"/", "/verify?token=" + url.QueryEscape("a-b_c"), "/reset-password?token=x"} {
		rec := get(target)
		body := rec.Body.String()
		if rec.Code != http.StatusOK || !strings.Contains(body, "connect-src 'self' https://api.fernhill.example;") || strings.Contains(body, defaultAPI) {
			t.Errorf("%s: %d %.600s", target, rec.Code, body)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "Content-Type": "text/html; charset=utf-8",
		} {
			if got := rec.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q, not %q", target, name, got, want)
			}
		}
	}
	if rec := get("/config.json"); rec.Body.String() != `{"api":"https://api.fernhill.example"}` {
		t.Errorf("config.json: %s", rec.Body)
	}
	for target, want := range map[string]string{
		"/gatehouse.js": "text/javascript; charset=utf-8", "/portal.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml",
	} {
		if rec := get(target); rec.Code != http.StatusOK || rec.Header().Get("Content-Type") != want {
			t.Errorf("%s: %d %s", target, rec.Code, rec.Header().Get("Content-Type"))
		}
	}
	for _, target := range []string{"/index.html", "/main.go", "/app/portal.js", "/verify/x"} {
		if rec := get(target); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, rec.Code)
		}
	}
	for _, api := range []string{"", "portal-api.localhost:8080", "ftp://x", "http://"} {
		if _, err := handler(api); err == nil {
			t.Errorf("the API %q is taken", api)
		}
	}
}
