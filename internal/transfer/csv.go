package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// CSV is that of RFC 4180, with one rule more, which is PostgreSQL's: nothing between two
// commas is null, and "" is the empty text (decisions/0036). That rule is why
// encoding/csv does not do, which tells neither.

// cell is one cell of a record.
type cell struct {
	text   []byte // valid until the next record is read
	quoted bool
}

func (c cell) null() bool { return len(c.text) == 0 && !c.quoted }

// csvReader reads the records of an input.
type csvReader struct {
	*lines
	raw   []byte // the present line
	texts []byte // the texts of the present record's cells
	ends  []cellEnd
	cells []cell
}

// cellEnd is where the text of a cell ends in texts.
type cellEnd struct {
	at     int
	quoted bool
}

// The states of a cell that is being read.
const (
	atStart  = iota
	inPlain  // it does not begin with a quotation mark
	inQuotes // behind the mark that begins it
	atQuote  // behind a mark within, which ends it or is the first of two
)

// next reads the next record, which begins on the line from. What is wrong with this
// record alone is bad. It returns io.EOF at the end, and an error where it cannot tell
// what is a record from here on.
func (r *csvReader) next() (from int64, cells []cell, bad string, err error) {
	var line []byte
	for {
		from = r.line
		var long bool
		if line, long, err = r.lines.next(r.raw[:0]); err != nil {
			return from, nil, "", err
		}
		r.raw = line
		r.texts, r.ends = r.texts[:0], r.ends[:0]
		if body, _ := cutEnd(line); len(body) > 0 || long {
			bad, err = r.record(from, line, long)
			return from, r.cells, bad, err
		}
	}
}

// record reads the record that begins with a line.
func (r *csvReader) record(from int64, line []byte, long bool) (bad string, err error) {
	state, size := atStart, 0
	for {
		body, end := cutEnd(line)
		state = r.feed(body, state, &bad)
		size += len(line)
		switch {
		case long: // quotation marks may stand in what was left out
			return "", fmt.Errorf("line %d is longer than %d MiB; what comes behind it cannot be read", r.line-1, maxLine>>20)
		case state != inQuotes && size > maxLine:
			return tooLong, nil
		case state != inQuotes:
			r.endCell(state)
			r.cut()
			if len(r.cells) > maxCells {
				bad = fmt.Sprintf("the record has more than %d cells", maxCells)
			}
			return bad, nil
		case size > maxLine:
			return "", errUnclosed(from, fmt.Sprintf("within %d MiB", maxLine>>20))
		}
		r.texts = append(r.texts, end...)
		if line, long, err = r.lines.next(r.raw[:0]); errors.Is(err, io.EOF) && r.partial {
			return "", errCut
		} else if errors.Is(err, io.EOF) {
			return "", errUnclosed(from, "before the end of the input")
		} else if err != nil {
			return "", err
		}
		r.raw = line
	}
}

var tooLong = fmt.Sprintf("the record is longer than %d MiB", maxLine>>20)

func errUnclosed(from int64, where string) error {
	return fmt.Errorf("line %d: a quotation mark begins a cell that does not end %s; what comes behind it cannot be read", from, where)
}

// feed reads the body of a line and returns the state behind it.
func (r *csvReader) feed(body []byte, state int, bad *string) int {
	for _, c := range body {
		switch {
		case state == inQuotes:
			if c == '"' {
				state = atQuote
				continue
			}
			r.texts = append(r.texts, c)
		case c == ',':
			r.endCell(state)
			state = atStart
		case c == '"' && state == atStart:
			state = inQuotes
		case c == '"' && state == atQuote:
			r.texts = append(r.texts, c)
			state = inQuotes
		case state == atQuote:
			*bad = "text follows the quotation mark that ends a cell: expected a comma, or two marks for one within"
			state = inPlain
		default:
			if c == '"' {
				*bad = "a quotation mark stands in a cell that does not begin with one: expected \"…\" around the cell, and two marks for one within"
			}
			r.texts = append(r.texts, c)
			state = inPlain
		}
	}
	return state
}

// maxCells is how many cells a record may have: more than an entity type has fields.
const maxCells = 2000

// endCell ends a cell. Of too many it keeps one more than a record may have.
func (r *csvReader) endCell(state int) {
	if len(r.ends) > maxCells {
		return
	}
	r.ends = append(r.ends, cellEnd{len(r.texts), state == atQuote})
}

// cut makes the cells of the texts that were read.
func (r *csvReader) cut() {
	r.cells = r.cells[:0]
	from := 0
	for _, end := range r.ends {
		r.cells = append(r.cells, cell{r.texts[from:end.at], end.quoted})
		from = end.at
	}
}

// appendCell appends a text as a cell.
func appendCell(dst, text []byte) []byte {
	if len(text) > 0 && !bytes.ContainsAny(text, "\",\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	for _, c := range text {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

// formulas begin what a spreadsheet may take for a formula, also behind the apostrophe
// that says that it is none.
const formulas = "=+-@\t\r'"

// appendText appends a text as a cell; guarded, so that no spreadsheet takes it for a
// formula.
func appendText(dst, text []byte, guarded bool) []byte {
	if guarded && len(text) > 0 && bytes.IndexByte([]byte(formulas), text[0]) >= 0 {
		text = append([]byte("'"), text...)
	}
	return appendCell(dst, text)
}

// unguard undoes the guard of appendText.
func unguard(text []byte) []byte {
	if len(text) > 1 && text[0] == '\'' && bytes.IndexByte([]byte(formulas), text[1]) >= 0 {
		return text[1:]
	}
	return text
}
