package prove

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// When the power fails at any moment, everything acknowledged before it is there afterwards, no change
// is there in part, and the folder is served at once. What is left on the disk is worked out from what
// the program wrote and synced; see disk.
func TestProvePowerLoss(t *testing.T) {
	asShipped(t)
	together(t)
	canTrace(t)
	p := begin(t, "DUR-6", db.SQLite)
	for range scale(1, 20) {
		loadWithoutPower(t, p, scale(6, 100))
	}
}

// A first start, the power fails: the next one begins anew or goes on, and what the commands said is so.
func TestProvePowerLossAtFirst(t *testing.T) {
	asShipped(t)
	together(t)
	canTrace(t)
	p := begin(t, "DUR-6-first", db.SQLite)
	for range scale(1, 4) {
		firstWithoutPower(t, p, scale(4, 50))
	}
}

// A write or a sync fails at any moment. Nothing is acknowledged that is not there after a crash, and nothing that
// was refused without an unknown outcome is.
func TestProveIOErrors(t *testing.T) {
	asShipped(t)
	together(t)
	canTrace(t)
	p := begin(t, "DUR-7", db.SQLite)
	// The worst moment: the log was written and not synced, the change is refused, and then the server dies.
	loadWithErrors(t, p, true, "fsync:error=EIO:when=4+")
	for range scale(2, 200) {
		call := []string{"pwrite64", "pwrite64", "fsync", "fsync", "ftruncate"}[p.rand.IntN(5)]
		code := []string{"EIO", "ENOSPC"}[p.rand.IntN(2)]
		if call == "fsync" {
			code = "EIO"
		}
		when := fmt.Sprint(1 + p.rand.IntN(60)) // of each thread
		switch p.rand.IntN(3) {
		case 0: // every so often
			when += "+" + fmt.Sprint(1+p.rand.IntN(40))
		case 1: // from then on
			when += "+"
		}
		loadWithErrors(t, p, p.rand.IntN(2) == 0, call+":error="+code+":when="+when)
	}
}

func loadWithoutPower(t *testing.T, p *proof, crashes int) {
	t.Helper()
	w := fresh(t, db.SQLite)
	before, f := readDisk(t, w.dir), newFleet(p, 8)
	ops, ended := tracedLoad(t, p, w, f, p.between(1500*time.Millisecond, 2500*time.Millisecond), never)
	for _, op := range ops {
		switch {
		case op.kind == opSync && filepath.Base(op.path) == db.FileName:
			p.add("checkpoints", 1)
		case op.kind == opSync:
			p.add("syncs", 1)
		case op.kind == opWrite:
			p.add("writes", 1)
		}
	}
	for range crashes {
		p.tried(1)
		crash := crashPoint(p, ops)
		after := w.at(t, filepath.Join(t.TempDir(), "data"))
		left := before.clone()
		left.run(ops, crash, p.rand)
		left.write(t, p.rand, after.dir)
		low, high := f.markAt(instant(ops, crash, ended))
		n := after.launch()
		if !n.await(time.Minute) {
			p.fail("operation %d of %d: not served: %s%s", crash, len(ops), n.stdout(), n.stderr())
			n.kill()
			continue
		}
		failed := p.failures
		verifyAt(p, n, after, f, low, high)
		auditRead(p, after)
		n.kill()
		integrity(p, filepath.Join(after.dir, db.FileName))
		if p.failures > failed {
			p.fail("this was the crash before operation %d of %d", crash, len(ops))
		}
		if err := os.RemoveAll(after.dir); err != nil {
			t.Fatal(err)
		}
	}
}

func never(*answer) bool { return false }

