package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTheDocumentedExamplesWork runs `gatehouse demo`, runs every curl line of README.md and
// docs/ in a shell, unchanged, and compares the answers with the documented ones.
func TestTheDocumentedExamplesWork(t *testing.T) {
	sh := newShell(t)
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, file := range append([]string{"../../docs/api.md"}, append(files, "../../README.md")...) {
		if ran[file] > 0 {
			continue // docs/api.md runs first: it creates what the others read
		}
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, ex := range examples(t, file, string(src)) {
			for _, line := range ex.lines {
				answer := sh.curl(t, line)
				ran[file]++
				sh.keep(answer)
				if len(ex.lines) > 1 || ex.want == "" {
					if answer.status >= http.StatusBadRequest {
						t.Errorf("%s: %s: %d %s", file, line, answer.status, answer.body)
					}
					continue
				}
				if answer.status != ex.status {
					t.Errorf("%s: %s: status %d, documented %d: %s", file, line, answer.status, ex.status, answer.body)
				}
				compare(t, line, ex.want, answer.body)
			}
		}
	}
	for _, file := range []string{"../../docs/api.md", "../../README.md"} {
		if ran[file] == 0 {
			t.Errorf("%s has no example", file)
		}
	}
}

// TestThePrintedLinesWork runs every curl line that `gatehouse demo` prints in a shell.
func TestThePrintedLinesWork(t *testing.T) {
	sh := newShell(t)
	ran := 0
	for line := range strings.Lines(sh.printed) {
		if _, command, found := strings.Cut(line, "   curl "); found {
			ran++
			if answer := sh.curl(t, "curl "+strings.TrimSpace(command)); answer.status >= http.StatusBadRequest {
				t.Errorf("%s: %d %s", line, answer.status, answer.body)
			}
		}
	}
	if ran < 9 {
		t.Errorf("the demo prints %d curl lines:\n%s", ran, sh.printed)
	}
}

// TestTheDocumentedCommandsAreThere parses every line of a document that calls gatehouse:
// its command and flags exist, and none is missing.
func TestTheDocumentedCommandsAreThere(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("../../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, file := range append(append(files, readmes...), "../../README.md") {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(src), -1) {
			if m[1] != "sh" {
				continue
			}
			for _, call := range calls.FindAllString(strings.ReplaceAll(m[3], "\\\n", " "), -1) {
				lines++
				var args []string
				for _, word := range callWords.FindAllString(call, -1) {
					args = append(args, strings.Trim(word, `'"`))
				}
				e := &env{getenv: func(string) string { return "" }}
				name, rest := e.splitCommand(args[1:])
				c, known := find(strings.Join(name, " "))
				if !known {
					t.Errorf("%s: there is no command: %s", file, call)
					continue
				}
				f := e.flags(c)
				c.declare(f)
				if err := f.parse(rest); err != nil {
					t.Errorf("%s: %s: %v", file, call, err)
				}
			}
		}
	}
	if lines < 60 {
		t.Errorf("the documents have %d lines that call gatehouse", lines)
	}
}

var (
	// calls finds a call of gatehouse in a line, up to what ends it for a shell.
	calls = regexp.MustCompile(`(?m)(?:^|[(&|;]|\$\()[ \t]*(?:bin/)?gatehouse (?:[^#>|;&()'"\n]|'[^']*'|"[^"]*")*`)
	// callWords finds the words of a call.
	callWords = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)
)

