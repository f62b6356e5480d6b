package records

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/fault"
)

// Bounds of what is looked at for one page (contract P10).
const (
	maxSifted      = 10_000 // rows; see Store.sifts
	maxSiftedBytes = 4 * maxRead
	// lookAtOnce is how many rows one statement reads.
	lookAtOnce = MaxLimit + 1
	// patient and patientBytes are after how much a page takes turns with other work: to
	// search a megabyte for words takes tens of milliseconds.
	patient      = 200
	patientBytes = 1 << 20
)

// part is a part of what is looked at for one page.
type part int

const (
	entire part = iota
	// trial is what is looked at of the first rows of a list before it is found out whether
	// a condition leaves few: a tenth.
	trial
	// handful is so few that these are looked at rather than the first of the list: a fiftieth.
	handful
)

// sieve gives a page the rows that a plan's tests hold for. It looks at rows that
// the viewer may see and no others, so that neither its bounds nor its time tell of
// hidden ones.
type sieve struct {
	plan *plan
	cut  *cut
	of   part

	rows, bytes int
	read        int // of the rows, those that came with their data
	last        row // the last row that was looked at, without its data
	values      []jsontext.Value
}

// errLooked ends a read: as much was looked at as is for one page.
var errLooked = errors.New("looked at all that may be")

// sift returns a sieve of what may be looked at for the page, or of a part of that.
func (c *cut) sift(p *plan, of part) *sieve { return &sieve{plan: p, cut: c, of: of} }

// most returns how many rows a part is.
func (c *cut) most(of part) int { return max(c.s.store.sifts/[...]int{1, 10, 50}[of], 1) }

// sieved returns rows that pass a plan's tests, if it has any.
func (c *cut) sieved(p *plan, rows fetchFunc) fetchFunc {
	if len(p.tests) == 0 {
		return rows
	}
	c.sieve = c.sift(p, entire)
	return c.sieve.over(rows)
}

// tried returns rows that pass a plan's tests. Where the page is not full after a trial, what
// comes behind a window's place is what rest returns for it.
func (c *cut) tried(p *plan, rows fetchFunc, rest func(window) (fetchFunc, error)) fetchFunc {
	v := c.sift(p, trial)
	c.sieve = v
	passing, ended := v.over(rows), false
	return func(w window, each func(*row) error) (err error) {
		if !ended {
			before, given := v.rows, 0
			err := passing(w, func(rec *row) error { given++; return each(rec) })
			if !errors.Is(err, errLooked) {
				return err
			}
			if w.limit -= given; v.rows > before {
				w.follow(&v.last)
			}
			ended = true
			if passing, err = rest(w); err != nil {
				return err
			}
		}
		return passing(w, each)
	}
}

// over returns fetch without the rows for which a test does not hold. It reads on
// until the window's limit is reached, and returns errLooked past the bounds.
func (s *sieve) over(fetch fetchFunc) fetchFunc {
	return func(w window, each func(*row) error) error {
		wanted, part := w.limit, w
		for n := min(w.limit, lookAtOnce); ; n = lookAtOnce {
			if s.left() == 0 {
				return errLooked
			}
			part.limit = chunk(s.size(), min(n, s.left()), PageBytes)
			read := 0
			err := fetch(part, func(rec *row) error {
				read++
				if s.passes(rec) {
					if err := each(rec); err != nil {
						return err
					}
					if wanted--; wanted == 0 {
						return errEnough
					}
				}
				return s.turn()
			})
			if wanted == 0 {
				return nil
			}
			if err != nil || read < part.limit {
				return err
			}
			part.follow(&s.last)
			s.cut.work.Pause() // as in cut.fill
			if err := s.cut.enter(); err != nil {
				return err
			}
		}
	}
}

// left returns how many rows may still be looked at: one more than the bound, which
// tells whether there are more.
func (s *sieve) left() int {
	bytes := maxSiftedBytes
	if s.of != entire {
		bytes /= 10
	}
	if s.bytes >= bytes {
		return 0
	}
	return max(s.cut.most(s.of)+1-s.rows, 0)
}

// size returns about how large a row is.
func (s *sieve) size() int64 {
	if s.read == 0 {
		return s.cut.scope.ReadSize.Load()
	}
	return int64(s.bytes / s.read)
}

// passes reports whether the tests hold for a row.
func (s *sieve) passes(rec *row) bool {
	if s.cut.looksFrom == 0 {
		s.cut.looksFrom = rec.createdAt
	}
	s.rows++
	s.last = *rec
	s.last.data = nil
	if rec.missed {
		return false
	}
	s.read++
	s.bytes += len(rec.data)
	if s.values == nil {
		s.values = make([]jsontext.Value, len(s.plan.entity.Fields))
	}
	split(s.plan.entity, rec.data, s.values)
	return s.plan.holds(rec, s.values)
}

// turn lets other work have the core after some rows.
func (s *sieve) turn() error {
	if s.rows < patient && s.bytes < patientBytes {
		return nil
	}
	return s.cut.compute()
}

// tooBroad returns the error of a page on which there is nothing within the bounds.
func (s *sieve) tooBroad() error {
	return fault.New(fault.QueryTooBroad, "%d records that the conditions on indexed fields leave were looked at, and none matches: narrow created_at, or add a condition that an index answers", s.rows).
		With("fields", s.plan.unanswered())
}
