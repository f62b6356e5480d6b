package prove

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// damage is a way to damage a data folder.
type damage struct {
	name string
	do   func(r *rand.Rand, dir string) error
	// recent: the newest records, from some moment on, may be lost, because only the
	// damaged file had them.
	recent bool
	// silent: SQLite keeps no checksums, so garbage inside a value may be served.
	silent bool
}

var damages = []damage{
	{name: "main file cut at a page", do: func(r *rand.Rand, dir string) error {
		return cut(dir, "", func(size int64) int64 { return 4096 * (1 + r.Int64N(size/4096-1)) })
	}},
	{name: "main file cut anywhere", do: func(r *rand.Rand, dir string) error {
		return cut(dir, "", func(size int64) int64 { return 1 + r.Int64N(size-1) })
	}},
	{name: "main file empty", do: func(_ *rand.Rand, dir string) error { return cut(dir, "", zero) }},
	{name: "main file gone", do: func(_ *rand.Rand, dir string) error {
		return os.Remove(filepath.Join(dir, db.FileName))
	}},
	{name: "garbage for its header", do: func(r *rand.Rand, dir string) error { return scribble(r, dir, "", 0, 100) }},
	{name: "garbage for a page", silent: true, do: func(r *rand.Rand, dir string) error {
		return scribble(r, dir, "", -4096, 4096)
	}},
	{name: "some garbage bytes", silent: true, do: func(r *rand.Rand, dir string) error {
		return scribble(r, dir, "", -1, 1+r.Int64N(64))
	}},
	{name: "log cut", recent: true, do: func(r *rand.Rand, dir string) error {
		return cut(dir, "-wal", func(size int64) int64 { return r.Int64N(size) })
	}},
	{name: "log empty", recent: true, do: func(_ *rand.Rand, dir string) error { return cut(dir, "-wal", zero) }},
	{name: "garbage in the log", recent: true, do: func(r *rand.Rand, dir string) error {
		return scribble(r, dir, "-wal", -1, 1+r.Int64N(64))
	}},
	{name: "garbage for the log's header", recent: true, do: func(r *rand.Rand, dir string) error {
		return scribble(r, dir, "-wal", 0, 32)
	}},
	{name: "garbage for the shared memory", do: func(r *rand.Rand, dir string) error {
		return scribble(r, dir, "-shm", 0, 4096)
	}},
	{name: "shared memory gone", do: func(_ *rand.Rand, dir string) error {
		return os.Remove(filepath.Join(dir, db.FileName+"-shm"))
	}},
	{name: "shared memory empty", do: func(_ *rand.Rand, dir string) error { return cut(dir, "-shm", zero) }},
	{name: "garbage for the audit log's days", do: func(r *rand.Rand, dir string) error {
		return eachDay(dir, func(day string) error { return scribble(r, dir, day, 0, 1<<20) })
	}},
	{name: "the audit log's days cut", do: func(r *rand.Rand, dir string) error {
		return eachDay(dir, func(day string) error { return cut(dir, day, func(size int64) int64 { return r.Int64N(size) }) })
	}},
	{name: "the audit log gone", do: func(_ *rand.Rand, dir string) error { return os.RemoveAll(filepath.Join(dir, db.DaysFolder)) }},
}

// eachDay damages all files of the audit log. Entries may be lost, and nothing else.
func eachDay(dir string, do func(day string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, db.DaysFolder, "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no day of the audit log: %w", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			continue
		}
		if err := do("/../" + db.DaysFolder + "/" + filepath.Base(file)); err != nil {
			return err
		}
	}
	return nil
}

// ofMain is the number of damages of the main file.
const ofMain = 7

func zero(int64) int64 { return 0 }

func cut(dir, suffix string, to func(size int64) int64) error {
	path := filepath.Join(dir, db.FileName+suffix)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Truncate(path, to(info.Size()))
}

// scribble writes random bytes at a place, or at a random multiple of -at.
func scribble(r *rand.Rand, dir, suffix string, at, length int64) error {
	f, err := os.OpenFile(filepath.Join(dir, db.FileName+suffix), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if at < 0 {
		at *= -r.Int64N(info.Size() / -at)
	}
	garbage := make([]byte, min(length, info.Size()-at))
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}
	_, err = f.WriteAt(garbage, at)
	return err
}

// specimen is a folder to damage.
type specimen struct {
	w        *world
	old, all []string // records as the API gave them, newest first
}

