// Package program builds the program and runs its server, for tests that need it as
// a process of its own.
package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Build returns the path of the program, built from this clone. All test processes
// share the file: the first one builds it, and the others find it up to date.
func Build(t testing.TB) string {
	t.Helper()
	return build(t, "gatehouse")
}

// BuildConsole is Build for the program with the console, whose front-end build it
// makes first if a file of web has changed.
func BuildConsole(t testing.TB) string {
	t.Helper()
	return build(t, "gatehouse-console", "-tags", "console")
}

func build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	root := strings.TrimSpace(string(out))
	folder := filepath.Join(root, ".tools", "test")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, "gatehouse.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if len(flags) > 0 {
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "web-build")).CombinedOutput(); err != nil {
			t.Fatalf("build the console: %v: %s", err, out)
		}
	}
	path := filepath.Join(folder, name)
	args := append([]string{"build", "-p", "2", "-buildvcs=false", "-o", path}, flags...)
	if out, err := exec.CommandContext(t.Context(), "go", append(args, "gatehouse/cmd/gatehouse")...).CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, out)
	}
	return path
}

// Serve starts a command that becomes a server and returns the address that it
// listens on. When the test ends, Serve sends SIGTERM and the server must exit with
// status 0.
func Serve(t testing.TB, command *exec.Cmd) (address string) {
	t.Helper()
	address, stop, err := Start(command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return address
}

// Start is Serve for a server that is stopped before the test ends. stop sends
// SIGTERM and waits; its error is a status other than 0, with what the server wrote
// to its standard error.
func Start(command *exec.Cmd) (address string, stop func() error, err error) {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	listening, drained := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var line struct{ Event, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "server.listening" {
				listening <- line.Addr
			}
		}
		_, _ = io.Copy(io.Discard, out) // after a line too long for the scanner: the server must not block
	}()
	stop = func() error {
		_ = command.Process.Signal(syscall.SIGTERM) // fails if it has exited, which Wait reports
		<-drained
		if err := command.Wait(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, stderr.String())
		}
		return nil
	}
	select {
	case address = <-listening:
		return address, stop, nil
	case <-drained:
	case <-time.After(time.Minute):
	}
	return "", nil, errors.Join(fmt.Errorf("%s does not listen", command), stop())
}
