package prove

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"gatehouse/internal/db"
)

// A backup taken under load is the database at one instant of it; restored
// elsewhere, with the same master key, it serves the same to the same keys.
func TestProveBackup(t *testing.T) {
	underRace(t)
	together(t)
	p := begin(t, "DUR-10", db.SQLite)
	w, f := fresh(t, db.SQLite), newFleet(p, 8)
	n := w.start()
	c := n.client(w.token)
	defer c.close()
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { f.load(ctx, c, func() bool { return false }) })
	for i := range scale(4, 30) {
		p.tried(1)
		file := filepath.Join(w.logs, fmt.Sprintf("%d.backup", i))
		low := f.mark(true)
		w.must("backup", file)
		high := f.mark(false)
		other := w.restored(file)
		m := other.start()
		copied := m.client(w.token)
		list, err := copied.all()
		if err != nil {
			p.fail("list of the restored: %v", err)
		}
		p.add("records_compared", len(list))
		f.compare(list, low, high)
		copied.close()
		m.kill()
		integrity(p, filepath.Join(other.dir, db.FileName))
	}
	cancel()
	wait.Wait()
	p.tried(1)
	file := filepath.Join(w.logs, "quiet.backup")
	w.must("backup", file)
	m := w.restored(file).start()
	copied := m.client(w.token)
	defer copied.close()
	was, err1 := c.raw()
	is, err2 := copied.raw()
	if err1 != nil || err2 != nil || len(was) == 0 || !slices.Equal(was, is) {
		p.fail("%d records became %d, or they differ: %v %v", len(was), len(is), err1, err2)
	}
	p.add("records_compared", len(is))
}

// restored returns a new world with the data of a backup and the master key of w.
func (w *world) restored(file string) *world {
	w.t.Helper()
	other := bare(w.t, db.SQLite)
	other.token = w.token
	key, err := os.ReadFile(filepath.Join(w.dir, "master.key"))
	if err != nil {
		w.t.Fatal(err)
	}
	other.must("restore", file)
	if err := os.WriteFile(filepath.Join(other.dir, "master.key"), key, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return other
}