// tracedLoad lets a fleet write to a traced node for a while, or until an answer is the last; then it kills the
// node, and returns what that did to its folder, and when it was killed.
func tracedLoad(t *testing.T, p *proof, w *world, f *fleet, long time.Duration, last func(*answer) bool, inject ...string) (ops []*diskOp, ended time.Time) {
	t.Helper()
	tr := w.trace(t, inject...)
	n := w.launch()
	if !n.await(time.Minute) {
		if len(inject) == 0 {
			t.Fatalf("the server is not ready; it says: %s%s", n.stdout(), n.stderr())
		}
		p.add("not_started", 1)
		n.kill()
		return tr.end(t), time.Now()
	}
	c := n.client(w.token)
	defer c.close()
	before := f.acknowledged()
	var killed atomic.Bool
	kill := sync.OnceFunc(func() { killed.Store(true); n.kill() })
	c.note = func(a *answer) {
		if last(a) {
			kill()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	time.AfterFunc(long, kill)
	f.load(ctx, c, killed.Load)
	<-n.exited
	if n.panicked() {
		p.fail("panic: %s%s", n.stdout(), n.stderr())
	}
	p.add("acknowledged", f.acknowledged()-before)
	return tr.end(t), time.Now()
}

// crashPoint chooses the operation before which the power fails: any, or one near a sync.
func crashPoint(p *proof, ops []*diskOp) int {
	at := p.rand.IntN(len(ops) + 1)
	if p.rand.IntN(2) == 0 {
		return at
	}
	for at < len(ops) && ops[at].kind != opSync {
		at++
	}
	return max(0, min(len(ops), at-2+p.rand.IntN(5)))
}

// instant returns the moment of a crash: whatever was answered before it had what came before.
func instant(ops []*diskOp, crash int, ended time.Time) time.Time {
	if crash < len(ops) {
		return ops[crash].begun
	}
	return ended
}

// at returns the same world in another folder.
func (w *world) at(t *testing.T, dir string) *world {
	return &world{t: t, engine: w.engine, dir: dir, logs: t.TempDir(), env: w.env, binary: w.binary, token: w.token}
}

// auditRead checks that the audit log can be read; its last entries may be gone.
func auditRead(p *proof, w *world) {
	p.t.Helper()
	if _, words, code := w.run("audit", "--tenant", "acme", "--json"); code != 0 {
		p.fail("audit: exit %d: %s", code, words)
	}
}

func firstWithoutPower(t *testing.T, p *proof, crashes int) {
	t.Helper()
	w := bare(t, db.SQLite)
	before := readDisk(t, w.dir)
	tr := w.trace(t)
	w.apply(manifest)
	ops, applied := tr.end(t), time.Now()
	tr = w.trace(t)
	w.token = w.key(owner)
	made, first := time.Now(), len(ops)
	for _, op := range tr.end(t) { // as one run of operations
		if op.returned != notYet {
			op.returned += first
		}
		ops = append(ops, op)
	}
	for i := range crashes {
		p.tried(1)
		crash := crashPoint(p, ops)
		switch i {
		case 0: // both commands have ended
			crash = len(ops)
		case 1: // the first has
			crash = first
		}
		at := instant(ops, crash, time.Now())
		after := w.at(t, filepath.Join(t.TempDir(), "data"))
		left := before.clone()
		left.run(ops, crash, p.rand)
		left.write(t, p.rand, after.dir)
		failed := p.failures
		firstAfter(p, after, at.After(applied), at.After(made))
		if p.failures > failed {
			p.fail("this was the crash before operation %d of %d", crash, len(ops))
		}
	}
}

// firstAfter checks what the commands said before the crash, and that they can be given again.
func firstAfter(p *proof, w *world, applied, made bool) {
	p.t.Helper()
	file := filepath.Join(w.logs, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		p.t.Fatal(err)
	}
	out, words, code := w.run("apply", "-f", file)
	if code != 0 {
		p.fail("apply again: exit %d: %s", code, words)
		return
	}
	if applied && strings.Contains(out, "create") {
		p.fail("what was applied is not there: %s", out)
	}
	if !made {
		w.token = w.key(owner)
	}
	n := w.launch()
	defer n.kill()
	if !n.await(time.Minute) {
		p.fail("not served: %s%s", n.stdout(), n.stderr())
		return
	}
	c := n.client(w.token)
	defer c.close()
	if a, err := c.do("GET", contact, ""); err != nil || a.status != http.StatusOK {
		p.fail("the key does not work: %v %v", a, err)
	}
}

// loadWithErrors injects an error into a load. atOnce: the server dies of the first refusal.
func loadWithErrors(t *testing.T, p *proof, atOnce bool, inject string) {
	t.Helper()
	p.tried(1)
	w := fresh(t, db.SQLite)
	w.env = append(w.env, "GOMAXPROCS=1") // strace counts by thread
	before, f := readDisk(t, w.dir), newFleet(p, 6)
	f.trusts, f.pause = true, 2*time.Millisecond
	ops, _ := tracedLoad(t, p, w, f, p.between(500*time.Millisecond, 1500*time.Millisecond), func(a *answer) bool {
		return atOnce && a.status == http.StatusServiceUnavailable
	}, inject)
	for _, op := range ops {
		if op.failed {
			p.add("errors", 1)
		}
	}
	after := w.at(t, filepath.Join(t.TempDir(), "data"))
	if atOnce || p.rand.IntN(2) == 0 { // a crash of the program
		if err := os.CopyFS(after.dir, os.DirFS(w.dir)); err != nil {
			t.Fatal(err)
		}
	} else { // and of the power
		before.run(ops, len(ops), p.rand)
		before.write(t, p.rand, after.dir)
	}
	n := after.start()
	failed := p.failures
	verifyAt(p, n, after, f, f.mark(true), f.mark(false))
	n.kill()
	integrity(p, filepath.Join(after.dir, db.FileName))
	if p.failures > failed {
		p.fail("this was with %s, at once: %v", inject, atOnce)
	}
}
