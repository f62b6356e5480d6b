package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/gatetest/program"
)

// TestInABrowser uses the portal in a real Chromium, with a real server process at
// another origin. browser/portal.test.mjs tests what users do, and
// browser/account.test.mjs tests what can go wrong with an account. With -artifacts
// the screenshots are kept.
func TestInABrowser(t *testing.T) {
	install(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t)
	setting, err := json.Marshal(map[string]string{
		"portal": w.portal, "stranger": w.stranger, "api": w.api, "mails": w.mails,
		"staffKey": w.staffKey, "chromium": chromium, "pictures": t.ArtifactDir(), "program": w.program, "data": w.data,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"portal", "account"} {
		t.Run(name, func(t *testing.T) { runScript(t, "browser/"+name+".test.mjs", string(setting)) })
	}
}

// runScript runs one of the scripts in browser to its end.
func runScript(t *testing.T, file, setting string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	script := exec.CommandContext(ctx, "node", file)
	script.Env = append(os.Environ(), "PORTAL_TEST="+setting)
	out, err := script.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if !bytes.HasSuffix(out, []byte("the end\n")) {
		t.Fatalf("%s did not reach its end", file)
	}
}

// world has the servers that run during the test: the product, the portal, the same
// portal at an origin that the tenant does not list, and a server that shows the mails.
type world struct {
	program, data           string
	api                     string // the tenant's origin
	portal, stranger, mails string // origins
	staffKey                string
}

func begin(t *testing.T) *world {
	t.Helper()
	w := &world{data: t.TempDir(), program: program.Build(t)}

	pages, strangers := httptest.NewUnstartedServer(nil), httptest.NewUnstartedServer(nil) // their addresses are known before they start
	t.Cleanup(pages.Close)
	t.Cleanup(strangers.Close)
	mails := httptest.NewServer(outbox(filepath.Join(w.data, "outbox")))
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
	tool(t, "", w.program, "apply", "-f", manifest, "--data", w.data)
	key := tool(t, "", w.program, "key", "create", "--tenant", "portal", "--user", "robin@fernhill.example", "--name", "test", "--data", w.data)
	w.staffKey = strings.TrimSpace(key)

	w.api = "http://" + program.Serve(t, exec.Command(w.program, "serve", "--listen", "127.0.0.1:0", "--data", w.data))
	h, err := handler(w.api)
	if err != nil {
		t.Fatal(err)
	}
	pages.Config.Handler, strangers.Config.Handler = h, h
	pages.Start()
	strangers.Start()
	return w
}

// letter is a decoded mail.
type letter struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// outbox returns a handler that waits for the N-th mail to an address, counted from
// 1, and answers GET /?to=ADDRESS&n=N with it.
func outbox(dir string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for range 200 {
			letters, err := read(dir, r.FormValue("to"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			if len(letters) >= n {
				_ = json.NewEncoder(w).Encode(letters[n-1]) // the script fails without it
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		http.Error(w, "there is no such mail", http.StatusNotFound)
	})
}

// read returns every mail to an address, oldest first.
func read(dir, to string) ([]letter, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // names begin with the time
	var letters []letter
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := mail.ReadMessage(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if recipient, err := mail.ParseAddress(m.Header.Get("To")); err != nil || recipient.Address != to {
			continue
		}
		l, err := open(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		letters = append(letters, l)
	}
	return letters, nil
}

func open(m *mail.Message) (l letter, err error) {
	if l.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return l, err
	}
	_, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return l, err
	}
	parts := multipart.NewReader(m.Body, parameters["boundary"])
	for {
		part, err := parts.NextPart() // decodes quoted-printable
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return l, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return l, err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			l.HTML = string(content)
		} else {
			l.Text = string(content)
		}
	}
}

// install installs Node, Chromium and the library of browser/package-lock.json where
// they are missing. Tests that run at the same time wait for each other.
func install(t *testing.T) {
	t.Helper()
	tool(t, "", "../../scripts/need", "npm", "chromium")
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
