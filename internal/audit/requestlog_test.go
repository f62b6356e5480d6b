package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// members are the names of a JSON object, in order. It fails on anything else.
func members(t testing.TB, line []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(line))
	var names []string
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		t.Fatalf("%q is no object: %v", line, err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		names = append(names, name.(string))
		var value any
		if err := dec.Decode(&value); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	return names
}

var lineMembers = []string{
	"event", "time", "tenant", "request_id", "method", "path", "route", "status", "error_code", "duration_ms", "ip",
	"auth", "user_id", "api_key_id", "api_key_prefix",
}

func TestALineHasTheMembersOfTheContract(t *testing.T) {
	line := appendLine(nil, readOne())
	if got := members(t, line); !slices.Equal(got, lineMembers) {
		t.Errorf("members %v", got)
	}
	const want = `{"event":"public_api.request","time":"2026-11-21T12:00:00.123456Z","tenant":"acme",` +
		`"request_id":"0193a1b2-0000-7000-8000-00000000abcd","method":"GET",` +
		`"path":"/public/v1/data/contact/0193a1b2-0000-7000-8000-000000000000","route":"GET /public/v1/data/{entity}/{id}",` +
		`"status":200,"error_code":null,"duration_ms":0.087,"ip":"203.0.113.7","auth":"key",` +
		`"user_id":"0193a1b2-0000-7000-8000-000000000001","api_key_id":"0193a1b2-0000-7000-8000-0000000000ff",` +
		`"api_key_prefix":"svc_api_1234"}` + "\n"
	if string(line) != want {
		t.Errorf("got  %swant %s", line, want)
	}
	unknown := &Event{RequestID: "r", Method: "GET", Path: "/x", Status: 401, ErrorCode: "UNAUTHORIZED", Start: noon, APIKeyPrefix: "svc_api_dead"}
	const bare = `"tenant":null,"request_id":"r","method":"GET","path":"/x","route":null,"status":401,"error_code":"UNAUTHORIZED",` +
		`"duration_ms":0.000,"ip":null,"auth":"none","user_id":null,"api_key_id":null,"api_key_prefix":"svc_api_dead"}`
	if got := string(appendLine(nil, unknown)); !strings.Contains(got, bare) {
		t.Errorf("a token that does not exist: %s", got)
	}
}

