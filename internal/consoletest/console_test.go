//go:build !race

package consoletest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/gatetest/program"
	"gatehouse/internal/mail/mailtest"
)

var scripts = flag.String("scripts", "", "run only these scripts of web/tests, by name without .test.mjs, on every engine")

const folder = "../../web/tests"

// browser is Chromium without its windows, which takes two thirds of the work of the whole.
const browser = "chromium-headless-shell"

// TestConsole runs the scripts of web/tests, on the engines side by side. One server of an
// engine serves all of its scripts, and one browser.
func TestConsole(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "../../scripts/need", "npm", browser).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := os.Getenv("GATEHOUSE_PROVE") == "1" || *scripts != ""
	names := chosen(t)
	binary := program.BuildConsole(t)
	t.Setenv("GATEHOUSE_MASTER_KEY", strings.Repeat("5e", 32)) // which PostgreSQL needs
	for i, engine := range dbtest.Engines {
		var mine []string
		for j, name := range names {
			if all || j%len(dbtest.Engines) == i {
				mine = append(mine, name)
			}
		}
		if len(mine) == 0 {
			continue
		}
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel() // a script waits for its page more than it computes
			run(t, begin(t, binary, engine), mine)
		})
	}
}

// chosen returns the names of the scripts to run.
func chosen(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, "*.test.mjs"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no scripts in %s: %v", folder, err)
	}
	var names []string
	for _, path := range found {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".test.mjs"))
	}
	if *scripts == "" {
		return names
	}
	want := strings.Split(*scripts, ",")
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Fatalf("there is no script %s; there are %s", name, strings.Join(names, ", "))
		}
	}
	return want
}

// run runs scripts in one process of Node. It prints what they say, step by step.
func run(t *testing.T, s *stage, names []string) {
	t.Helper()
	chromium, err := exec.LookPath(browser)
	if err != nil {
		t.Fatal(err)
	}
	pictures := pictureFolder(t)
	setting, err := json.Marshal(map[string]any{
		"port": s.port, "backstage": s.backstage, "chromium": chromium, "pictures": pictures, "prove": os.Getenv("GATEHOUSE_PROVE") == "1",
		"engine": s.engine,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	node := exec.CommandContext(ctx, "node", append([]string{"lib/run.mjs"}, names...)...)
	node.Dir = folder
	node.Env = append(os.Environ(), "CONSOLE_TEST="+string(setting))
	var out bytes.Buffer
	said := io.MultiWriter(&out, t.Output()) // with -v, as it comes
	node.Stdout, node.Stderr = said, said
	if err := node.Run(); err != nil {
		t.Fatalf("the scripts failed: %v", err)
	}
	if !bytes.HasSuffix(out.Bytes(), []byte("the end\n")) {
		t.Fatal("the scripts did not reach their end")
	}
}

// pictureFolder returns a folder for screenshots. With -artifacts it is kept as go test
// does; without, only after a failure, which names it.
func pictureFolder(t *testing.T) string {
	t.Helper()
	if artifacts := flag.Lookup("test.artifacts"); artifacts != nil && artifacts.Value.String() == "true" {
		return t.ArtifactDir()
	}
	dir, err := os.MkdirTemp("", "gatehouse-console-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the pictures are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// stage is a server with the console, and what the scripts use behind it.
type stage struct {
	engine          db.Engine
	config          db.Config
	binary          string
	flags           []string // of every command: where the data are
	port, backstage string
	stop            func() error // of the server that runs
}

func begin(t *testing.T, binary string, engine db.Engine) *stage {
	t.Helper()
	data := t.TempDir()
	s := &stage{engine: engine, config: db.Config{Dir: data}, binary: binary, flags: []string{"--data", data}}
	if config := dbtest.Config(t, engine); config.URL != "" {
		s.config = config
		s.flags = append(s.flags, "--database", config.URL)
	}
	if cache := enginecache.Dir(); cache != "" {
		s.flags = append(s.flags, "--cache", cache)
	}
	// The first command makes the schema, before the server and commands of the scripts do it at once.
	if code, _, stderr := s.command(t.Context(), []string{"apply", "-f", "-"}, "tenant: first\n"); code != 0 {
		t.Fatalf("apply: %s", stderr)
	}
	if err := s.serve("0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /cli", s.serveCommand)
	mux.HandleFunc("POST /entries", s.serveEntries)
	mux.HandleFunc("POST /stop", s.serveStop)
	mux.HandleFunc("POST /start", s.serveStart)
	mux.Handle("GET /mail", mailtest.Serve(filepath.Join(data, "outbox")))
	behind := httptest.NewServer(mux)
	t.Cleanup(behind.Close)
	s.backstage = behind.URL
	return s
}

// serve starts the server on a port; 0 is a free one.
func (s *stage) serve(port string) error {
	address, stop, err := program.Start(exec.Command(s.binary, append([]string{"serve", "--listen", "127.0.0.1:" + port}, s.flags...)...))
	if err != nil {
		return err
	}
	s.stop = stop
	_, s.port, err = net.SplitHostPort(address)
	return err
}

// serveStop stops the server as an operator does, and serveStart starts it again on
// its port.
func (s *stage) serveStop(w http.ResponseWriter, _ *http.Request)  { tell(w, s.stop()) }
func (s *stage) serveStart(w http.ResponseWriter, _ *http.Request) { tell(w, s.serve(s.port)) }

// tell answers 200, or 500 with the error.
func tell(w http.ResponseWriter, err error) {
	if err == nil {
		return
	}
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// serveCommand runs a command of the program: {"args": [...], "stdin": "…"} is answered
// with {"code", "stdout", "stderr"}.
func (s *stage) serveCommand(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Args  []string `json:"args"`
		Stdin string   `json:"stdin"`
	}
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	code, stdout, stderr := s.command(r.Context(), ask.Args, ask.Stdin)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": code, "stdout": stdout, "stderr": stderr}) // the script fails without it
}

func (s *stage) command(ctx context.Context, args []string, stdin string) (code int, stdout, stderr string) {
	var out, words bytes.Buffer
	command := exec.CommandContext(ctx, s.binary, append(slices.Clone(args), s.flags...)...)
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &out, &words
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		return -1, "", err.Error()
	}
	return code, out.String(), words.String()
}
