package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTheDocumentedExamplesWork runs `gatehouse demo` and every curl line of
// docs/api.md and README.md against it, and compares the answers with the ones
// that stand below the lines.
func TestTheDocumentedExamplesWork(t *testing.T) {
	base, key, webhook := runDemo(t)
	vars := map[string]string{"URL": base, "KEY": key, "WEBHOOK": webhook}
	for _, file := range []string{"../../docs/api.md", "../../README.md"} {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, ex := range examples(string(src)) {
			for _, line := range ex.lines {
				answer := curl(t, line, vars, base)
				ran++
				if id := createdID(answer.body); answer.status == http.StatusCreated && id != "" {
					vars["ID"] = id
				}
				keepTokens(answer.body, vars)
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
		if ran == 0 {
			t.Errorf("%s has no example", file)
		}
	}
}

// runDemo serves the demo tenant from a fresh folder until the test ends.
func runDemo(t *testing.T) (base, key, webhook string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs lockedBuffer
	done := make(chan int, 1)
	go func() {
		args := []string{"demo", "--listen", "127.0.0.1:0", "--data", t.TempDir()}
		done <- run(ctx, args, func(string) string { return "" }, strings.NewReader(""), &out, &errs)
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-done; status != 0 {
			t.Errorf("demo ended with %d: %s", status, errs.String())
		}
	})
	printed := regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/public/v1/me -H "Authorization: Bearer (svc_api_[0-9a-f]{64})"`)
	token := regexp.MustCompile(`X-Webhook-Token: (svc_whk_[0-9a-f]{64})`)
	for { // as long as it runs; a demo that prints nothing ends with the test's own time
		m, hook := printed.FindStringSubmatch(errs.String()), token.FindStringSubmatch(errs.String())
		if m != nil && hook != nil && strings.Contains(out.String(), "server.listening") {
			return m[1], m[2], hook[1]
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

func examples(src string) []example {
	var list []example
	for _, m := range fence.FindAllStringSubmatch(src, -1) {
		lang, status, body := m[1], m[2], m[3]
		if lang == "sh" {
			var lines []string
			for line := range strings.Lines(strings.ReplaceAll(body, "\\\n", " ")) {
				if strings.HasPrefix(line, "curl ") {
					lines = append(lines, strings.TrimSpace(line))
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

// curl does what a documented line of curl does.
func curl(t *testing.T, line string, vars map[string]string, base string) answer {
	t.Helper()
	words := shellWords(line, vars)
	method, url, body := http.MethodGet, "", ""
	header := http.Header{}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-s":
		case "-X":
			i++
			method = words[i]
		case "-d":
			i++
			if body != "" {
				body += "&"
			}
			body += words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Add(name, value)
		default:
			url = strings.Replace(words[i], "http://127.0.0.1:8080", base, 1)
		}
	}
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	r.Header = header
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/x-www-form-urlencoded") // as curl does
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return answer{res.StatusCode, b}
}

// shellWords splits a line as a shell does, as far as the documents need it.
func shellWords(line string, vars map[string]string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, c := range line {
		switch {
		case quote == 0 && (c == '"' || c == '\''):
			quote, open = c, true
			if c == '\'' {
				word.WriteRune('\x00') // no variables until the next one
			}
		case c == quote:
			if c == '\'' {
				word.WriteRune('\x00')
			}
			quote = 0
		case quote == 0 && c == ' ':
			if word.Len() > 0 || open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	words = append(words, word.String())
	for i, w := range words {
		parts := strings.Split(w, "\x00")
		for j := 0; j < len(parts); j += 2 {
			parts[j] = os.Expand(parts[j], func(name string) string { return vars[name] })
		}
		words[i] = strings.Join(parts, "")
	}
	return words
}

// keepTokens notes what a login answered.
func keepTokens(body []byte, vars map[string]string) {
	var e struct {
		Data struct{ AccessToken, RefreshToken string }
	}
	if json.Unmarshal(body, &e) == nil && e.Data.AccessToken != "" {
		vars["TOKEN"], vars["REFRESH"] = e.Data.AccessToken, e.Data.RefreshToken
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

// compare holds an answer against the documented one; "…" stands for any
// value, and as the last element of a list for any more.
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
