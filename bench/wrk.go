package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for the script
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed wrk.lua
var script []byte

// usualClients is the number of clients of most loads.
const usualClients = 32

// load is one kind of request.
type load struct {
	file  string // prepared requests, see wrk.lua
	token string // none when empty

	clients int // 0 for the usual number
}

// sample is the result of one measurement.
type sample struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       float64 // share of its core that the server used
	memory    float64 // peak resident MiB
}

// prepareLoad writes requests, one a line, to a file for wrk.
func prepareLoad(c *config, name, token string, lines []string) (load, error) {
	file := filepath.Join(c.work, name+".requests")
	return load{file: file, token: token}, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// send runs wrk against the server for the given time.
func (l load) send(ctx context.Context, c *config, s *server, seconds int) (sample, error) {
	lua := filepath.Join(c.work, "wrk.lua")
	if err := os.WriteFile(lua, script, 0o600); err != nil {
		return sample{}, err
	}
	argv := []string{"-c", loadCore, "wrk", "-t1", "-c" + strconv.Itoa(cmp.Or(l.clients, usualClients)), "-d" + strconv.Itoa(seconds) + "s", "--timeout", "10s", "-s", lua,
		"-H", "Content-Type: application/json"}
	if l.token != "" {
		argv = append(argv, "-H", "Authorization: Bearer "+l.token)
	}
	cmd := exec.CommandContext(ctx, "taskset", append(argv, s.base, "--", l.file)...)
	cmd.Stderr = os.Stderr
	before := s.cpu()
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("wrk against %s: %w\n%s", s.name, err, out)
	}
	used := s.cpu() - before
	_, result, found := bytes.Cut(out, []byte("RESULT "))
	if !found {
		return sample{}, fmt.Errorf("wrk against %s said nothing:\n%s", s.name, out)
	}
	var r struct{ Requests, Microseconds, Errors, P50, P99 int64 }
	if err := json.NewDecoder(bytes.NewReader(result)).Decode(&r); err != nil {
		return sample{}, err
	}
	if r.Errors > 0 || r.Requests == 0 {
		return sample{}, fmt.Errorf("wrk against %s: %d requests, %d errors:\n%s", s.name, r.Requests, r.Errors, out)
	}
	elapsed := time.Duration(r.Microseconds) * time.Microsecond
	return sample{
		perSecond: float64(r.Requests) / elapsed.Seconds(),
		p50:       time.Duration(r.P50) * time.Microsecond,
		p99:       time.Duration(r.P99) * time.Microsecond,
		cpu:       used.Seconds() / elapsed.Seconds(),
		memory:    s.peakMemory(),
	}, nil
}

// sendProfiled runs the load while the server writes a CPU profile to file.
func (l load) sendProfiled(ctx context.Context, c *config, s *server, file string) error {
	saved := make(chan error, 1)
	go func() { saved <- saveProfile(ctx, s, c.seconds, file) }()
	_, err := l.send(ctx, c, s, c.seconds+1)
	if perr := <-saved; perr != nil {
		return perr
	}
	return err
}

func saveProfile(ctx context.Context, s *server, seconds int, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", s.ops, seconds), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	profile, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile of %s: %s", s.name, resp.Status)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, profile, 0o600)
}
