package records

import (
	"context"
	"errors"
	"sync/atomic"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
)

// errEnough ends a read early: enough rows were read.
var errEnough = errors.New("enough rows")

// maxRead bounds the stored size of the records of a page, and so the work for
// a page whose viewer may not read the large fields (contract P4).
const maxRead = 4 * PageBytes

// cut builds a page. The page ends at its limit of records, before the record
// that would make it longer than its bytes, or after maxRead bytes were read
// for it; the first record is always on it.
type cut struct {
	ctx          context.Context //nolint:containedctx // of the call that builds the page
	s            *Session
	limit, bytes int
	goesOn       bool // the page continues a traversal
	scope        *access.Scope
	show         func([]byte, *row) []byte
	took         func(*row) // is told of each record on the page, nil for nobody

	page  Page
	rows  int   // rows returned by the current statement
	read  int   // bytes of the page's records as stored
	first int64 // created_at of the first record
	last  row   // the last record in the page, without its data
	more  bool  // there are records after the last

	long bool
	work *admission.Work // what a long page is built for, in turns on the cores

	sieve     *sieve // nil where each row of the index is on the page
	looksFrom int64  // created_at of the first row that a sieve looked at
	leave     func() // gives back the heavy-read place, nil without one
	parted    bool   // whether the statement was ended to wait for that place
}

// fill reads the page that starts at a cursor. Usually one statement reads the
// whole page, and one record more to see whether there are more. Where records
// are large, each statement asks for about as many as the page still has room
// for, because a database server sends all that it is asked for.
func (c *cut) fill(at cursor, fetch fetchFunc) error {
	c.long = c.scope.RowSize.Load() > 0
	c.page.Records = append(make([]byte, 0, c.size()), '[')
	w := window{after: at.after, before: at.before, behind: at.keys}
	for {
		rest := c.limit + 1 - c.page.Count
		w.limit = min(chunk(c.scope.RowSize.Load(), rest, c.bytes-len(c.page.Records)), chunk(c.scope.ReadSize.Load(), rest, maxRead-c.read))
		c.rows, c.parted = 0, false
		c.work.Pause() // holds no core while it waits for its place
		if err := c.enter(); err != nil {
			return err
		}
		err := fetch(w, c.add)
		if errors.Is(err, errLooked) {
			if err = c.looked(); err == nil {
				break
			}
		}
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if c.more || !c.parted && (c.rows < w.limit || w.limit == rest) {
			break
		}
		w.follow(&c.last)
	}
	c.page.Records = append(c.page.Records, ']')
	c.remember()
	return nil
}

// release gives back what reading took: a core, and a heavy-read place. It must be called
// when nothing more is read through the cut or its sieve.
func (c *cut) release() {
	c.work.Stop()
	if c.leave != nil {
		c.leave()
	}
}

// looked ends the page where its sieve looked at as much as it may. The next page
// goes on behind what was looked at. It returns QUERY_TOO_BROAD for an empty first page.
func (c *cut) looked() error {
	if c.page.Count == 0 && !c.goesOn {
		return c.sieve.tooBroad()
	}
	c.more, c.last = true, c.sieve.last
	return nil
}

// enter takes a heavy-read place if the page is large. It holds neither a
// connection nor a core while it waits.
func (c *cut) enter() (err error) {
	if c.leave == nil && c.large() {
		c.leave, err = c.s.heavyRead(c.ctx)
	}
	return err
}

// large reports whether the page's records, as far as known, are so large that
// the page ends early.
func (c *cut) large() bool {
	if s := c.sieve; s != nil && s.bytes > admission.Free && s.size() >= PageBytes/MaxLimit {
		return true
	}
	return c.scope.RowSize.Load() > 0 || c.page.Count > 0 && c.read > admission.Free && c.read/c.page.Count >= PageBytes/MaxLimit
}

// compute takes a turn on the cores: a long page is milliseconds of work, and
// many at once would leave no core to other work. Short pages take no turn.
func (c *cut) compute() error {
	if err := c.work.Resume(); err != nil {
		return err
	}
	return c.work.Yield()
}

