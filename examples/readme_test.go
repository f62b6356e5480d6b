package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestReadmesAsTyped does what the examples' READMEs say: the first shell block
// serves the example, the others are typed in another terminal, one after the
// other, as they stand. The JSON that follows a block is what its last curl
// answers. Only the port is another one.
func TestReadmesAsTyped(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "../scripts/need", "curl").CombinedOutput(); err != nil {
		t.Fatalf("need curl: %v: %s", err, out)
	}
	project := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "..", "-p", "2", "-buildvcs=false",
		"-o", filepath.Join(project, "bin", "gatehouse"), "./cmd/gatehouse").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(here, filepath.Join(project, "examples")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"order-intake", "iot-reading", "lead-form", "portal"} {
		t.Run(folder, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(folder, "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			blocks := shellBlocks(string(text))
			if folder == "portal" {
				blocks = portalBlocks(t, blocks)
			}
			if len(blocks) < 3 {
				t.Fatalf("README.md has %d shell blocks", len(blocks))
			}
			follow(t, project, blocks)
		})
	}
}

const documented = "127.0.0.1:8081"

// shellBlock is what is to be typed, and the JSON that follows it, if any.
type shellBlock struct{ text, answer string }

func shellBlocks(readme string) []shellBlock {
	var list []shellBlock
	fresh := false // no JSON was seen since the last shell block
	for _, m := range regexp.MustCompile("(?s)```(sh|json)\n(.*?)\n```").FindAllStringSubmatch(readme, -1) {
		if m[1] == "sh" {
			list = append(list, shellBlock{text: m[2]})
		} else if fresh {
			list[len(list)-1].answer = m[2]
		}
		fresh = m[1] == "sh"
	}
	return list
}

// customer is what a customer of the portal does in its pages, by hand; LINE is
// the README's line that finds the link in the newest mail.
const customer = `
api() { curl -s "http://127.0.0.1:8081/public/v1$1" -H 'Content-Type: application/json' "${@:2}"; }
member() { grep -o "\"$1\":\"[^\"]*" | cut -d'"' -f4; }
api /auth/register -d '{"email": "jo@customer.example", "password": "a bell, a basket", "name": "Jo"}'
for _ in {1..200}; do ls portal-data/outbox/*.eml >/dev/null 2>&1 && break; sleep 0.05; done
LINK=$(LINE)
[[ $LINK == http://127.0.0.1:8090/verify?token=* ]]
api /auth/verify -d '{"token": "'"${LINK#*token=}"'"}'
JO=$(api /auth/login -d '{"email": "jo@customer.example", "password": "a bell, a basket"}' | member accessToken)
ID=$(api /data/ticket -H "Authorization: Bearer $JO" -d '{"title": "Chain slips"}' | member id)`

// portalBlocks has the customer's part in the place of what starts the pages.
func portalBlocks(t *testing.T, blocks []shellBlock) []shellBlock {
	t.Helper()
	if len(blocks) != 4 || blocks[1].text != "go run ./examples/portal" || !strings.HasPrefix(blocks[2].text, "perl ") {
		t.Fatalf("the portal's README has other blocks: %q", blocks)
	}
	blocks[3].answer = ""
	return []shellBlock{blocks[0], {text: strings.Replace(customer, "LINE", blocks[2].text, 1)}, blocks[3]}
}

func follow(t *testing.T, project string, blocks []shellBlock) {
	t.Helper()
	home := t.TempDir()
	address := serveAsTyped(t, project, blocks[0].text)
	rc := fmt.Sprintf("connect-to = %q\nfail-with-body\nshow-error\n", documented+":"+address)
	if err := os.WriteFile(filepath.Join(home, ".curlrc"), []byte(rc), 0o600); err != nil {
		t.Fatal(err)
	}
	const end = "-- the end of a block --"
	var typed strings.Builder
	for _, b := range blocks[1:] {
		typed.WriteString(b.text + "\necho '" + end + "'\n")
	}
	command := exec.CommandContext(t.Context(), "bash", "-euc", typed.String())
	command.Dir = project
	command.Env = append(os.Environ(), "CURL_HOME="+home)
	var words bytes.Buffer
	command.Stderr = &words
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s\n%s", err, typed.String(), out, words.String())
	}
	for i, text := range strings.Split(string(out), end)[:len(blocks)-1] {
		last := lastJSON(t, text)
		if answer := blocks[1+i].answer; answer != "" {
			want(t, blocks[1+i].text, last, answer)
		}
	}
}

// lastJSON is the last of the answers in a text that has nothing else.
func lastJSON(t *testing.T, text string) (last any) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		last = v
	}
}

// serveAsTyped runs the block that serves an example, until the test ends. The
// program that `make server` makes is there already.
func serveAsTyped(t *testing.T, project, block string) (address string) {
	t.Helper()
	rest, built := strings.CutPrefix(block, "make server\n")
	if !built || strings.Count(rest, "--listen "+documented) != 1 {
		t.Fatalf("not a block that serves an example:\n%s", block)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// exec, so that the signal at the end reaches the server.
	typed := strings.Replace(strings.Replace(rest, documented, "127.0.0.1:0", 1), "bin/gatehouse serve", "exec bin/gatehouse serve", 1)
	command := exec.CommandContext(context.WithoutCancel(ctx), "bash", "-euc", typed)
	command.Dir = project
	var words bytes.Buffer
	command.Stderr = &words
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	listening, drained := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended; Wait tells
		<-drained
		if err := command.Wait(); err != nil {
			t.Errorf("%v\n%s\n%s", err, block, words.String())
		}
	})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var line struct{ Event, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == "server.listening" {
				listening <- line.Addr
			}
		}
		_, _ = io.Copy(io.Discard, out) // after a line too long for the scanner: the server must not wait for us
	}()
	select {
	case address = <-listening:
		return address
	case <-drained:
	case <-ctx.Done():
	}
	t.Fatalf("it does not listen:\n%s\n%s", block, words.String())
	return ""
}
