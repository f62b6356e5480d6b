package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cores: the measured server has core 0 for itself, wrk and this program have core 1.
const (
	serverCore = "0"
	loadCore   = "1"
	anyCore    = "0,1" // while data is made, nothing is measured
)

// server is a running contestant.
type server struct {
	name string
	base string // http://127.0.0.1:port
	ops  string // the ops listener, if it has one
	out  string // its standard output
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// launch describes how to start a process.
type launch struct {
	name  string
	cores string
	logs  string // folder for its output
	cred  *syscall.Credential
	argv  []string
}

// start runs the command pinned to its cores, with its output in files.
func (l launch) start(ctx context.Context) (*server, error) {
	if err := os.MkdirAll(l.logs, 0o755); err != nil {
		return nil, err
	}
	stdout, err := os.Create(filepath.Join(l.logs, l.name+".out"))
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(filepath.Join(l.logs, l.name+".err"))
	if err != nil {
		return nil, errors.Join(err, stdout.Close())
	}
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", l.cores}, l.argv...)...)
	cmd.Env = cleanEnv()
	if l.cores == serverCore {
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM, Credential: l.cred}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", l.name, err), stdout.Close(), stderr.Close())
	}
	s := &server{name: l.name, out: stdout.Name(), cmd: cmd, done: make(chan struct{})}
	go func() {
		s.err = errors.Join(cmd.Wait(), stdout.Close(), stderr.Close())
		close(s.done)
	}()
	return s, nil
}

// ready waits until url answers 200.
func (s *server) ready(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second}
	deadline := time.Now().Add(5 * time.Minute) // the first start of a contestant may fill it
	for time.Now().Before(deadline) {
		select {
		case <-s.done:
			return fmt.Errorf("%s ended before it was ready: %w\n%s", s.name, s.err, tail(strings.TrimSuffix(s.out, ".out")+".err"))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		resp, err := client.Get(url)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("%s is not ready at %s", s.name, url)
}

// stop asks the server to end with sig and waits for it.
func (s *server) stop(sig syscall.Signal) {
	_ = s.cmd.Process.Signal(sig) // it may have ended already
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// cpu returns the processor time the server has used.
func (s *server) cpu() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// Fields 14 and 15, counted after the command name, which may hold spaces.
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// peakMemory returns the server's largest resident set in MiB.
func (s *server) peakMemory() float64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(raw)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

// client is for requests that are not measured by wrk; it asks for no
// compression, because wrk does not.
var client = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 32, DisableCompression: true},
}

// freeAddr returns a loopback address nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// cleanEnv returns the environment without variables that configure a contestant.
func cleanEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GATEHOUSE_") && !strings.HasPrefix(entry, "GO") && !strings.HasPrefix(entry, "PG") {
			env = append(env, entry)
		}
	}
	return env
}

// tail returns the end of a file, for error messages.
func tail(path string) string {
	raw, _ := os.ReadFile(path)
	if len(raw) > 2000 {
		raw = raw[len(raw)-2000:]
	}
	return string(raw)
}

func loadAverage() float64 {
	raw, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(raw), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
