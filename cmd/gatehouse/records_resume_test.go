package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest/program"
)

// An import that is interrupted says how it goes on.
func TestAnInterruptedImportSaysHowItGoesOn(t *testing.T) {
	eachStock(t, func(x *cli) {
		text := numbered(1000)
		at := strings.Index(text, "Item 650,")
		g := &gate{text: strings.NewReader(text[:at]), reached: make(chan struct{}), open: make(chan struct{}), rest: strings.NewReader(text[at:])}
		ctx, cancel := context.WithCancel(x.ctx())
		defer cancel()
		args := append(recordsOf("import", "item", "--user", "olga@stock.example", "-"), x.place...)
		var words bytes.Buffer
		code := make(chan int, 1)
		go func() { code <- run(ctx, args, func(name string) string { return x.env[name] }, g, io.Discard, &words) }()
		<-g.reached
		cancel() // while the input has nothing to read
		defer close(g.open)
		const want = "gatehouse: interrupted; what stands up to line 601 has had effect: the same command with --resume continues behind it\n"
		if c := <-code; c != 1 || words.String() != want {
			x.t.Errorf("%d %q", c, words.String())
		}
		if got := x.imports(text, "item", "--user", "olga@stock.example", "--restart", "--by", "code"); got != "400 created, 0 updated, 600 unchanged, 0 failed." {
			x.t.Errorf("begun anew: %s", got)
		}
	})
}

// An import that is killed again and again, at any moment, makes each record once.
func TestAKilledImportIsResumed(t *testing.T) {
	const n, kills = 6000, 8
	binary := program.Build(t)
	eachStock(t, func(x *cli) {
		text := withoutCodes(numbered(n))
		resumed := 0
		for trial := range kills {
			end := strings.Index(text, fmt.Sprintf("Item %d,", (trial+1)*n/kills-1))
			said := x.killed(binary, text[:end], time.Duration(rand.IntN(200))*time.Millisecond)
			if strings.Contains(said, "resumed behind line") {
				resumed++
			}
			x.t.Logf("%d records are there; it said %q", len(x.exported("item")), said)
		}
		if resumed == 0 {
			x.t.Error("none was resumed")
		}
		if got := x.imports(text, "item", "--user", "olga@stock.example", "--resume"); got != fmt.Sprintf("%s created, 0 updated, 0 unchanged, 0 failed.", thousands(n)) {
			x.t.Error(got)
		}
		x.eachOnce(n)
	})
}

// killed imports items from an input that does not end, resuming where something is known
// of it, and kills the program a while after it has stored something. It returns what the
// program said.
func (x *cli) killed(binary, text string, after time.Duration) string {
	x.t.Helper()
	args := append(recordsOf("import", "item", "--user", "olga@stock.example", "--batch", "20", "-"), x.place...)
	d := x.open().For("stock")
	done := func() (bytes int64) {
		err := d.Query(x.ctx(), `SELECT done_bytes FROM imports WHERE tenant_id = $1`, func(r db.Row) error { bytes = r.Int(0); return nil })
		if err != nil {
			x.t.Fatal(err)
		}
		return bytes
	}
	before := done()
	if before > 0 {
		args = append(args, "--resume")
	}
	command := exec.CommandContext(x.t.Context(), binary, args...)
	command.Env = os.Environ()
	for name, value := range x.env {
		command.Env = append(command.Env, name+"="+value)
	}
	var words bytes.Buffer
	command.Stderr = &words
	in, err := command.StdinPipe()
	if err != nil {
		x.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		x.t.Fatal(err)
	}
	fed := make(chan struct{})
	go func() {
		_, _ = io.WriteString(in, text) // it may be killed before it has read all
		close(fed)
	}()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	for done() == before {
		select {
		case err := <-ended:
			x.t.Fatalf("it has ended: %v: %s", err, words.String())
		case <-time.After(time.Millisecond):
		}
	}
	time.Sleep(after)
	if err := command.Process.Kill(); err != nil {
		x.t.Fatalf("it has ended: %v", err)
	}
	if err := <-ended; err == nil {
		x.t.Fatalf("it ended by itself: %s", words.String())
	}
	<-fed
	return words.String()
}

// withoutCodes makes the codes of numbered notes: a unique value would hide a second
// creation.
func withoutCodes(text string) string { return strings.Replace(text, "name,code,", "name,note,", 1) }

// eachOnce checks that the items of numbered are there, each once.
func (x *cli) eachOnce(n int) {
	x.t.Helper()
	times := map[any]int{}
	for _, m := range x.exported("item") {
		times[m["name"]]++
	}
	wrong, example := 0, ""
	for i := range n {
		if name := fmt.Sprint("Item ", i); times[name] != 1 {
			wrong++
			example = fmt.Sprintf("%s is there %d times", name, times[name])
		}
	}
	if wrong > 0 || len(times) != n {
		x.t.Errorf("%d items, of %d %d are not there once: %s", len(times), n, wrong, example)
	}
}