// runDemo serves the demo tenant from a new folder until the test ends.
func runDemo(t *testing.T) (base, key, webhook, printed string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs lockedBuffer
	done := make(chan int, 1)
	args := []string{"demo", "--listen", "127.0.0.1:0", "--data", t.TempDir()} // the folder must be removed after the server has ended
	go func() {
		done <- run(ctx, args, func(string) string { return "" }, strings.NewReader(""), &out, &errs)
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-done; status != 0 {
			t.Errorf("demo ended with %d: %s", status, errs.String())
		}
	})
	who := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/public/v1/me -H "Authorization: Bearer (svc_api_[0-9a-f]{64})"`)
	token := regexp.MustCompile(`X-Webhook-Token: (svc_whk_[0-9a-f]{64})`)
	for { // until the server exits or the test times out
		m, hook := who.FindStringSubmatch(errs.String()), token.FindStringSubmatch(errs.String())
		if m != nil && hook != nil && strings.Contains(out.String(), "server.listening") {
			return m[1], m[2], hook[1], errs.String()
		}
		select {
		case status := <-done:
			done <- status
			t.Fatalf("demo printed no curl line: %s", errs.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// example is a fenced block of curl lines and the answer documented for it.
type example struct {
	lines  []string
	want   string
	status int
}

//nolint:gocritic // ^ after (?m) is no redundant anchor
var fence = regexp.MustCompile("(?ms)^```(\\w+) ?(\\d*)\n(.*?)^```$")

// examples returns the curl lines of a document's shell blocks. A curl that does not begin
// its line would not be run, and is an error.
func examples(t *testing.T, file, src string) []example {
	t.Helper()
	const continued = "\\\n"
	var list []example
	for _, m := range fence.FindAllStringSubmatch(src, -1) {
		lang, status, body := m[1], m[2], m[3]
		if lang == "sh" {
			var lines []string
			for line := range strings.Lines(strings.ReplaceAll(body, continued, "\x00")) {
				line = strings.TrimSpace(strings.ReplaceAll(line, "\x00", continued))
				if strings.HasPrefix(line, "curl ") {
					lines = append(lines, line)
				} else if strings.Contains(line, "curl ") && !strings.HasPrefix(line, "make ") {
					t.Errorf("%s: this curl does not begin its line, and is not tested: %s", file, line)
				}
			}
			if lines != nil {
				list = append(list, example{lines: lines})
			}
		}
		if lang == "json" && len(list) > 0 && list[len(list)-1].want == "" {
			ex := &list[len(list)-1]
			ex.want, ex.status = body, http.StatusOK
			if n, err := strconv.Atoi(status); err == nil {
				ex.status = n
			}
		}
	}
	return list
}

type answer struct {
	status int
	body   []byte
}

// shell runs lines as if a reader pasted them, with the variables that the documents tell
// the reader to set.
type shell struct {
	vars    map[string]string
	home    string // with a .curlrc that connects to the demo's address
	printed string // the output of the demo
}

// newShell starts a demo and returns a shell for it.
func newShell(t *testing.T) *shell {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "../../scripts/need", "curl").CombinedOutput(); err != nil {
		t.Fatalf("need curl: %v: %s", err, out)
	}
	base, key, webhook, printed := runDemo(t)
	const documented = "127.0.0.1:8080"
	s := &shell{home: t.TempDir(), printed: printed, vars: map[string]string{"URL": "http://" + documented, "KEY": key, "WEBHOOK": webhook}}
	rc := fmt.Sprintf("connect-to = \"%s:%s\"\nwrite-out = \"\\n%%{http_code}\"\n", documented, strings.TrimPrefix(base, "http://"))
	if err := os.WriteFile(filepath.Join(s.home, ".curlrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// curl runs a line of curl.
func (s *shell) curl(t *testing.T, line string) answer {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-euc", line)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "CURL_HOME=" + s.home}
	for name, value := range s.vars {
		command.Env = append(command.Env, name+"="+value)
	}
	var words bytes.Buffer
	command.Stderr = &words
	out, err := command.Output()
	if err != nil {
		t.Errorf("%s: %v: %s", line, err, words.String())
		return answer{}
	}
	end := bytes.LastIndexByte(out, '\n')
	status, err := strconv.Atoi(string(out[end+1:]))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return answer{status, out[:end]}
}

// keep sets the variables whose values come from answers: the id of a created record, and
// the tokens of a login.
func (s *shell) keep(a answer) {
	if id := createdID(a.body); a.status == http.StatusCreated && id != "" {
		s.vars["ID"] = id
	}
	var e struct {
		Data struct{ AccessToken, RefreshToken string }
	}
	if json.Unmarshal(a.body, &e) == nil && e.Data.AccessToken != "" {
		s.vars["TOKEN"], s.vars["REFRESH"] = e.Data.AccessToken, e.Data.RefreshToken
	}
}

func createdID(body []byte) string {
	var e struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &e) != nil {
		return ""
	}
	return e.Data.ID
}

// compare compares an answer with the documented one, in which "…" matches any value and,
// as the last element of a list, for any more elements.
func compare(t *testing.T, line, want string, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Errorf("%s: the documented answer is no JSON: %v", line, err)
		return
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Errorf("%s: the answer is no JSON: %s", line, got)
		return
	}
	if diff := differs("", w, g); diff != "" {
		t.Errorf("%s:\n%s\nanswer: %s", line, diff, got)
	}
}

func differs(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: documented %v, got %v", at, want, got)
		}
		for name := range w {
			if d := differs(at+"/"+name, w[name], g[name]); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		for i, v := range w {
			if v == "…" && i == len(w)-1 {
				return ""
			}
			if !ok || i >= len(g) {
				return fmt.Sprintf("%s: documented %v, got %v", at, want, got)
			}
			if d := differs(at+"/"+strconv.Itoa(i), v, g[i]); d != "" {
				return d
			}
		}
		if len(g) != len(w) {
			return fmt.Sprintf("%s: documented %d elements, got %d", at, len(w), len(g))
		}
		return ""
	case string:
		if w == "…" {
			return ""
		}
	}
	if want != got {
		return fmt.Sprintf("%s: documented %v, got %v", at, want, got)
	}
	return ""
}

// TestTheDocumentsLinkWhatIsThere follows every relative link of the documents to its file
// and, in another document, to its heading.
func TestTheDocumentsLinkWhatIsThere(t *testing.T) {
	files := []string{"../../README.md", "../../CHANGELOG.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/*/*.md", "../../examples/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	anchors, links := map[string]map[string]bool{}, 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range relativeLink.FindAllStringSubmatch(fence.ReplaceAllString(string(src), ""), -1) {
			if strings.Contains(m[1], ":") {
				continue // an address elsewhere
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: (%s) leads nowhere", file, m[1])
				continue
			}
			if anchor == "" || filepath.Ext(target) != ".md" {
				continue
			}
			if anchors[target] == nil {
				anchors[target] = anchorsOf(t, target)
			}
			if !anchors[target][anchor] {
				t.Errorf("%s: (%s): there is no such heading", file, m[1])
			}
		}
	}
	if links < 300 {
		t.Errorf("the documents have %d links", links)
	}
}

var (
	relativeLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	ownAnchor    = regexp.MustCompile(`<a id="([^"]+)">`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// notInAnchor finds what an anchor leaves out of its heading.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchorsOf returns the anchors of a document: its own, and those that a heading has.
func anchorsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, found := fence.ReplaceAllString(string(src), ""), map[string]bool{}
	for _, m := range ownAnchor.FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		found[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return found
}

// TestTheDocumentOfTheBenchmarksHasTheNotes: what is written by hand under the tables is
// bench/notes.md, as the next run of the benchmarks adds it.
func TestTheDocumentOfTheBenchmarksHasTheNotes(t *testing.T) {
	page, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	notes, err := os.ReadFile("../../bench/notes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(page, append([]byte("\n\n"), notes...)) {
		t.Error("docs/benchmarks.md does not end with bench/notes.md: change both")
	}
}
