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
	// headVersion is the first byte of a head. Heads of version 1, which have
	// fewer texts, are read too.
	headVersion = 2

	// blockSpan bounds how far apart in time the entries of a block are: the
	// greatest id of a block is at most this much later than any other id of
	// it, so that a query finds the blocks of a time by a range of ids.
	blockSpan = 4 * time.Minute

	dayMicros = int64(24 * time.Hour / time.Microsecond)
)

// block collects entries of one tenant and one day that are written together.
// The head has what filters need, the bodies have requests and answers.
type block struct {
	tenant       tenant.ID
	day          int64 // since 1 January 1970
	at           int64 // the time of its first entry, in microseconds
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
	markArea     = "area" // of endpoints: /data/, /custom/, /auth/, /admin/
	markError    = "error"
	markKey      = "key"   // an API key's id
	markAuth     = "auth"  // how the request authenticated
	markClass    = "class" // of errors: 4xx or 5xx
)

// classOf returns the class of a status: 2xx for a success, whatever its first
// digit is, else 4xx or 5xx.
func classOf(status int) string {
	switch {
	case status >= 500:
		return "5xx"
	case status >= 400:
		return "4xx"
	default:
		return "2xx"
	}
}

// areas are the groups of endpoints that a filter may name.
var areas = []string{"/data/", "/custom/", "/auth/", "/admin/"}

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
	for _, s := range [headTexts]string{
		e.ID, e.UserID, e.Auth, e.Method, e.Path, e.Endpoint, e.IP, e.RequestID, e.KeyID, e.KeyPrefix, e.Code, e.Gate, e.RealUserID,
	} {
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
	if e.KeyID != "" {
		b.mark(markKey, e.KeyID, failed)
	}
	if e.Auth != "" {
		b.mark(markAuth, e.Auth, failed)
	}
	if failed {
		b.mark(markError, "", true)
		b.mark(markClass, classOf(e.Status), true)
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

// The texts of an entry in a head, in their order.
const (
	textID = iota
	textUser
	textAuth
	textMethod
	textPath
	textEndpoint
	textIP
	textRequestID
	textKey // from here on since version 2
	textKeyPrefix
	textCode
	textGate
	textRealUser
	headTexts

	headTexts1 = textKey // of version 1
)

// headEntry is an entry of a head while it is scanned. Its texts are parts of
// the head.
type headEntry struct {
	micros           int64
	duration         uint64
	status           int
	texts            [headTexts][]byte
	at               int
	request, respond int
}

// found copies the entry out of its head.
func (e *headEntry) found() *found {
	text := func(i int) string { return string(e.texts[i]) }
	return &found{
		Entry: Entry{
			ID: text(textID), At: clock.FromMicros(e.micros), Duration: time.Duration(e.duration) * time.Microsecond, Status: e.status,
			UserID: text(textUser), Auth: text(textAuth), Method: text(textMethod), Path: text(textPath), Endpoint: text(textEndpoint),
			IP: text(textIP), RequestID: text(textRequestID), KeyID: text(textKey), KeyPrefix: text(textKeyPrefix),
			Code: text(textCode), Gate: text(textGate), RealUserID: text(textRealUser),
		},
		at: e.at, request: e.request, respond: e.respond,
	}
}

// readHead calls each for the entries of a decompressed head, in the order in
// which they were added.
func readHead(head []byte, each func(*found)) error {
	return scanHead(head, func(e *headEntry) { each(e.found()) })
}

// scanHead is readHead without copying: the entry is valid while each runs. A
// block that is cut short or changed is an error, not a panic.
func scanHead(head []byte, each func(*headEntry)) error {
	r := headReader{rest: head}
	texts := 0
	if len(head) > 0 {
		texts = map[byte]int{1: headTexts1, headVersion: headTexts}[r.byte()]
	}
	if texts == 0 {
		return fmt.Errorf("%w: its format is not known", errBlock)
	}
	var e headEntry
	at := 0
	for len(r.rest) > 0 {
		e.at = at
		e.micros = r.varint()
		e.duration = r.uvarint()
		e.status = int(r.uvarint())
		for i := range texts {
			e.texts[i] = r.text()
		}
		e.request, e.respond = int(r.uvarint()), int(r.uvarint())
		if r.bad || e.request < 0 || e.respond < 0 || e.request > maxBlock || e.respond > maxBlock {
			return fmt.Errorf("%w: its head is torn", errBlock)
		}
		at += e.request + e.respond
		each(&e)
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

func (r *headReader) text() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.bad, n = true, uint64(len(r.rest))
	}
	s := r.rest[:n:n]
	r.rest = r.rest[n:]
	return s
}