// gate is an input that stops at a place until it is opened.
type gate struct {
	text    io.Reader // what comes first
	reached chan struct{}
	open    chan struct{}
	rest    io.Reader
	once    sync.Once
}

func (g *gate) Read(p []byte) (int, error) {
	if n, err := g.text.Read(p); n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	g.once.Do(func() { close(g.reached) })
	<-g.open
	return g.rest.Read(p)
}

// An import ends where it could not begin any more, because each record behind it would
// fail, and goes on from there.
func TestAnImportEndsWhereItCouldNotBegin(t *testing.T) {
	const parts = "{name: parts, type: json}"
	eachStock(t, func(x *cli) {
		for i, c := range []struct{ change, why, who string }{
			{strings.ReplaceAll(stock, ", "+parts, ""), `gatehouse: the header: "parts": unknown field; `, "carl@stock.example"},
			{strings.ReplaceAll(stock, parts, "{name: parts, type: text}"), "gatehouse: the fields of item have changed; ", "carl@stock.example"},
			{strings.Replace(stock, "create: true", "create: false", 1), "gatehouse: you may not create records of item; ", "olga@stock.example"},
		} {
			text := fmt.Sprintf("name,code,parts\nfirst %d,,\n%s", i, strings.Repeat("next,,\n", 29))
			at := len(text) - len("next,,\n")*10
			g := &gate{text: strings.NewReader(text[:at]), reached: make(chan struct{}), open: make(chan struct{}), rest: strings.NewReader(text[at:])}
			args := append(recordsOf("import", "item", "--user", "carl@stock.example", "--batch", "10", "-"), x.place...)
			var words bytes.Buffer
			code := make(chan int, 1)
			go func() {
				code <- run(x.ctx(), args, func(name string) string { return x.env[name] }, g, io.Discard, &words)
			}()
			<-g.reached
			x.stdin = c.change
			x.ok("apply", "-f", "-")
			close(g.open)
			if got := <-code; got != 1 || !strings.HasPrefix(words.String(), c.why+"what stands up to line 21 has had effect: ") {
				x.t.Errorf("%d %q", got, words.String())
			}
			if got := x.imports(text, "item", "--user", c.who, "--resume", "--ignore=parts"); got != "30 created, 0 updated, 0 unchanged, 0 failed." {
				x.t.Errorf("resumed: %s", got)
			}
			x.stdin = stock
			x.ok("apply", "-f", "-")
		}
	})
}

// Two processes that import one input at once make each record once: where the import
// stands changes together with the records, and only from where the process knows it.
func TestOneOfTwoImportsOfAnInputGoesOn(t *testing.T) {
	eachStock(t, func(x *cli) {
		text := withoutCodes(numbered(1000))
		args := append(recordsOf("import", "item", "--user", "olga@stock.example", "-"), x.place...)
		at := strings.Index(text, "Item 650,")
		g := &gate{text: strings.NewReader(text[:at]), reached: make(chan struct{}), open: make(chan struct{}), rest: strings.NewReader(text[at:])}
		env := func(name string) string { return x.env[name] }
		var words bytes.Buffer
		first := make(chan int, 1)
		go func() { first <- run(x.ctx(), args, env, g, io.Discard, &words) }()
		<-g.reached
		x.stdin = text
		x.fails(1, "an import of this input runs, or was interrupted, behind line 601: --resume continues it", recordsOf("import", "item", "--user", "olga@stock.example", "-")...)
		x.stdin = strings.Replace(text, "Item 3,", "Item three,", 1)
		x.fails(1, "this input differs from the one that was interrupted", recordsOf("import", "item", "--user", "olga@stock.example", "--resume", "-")...)
		if got := x.imports(text, "item", "--user", "olga@stock.example", "--resume"); got != "1,000 created, 0 updated, 0 unchanged, 0 failed." {
			x.t.Error(got)
		}
		close(g.open)
		if code := <-first; code != 1 || words.String() != "gatehouse: another process is importing this input\n" {
			x.t.Errorf("the first: %d %s", code, words.String())
		}
		x.eachOnce(1000)
		if got := x.imports(text, "item", "--user", "olga@stock.example", "--resume"); got != "1,000 created, 0 updated, 0 unchanged, 0 failed." {
			x.t.Errorf("once more: %s", got)
		}
		x.eachOnce(1000)
	})
}

// A correction behind the place where an import stopped does not keep it from going on.
func TestAnInputIsCorrectedAndResumed(t *testing.T) {
	eachStock(t, func(x *cli) {
		text := numbered(400)
		broken := strings.Replace(text, "Item 300,", `"Item 300,`, 1)
		as := []string{"--user", "olga@stock.example", "-"}
		x.stdin = broken
		x.fails(1, "line 302: a quotation mark begins a cell that does not end before the end of the input; what comes behind it cannot be read; what stands up to line 301 has had effect",
			recordsOf("import", "item", as...)...)
		if got := x.imports(text, "item", "--user", "olga@stock.example", "--resume"); got != "400 created, 0 updated, 0 unchanged, 0 failed." {
			x.t.Error(got)
		}
		x.eachOnce(400)
	})
}
