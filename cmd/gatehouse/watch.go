package main

import (
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"os"
	"syscall"
	"time"

	"gatehouse/internal/manifest"
)

const (
	// watchEvery is the time between two looks at files that rest.
	watchEvery = 250 * time.Millisecond
	// watchQuiet is how long files must rest after a change: an editor that saves all of
	// them, or a checkout of another branch, is one change.
	watchQuiet = 100 * time.Millisecond
	// watchBytes is how much of a file is looked at; apply refuses what is longer.
	watchBytes = 8<<20 + 1
)

// watcher notices when a manifest, or a file that it names, holds something else.
//
// It reads the files: they are few and small. Notifications of the operating system would
// say more than that, and less: they follow the file that was there and not the one that
// an editor renames into its place, need the folder of one that is not there yet, and do
// not come from most network folders and mounts of containers. Times of modification are
// as coarse as the file system makes them.
type watcher struct {
	file   string // the manifest
	getenv func(string) string
	seen   contents
	names  []string // of the files that the manifest with the digest parsed names
	parsed digest
}

// contents are what files hold, by path.
type contents map[string]digest

// digest is that of a file; zero if it cannot be read.
type digest [sha256.Size]byte

// watch returns a watcher that has seen the files as they are now.
func watch(file string, getenv func(string) string) *watcher {
	w := &watcher{file: file, getenv: getenv}
	w.seen = w.look()
	return w
}

// wait returns true once the files hold something else than when they were seen last, and
// have rested since: they are seen then. It returns false when ctx ends.
func (w *watcher) wait(ctx context.Context) bool {
	before, pause := w.seen, watchEvery
	for {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
		now := w.look()
		switch {
		case maps.Equal(now, w.seen): // nothing has changed, or a file is back
			pause = watchEvery
		case maps.Equal(now, before):
			w.seen = now
			return true
		default:
			pause = watchQuiet
		}
		before = now
	}
}

// look returns what the files hold now.
func (w *watcher) look() contents {
	text, whole := read(w.file)
	if w.parsed != whole {
		w.parsed, w.names = whole, manifest.Files(w.file, text, w.getenv)
	}
	now := contents{w.file: whole}
	for _, name := range w.names {
		_, now[name] = read(name)
	}
	return now
}

// read returns the beginning of a file and its digest. Of what cannot be read, or is no
// file, it returns neither: apply says what is wrong with it. It waits for no pipe.
func read(name string) ([]byte, digest) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, digest{}
	}
	defer func() { _ = f.Close() }() // it was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, digest{}
	}
	text, err := io.ReadAll(io.LimitReader(f, watchBytes))
	if err != nil {
		return nil, digest{}
	}
	return text, sha256.Sum256(text)
}
