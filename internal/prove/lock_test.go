package prove

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// A second server on one folder is refused with one clear line, and commands work beside
// the first one. kill -9 leaves no lock.
func TestProveSecondServer(t *testing.T) {
	underRace(t)
	together(t)
	p := begin(t, "DUR-6", db.SQLite)
	w, f := fresh(t, db.SQLite), newFleet(p, 4)
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { f.load(ctx, c, func() bool { return false }) })
	for range scale(10, 100) {
		p.tried(1)
		second := w.launch()
		code := second.end(10 * time.Second)
		if words := second.stderr(); code != 1 || strings.Count(words, "\n") != 1 || !strings.Contains(words, w.dir) || second.stdout() != "" {
			p.fail("a second server: exit %d, %q %q", code, second.stdout(), words)
			second.kill()
			break
		}
		begun := time.Now()
		if _, words, code := w.run("user", "list", "--tenant", "acme"); code != 0 {
			p.fail("user list beside the server: exit %d: %s", code, words)
		}
		if _, words, code := w.run("key", "create", "--tenant", "acme", "--user", owner, "--name", "beside"); code != 0 {
			p.fail("key create beside the server: exit %d: %s", code, words)
		}
		p.most("two_commands", time.Since(begun))
	}
	cancel()
	wait.Wait()
	for range scale(5, 50) {
		p.tried(1)
		n.kill()
		if n = w.launch(); !n.await(10 * time.Second) {
			p.fail("after kill -9 the folder is not free: %s", n.stderr())
			return
		}
	}
}
