package main

import (
	"bytes"
	"context"
	_ "embed" // for the manifest
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/template"
	"time"

	"gatehouse/bench/contact"
)

//go:embed manifest.yaml.tmpl
var manifestText string

// manifest has delimiters of its own: {{…}} belongs to the automation in it.
var manifest = template.Must(template.New("manifest").Delims("<%", "%>").Parse(manifestText))

// Users of the benchmark's tenant; the manifest says what each may see.
const (
	tenantName = "bench"
	bulk       = "bulk@bench.example"    // owns all that nobody else does
	owning     = "owning@bench.example"  // sees 20 records because they own them
	shared     = "shared@bench.example"  // … because each was shared with them
	leading    = "leading@bench.example" // … because their team's member owns them
	member     = "member@bench.example"
	ruled      = "ruled@bench.example" // … by a sharing rule on the owner's role
	desk       = "desk@bench.example"
	matched    = "matched@bench.example" // … by a sharing rule on a field's value
)

const contacts = "/public/v1/data/contact"

// instance is one Gatehouse installation: a data folder or a database.
type instance struct {
	c     *config
	name  string
	dir   string   // for its manifest, and its data on SQLite
	store []string // the flags that say where the data is

	// filtered gives contacts the indexed field that the filtered flat lists use.
	filtered bool
	// queried gives contacts the fields and indexes of the queries.
	queried bool

	settle func(context.Context) error // called when the records are made; may be nil
}

// sqliteInstance keeps its data in a folder of its own.
func sqliteInstance(c *config, name string) *instance {
	dir := filepath.Join(c.work, name)
	return &instance{c: c, name: name, dir: dir, store: []string{"--data", filepath.Join(dir, "data")}}
}

// copyAs returns a second installation with the same data; none may be running.
func (g *instance) copyAs(name string) (*instance, error) {
	other := sqliteInstance(g.c, name)
	return other, os.CopyFS(other.dir, os.DirFS(g.dir))
}

// run calls the command line and returns what it printed.
func (g *instance) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.c.gatehouse, append(args, g.store...)...)
	cmd.Env = cleanEnv()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("gatehouse %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// apply provisions the tenant, with audit persistence on or off.
func (g *instance) apply(ctx context.Context, audit bool) error {
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return err
	}
	var text bytes.Buffer
	err := manifest.Execute(&text, map[string]any{
		"Audit": audit, "Filtered": g.filtered, "Queried": g.queried, "Stages": strings.Join(contact.Stages, ", "), "Won": contact.Won,
		"Bulk": bulk, "Owning": owning, "Shared": shared, "Leading": leading, "Member": member,
		"Ruled": ruled, "Desk": desk, "Matched": matched, "EndUser": endUser, "EndUserPassword": endUserPassword, "ComponentFile": componentFile,
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(g.dir, componentFile), []byte(componentSource()), 0o600); err != nil {
		return err
	}
	file := filepath.Join(g.dir, "manifest.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return err
	}
	_, err = g.run(ctx, "apply", "-f", file)
	return err
}

// key makes an API key without a practical rate limit.
func (g *instance) key(ctx context.Context, email string) (string, error) {
	return g.run(ctx, "key", "create", "--tenant", tenantName, "--user", email, "--name", "bench", "--rate-limit", "100000000")
}

// keys makes one key for each of the users.
func (g *instance) keys(ctx context.Context, emails ...string) (map[string]string, error) {
	keys := make(map[string]string, len(emails))
	for _, email := range emails {
		token, err := g.key(ctx, email)
		if err != nil {
			return nil, err
		}
		keys[email] = token
	}
	return keys, nil
}

// serve starts the server on the given cores.
func (g *instance) serve(ctx context.Context, cores string) (*server, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	ops, err := freeAddr()
	if err != nil {
		return nil, err
	}
	argv := append([]string{g.c.gatehouse, "serve", "--listen", listen, "--ops-listen", ops, "--drain-delay", "0s"}, g.store...)
	s, err := launch{name: filepath.Base(g.name), cores: cores, logs: g.dir, argv: argv}.start(ctx)
	if err != nil {
		return nil, err
	}
	s.base, s.ops = "http://"+listen, "http://"+ops
	if err := s.ready(ctx, s.ops+"/readyz"); err != nil {
		s.stop(syscall.SIGTERM)
		return nil, err
	}
	return s, nil
}

// planned is a record to create: its owner and its fields.
type planned struct {
	owner  string
	fields map[string]any
}

// fill makes n records over HTTP with 32 clients and returns their ids, in the
// order of the plan.
func (g *instance) fill(ctx context.Context, s *server, keys map[string]string, n int, plan func(int) planned) ([]string, error) {
	began := time.Now()
	ids, err := createAll(ctx, s, keys, n, plan)
	if err == nil && g.settle != nil {
		err = g.settle(ctx)
	}
	if err != nil {
		return nil, err
	}
	log.Printf("%s: %d records made in %s", g.name, n, time.Since(began).Round(time.Millisecond))
	return ids, nil
}

func createAll(ctx context.Context, s *server, keys map[string]string, n int, plan func(int) planned) ([]string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ids := make([]string, n)
	var next atomic.Int64
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				p := plan(i)
				id, err := create(ctx, s.base, keys[p.owner], p.fields)
				if err != nil {
					cancel(fmt.Errorf("record %d: %w", i, err))
					return
				}
				ids[i] = id
			}
		})
	}
	group.Wait()
	return ids, context.Cause(ctx)
}

func create(ctx context.Context, base, token string, fields map[string]any) (string, error) {
	status, raw, err := post(ctx, base+contacts, token, fields)
	if err != nil {
		return "", err
	}
	if status != http.StatusCreated {
		return "", fmt.Errorf("create: status %d: %s", status, raw)
	}
	var reply struct{ Data struct{ ID string } }
	if err := json.Unmarshal(raw, &reply); err != nil {
		return "", err
	}
	return reply.Data.ID, nil
}

// post sends a value as JSON, with the token unless it is "", and returns the answer
// whatever its status.
func post(ctx context.Context, url, token string, value any) (status int, answer []byte, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// fetch gets a path with the token.
func fetch(ctx context.Context, base, path, token string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("GET %s: %s: %s", path, resp.Status, body)
	}
	return resp, body, nil
}
