package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest/enginecache"
	"gatehouse/internal/gatetest/program"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

const greetManifest = acmeManifest + `
logic_components:
  - {name: greet, inputs: [{name: name, type: text, required: true}], secrets: {SIGNATURE: "${SIGNATURE}"}, source_file: src/greet.js}
custom_endpoints:
  - {slug: greet, target: {component: greet}}
`

const greetModule = greetManifest + "modules: [{name: words, source_file: src/words.js}]\n"

// greetSource is a component that says a word, and the length of its secret.
func greetSource(word string) string {
	return "export default ({name}) => ({said: `" + word + " ${name}`, signed: secrets.SIGNATURE.length})\n"
}

// author edits a manifest and its sources while `gatehouse dev` runs.
type author struct {
	*cli
	folder watched
	file   string // the manifest
	url    string
	key    string
	words  lockedBuffer
	read   int // how much of words has been looked at
	stop   func()
}

// develops starts `gatehouse dev` on the folder's acme.yaml, and waits until it serves.
func (x *cli) develops(dir string, args ...string) *author {
	x.t.Helper()
	a := &author{cli: x, folder: watched{T: x.t, dir: dir}, file: filepath.Join(dir, "acme.yaml")}
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.ctx()))
	done := make(chan int, 1)
	args = append([]string{"dev", "-f", a.file, "--listen", "127.0.0.1:0"}, append(args, x.place...)...)
	go func() {
		done <- run(ctx, args, func(name string) string { return x.env[name] }, strings.NewReader(""), &lockedBuffer{}, &a.words)
	}()
	a.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-done; code != 0 {
			x.t.Errorf("dev: status %d: %s", code, a.words.String())
		}
	})
	x.t.Cleanup(a.stop)
	a.url = regexp.MustCompile(`http://\S+`).FindString(a.until("serves "))
	return a
}

// until waits for a line that begins with a text, and returns it with what was printed
// before it since the last call.
func (a *author) until(begin string) string {
	a.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text := a.words.String()[a.read:]
		at := strings.Index("\n"+text, "\n"+begin)
		if at < 0 {
			continue
		}
		if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
			a.read += at + end + 1
			return text[:at+end+1]
		}
	}
	a.t.Fatalf("it did not print %q: %s", begin, a.words.String())
	return ""
}

// says waits for the end of an apply, which is a line that begins with a text, and fails
// the test if what was printed up to there has no match for a pattern.
func (a *author) says(end, pattern string) {
	a.t.Helper()
	if text := a.until(end); !regexp.MustCompile(pattern).MatchString(text) {
		a.t.Errorf("no match for %s: %s", pattern, text)
	}
}

// greets fails the test unless the component answers with a word.
func (a *author) greets(word string) {
	a.t.Helper()
	want := fmt.Sprintf(`{"data":{"said":"%s Ada","signed":16},"meta":{}}`, word)
	if answer := a.call(); answer != want {
		a.t.Errorf("answered %s, want %s", answer, want)
	}
}

// call calls the component, and returns the answer.
func (a *author) call() string {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.ctx(), http.MethodPost, a.url+"/public/v1/custom/greet", strings.NewReader(`{"name": "Ada"}`))
	if err != nil {
		a.t.Fatal(err)
	}
	r.Host = "acme.localhost"
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + a.key}}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return strings.TrimSpace(string(body))
}

