package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// point is a point in the processing of a delivery at which the process is killed, in
// the syntax of GATEHOUSE_KILL_AT.
type point struct {
	name, mode string
	at         string
	// stays is set if the delivery has taken effect when the process is killed there.
	stays bool
}

// points are the points that a delivery passes: in token mode to a component and, where
// the path differs, in signed mode to a flow. The second delivery reaches the point. A
// point that every statement passes is named after one within the delivery's own
// transaction: others may write between the end of a run and its transaction.
// The run's row is written after the answer.
var points = []point{
	{"token found", "token", "token.found#2", false},
	{"body read", "token", "token.body-read#2", false},
	{"alone with its key", "token", "delivery.locked#2", false},
	{"asked whether it was seen", "token", "delivery.is-new#2", false},
	{"run begun", "token", "run.begun#2", false},
	{"component found", "token", "run.component#2", false},
	{"run ended", "token", "run.ended#2", false},
	{"transaction begun", "token", "commit.begun#2", false},
	{"after the first statement", "token", "commit.begun#2,tx.statement", false},
	{"after the third statement", "token", "commit.begun#2,tx.statement#3", false},
	{"after the records", "token", "commit.records-done#2", false},
	{"after the event", "token", "commit.event-written#2", false},
	{"after the key", "token", "commit.key-written#2", false},
	{"before COMMIT", "token", "commit.key-written#2,tx.before-commit", false},
	{"after COMMIT", "token", "commit.key-written#2,tx.committed", true},
	{"before the answer", "token", "delivery.before-answer#2", true},
	{"before the run's row", "token", "history.before-row", true},
	{"within the run's row", "token", "history.before-row,tx.statement", true},
	{"after the run's row", "token", "history.after-row", true},
	{"body read, signed", "signed", "signed.body-read#2", false},
	{"signature verified", "signed", "signed.verified#2", false},
	{"inside a host call", "signed", "run.component#2", false},
	{"after the key, signed", "signed", "commit.key-written#2", false},
	{"before COMMIT, signed", "signed", "commit.key-written#2,tx.before-commit", false},
	{"after COMMIT, signed", "signed", "commit.key-written#2,tx.committed", true},
	{"before the answer, signed", "signed", "delivery.before-answer#2", true},
}

// A delivery that is repeated until it is acknowledged takes effect once, at whatever
// point the server was killed.
func TestProveEveryDeliveryTakesEffectOnce(t *testing.T) {
	together(t)
	asShipped(t)
	failing := failingProgram(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "ONCE-1", engine)
		s := newShop(t, engine, 1)
		k, some := &killer{p: p, s: s, failing: failing}, 2
		if engine == db.Postgres && !proving {
			k.standing, some = s.start(), 4 // a start is slow there
		}
		for range scale(1, 10) {
			for i, pt := range points {
				if p.tries(i, some) {
					k.killAt(pt)
				}
			}
		}
		p.add("deliveries", k.count)
		if engine == db.SQLite {
			integrity(p, filepath.Join(s.dir, db.FileName))
		}
	})
}

// failingProgram builds the program with its failpoints. A broken one that is given
// in its place must have them too.
func failingProgram(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("GATEHOUSE_PROVE_BINARY"); given != "" {
		return given
	}
	shipped := program(t) // in whose folder this one is
	path, err := failingBinary()
	if err != nil {
		t.Fatalf("build the program with its failpoints: %v", err)
	}
	hasFailpoints(t, path, true)
	hasFailpoints(t, shipped, false)
	return path
}

var failingBinary = sync.OnceValues(func() (string, error) {
	path := built + "-failing"
	out, err := exec.Command("go", "build", "-p", "2", "-buildvcs=false", "-tags", "failpoints", "-o", path, "gatehouse/cmd/gatehouse").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// hasFailpoints checks that a program contains all of the failpoints, or no trace of them.
func hasFailpoints(t *testing.T, path string, want bool) {
	t.Helper()
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"GATEHOUSE_KILL_AT"}
	for _, pt := range points {
		for step := range strings.SplitSeq(pt.at, ",") {
			name, _, _ := strings.Cut(step, "#")
			words = append(words, name)
		}
	}
	for _, word := range words {
		if bytes.Contains(code, []byte(word)) != want {
			t.Errorf("%q is in the program: %v, want %v", word, !want, want)
		}
	}
}

// launchFailing starts the program with failpoints, set to be killed at one of them.
func (w *world) launchFailing(failing, at string) *node {
	w.t.Helper()
	like := w.command(context.Background(), "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0")
	base := filepath.Join(w.logs, "failing")
	n := &node{w: w, exited: make(chan struct{}), out: base + ".out", errors: base + ".err", started: time.Now()}
	n.cmd = exec.CommandContext(context.Background(), failing, like.Args[1:]...)
	n.cmd.Env = append(slices.Clone(w.env), "GATEHOUSE_KILL_AT="+at)
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err1 := os.Create(n.out)
	stderr, err2 := os.Create(n.errors)
	n.cmd.Stdout, n.cmd.Stderr = stdout, stderr
	if err := errors.Join(err1, err2, n.cmd.Start(), stdout.Close(), stderr.Close()); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait() // ProcessState has the outcome
		close(n.exited)
	}()
	w.t.Cleanup(n.kill)
	if !n.await(time.Minute) {
		w.t.Fatalf("the server is not ready; it says: %s%s", n.stdout(), n.stderr())
	}
	return n
}

