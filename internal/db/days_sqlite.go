package db

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
)

// DaysFolder is the folder of the days' files in a data folder.
const DaysFolder = "audit"

const (
	daySuffix  = ".db"
	asideInfix = daySuffix + ".damaged-"
	// maxOpenDays is how many unused files are kept open.
	maxOpenDays = 3
	dayReaders  = 4
)

// dayTuning waits for the disk at checkpoints only: a crash of the machine may
// lose the latest commits, never the file.
var dayTuning = tuning{
	writer: []string{"journal_mode = WAL", "synchronous = NORMAL", "cache_size = -4096", "wal_autocheckpoint = 4000", "journal_size_limit = 33554432"},
	reader: []string{"query_only = ON", "mmap_size = 268435456", "cache_size = -2048"},
}

// dayFiles keeps the days in files, each opened when it is needed.
type dayFiles struct {
	dir     string
	written *written // the main database's

	mu     sync.Mutex
	freed  sync.Cond // on mu: a file that is to be closed was released or closed
	files  []*dayFile
	clock  int // counts uses
	closed bool
}

// dayFile is one day's file while it is open.
type dayFile struct {
	day    Day
	write  bool
	db     *DB
	file   os.FileInfo
	users  int
	used   int    // clock when it was last released
	doomed bool   // to be closed once it has no users
	aside  string // its new name once closed, "" to keep its name
}

func newDayFiles(dir string, w *written) *dayFiles {
	f := &dayFiles{dir: filepath.Join(dir, DaysFolder), written: w}
	f.freed.L = &f.mu
	return f
}

func (f *dayFiles) path(day Day) string { return filepath.Join(f.dir, day.String()+daySuffix) }

func (f *dayFiles) open(ctx context.Context, day Day, write bool) (*DB, func(error) error, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	file, err := f.find(ctx, day, write)
	if err != nil || file == nil {
		return nil, nil, err
	}
	file.users++
	return file.db, func(err error) error { return f.done(file, err) }, nil
}

// find returns the open file of a day, opening it if necessary, or nil if write
// is not set and the day has no file. mu must be held; find releases it while it
// waits.
func (f *dayFiles) find(ctx context.Context, day Day, write bool) (*dayFile, error) {
	for {
		if f.closed {
			return nil, fmt.Errorf("%w: it is closed", ErrUnavailable)
		}
		i := slices.IndexFunc(f.files, func(file *dayFile) bool { return file.day == day })
		if i < 0 {
			return f.begin(ctx, day, write)
		}
		file := f.files[i]
		if now, err := os.Stat(f.path(day)); err != nil || !os.SameFile(now, file.file) || write && !file.write {
			file.doomed = true // deleted or replaced, or open for reading only
		}
		switch {
		case !file.doomed:
			return file, nil
		case file.users > 0: // two writers of files with one name would delete each other's log
			f.freed.Wait()
		default:
			if err := f.shut(file); err != nil {
				return nil, err
			}
		}
	}
}

// begin opens a day's file. If write is set and the file is damaged, begin sets
// it aside and returns an error; the next call creates a new file.
func (f *dayFiles) begin(ctx context.Context, day Day, write bool) (*dayFile, error) {
	path := f.path(day)
	if write {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return nil, filesystem(err)
		}
	} else if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no file, no day
	}
	d, err := openDay(ctx, path, write, f.written)
	if err != nil {
		if write && damaged(err) {
			err = errors.Join(fmt.Errorf("%s is damaged: %w", path, err), f.setAside(day))
		}
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(filesystem(err), d.Close())
	}
	file := &dayFile{day: day, write: write, db: d, file: info}
	f.files = append(f.files, file)
	return file, nil
}

// filesystem wraps an error of the file system in ErrUnavailable.
func filesystem(err error) error { return fmt.Errorf("%w: %w", ErrUnavailable, err) }

