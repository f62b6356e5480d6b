package prove

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// diskOp is one change of a file or folder below a data folder, or one sync, as strace saw it.
type diskOp struct {
	kind   opKind
	path   string // of the file or folder
	to     string // of opRename and opLink, the new path
	off    int64  // of opWrite
	length int64  // of opTruncate, the new length
	data   []byte // of opWrite
	begun  time.Time
	// returned is how many operations had begun when this one returned, notYet if the
	// process ended before that.
	returned int
	failed   bool // it returned an error
	cut      bool // of opCreate: an existing file becomes empty
}

type opKind int

const (
	opWrite opKind = iota
	opTruncate
	opSync
	opCreate
	opMkdir
	opRename
	opLink
	opRemove
)

const notYet = int(^uint(0) >> 1)

// tracer records what the program does to a data folder.
type tracer struct {
	dir    string
	mark   string   // how strace prints dir
	inject []string // strace's expressions of errors to inject

	pipe *os.File
	done chan error

	ops     []*diskOp
	running map[string]*diskOp // by thread
	at      map[string]int64   // by descriptor, where write writes
}

// traced are the calls that change files, and those that only tell that something is done which is
// not modelled here.
const traced = "write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,msync,mmap," +
	"openat,open,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,copy_file_range,sendfile"

// canTrace skips a test where a program may not be traced.
func canTrace(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatal("strace is not installed; `make test` installs it, or apt-get install strace")
		}
		t.Skipf("not proved on this machine: tracing a program is not permitted (%v: %s)", err, out)
	}
}

// trace makes the world's next command run under strace. Its operations are there after it has ended;
// see end.
func (w *world) trace(t *testing.T, inject ...string) *tracer {
	t.Helper()
	parent, err := filepath.EvalSymlinks(filepath.Dir(w.dir))
	if err != nil {
		t.Fatal(err)
	}
	w.dir = filepath.Join(parent, filepath.Base(w.dir))
	tr := &tracer{
		dir: w.dir, mark: escaped(w.dir), inject: inject, done: make(chan error, 1),
		running: map[string]*diskOp{}, at: map[string]int64{},
	}
	w.under = func(c *exec.Cmd) {
		w.under = nil
		if err := tr.attach(c); err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// attach puts strace before a command. With -D the process that is started is the program itself, and
// strace, its grandchild, ends with it.
func (tr *tracer) attach(c *exec.Cmd) error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	path, err := exec.LookPath("strace")
	if err != nil {
		return err
	}
	args := []string{"strace", "-D", "-f", "--seccomp-bpf", "-qq", "-y", "-ttt", "-xx", "-s", "16777216", "-e", "signal=none",
		"-o", "/proc/self/fd/3", "-e", "trace=" + traced}
	for _, in := range tr.inject {
		args = append(args, "-e", "inject="+in)
	}
	c.Args = append(append(args, c.Path), c.Args[1:]...)
	c.Path, c.ExtraFiles, tr.pipe = path, []*os.File{to}, to
	go func() {
		defer from.Close()
		tr.done <- tr.read(from)
	}()
	return nil
}

// end waits until the traced command and strace have ended, and returns the operations.
func (tr *tracer) end(t *testing.T) []*diskOp {
	t.Helper()
	if err := tr.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-tr.done; err != nil {
		t.Fatal(err)
	}
	return tr.ops
}

func (tr *tracer) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = tr.line(line)
		}
		if err != nil {
			_, _ = io.Copy(io.Discard, r) // strace must not wait
			return fmt.Errorf("trace: %w: %.300q", err, line)
		}
	}
}

// line takes a line of strace:
//
//	1234 1795836611.956842 pwrite64(21</a/b>, "\x00\x01", 2, 0) = 2
//	1234 1795836611.956842 fsync(21</a/b> <unfinished ...>
//	1234 1795836611.957000 <... fsync resumed>) = 0
func (tr *tracer) line(line string) error {
	thread, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	stamp, call, ok := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if !ok || strings.HasPrefix(call, "+++") { // the end of a thread
		return nil
	}
	if resumed, ok := strings.CutPrefix(call, "<... "); ok {
		if op := tr.running[thread]; op != nil {
			delete(tr.running, thread)
			_, result, _ := strings.Cut(resumed, " resumed>")
			return tr.returned(op, result)
		}
		return nil
	}
	name, args, ok := strings.Cut(call, "(")
	if !ok || !strings.Contains(args, tr.mark) {
		return nil
	}
	args, killed := strings.CutSuffix(args, " <detached ...>")
	args, unfinished := strings.CutSuffix(args, " <unfinished ...>")
	unfinished = unfinished || killed
	result := ""
	if !unfinished {
		end := strings.Index(args, ") = ")
		if end < 0 {
			end = len(args) // the process ended in it
		}
		args, result = args[:end], args[end:]
	}
	op, err := tr.begun(name, arguments(args))
	if op == nil || err != nil {
		return err
	}
	seconds, micros, _ := strings.Cut(stamp, ".")
	s, err1 := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	op.begun, op.returned = time.Unix(s, us*1000), notYet
	tr.ops = append(tr.ops, op)
	if unfinished {
		tr.running[thread] = op
		return nil
	}
	return tr.returned(op, result)
}

