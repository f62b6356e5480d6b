package prove

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// This file models what a power failure leaves of a folder. The model loses more than real file systems do:
//   - of the writes to a file since its last sync, any may be lost, and one may be there in part;
//   - a new, renamed or removed name is certain only after a sync of its folder;
//   - what a failed sync should have written is never certain.

// sector is the number of bytes that are written together or not at all.
const sector = 512

// file is a file or folder.
type file struct {
	folder  bool
	durable []byte           // the content that is there for sure
	own     bool             // durable is no other disk's
	pending []*diskOp        // what may follow, in order
	doubt   map[*diskOp]bool // of pending, what a failed sync was to write
	names   names            // of a folder, likewise
	renames []naming
}

type names map[string]*file

// naming is one change of the names in a folder, which is there as a whole or not.
type naming struct {
	name  string
	file  *file  // nil: the name is removed
	gone  string // by a rename, the old name in the same folder
	begun *diskOp
}

// disk is a folder tree. The names of a file's path are those of the running program, which sees all changes.
type disk struct {
	root string
	now  map[string]*file
}

// readDisk returns what is in a folder, all of it durable. A folder that does not exist is empty.
func readDisk(t *testing.T, root string) *disk {
	t.Helper()
	d := &disk{root: root, now: map[string]*file{root: {folder: true, names: names{}}}}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		f := &file{folder: e.IsDir(), names: names{}}
		if !f.folder {
			if f.durable, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		d.now[path] = f
		d.now[filepath.Dir(path)].names[filepath.Base(path)] = f
		return nil
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return d
}

// clone copies the disk; contents are shared, because they are never changed in place.
func (d *disk) clone() *disk {
	copies := map[*file]*file{}
	for _, f := range d.now {
		copies[f] = &file{folder: f.folder, durable: f.durable, names: names{}}
	}
	c := &disk{root: d.root, now: map[string]*file{}}
	for path, f := range d.now {
		c.now[path] = copies[f]
		for name, child := range f.names {
			copies[f].names[name] = copies[child]
		}
	}
	return c
}

// run does the operations that begin before the crash, which happens before ops[crash] begins.
func (d *disk) run(ops []*diskOp, crash int, r *rand.Rand) {
	for i, op := range ops[:crash] {
		f := d.now[op.path]
		switch {
		case f == nil && op.kind != opCreate && op.kind != opMkdir && !op.failed:
			panic("nobody made " + op.path)
		case op.kind == opSync && op.failed:
			f.doubt = map[*diskOp]bool{}
			for _, w := range f.pending {
				f.doubt[w] = true
			}
		case op.failed:
		case op.kind == opWrite, op.kind == opTruncate:
			f.pending = append(f.pending, op)
		case op.kind == opSync:
			if op.returned <= crash {
				f.sync(i, r)
			}
		case op.kind == opCreate:
			if f == nil {
				f = &file{own: true}
				d.name(op.path, f, "", op)
			}
			if op.cut {
				f.pending = append(f.pending, &diskOp{kind: opTruncate, returned: op.returned})
			}
		case op.kind == opMkdir:
			if f == nil { // not the root
				d.name(op.path, &file{folder: true, names: names{}}, "", op)
			}
		case op.kind == opRemove:
			d.name(op.path, nil, "", op)
			delete(d.now, op.path)
		case op.kind == opLink:
			d.name(op.to, f, "", op)
		case op.kind == opRename:
			if filepath.Dir(op.path) != filepath.Dir(op.to) {
				panic("a rename to another folder is not modelled")
			}
			d.name(op.to, f, filepath.Base(op.path), op)
			delete(d.now, op.path)
		}
	}
}

func (d *disk) name(path string, f *file, gone string, op *diskOp) {
	folder := d.now[filepath.Dir(path)]
	folder.renames = append(folder.renames, naming{filepath.Base(path), f, gone, op})
	if f != nil {
		d.now[path] = f
	}
}

// sync makes durable what had returned before the sync, the at-th operation, began. What an earlier
// sync failed to write, the system may believe to be on the disk: it is there or not.
func (f *file) sync(at int, r *rand.Rand) {
	var names []naming
	for _, n := range f.renames {
		if n.begun.returned <= at {
			n.apply(f.names)
		} else {
			names = append(names, n)
		}
	}
	var left []*diskOp
	if !f.own {
		f.durable, f.own = slices.Clone(f.durable), true
	}
	for _, op := range f.pending {
		switch {
		case op.returned > at:
			left = append(left, op)
		case !f.doubt[op] || r.IntN(2) == 0:
			f.durable = op.apply(f.durable)
		}
	}
	f.renames, f.pending, f.doubt = names, left, nil
}

func (n naming) apply(to names) {
	if n.gone != "" {
		delete(to, n.gone)
	}
	if n.file == nil {
		delete(to, n.name)
		return
	}
	to[n.name] = n.file
}

// apply changes a content.
func (op *diskOp) apply(content []byte) []byte {
	end := int(op.off) + len(op.data)
	if op.kind == opTruncate {
		end = int(op.length)
		content = content[:min(len(content), end)]
	}
	if grow := end - len(content); grow > 0 {
		content = append(content, make([]byte, grow)...)
	}
	copy(content[op.off:], op.data)
	return content
}

// torn returns the sectors of a write that came to the disk.
func (op *diskOp) torn(r *rand.Rand) []*diskOp {
	var parts []*diskOp
	for from := 0; from < len(op.data); {
		to := min(len(op.data), from+sector-int(op.off+int64(from))%sector)
		if r.IntN(2) == 0 {
			parts = append(parts, &diskOp{kind: opWrite, off: op.off + int64(from), data: op.data[from:to]})
		}
		from = to
	}
	return parts
}

// left returns a content that a file may have after the crash.
func (f *file) left(r *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	keep := func(int) bool { return true } // all
	switch r.IntN(5) {
	case 0: // nothing
		keep = func(int) bool { return false }
	case 1: // what was written first
		n := r.IntN(len(f.pending) + 1)
		keep = func(i int) bool { return i < n }
	case 2: // what was written last
		n := r.IntN(len(f.pending) + 1)
		keep = func(i int) bool { return i >= n }
	case 3: // any
		of := 1 + r.IntN(9)
		keep = func(int) bool { return r.IntN(10) < of }
	}
	tear := r.IntN(len(f.pending) + 2) // often one is torn
	for i, op := range f.pending {
		switch {
		case !keep(i):
		case i == tear && op.kind == opWrite:
			for _, part := range op.torn(r) {
				content = part.apply(content)
			}
		default:
			content = op.apply(content)
		}
	}
	return content
}

// write writes what may be left of the disk to a folder.
func (d *disk) write(t *testing.T, r *rand.Rand, to string) {
	t.Helper()
	d.now[d.root].write(t, r, to)
}

func (f *file) write(t *testing.T, r *rand.Rand, to string) {
	t.Helper()
	if !f.folder {
		if err := os.WriteFile(to, f.left(r), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	there := maps.Clone(f.names)
	for _, n := range f.renames[:r.IntN(len(f.renames)+1)] {
		n.apply(there)
	}
	for _, name := range slices.Sorted(maps.Keys(there)) { // sorted, so that the seed decides
		there[name].write(t, r, filepath.Join(to, name))
	}
}