// TestDevAppliesEachChange edits as an author does. Files are replaced by a rename, so that
// none is seen half-written and each change is one apply.
func TestDevAppliesEachChange(t *testing.T) {
	each(t, func(x *cli) {
		dir := t.TempDir()
		types := filepath.Join(dir, "gatehouse.d.ts")
		x.env["SIGNATURE"] = "sixteen letters!"
		folder := watched{T: x.t, dir: dir}
		folder.save("acme.yaml", greetManifest)
		folder.save("src/greet.js", greetSource("Hello"))

		a := x.develops(dir, "--types", types)
		a.says("applied\n", `(?m)^applying .*/acme\.yaml\ncreate logic component greet\ncreate custom endpoint greet\napplied\n$`)
		key, _ := x.ok("key", "create", "--tenant", "acme", "--user", "sam@acme.example", "--name", "test", "--rate-limit", "10000")
		a.key = strings.TrimSpace(key)
		a.greets("Hello")
		if text, err := os.ReadFile(types); err != nil || !strings.Contains(string(text), "greet") {
			t.Errorf("the declarations are %s, %v", text, err)
		}

		folder.replace("src/greet.js", greetSource("Good day"))
		for !strings.Contains(a.words.String()[a.read:], "applied") { // so that what the server keeps of the tenant is no older
			a.call()
		}
		a.says("applied\n", `(?m)^update logic component greet: source sha256:`)
		a.greets("Good day")

		folder.replace("src/greet.js", "export default () => ({\n  said: oops oops })\n")
		a.says("not applied", `(?m)^`+regexp.QuoteMeta(filepath.Join(dir, "src", "greet.js"))+`:2:\d\d: SyntaxError: .*\nnot applied, the configuration stays as it was: 1 mistake\n$`)
		a.greets("Good day")
		folder.replace("src/greet.js", greetSource("Good evening"))
		a.says("applied\n", `(?m)^update logic component greet`)
		a.greets("Good evening")

		folder.replace("acme.yaml", strings.Replace(greetManifest, "roles:", "  rolls:", 1))
		a.says("not applied", regexp.QuoteMeta(a.file)+`:\d+:\d+: not YAML: .*\n`)
		folder.replace("acme.yaml", strings.Replace(greetManifest, "name: greet, ", "name: greet, tiemout_ms: 1, ", 1)+"rolls: []\n")
		a.says("not applied", `(?m)^`+regexp.QuoteMeta(a.file)+`:16:19: .*"tiemout_ms".*\n`+regexp.QuoteMeta(a.file)+`:19:1: unknown key "rolls".*\nnot applied, .*: 2 mistakes\n$`)
		a.greets("Good evening")

		folder.replace("acme.yaml", greetModule)
		a.says("not applied", `acme\.yaml:19:38: .*src/words\.js.*no such file`)
		folder.replace("src/words.js", `export const word = "Welcome"`)
		a.says("applied\n", `(?m)^create module words\n`)
		folder.replace("src/greet.js", `import {word} from "words"; `+greetSource("${word}"))
		a.says("applied\n", `(?m)^update logic component greet`)
		a.greets("Welcome")
		folder.replace("src/words.js", `export const word = "Ahoy"`)
		a.says("applied\n", `(?m)^update module words: .*\nupdate logic component greet: imports\.words `)
		a.greets("Ahoy")

		folder.remove("src/words.js")
		a.says("not applied", `no such file`)
		a.greets("Ahoy")
		folder.replace("src/words.js", `export const word = "Ahoy"`)
		a.says("applied\n", `(?m)^nothing changed$`)

		folder.replace("acme.yaml", strings.Replace(greetModule, "${SIGNATURE}", "${NOT_SET}", 1))
		a.says("not applied", `acme\.yaml:16:92: .*NOT_SET is not set`)
		a.stop()
		if rest := a.words.String()[a.read:]; rest != "" {
			t.Errorf("at the end it printed %s", rest)
		}
	})
}

// TestDevAppliesWhatIsWrittenInPlace checks that a file is applied in the end which is
// emptied and then written, as many editors and scripts do.
func TestDevAppliesWhatIsWrittenInPlace(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	dir := t.TempDir()
	folder := watched{T: t, dir: dir}
	folder.save("acme.yaml", "")
	a := x.develops(dir)
	a.says("not applied", `acme\.yaml:1:1: the manifest is empty`)
	folder.save("acme.yaml", "tenant: acme\n")
	a.until("create tenant acme\napplied\n")
	for _, name := range []string{"one", "two", "three"} {
		folder.save("acme.yaml", "")
		folder.save("acme.yaml", "tenant: acme\n")
		folder.save("acme.yaml", "tenant: acme\nroles: [{name: "+name+"}]\n")
		a.until("create role " + name + "\napplied\n")
	}
	folder.remove("acme.yaml")
	a.until("not applied, the configuration stays as it was: open " + a.file + ": no such file")
	folder.pipe("a.js") // neither is waited for
	folder.save("acme.yaml", "tenant: acme\nmodules: [{name: a, source_file: a.js}]\n")
	a.says("not applied", `acme\.yaml:2:34: source_file: a\.js is no file\n`)
	folder.remove("acme.yaml")
	folder.pipe("acme.yaml")
	a.until("not applied, the configuration stays as it was: " + a.file + " is no file")
	folder.remove("acme.yaml")
	folder.save("acme.yaml", "tenant: acme\nroles: [{name: four}]\n")
	a.until("create role four\napplied\n")
}