// returned notes that an operation returned; its result stands behind ") ".
func (tr *tracer) returned(op *diskOp, result string) error {
	_, result, ok := strings.Cut(result, "= ")
	if !ok || strings.HasPrefix(result, "?") { // the process ended in it
		return nil
	}
	op.returned = len(tr.ops)
	op.failed = strings.HasPrefix(result, "-1 ")
	switch {
	case op.failed:
	case op.kind == opWrite:
		if n, err := strconv.Atoi(result); err != nil || n != len(op.data) {
			return fmt.Errorf("a write of %d bytes returned %s", len(op.data), result)
		}
	case op.kind == opCreate:
		fd, _, _ := strings.Cut(result, "<")
		tr.at[fd] = 0
	}
	return nil
}

// begun returns the operation of a call, nil for a call that changes nothing below the folder.
func (tr *tracer) begun(name string, a []string) (*diskOp, error) {
	fd, path := descriptor(a[0])
	var bad error
	number := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		bad = errors.Join(bad, err)
		return n
	}
	op := &diskOp{path: path}
	switch name {
	case "pwrite64":
		op.kind, op.data, op.off = opWrite, text(a[1]), number(a[3])
	case "write":
		op.kind, op.data, op.off = opWrite, text(a[1]), tr.at[fd]
		tr.at[fd] += int64(len(op.data))
	case "ftruncate":
		op.kind, op.length = opTruncate, number(a[1])
	case "fsync", "fdatasync":
		op.kind = opSync
	case "openat", "open":
		flags := a[1]
		if op.kind, op.path = opCreate, string(text(a[0])); name == "openat" {
			op.path, flags = below(path, a[1]), a[2]
		}
		if op.cut = strings.Contains(flags, "O_TRUNC"); !op.cut && !strings.Contains(flags, "O_CREAT") {
			return nil, nil
		}
	case "mkdirat":
		op.kind, op.path = opMkdir, below(path, a[1])
	case "mkdir":
		op.kind, op.path = opMkdir, string(text(a[0]))
	case "unlink", "rmdir":
		op.kind, op.path = opRemove, string(text(a[0]))
	case "unlinkat":
		op.kind, op.path = opRemove, below(path, a[1])
	case "rename":
		op.kind, op.path, op.to = opRename, string(text(a[0])), string(text(a[1]))
	case "renameat", "renameat2":
		_, dir := descriptor(a[2])
		op.kind, op.path, op.to = opRename, below(path, a[1]), below(dir, a[3])
	case "linkat":
		_, dir := descriptor(a[2])
		op.kind, op.path, op.to = opLink, below(path, a[1]), below(dir, a[3])
	case "mmap":
		_, path = descriptor(a[4])
		if strings.HasPrefix(path, tr.dir) && strings.Contains(a[2], "PROT_WRITE") && strings.Contains(a[3], "MAP_SHARED") && !strings.HasSuffix(path, "-shm") {
			return nil, fmt.Errorf("%s is written through memory", path)
		}
		return nil, nil
	default:
		return nil, fmt.Errorf("%s is not modelled", name)
	}
	if bad != nil {
		return nil, bad
	}
	if op.path != tr.dir && !strings.HasPrefix(op.path, tr.dir+"/") || strings.HasSuffix(op.path, " (deleted)") {
		return nil, nil
	}
	return op, nil
}

// arguments splits the arguments of a call. Texts and paths have no comma, because strace prints
// each byte of them in hexadecimal.
func arguments(args string) []string { return strings.Split(args, ", ") }

// descriptor splits 21<\x2f\x61> into the descriptor and the path of its file, "" for no file.
func descriptor(arg string) (fd, path string) {
	fd, rest, ok := strings.Cut(arg, "<")
	if !ok {
		return fd, ""
	}
	return fd, string(text(rest))
}

// below returns the path that is named relative to a folder.
func below(dir, name string) string {
	path := string(text(name))
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// text decodes what strace prints as "\x61\x62".
func text(s string) []byte {
	b, _ := hex.DecodeString(strings.ReplaceAll(strings.Trim(s, `"<>`), `\x`, "")) // "" for what is no text, such as socket:[1]
	return b
}

// escaped is what strace prints for a text.
func escaped(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, `\x%02x`, s[i])
	}
	return b.String()
}
