package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a folder with a watched manifest; it counts the changes that the watcher notices.
type watched struct {
	*testing.T
	dir     string
	noticed atomic.Int64
}

// watchFolder runs do beside a watcher. Times are those of the test's bubble.
func watchFolder(t *testing.T, do func(w *watched)) {
	t.Helper()
	x := &watched{T: t, dir: t.TempDir()}
	x.save("acme.yaml", "tenant: acme\nmodules: [{name: a, source_file: lib/a.js}]\n")
	x.save("lib/a.js", "export const a = 1")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for w := watch(filepath.Join(x.dir, "acme.yaml"), func(string) string { return "" }); w.wait(ctx); {
				x.noticed.Add(1)
			}
		}()
		x.T = t
		x.rest()
		do(x)
		cancel()
		<-done
	})
}

// save writes a file in its place.
func (x *watched) save(name, text string) {
	x.Helper()
	path := filepath.Join(x.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		x.Fatal(err)
	}
}

// replace renames a new file into the place of an old one.
func (x *watched) replace(name, text string) {
	x.Helper()
	x.save("new", text)
	if err := os.Rename(filepath.Join(x.dir, "new"), filepath.Join(x.dir, name)); err != nil {
		x.Fatal(err)
	}
}

func (x *watched) remove(name string) {
	x.Helper()
	if err := os.Remove(filepath.Join(x.dir, name)); err != nil {
		x.Fatal(err)
	}
}

func (x *watched) pipe(name string) {
	x.Helper()
	if err := syscall.Mkfifo(filepath.Join(x.dir, name), 0o600); err != nil {
		x.Fatal(err)
	}
}

// rest waits until the watcher has noticed what there is to notice.
func (x *watched) rest() {
	time.Sleep(10 * watchEvery)
	synctest.Wait()
}

// changes fails the test unless the watcher has noticed so many changes since the last call.
func (x *watched) changes(want int64, after string) {
	x.Helper()
	x.rest()
	if got := x.noticed.Swap(0); got != want {
		x.Errorf("%s: noticed %d changes, want %d", after, got, want)
	}
}

func TestTheWatcherNoticesEveryChange(t *testing.T) {
	watchFolder(t, func(x *watched) {
		x.changes(0, "nothing")
		x.save("acme.yaml", "tenant: acme\nmodules: [{name: b, source_file: lib/a.js}]\n")
		x.changes(1, "the manifest is saved, as long as before")
		x.save("lib/a.js", "export const a = 2")
		x.changes(1, "a source is saved, as long as before")
		old, err := os.Stat(filepath.Join(x.dir, "lib", "a.js"))
		if err != nil {
			x.Fatal(err)
		}
		x.replace("lib/a.js", "export const a = 3")
		if err := os.Chtimes(filepath.Join(x.dir, "lib", "a.js"), old.ModTime(), old.ModTime()); err != nil {
			x.Fatal(err)
		}
		x.changes(1, "a source is replaced by one of the same length and time")
		x.replace("lib/a.js", "export const a = 4")
		x.changes(1, "the file in its place is replaced, too")
		x.remove("lib/a.js")
		x.changes(1, "a source is removed")
		x.save("lib/a.js", "export const a = 4")
		x.changes(1, "it is back")
		x.remove("lib/a.js")
		x.pipe("lib/a.js")
		x.changes(1, "a pipe that nobody writes to is in its place")
		x.remove("lib/a.js")
		x.save("lib/a.js", "export const a = 4")
		x.changes(1, "it is a file again")
		x.save("other.js", "1")
		x.changes(0, "a file that nothing names is saved")
	})
}

func TestTheWatcherFollowsWhatTheManifestNames(t *testing.T) {
	watchFolder(t, func(x *watched) {
		x.save("acme.yaml", "tenant: acme\nlogic_components: [{name: a, source_file: later/b.js}]\nunknown: 1\n")
		x.changes(1, "the manifest names another file")
		x.save("lib/a.js", "export const a = 2")
		x.changes(0, "the file that it named is saved")
		x.save("later/b.js", "1")
		x.changes(1, "the file that it names is made, in a new folder")
		x.save("acme.yaml", "tenant: [")
		x.changes(1, "the manifest is no YAML")
		x.remove("acme.yaml")
		x.changes(1, "the manifest is removed")
		x.save("acme.yaml", "tenant: acme\nmodules: [{name: a, source_file: lib/a.js}]\n")
		x.changes(1, "the manifest is back")
		x.save("lib/a.js", "export const a = 3")
		x.changes(1, "the file that it names is saved")
	})
}

func TestTheWatcherTakesManySavesForOneChange(t *testing.T) {
	watchFolder(t, func(x *watched) {
		time.Sleep(watchQuiet / 5) // so that no save falls together with a look
		for i := range 30 {
			x.save("lib/a.js", fmt.Sprintf("export const a = %d", 2+i))
			time.Sleep(watchQuiet / 2)
			synctest.Wait()
			if x.noticed.Load() != 0 {
				x.Fatalf("noticed a change after %d of the saves", i+1)
			}
		}
		x.changes(1, "30 saves")
		for range 10 {
			x.remove("lib/a.js")
			time.Sleep(watchQuiet * 4 / 5)
			x.save("lib/a.js", "export const a = 31")
			time.Sleep(3*watchEvery + watchQuiet/7)
		}
		x.changes(0, "a file is away for a moment, ten times")
	})
}
