package prove

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// On a full disk writes are refused in the envelope, reads work, the log is not flooded,
// and everything works again once there is space.
func TestProveDiskFull(t *testing.T) {
	asShipped(t)
	together(t)
	for _, c := range []struct {
		id, manifest string
		// refuses is set if reads are refused, too: with the audit log on, once the log
		// buffers as much as it may. Nothing is served unrecorded, and nothing hangs.
		refuses bool
	}{
		{"DUR-4", strings.Replace(manifest, "log_standard_requests: true", "log_standard_requests: false", 1), false},
		{"DUR-4-audited", manifest, true},
	} {
		t.Run(c.id, func(t *testing.T) {
			p := begin(t, c.id, db.SQLite)
			w := bare(t, db.SQLite)
			w.dir = filepath.Join(smallDisk(t), "data")
			w.apply(c.manifest)
			w.token = w.key(owner)
			fillUp(t, p, w, c.refuses)
		})
	}
}

// smallDisk returns a folder on a small disk of its own.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Skipf("not proved on this machine: mounting a small disk is not permitted (%v)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func fillUp(t *testing.T, p *proof, w *world, refuses bool) {
	t.Helper()
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	f := newFleet(p, 4)
	f.pause = 5 * time.Millisecond // the records must not fill the small disk
	var full atomic.Bool
	var whole atomic.Pointer[time.Time] // since when there has been space again and everything has recovered
	var refused, read atomic.Int64
	c.note = func(a *answer) {
		if a.status == http.StatusServiceUnavailable {
			refused.Add(1)
			if since := whole.Load(); since != nil && a.sent.After(*since) {
				p.fail("refused %s after it had recovered: %s", a.sent.Sub(*since), a)
			}
			if wait, err := strconv.Atoi(a.header.Get("Retry-After")); a.code() != "OVERLOADED" || err != nil || wait < 1 || a.method == "GET" && !refuses {
				p.fail("on a full disk: %s, Retry-After %q", a, a.header.Get("Retry-After"))
			}
		}
		if a.method == "GET" && full.Load() {
			read.Add(1)
		}
		p.most("slowest", a.at.Sub(a.sent))
		if a.at.Sub(a.sent) > strictly(2*time.Second) {
			p.fail("%s for the answer of %s %s", a.at.Sub(a.sent), a.method, a.path)
		}
	}
	f.settles = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() { f.load(ctx, c, func() bool { return false }) })
	time.Sleep(300 * time.Millisecond)
	rounds := scale(1, 10)
	for range rounds {
		p.tried(1)
		full.Store(true)
		whole.Store(nil)
		filler := fill(t, filepath.Dir(w.dir))
		if room := free(t, filepath.Dir(w.dir)); room > 64<<10 {
			t.Fatalf("%d bytes are free on the full disk", room)
		}
		before := strings.Count(n.stdout(), "\n")
		time.Sleep(4 * time.Second)
		if lines := strings.Count(n.stdout(), "\n") - before; lines > 3*5 {
			p.fail("%d lines in the log within 4 s", lines)
		} else {
			p.add("log_lines", lines)
		}
		acks := f.acknowledged()
		space := time.Now()
		full.Store(false)
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if room := free(t, filepath.Dir(w.dir)); room < 8<<20 {
			t.Fatalf("the database itself has filled the disk: %d bytes are free", room)
		}
		for f.acknowledged() == acks && time.Since(space) < patience {
			time.Sleep(10 * time.Millisecond)
		}
		p.most("written", time.Since(space))
		// The recovery is complete when the audit log is written, too. Until then the
		// server may refuse requests.
		for failing(p, n) && time.Since(space) < patience {
			time.Sleep(10 * time.Millisecond)
		}
		now := time.Now()
		whole.Store(&now)
		p.most("recovered", now.Sub(space))
		if now.Sub(space) > strictly(5*time.Second) {
			p.fail("it took %s to recover after there was space", now.Sub(space))
		}
		time.Sleep(300 * time.Millisecond)
	}
	cancel()
	wait.Wait()
	p.add("refused", int(refused.Load()))
	p.add("reads", int(read.Load()))
	if refused.Load() == 0 || read.Load() < int64(10*rounds) {
		p.fail("%d writes were refused, %d reads served while the disk was full", refused.Load(), read.Load())
	}
	verify(p, n, w, f)
	if !n.running() || n.panicked() {
		p.fail("the server did not stay: %s%s", n.stdout(), n.stderr())
	}
	n.terminate()
	if code := n.end(grace); code != 0 {
		p.fail("exit %d: %s", code, n.stderr())
	}
	integrity(p, filepath.Join(w.dir, db.FileName))
}

// failing reports whether the audit log of a tenant cannot be written.
func failing(p *proof, n *node) bool {
	tenants, err := n.metric("gatehouse_audit_failing_tenants")
	if err != nil {
		p.fail("%v", err)
	}
	return tenants > 0
}

func (f *fleet) acknowledged() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acks
}

// free returns the free space on the disk of a folder.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

// fill writes a file until the disk is full.
func fill(t *testing.T, dir string) string {
	t.Helper()
	name := filepath.Join(dir, "filler")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size >= 512; {
		if n, err := file.Write(make([]byte, size)); err != nil || n < size {
			size /= 2
		}
	}
	return name
}