// add adds a record to the page, or finds that there are more than fit.
func (c *cut) add(rec *row) error {
	if c.long = c.long || len(c.page.Records) > admission.Free; c.long {
		if err := c.compute(); err != nil {
			return err
		}
	}
	c.rows++
	p := &c.page
	if p.Count == c.limit {
		c.more = true
		return nil
	}
	if p.Count > 0 && c.read >= maxRead {
		c.more = true
		return errEnough
	}
	if p.Count == 0 {
		p.Records = c.show(p.Records, rec)
	} else if !c.addNext(rec) {
		c.more = true
		return errEnough
	}
	if err := c.s.hold(len(p.Records) + 1); err != nil {
		return err
	}
	if p.Count == 0 {
		c.first = rec.createdAt
	}
	if c.took != nil {
		c.took(rec)
	}
	p.Count++
	c.read += len(rec.data)
	c.last = *rec
	c.last.data = nil // valid only during the callback
	if c.leave == nil && c.s.store.heavy != nil && c.large() {
		c.parted = true
		c.remember()
		return errEnough
	}
	return nil
}

// aroundRecord is larger than the system members of most rendered records.
const aroundRecord = 1 << 10

// addNext appends a record to a page that has some, and reports whether it
// fits. A record that will hardly fit is rendered into memory of its own, so
// that the page, which waits for the client, does not grow for it.
func (c *cut) addNext(rec *row) bool {
	p := &c.page
	end := len(p.Records)
	p.Records = append(p.Records, ',')
	if size := len(rec.data) + aroundRecord; size > cap(p.Records)-len(p.Records) && end+size > c.bytes {
		aside := c.show(make([]byte, 0, size), rec)
		if len(p.Records)+len(aside) < c.bytes {
			p.Records = append(p.Records, aside...)
			return true
		}
	} else if p.Records = c.show(p.Records, rec); len(p.Records) < c.bytes { // the list's closing bracket comes on top
		return true
	}
	p.Records = p.Records[:end]
	return false
}

// size returns how much memory to allocate for a page: its estimated length, if
// known, plus its envelope.
func (c *cut) size() int {
	usual := 512 + c.limit*320
	if large := c.scope.RowSize.Load(); large > 0 {
		return max(usual, int(min(large*int64(c.limit), int64(c.bytes)))+aroundRecord)
	}
	return usual
}

// remember stores the mean size of the page's records, rendered and as stored.
func (c *cut) remember() {
	if c.sieve != nil && c.sieve.read > 0 {
		note(&c.scope.ReadSize, c.sieve.bytes/c.sieve.read, maxRead/MaxLimit)
		return
	}
	if c.page.Count > 0 {
		note(&c.scope.RowSize, len(c.page.Records)/c.page.Count, PageBytes/MaxLimit)
		note(&c.scope.ReadSize, c.read/c.page.Count, maxRead/MaxLimit)
	}
}

// note stores a record size if it is so large that a page of MaxLimit records
// ends early. The size decays by halves, because pages of one scope differ.
func note(size *atomic.Int64, n, large int) {
	was := size.Load()
	is := max(int64(n), was/2)
	if is < int64(large) {
		is = 0
	}
	if is != was {
		size.Store(is)
	}
}

// chunk returns how many of the rest of a page's rows one statement asks for,
// given the approximate size of a row (0: not large) and how many bytes the
// page has left. It returns one of a few numbers, because each needs its own
// statement, and not many more than fit, because the server would send the
// excess for nothing.
func chunk(size int64, rest, left int) int {
	if size == 0 || size*int64(rest) <= int64(left) {
		return rest
	}
	fit := max(int64(left)/size, 1) + 1
	n := 2
	for ; int64(n) < fit; n *= 2 {
		if half := n + n/2; int64(half) >= fit {
			n = half
			break
		}
	}
	return min(n, rest)
}
