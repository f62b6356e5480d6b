package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	// maxLine is how long a line of NDJSON and a record of CSV may be, in bytes: twice
	// what a record may have as JSON.
	maxLine = 2 << 20
	// beginning bounds what an input is known by, its first two lines, in bytes.
	beginning = 64 << 10
)

// position is a place in an input.
type position struct {
	Line   int64  `json:"line"`   // the number of the next line, from 1
	Offset int64  `json:"offset"` // bytes before it
	Digest string `json:"digest"` // SHA-256 of them, in hexadecimal digits
	// Behind, in an import by parts, is how many bytes before the place Digest is of.
	Behind int64 `json:"behind,omitempty"`
}

// lines reads an input line by line, and knows where it is.
type lines struct {
	r      *bufio.Reader
	sum    sum   // of what was read
	line   int64 // the number of the next line
	offset int64
	// partial says that more text follows what can be read: what has no end is errCut.
	partial bool
}

// sum is what tells one input from another: a hash.Hash, or a tail.
type sum interface {
	io.Writer
	Sum(onto []byte) []byte
}

// errCut says that a part of an input ends within a record.
var errCut = errors.New("the part ends within a record")

// newLines returns a reader behind the byte order mark, if there is one, and what the
// input is known by: the digest of its first two lines, so that a mistake further down
// may be corrected in between.
func newLines(in io.Reader) (l *lines, known string, err error) {
	l = &lines{r: bufio.NewReaderSize(in, beginning), sum: sha256.New(), line: 1}
	known, err = l.begin()
	return l, known, err
}

// begin skips the byte order mark, if there is one, and returns what the input is known by.
func (l *lines) begin() (known string, err error) {
	first, err := l.peek()
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(first)
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(first, mark) {
		err = l.skip(int64(len(mark)))
	}
	return hex.EncodeToString(digest[:]), err
}

// newPart returns a reader of a part of an input, which begins at a place. last says that
// the input ends with it.
func newPart(text string, at position, last bool) *lines {
	return &lines{r: bufio.NewReaderSize(strings.NewReader(text), beginning), sum: &tail{}, line: at.Line, offset: at.Offset, partial: !last}
}

// peek returns the first two lines, or the first bytes of longer ones. It waits for no
// more than these.
func (l *lines) peek() ([]byte, error) {
	for {
		text, err := l.r.Peek(min(l.r.Buffered()+1, beginning))
		if err == nil {
			text, err = l.r.Peek(l.r.Buffered())
		}
		if end, ok := twoLines(text); ok || err != nil || len(text) == beginning {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return text[:end], err
		}
	}
}

// twoLines returns where the first two lines of a text end. ok is false for less text.
func twoLines(text []byte) (end int, ok bool) {
	for range 2 {
		n := bytes.IndexByte(text[end:], '\n')
		if n < 0 {
			return len(text), false
		}
		end += n + 1
	}
	return end, true
}

// next appends the next line, with its end, to dst. Of a line with which dst is longer
// than maxLine it appends only a part, and long is true. It returns io.EOF at the end.
func (l *lines) next(dst []byte) (line []byte, long bool, err error) {
	read := 0
	for {
		part, err := l.r.ReadSlice('\n')
		_, _ = l.sum.Write(part) // it takes all
		l.offset += int64(len(part))
		read += len(part)
		if room := maxLine - len(dst); len(part) > room {
			long, part = true, part[:max(room, 0)]
		}
		dst = append(dst, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && read > 0 && l.partial && !long:
			err = errCut
		case errors.Is(err, io.EOF) && read > 0:
			err = nil
		}
		if err == nil {
			l.line++
		}
		return dst, long, err
	}
}

// at returns where the reader is.
func (l *lines) at() position {
	p := position{Line: l.line, Offset: l.offset, Digest: hex.EncodeToString(l.sum.Sum(nil))}
	if t, ok := l.sum.(*tail); ok {
		p.Behind = int64(len(t.text()))
	}
	return p
}

// tail is what a part of an input is known by: the last bytes before a place, in whole
// characters.
type tail struct{ last []byte }

const tailBytes = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.last = append(t.last, p[max(0, len(p)-tailBytes):]...)
	t.last = t.last[max(0, len(t.last)-tailBytes):]
	return len(p), nil
}

func (t *tail) text() []byte {
	text := t.last
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

func (t *tail) Sum(onto []byte) []byte {
	digest := sha256.Sum256(t.text())
	return append(onto, digest[:]...)
}

// skip reads n bytes.
func (l *lines) skip(n int64) error {
	read, err := io.CopyN(l.sum, l.r, n)
	l.offset += read
	return err
}

// errOther refuses to go on in an input that is not the one of before.
var errOther = errors.New("this input differs from the one that was interrupted, in the part that was imported: --restart begins anew")

// resume goes on to a position of an earlier run. It returns errOther where the input is
// another one.
func (l *lines) resume(p position) error {
	if p.Offset < l.offset {
		return errOther
	}
	if err := l.skip(p.Offset - l.offset); errors.Is(err, io.EOF) {
		return errOther
	} else if err != nil {
		return err
	}
	l.line = p.Line
	if l.at() != p {
		return errOther
	}
	return nil
}

// cutEnd divides a line from its end: "\n", "\r\n" or nothing.
func cutEnd(line []byte) (body, end []byte) {
	n := len(line)
	if n > 0 && line[n-1] == '\n' {
		if n--; n > 0 && line[n-1] == '\r' {
			n--
		}
	}
	return line[:n], line[n:]
}