// killer kills at points.
type killer struct {
	p       *proof
	s       *shop
	failing string
	count   int // of deliveries
	// standing is another node, to which deliveries are repeated; if it is nil, the
	// killed node is restarted. A start is slow on PostgreSQL, where the compiled engine
	// is not cached, and a node keeps all its state in the database.
	standing *node
}

// killAt sends a first delivery, kills the server at a point of the second, and repeats
// both to another server.
func (k *killer) killAt(pt point) {
	p, s := k.p, k.s
	p.t.Helper()
	p.tried(1)
	refs := []string{fmt.Sprintf("%s %d", pt.name, k.count+1), fmt.Sprintf("%s %d", pt.name, k.count+2)}
	if strings.HasPrefix(pt.at, "history.") { // the first delivery reaches the point, after its answer
		refs = refs[:1]
	}
	events := map[string]string{}
	n := s.launchFailing(k.failing, pt.at)
	was := audited(p, s, n)
	c := provider()
	for _, ref := range refs {
		a, err := s.deliver(c, n.public, pt.mode, ref, s.counters[0])
		if err != nil {
			continue // the server died before it answered
		}
		if id, receipt := a.acknowledged(); receipt {
			events[ref] = id
		} else {
			p.fail("%s: the first answer: %s", pt.name, a)
		}
	}
	c.CloseIdleConnections()
	if events[refs[0]] == "" {
		p.fail("%s: the first delivery was not acknowledged: %s", pt.name, n.stderr())
	}
	p.add("killed_unanswered", len(refs)-len(events))
	k.died(n, pt)
	if n = k.standing; n == nil {
		gone(p.t, s.world, backends(p.t, s.world))
		n = s.start()
		defer n.kill()
		p.most("ready", n.ready)
	}
	for _, ref := range refs {
		k.count++
		redeliver(p, s, n, pt, ref, events[ref], pt.stays || ref == refs[0])
	}
	check(p, s, n, pt.name, was.and(len(refs)), refs...)
}

// died waits for the process to end and checks that it was killed at the point. If it was
// not, the delivery does not pass the point.
func (k *killer) died(n *node, pt point) {
	k.p.t.Helper()
	n.end(5 * time.Second)
	last, _, _ := strings.Cut(pt.at[strings.LastIndex(pt.at, ",")+1:], "#")
	if n.running() || !strings.Contains(n.stderr(), "killed at "+last+"\n") {
		k.p.fail("%s: the process did not die there: %s", pt.name, n.stderr())
		n.kill()
	}
}

// redeliver sends a delivery twice at once and then twice more. All answers must name one
// event, which must be the acknowledged one if there was one. Exactly one answer must be
// a receipt, or none if the delivery had taken effect before.
func redeliver(p *proof, s *shop, n *node, pt point, ref, event string, stays bool) {
	p.t.Helper()
	c := provider()
	defer c.CloseIdleConnections()
	answers := make([]*answer, 4)
	var wait sync.WaitGroup
	send := func(i int) {
		a, err := s.deliver(c, n.public, pt.mode, ref, s.counters[0])
		if err != nil {
			p.fail("%s: %v", ref, err)
			return
		}
		answers[i] = a
	}
	wait.Go(func() { send(0) })
	wait.Go(func() { send(1) })
	wait.Wait()
	send(2)
	send(3)
	receipts := 0
	for _, a := range answers {
		if a == nil {
			continue
		}
		id, receipt := a.acknowledged()
		if receipt {
			receipts++
		}
		if event == "" {
			event = id
		}
		if id == "" || id != event {
			p.fail("%s: event %q, want %q: %s", ref, id, event, a)
		}
	}
	if want := map[bool]int{false: 1}[stays]; receipts != want {
		p.fail("%s: %d receipts after the kill, want %d", ref, receipts, want)
	}
}

// audited returns what the books of a serving shop say.
func audited(p *proof, s *shop, n *node) books {
	p.t.Helper()
	c := n.client(s.token)
	defer c.close()
	b, err := s.kept(c)
	if err != nil {
		p.fail("the books: %v", err)
	}
	return b
}

// check compares the books with the expected ones, and checks the effects of some
// deliveries one by one.
func check(p *proof, s *shop, n *node, when string, want books, refs ...string) {
	p.t.Helper()
	if is := audited(p, s, n); is != want {
		p.fail("%s: %+v, want %+v", when, is, want)
	}
	c := n.client(s.token)
	defer c.close()
	for _, ref := range refs {
		list, err := halves(c, ref)
		slices.Sort(list)
		if err != nil || !slices.Equal(list, []int{1, 2}) {
			p.fail("%s: the effects of %q are %v: %v", when, ref, list, err)
		}
	}
	if n.panicked() {
		p.fail("%s: panic: %s%s", when, n.stdout(), n.stderr())
	}
}