// makeSpecimens makes two folders: one that was left by SIGTERM, with all records in the
// main file, and one left by kill -9, with the newest records in the write-ahead log only.
func makeSpecimens(t *testing.T) (stopped, killed *specimen) {
	t.Helper()
	w := fresh(t, db.SQLite)
	stopped = &specimen{w: bare(t, db.SQLite)}
	killed = &specimen{w: w}
	write := func(from, to int) []string {
		n := w.start()
		defer n.kill()
		c := n.client(w.token)
		defer c.close()
		for i := from; i < to; i++ {
			if a, err := c.do("POST", contact, values(fmt.Sprintf("w0.%d@load.example", i), int64(i))); err != nil || a.status != 201 {
				t.Fatalf("%v %v", a, err)
			}
		}
		all, err := c.raw()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // the audit log is written later
		if from == 0 {
			n.terminate()
			if code := n.end(grace); code != 0 {
				t.Fatalf("exit %d: %s", code, n.stderr())
			}
		}
		return all
	}
	stopped.all = write(0, 300)
	stopped.w.token, killed.old = w.token, stopped.all
	if err := os.CopyFS(stopped.w.dir, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	killed.all = write(300, 340)
	return stopped, killed
}

// A damaged file is refused with one clear line, or what is served is right. There is
// never a panic, and never an empty database in place of the damaged one.
func TestProveDamagedFiles(t *testing.T) {
	asShipped(t)
	together(t)
	p := begin(t, "DUR-5", db.SQLite)
	stopped, killed := makeSpecimens(t)
	outcomes := map[string]map[string]int{}
	each := func(d damage, s *specimen, name string) {
		p.tried(1)
		outcome := s.try(p, d)
		p.add(outcome, 1)
		if outcomes[name] == nil {
			outcomes[name] = map[string]int{}
		}
		outcomes[name][outcome]++
	}
	for range scale(1, 15) {
		for i, d := range damages {
			each(d, killed, "after kill -9: "+d.name)
			if i < ofMain {
				each(d, stopped, "after SIGTERM: "+d.name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		t.Logf("%s: %v", name, outcomes[name])
	}
}

// try damages a copy of the specimen, serves it and records the outcome.
func (s *specimen) try(p *proof, d damage) string {
	p.t.Helper()
	w := bare(p.t, db.SQLite)
	w.token = s.w.token
	if err := os.CopyFS(w.dir, os.DirFS(s.w.dir)); err != nil {
		p.t.Fatal(err)
	}
	if err := d.do(p.rand, w.dir); err != nil {
		p.t.Fatalf("%s: %v", d.name, err)
	}
	n := w.launch()
	defer os.RemoveAll(w.dir)
	defer n.kill()
	outcome := "refused"
	if n.await(20 * time.Second) {
		outcome = s.judge(n, d)
	} else if words := n.stderr(); n.running() || strings.Count(words, "\n") != 1 || n.cmd.ProcessState.ExitCode() != 1 {
		p.fail("%s: neither ready nor refused in one line: %s%s", d.name, n.stdout(), words)
	}
	if n.panicked() {
		p.fail("%s: panic: %s%s", d.name, n.stdout(), n.stderr())
	}
	switch outcome {
	case "refused", "right", "right_but_the_newest", "reads_refused":
		return outcome
	case "wrong":
		if d.silent {
			return "wrong_unnoticed"
		}
	}
	p.fail("%s: %s: %s", d.name, outcome, n.stderr())
	return outcome
}

// judge returns what a server serves of the specimen: "right", or what is wrong.
func (s *specimen) judge(n *node, d damage) string {
	c := n.client(s.w.token)
	defer c.close()
	list, err := c.raw()
	switch {
	case err != nil && hung(err):
		return "hung"
	case err != nil && (strings.Contains(err.Error(), ": 401 ") || strings.Contains(err.Error(), ": 404 ")):
		return "empty" // the key or the tenant is unknown
	case err != nil && strings.Contains(err.Error(), ": 503 "):
		return "reads_refused"
	case err != nil:
		return "wrong" // the answer is not JSON
	case slices.Equal(list, s.all):
		return "right"
	case d.recent && len(list) >= len(s.old) && slices.Equal(list, s.all[len(s.all)-len(list):]):
		return "right_but_the_newest"
	case len(list) == 0:
		return "empty"
	}
	return "wrong"
}
