package audit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

const (
	// blockBytes is the size at which a block is full: what is read and
	// decompressed for one entry.
	blockBytes = 256 << 10
	// maxBlock bounds the decompressed size that a stored block may claim.
	maxBlock = 16 << 20
	// headVersion is the first byte of a head.
	headVersion = 1

	dayMicros = int64(24 * time.Hour / time.Microsecond)
)

// block collects entries of one tenant and one day that are written together.
// The head has what filters need, the bodies have requests and answers.
type block struct {
	tenant       tenant.ID
	day          int64 // since 1 January 1970
	head, bodies []byte
	entries      int
	first, last  string // the smallest and the greatest id
	marks        map[mark]bool
	came         time.Duration // when its first entry arrived
	bytes        int64         // the charge of its entries
	charged      int64         // what was taken from the budget
	packed       *packed       // set once it is full; head and bodies are then gone
}

// mark is a property by which a block is found. Its value in block.marks reports
// whether any entry with the mark is an error.
type mark struct{ kind, value string }

// Kinds of marks.
const (
	markUser     = "user"
	markEndpoint = "endpoint"
	markArea     = "area" // of endpoints: /data/, /custom/, /auth/
	markError    = "error"
)

// areas are the groups of endpoints that a filter may name.
var areas = []string{"/data/", "/custom/", "/auth/"}

// size returns about how many bytes the block takes in memory.
func (b *block) size() int {
	if b.packed != nil {
		return len(b.packed.head) + len(b.packed.bodies)
	}
	return len(b.head) + len(b.bodies)
}

// add adds an entry to the block. request and response must be complete JSON
// texts.
func (b *block) add(e *Entry, request, response []byte) {
	if b.entries == 0 {
		b.first, b.last = e.ID, e.ID
		b.head = append(b.head, headVersion)
	}
	b.entries++
	b.first, b.last = min(b.first, e.ID), max(b.last, e.ID)
	h := b.head
	h = binary.AppendVarint(h, clock.Micros(e.At))
	h = binary.AppendUvarint(h, uint64(max(e.Duration.Microseconds(), 0)))
	h = binary.AppendUvarint(h, uint64(max(e.Status, 0)))
	for _, s := range [...]string{e.ID, e.UserID, e.Auth, e.Method, e.Path, e.Endpoint, e.IP, e.RequestID} {
		h = binary.AppendUvarint(h, uint64(len(s)))
		h = append(h, s...)
	}
	h = binary.AppendUvarint(h, uint64(len(request)))
	b.head = binary.AppendUvarint(h, uint64(len(response)))
	if need := len(request) + len(response); cap(b.bodies)-len(b.bodies) < need && len(b.bodies) > blockBytes/16 {
		b.bodies = slices.Grow(b.bodies, max(need, blockBytes*5/4-len(b.bodies))) // it will be full soon
	}
	b.bodies = append(append(b.bodies, request...), response...)

	failed := e.Status >= 400
	if e.UserID != "" {
		b.mark(markUser, e.UserID, failed)
	}
	if e.Endpoint != "" {
		b.mark(markEndpoint, e.Endpoint, failed)
		for _, area := range areas {
			if strings.HasPrefix(e.Endpoint, area) {
				b.mark(markArea, area, failed)
			}
		}
	}
	if failed {
		b.mark(markError, "", true)
	}
}

func (b *block) mark(kind, value string, failed bool) {
	m := mark{kind, value}
	if had, ok := b.marks[m]; ok && (had || !failed) {
		return
	}
	if b.marks == nil {
		b.marks = map[mark]bool{}
	}
	m.value = strings.Clone(value) // it outlives the request
	b.marks[m] = failed
}

// packed is a block as stored.
type packed struct {
	day          int64
	first, last  string
	entries      int
	marks        map[mark]bool
	head, bodies []byte // compressed
}

var packBuffers = sync.Pool{New: func() any { return new([]byte) }}

// pack compresses a block.
func (b *block) pack() packed {
	if b.packed != nil {
		return *b.packed
	}
	buf := packBuffers.Get().(*[]byte)
	defer packBuffers.Put(buf)
	room := s2.MaxEncodedLen(len(b.head))
	need := room + s2.MaxEncodedLen(len(b.bodies))
	if cap(*buf) < need {
		*buf = make([]byte, need)
	}
	all := (*buf)[:need]
	head, bodies := s2.Encode(all[:room:room], b.head), s2.Encode(all[room:], b.bodies)
	exact := append(append(make([]byte, 0, len(head)+len(bodies)), head...), bodies...)
	return packed{
		day: b.day, first: b.first, last: b.last, entries: b.entries, marks: b.marks,
		head: exact[:len(head):len(head)], bodies: exact[len(head):],
	}
}

var errBlock = errors.New("a block of the audit log is damaged")

// unpack decompresses one part of a stored block.
func unpack(stored []byte) ([]byte, error) {
	n, err := s2.DecodedLen(stored)
	if err != nil || n > maxBlock {
		return nil, fmt.Errorf("%w: it claims %d bytes", errBlock, n)
	}
	raw, err := s2.Decode(nil, stored)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBlock, err)
	}
	return raw, nil
}

// found is an entry of a stored block, without request and answer, which are in
// the block's bodies.
type found struct {
	Entry
	block            string // its last id
	at               int    // the offset of the request in the bodies
	request, respond int    // lengths
}

// readHead calls each for the entries of a decompressed head, in the order in
// which they were added. A block that is cut short or changed is an error, not
// a panic.
func readHead(head []byte, each func(*found)) error {
	r := headReader{rest: head}
	if len(head) == 0 || r.byte() != headVersion {
		return fmt.Errorf("%w: its format is not known", errBlock)
	}
	at := 0
	for len(r.rest) > 0 {
		e := &found{at: at}
		e.At = clock.FromMicros(r.varint())
		e.Duration = time.Duration(r.uvarint()) * time.Microsecond
		e.Status = int(r.uvarint())
		for _, s := range [...]*string{&e.ID, &e.UserID, &e.Auth, &e.Method, &e.Path, &e.Endpoint, &e.IP, &e.RequestID} {
			*s = r.text()
		}
		e.request, e.respond = int(r.uvarint()), int(r.uvarint())
		if r.bad || e.request < 0 || e.respond < 0 || e.request > maxBlock || e.respond > maxBlock {
			return fmt.Errorf("%w: its head is torn", errBlock)
		}
		at += e.request + e.respond
		each(e)
	}
	return nil
}

// texts sets the request and answer of an entry from its block's bodies.
func (e *found) texts(bodies []byte) error {
	end := e.at + e.request + e.respond
	if end > len(bodies) {
		return fmt.Errorf("%w: its bodies are torn", errBlock)
	}
	e.Request = string(bodies[e.at : e.at+e.request])
	e.Response = string(bodies[e.at+e.request : end])
	return nil
}

// headReader parses what block.add wrote; bad is set when the data does not
// fit.
type headReader struct {
	rest []byte
	bad  bool
}

func (r *headReader) byte() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *headReader) took(n int) {
	if n <= 0 {
		r.bad, n = true, len(r.rest)
	}
	r.rest = r.rest[n:]
}

func (r *headReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.took(n)
	return v
}

func (r *headReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.took(n)
	return v
}

func (r *headReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.bad, n = true, uint64(len(r.rest))
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
