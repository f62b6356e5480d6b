package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
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
}

// lines reads an input line by line, and knows where it is.
type lines struct {
	r      *bufio.Reader
	sum    hash.Hash // of what was read
	line   int64     // the number of the next line
	offset int64
}

// newLines returns a reader behind the byte order mark, if there is one, and what the
// input is known by: the digest of its first two lines, so that a mistake further down
// may be corrected in between.
func newLines(in io.Reader) (l *lines, known string, err error) {
	l = &lines{r: bufio.NewReaderSize(in, beginning), sum: sha256.New(), line: 1}
	first, err := l.peek()
	if err != nil {
		return nil, "", err
	}
	digest := sha256.Sum256(first)
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(first, mark) {
		err = l.skip(int64(len(mark)))
	}
	return l, hex.EncodeToString(digest[:]), err
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
		l.sum.Write(part)
		l.offset += int64(len(part))
		read += len(part)
		if room := maxLine - len(dst); len(part) > room {
			long, part = true, part[:max(room, 0)]
		}
		dst = append(dst, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
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
	return position{l.line, l.offset, hex.EncodeToString(l.sum.Sum(nil))}
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