// openDay opens one file. w is notified of its writes.
func openDay(ctx context.Context, path string, write bool, w *written) (*DB, error) {
	e := &sqliteEngine{path: path, tuning: dayTuning, readers: newPlaces(dayReaders, maxOverflow), idle: make(chan *sqliteConn, dayReaders)}
	d := &DB{engine: e, dialect: sqliteDialect, written: w}
	d.days = &Days{store: noDays{}}
	if write {
		if err := e.startWriter(ctx); err != nil {
			return nil, err
		}
		if err := d.migrate(ctx, daySteps); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		return d, nil
	}
	all, err := migrations(daySteps, SQLite)
	if err != nil {
		return nil, err
	}
	h := d.Unscoped("what a day's file knows")
	done, err := applied(ctx, h)
	if err == nil {
		err = tooNew(ctx, h, done, all)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// done releases a file.
func (f *dayFiles) done(file *dayFile, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	file.users--
	f.clock++
	file.used = f.clock
	if file.write && damaged(err) {
		file.doomed = true
		file.aside = f.asideName(file.day)
	}
	if file.doomed && file.users == 0 {
		err = errors.Join(err, f.shut(file))
	}
	return errors.Join(err, f.thin())
}

// thin closes the least recently used file when there are too many.
func (f *dayFiles) thin() error {
	var idle []*dayFile
	for _, file := range f.files {
		if file.users == 0 {
			idle = append(idle, file)
		}
	}
	if len(idle) <= maxOpenDays {
		return nil
	}
	return f.shut(slices.MinFunc(idle, func(a, b *dayFile) int { return a.used - b.used }))
}

// shut closes an unused file and renames it to file.aside if that is set.
func (f *dayFiles) shut(file *dayFile) error {
	f.files = slices.DeleteFunc(f.files, func(other *dayFile) bool { return other == file })
	err := file.db.Close()
	if file.aside != "" {
		err = f.rename(file.day, file.aside)
	}
	f.freed.Broadcast()
	return err
}

// setAside renames a file that is not open.
func (f *dayFiles) setAside(day Day) error { return f.rename(day, f.asideName(day)) }

func (f *dayFiles) asideName(day Day) string {
	return f.path(day) + strings.TrimPrefix(asideInfix, daySuffix) + fmt.Sprint(time.Now().UnixMilli())
}

// rename renames a day's file and its log. SQLite's shared-memory file is
// useless without them.
func (f *dayFiles) rename(day Day, name string) error {
	from := f.path(day)
	var failed error
	for _, suffix := range []string{"-wal", ""} { // the log first: a file must never be without its log
		if err := os.Rename(from+suffix, name+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = err
		}
	}
	if err := os.Remove(from + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		failed = err
	}
	return failed
}

// damaged reports whether err means that a file is not a database, or not a
// complete one.
func damaged(err error) bool {
	if err == nil {
		return false
	}
	code := sqlite.ErrCode(err).ToPrimary()
	return code == sqlite.ResultCorrupt || code == sqlite.ResultNotADB
}

func (f *dayFiles) list(context.Context) ([]Day, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, filesystem(err)
	}
	var days []Day
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), daySuffix)
		if at, err := time.Parse(dayFormat, name); ok && err == nil {
			days = append(days, DayOf(at))
		}
	}
	slices.Sort(days)
	slices.Reverse(days)
	return days, nil
}

// drop deletes a day's files, including those that were set aside. Readers that
// have a file open can continue to read it.
func (f *dayFiles) drop(_ context.Context, day Day) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed error
	for _, file := range slices.Clone(f.files) {
		if file.day != day {
			continue
		}
		if file.doomed = true; file.users == 0 {
			failed = f.shut(file)
		}
	}
	names, err := filepath.Glob(f.path(day) + "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = filesystem(err)
		}
	}
	return failed
}

func (f *dayFiles) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	var failed error
	for len(f.files) > 0 {
		i := slices.IndexFunc(f.files, func(file *dayFile) bool { return file.users == 0 })
		if i < 0 {
			f.freed.Wait()
			continue
		}
		failed = errors.Join(failed, f.shut(f.files[i]))
	}
	return failed
}

// noDays is the dayStore of a day's own database.
type noDays struct{}

func (noDays) open(context.Context, Day, bool) (*DB, func(error) error, error) {
	return nil, nil, errors.New("a day has no days")
}
func (noDays) list(context.Context) ([]Day, error) { return nil, nil }
func (noDays) drop(context.Context, Day) error     { return nil }
func (noDays) close() error                        { return nil }