// checkLine fails the test unless out is one valid JSON object on one line without
// characters that control a terminal.
func checkLine(t testing.TB, out []byte) {
	t.Helper()
	body, ok := bytes.CutSuffix(out, []byte("\n"))
	if !ok || bytes.ContainsAny(body, "\n\r\x1b\x00\x7f\u2028\u2029\u0085\u009b\u202e") || !json.Valid(body) {
		t.Fatalf("not one clean line: %q", out)
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range []string{"", "plain", "\r\n{\"event\":\"forged\"}", "\x1b[2J", "\xff\xfe", "\u2028", "a\x00b", "\u202eevil", "\"\\", "\xed\xa0\x80", "😀\u009b"} {
		f.Add(s, s, s, 200, int64(5))
	}
	f.Fuzz(func(t *testing.T, path, id, prefix string, status int, took int64) {
		ev := &Event{
			Tenant: tenant.ID(id), RequestID: id, Method: prefix, Path: path, Route: path, Status: status, ErrorCode: id, Start: time.UnixMicro(took),
			Duration: time.Duration(took), IP: prefix, Auth: credential.Kind(prefix), UserID: user.ID(id), APIKeyID: path, APIKeyPrefix: prefix,
		}
		line := appendLine(nil, ev)
		checkLine(t, line)
		if got := members(t, line); !slices.Equal(got, lineMembers) {
			t.Fatalf("members %v", got)
		}
		var back struct{ Path string }
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(path, "\ufffd"); len(path) < logMaxText && RedactPath(path) == path &&
			strings.ReplaceAll(back.Path, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") {
			t.Fatalf("path %q came back as %q", path, back.Path)
		}
	})
}

func TestOtherLinesAreObjectsToo(t *testing.T) {
	var out bytes.Buffer
	l := NewRequestLog(&out, clock.NewFake(noon))
	l.Emit("server.listening", map[string]any{"addr": "127.0.0.1:8080"})
	l.Emit("odd\n", map[string]any{
		"b": true, "a": 1, "err": errors.New("broken\npipe"), "list": []string{"x\u2028"}, "nan": math.NaN(), "func": func() {},
		"nil": nil, "d": time.Second, "event": "forged", "x\x1b": "y\x1b",
	})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	if want := `{"event":"server.listening","time":"2026-11-21T12:00:00.123456Z","addr":"127.0.0.1:8080"}` + "\n"; lines[0] != want {
		t.Errorf("got %s", lines[0])
	}
	checkLine(t, []byte(lines[1]))
	if len(lines) != 3 || lines[2] != "" || !strings.HasPrefix(lines[1], `{"event":"odd\u000a",`) {
		t.Errorf("got %q", lines)
	}
	l.Emit("after.close", nil)
	if !strings.HasSuffix(out.String(), `{"event":"after.close","time":"2026-11-21T12:00:00.123456Z"}`+"\n") {
		t.Error("a line after Close is lost")
	}
}

func TestEveryLineOfManyCallersArrivesWhole(t *testing.T) {
	read, write := io.Pipe()
	l := NewRequestLog(write, clock.System())
	const callers, each = 64, 200
	go func() {
		var wait sync.WaitGroup
		for c := range callers {
			wait.Go(func() {
				for i := range each {
					ev := readOne()
					ev.RequestID = fmt.Sprintf("%d/%d", c, i)
					l.Line(ev)
				}
			})
		}
		wait.Wait()
		_ = l.Close()
		_ = write.Close()
	}()
	seen := map[string]bool{}
	next := map[string]int{}
	for in := bufio.NewScanner(read); in.Scan(); {
		var line struct {
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal(in.Bytes(), &line); err != nil {
			t.Fatalf("%q: %v", in.Bytes(), err)
		}
		caller, n, _ := strings.Cut(line.RequestID, "/")
		if n != fmt.Sprint(next[caller]) {
			t.Fatalf("%s comes when its caller's line %d is due", line.RequestID, next[caller])
		}
		next[caller]++
		seen[line.RequestID] = true
	}
	if len(seen) != callers*each {
		t.Errorf("%d lines arrived of %d", len(seen), callers*each)
	}
}

// stuck blocks every write until it is released.
type stuck struct {
	free  chan struct{}
	lines atomic.Int64
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.free
	s.lines.Add(int64(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

func TestAStuckWriterSlowsCallersDownWithinBounds(t *testing.T) {
	w := &stuck{free: make(chan struct{})}
	l := NewRequestLog(w, clock.System())
	var said atomic.Int64
	done := make(chan struct{})
	const lines = 50_000 // of 430 bytes, 21 MB
	go func() {
		defer close(done)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for range lines / 8 {
					l.Line(readOne())
					said.Add(1)
				}
			})
		}
		wait.Wait()
	}()
	settled := settle(t, &said)
	if held := l.lines.Len(); held > logMaxBytes+1<<20 || settled == lines || settled == 0 {
		t.Errorf("%d bytes are held, %d lines were taken", held, settled)
	}
	close(w.free)
	<-done
	if err := l.Close(); err != nil || w.lines.Load() != lines {
		t.Errorf("%d lines arrived of %d, %v", w.lines.Load(), lines, err)
	}
}

// settle waits until a counter no longer changes, and returns its value.
func settle(t *testing.T, n *atomic.Int64) int64 {
	t.Helper()
	for last, still := int64(-1), 0; ; time.Sleep(10 * time.Millisecond) {
		if now := n.Load(); now != last {
			last, still = now, 0
		} else if still++; still >= 30 {
			return now
		}
	}
}

func TestALineComesOutWithoutMoreToFollow(t *testing.T) {
	read, write := io.Pipe()
	l := NewRequestLog(write, clock.System())
	lines := bufio.NewScanner(read)
	for range 3 {
		l.Line(readOne())
		begun := time.Now()
		if !lines.Scan() || time.Since(begun) > 20*time.Second {
			t.Fatalf("no line: %v", lines.Err())
		}
		time.Sleep(logFlushEvery * 3 / 2) // and again from idle
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// torn takes part of one write and fails it.
type torn struct {
	bytes.Buffer
	failed bool
}

var errFull = errors.New("no space left on device")

func (w *torn) Write(p []byte) (int, error) {
	if !w.failed {
		w.failed = true
		n, _ := w.Buffer.Write(p[:20])
		return n, errFull
	}
	return w.Buffer.Write(p)
}

func TestAfterAFailedWriteLinesAreLinesAgain(t *testing.T) {
	w := &torn{}
	l := NewRequestLog(w, clock.System())
	l.Emit("first", nil)
	time.Sleep(20 * time.Millisecond)
	l.Emit("second", nil)
	if err := l.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close: %v", err)
	}
	lines := bytes.Split(bytes.TrimSpace(w.Bytes()), []byte("\n"))
	if last := lines[len(lines)-1]; len(lines) == 2 && !json.Valid(last) {
		t.Errorf("got %q", lines)
	}
}

func TestATokenInAPathIsNotLogged(t *testing.T) {
	ev := readOne()
	ev.Path = "/public/v1/custom/svc_whk_" + strings.Repeat("ab", 32) + "/x"
	line := string(appendLine(nil, ev))
	if strings.Contains(line, "abab") || !strings.Contains(line, `"path":"/public/v1/custom/[redacted]/x"`) {
		t.Error(line)
	}
}