func TestDevPrunesOnlyWhenAsked(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	folder := watched{T: t, dir: t.TempDir()}
	const two, one = "tenant: acme\nroles: [{name: one}, {name: two}]\n", "tenant: acme\nroles: [{name: one}]\n"
	folder.save("acme.yaml", two)
	a := x.develops(folder.dir)
	a.says("applied\n", "create role two\n")
	folder.replace("acme.yaml", one)
	a.says("applied\n", "nothing changed\n")
	a.stop()
	a = x.develops(folder.dir, "--prune")
	a.says("applied\n", "delete role two\n")
}

// TestDevEndsDuringAnApply checks that a signal during an apply ends the command with
// status 0, and leaves the tenant as it was or as it should be.
func TestDevEndsDuringAnApply(t *testing.T) {
	each(t, func(x *cli) {
		before, _ := x.ok("export", "--tenant", "acme")
		folder := watched{T: x.t, dir: t.TempDir()}
		src := acmeManifest + "logic_components:\n"
		for i := range 20 { // each compiles for a while
			src += fmt.Sprintf("  - {name: c%d, source: \"for (let i = 0; i < 3e5; i++); export default () => %d\"}\n", i, i)
		}
		folder.save("acme.yaml", src)
		a := x.develops(folder.dir)
		a.until("applying ")
		a.stop()
		after, _ := x.ok("export", "--tenant", "acme")
		if words := a.words.String(); strings.Contains(words, "\napplied\n") == (after == before) || strings.Contains(words, "\nnot applied: ") != (after == before) {
			t.Errorf("it printed %s, and the tenant is\n%s", words, after)
		}
		if after != before && !strings.Contains(after, "name: c19") {
			t.Errorf("a part was applied:\n%s", after)
		}
	})
}

// TestDevWaitsForAnApplyThatRuns checks that the command, which closes the database at its
// end, does not end while an apply goes on.
func TestDevWaitsForAnApplyThatRuns(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	folder := watched{T: t, dir: t.TempDir()}
	folder.save("acme.yaml", acmeManifest)
	ctx, cancel := context.WithCancel(t.Context())
	words := &heldWords{at: "applying ", reached: make(chan struct{}), release: make(chan struct{})}
	done := make(chan int, 1)
	args := append([]string{"dev", "-f", filepath.Join(folder.dir, "acme.yaml"), "--listen", "127.0.0.1:0"}, x.place...)
	go func() {
		done <- run(ctx, args, func(name string) string { return x.env[name] }, strings.NewReader(""), io.Discard, words)
	}()
	<-words.reached
	cancel()
	select {
	case <-done:
		t.Error("it ended while an apply went on")
		close(words.release)
	case <-time.After(time.Second): // without the wait it ends much sooner
		close(words.release)
		if code := <-done; code != 0 {
			t.Errorf("status %d: %s", code, words.String())
		}
	}
}

// heldWords are words of which one line is held up: it is reached, and goes on at release.
type heldWords struct {
	lockedBuffer
	at               string // how the line begins
	reached, release chan struct{}
}

func (w *heldWords) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte(w.at)) {
		close(w.reached)
		<-w.release
	}
	return w.lockedBuffer.Write(p)
}

// TestSIGTERMEndsDev sends the signal to the program itself.
func TestSIGTERMEndsDev(t *testing.T) {
	folder := watched{T: t, dir: t.TempDir()}
	folder.save("acme.yaml", acmeManifest)
	command := exec.Command(program.Build(t), "dev", "-f", "acme.yaml", "--listen", "127.0.0.1:0")
	command.Dir = folder.dir
	command.Env = append(os.Environ(), "GATEHOUSE_CACHE="+enginecache.Dir())
	program.Serve(t, command) // which fails the test if the status is not 0
}

func TestDevRefusesWhatItCannotWatch(t *testing.T) {
	dir := t.TempDir()
	x := newCLI(t, db.Config{Dir: filepath.Join(dir, "data")})
	x.fails(2, "expected -f FILE", "dev")
	x.fails(2, "--file -: expected a file", "dev", "-f", "-")
	x.fails(2, "expected a file", "dev", "-f", dir)
	x.fails(1, "no such file", "dev", "-f", filepath.Join(dir, "acme.yaml"))
	file := x.file("tenant: acme\n")
	x.fails(2, "expected a name that ends in .d.ts", "dev", "-f", file, "--types", file)
	if _, err := os.Stat(x.config.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused command made a data folder: %v", err)
	}
}
