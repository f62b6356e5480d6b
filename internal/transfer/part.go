package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

// An import by parts is one of an input that a client holds, as the console does
// (contract Y17): the client sends some of the input, a batch of it takes effect, and the
// answer says how far that came. Where the import stands is stored as it is for a whole
// input, so that a part which is sent twice has effect once.

// maxPart is how long the text of a part may be, in bytes: more than the longest record.
const maxPart = maxLine + 64<<10

// ImportPart is some text of an input that is imported by parts, in UTF-8. Offsets are in
// bytes of it.
type ImportPart struct {
	Format      Format   `json:"format"`
	By          string   `json:"by,omitempty"`
	Ignore      []string `json:"ignore,omitempty"`
	Spreadsheet bool     `json:"spreadsheet,omitempty"`
	DryRun      bool     `json:"dryRun,omitempty"`
	// Run is a name that the client invents for its import, of 16 to 64 characters.
	Run string `json:"run"`
	// Input and Head are what the input is known by and the header of a CSV. Both are ""
	// in the part at offset 0, whose answer says what they are.
	Input string `json:"input,omitempty"`
	Head  string `json:"head,omitempty"`
	// Restart begins an import anew that was interrupted. Before goes on with one that
	// another run left: it is the text before the offset, as long as Behind says.
	Restart bool   `json:"restart,omitempty"`
	Before  string `json:"before,omitempty"`
	Offset  int64  `json:"offset"`
	Line    int64  `json:"line"` // the number of the first line of Text, from 1
	Text    string `json:"text"`
	// Last says that the input ends with Text.
	Last bool `json:"last,omitempty"`
}

// ImportedPart is where an import by parts stands behind a part.
type ImportedPart struct {
	Input  string `json:"input"`
	Head   int64  `json:"head"`   // how long the header of a CSV is, with a byte order mark, in bytes
	Offset int64  `json:"offset"` // where the next part begins; as before where the text has no whole record
	Line   int64  `json:"line"`
	Behind int64  `json:"behind"`
	// By and Spreadsheet are as the import was begun with; it goes on with the same.
	By          string `json:"by"`
	Spreadsheet bool   `json:"spreadsheet"`
	// Counts are of the whole import so far, in a dry run of this part.
	Counts
	Failures []Failure `json:"failures"` // of this part
	Notes    []string  `json:"notes"`
	Finished bool      `json:"finished"`
}

// check returns VALIDATION for a part that is not well-formed.
func (p *ImportPart) check() error {
	bad := map[string]string{}
	if _, ok := ParseFormat(string(p.Format), ""); !ok || p.Format == "" {
		bad["format"] = "expected csv or ndjson"
	}
	if len(p.Run) < 16 || len(p.Run) > 64 {
		bad["run"] = "expected 16 to 64 characters that the client invents"
	}
	if len(p.Text) > maxPart {
		bad["text"] = "expected at most 2 MiB"
	}
	if len(p.Ignore) > maxCells {
		bad["ignore"] = fmt.Sprintf("expected at most %d", maxCells)
	}
	first := p.Offset == 0
	if p.Offset < 0 || p.Line < 1 || first && p.Line != 1 {
		bad["offset"] = "expected a place as an answer names it"
	}
	if first != (p.Input == "") || len(p.Input) > 2*sha256.Size {
		bad["input"] = "expected what the answer to the first part says, and nothing in the first part"
	}
	if first && p.Head != "" || !first && p.Format == CSV && p.Head == "" {
		bad["head"] = "expected the header of a CSV, in every part but the first"
	}
	if len(bad) > 0 {
		return fault.Fields("the part of the import is not valid", bad)
	}
	return nil
}

// Part imports one batch of a part. It returns the errors of Run, VALIDATION for a part
// that is not well-formed, and CONFLICT, with where the import stands in its details, for
// an import that stands elsewhere.
func (im *Import) Part(ctx context.Context, p *ImportPart) (*ImportedPart, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	im.Format, im.By, im.Ignore, im.Spreadsheet, im.DryRun, im.Batch = p.Format, p.By, p.Ignore, p.Spreadsheet, p.DryRun, records.MaxBatch
	out := &ImportedPart{Input: p.Input, Head: int64(len(p.Head)), Offset: p.Offset, Line: p.Line, Failures: []Failure{}, Notes: []string{}}
	im.Note = func(text string) { out.Notes = append(out.Notes, text) }
	im.Failed, im.Progress = func(f Failure) { out.Failures = append(out.Failures, f) }, func(Result) {}
	r, err := im.prepare()
	if err != nil {
		return nil, err
	}
	src, l, err := im.open(r, p, out)
	if err != nil {
		return out, cutIsNoError(err, p)
	}
	w := &importer{Import: im, src: src, store: im.store(r.Entity.StoredAs(), "console "+string(im.Viewer.UserID())+" "+out.Input), id: p.Run, hasty: true}
	if done, err := w.standing(ctx, p, out); done || err != nil {
		return out, err
	}
	if err := w.part(ctx, l, p); errors.Is(err, ErrTaken) {
		return nil, fault.New(fault.Conflict, "%s", err)
	} else if err != nil {
		return nil, err
	}
	out.stands(&w.at)
	return out, nil
}

// open returns the entries of a part, and what the answer says of the input.
func (im *Import) open(r *access.EntityRights, p *ImportPart, out *ImportedPart) (src source, l *lines, err error) {
	l = newPart(p.Text, position{Line: p.Line, Offset: p.Offset}, p.Last)
	if p.Offset == 0 {
		if out.Input, err = l.begin(); err != nil {
			return nil, nil, err
		}
		if src, err = im.source(r, l); err != nil {
			return nil, nil, err
		}
		out.Head = l.offset
		return src, l, nil
	}
	if im.Format == NDJSON {
		return &jsonSource{l, im}, l, nil
	}
	read := newPart(p.Head, position{Line: 1}, true)
	if _, err := read.begin(); err != nil {
		return nil, nil, err
	}
	head, err := im.source(r, read)
	if err != nil {
		return nil, nil, err
	}
	return &csvSource{&csvReader{lines: l}, im, head.(*csvSource).columns}, l, nil
}

// cutIsNoError returns nil for the cut of a part, so that the client sends more text, and
// VALIDATION where a record cannot be so long.
func cutIsNoError(err error, p *ImportPart) error {
	switch {
	case !errors.Is(err, errCut):
		return refusal(err)
	case len(p.Text) > maxLine:
		return invalid("line %d: %s", p.Line, tooLong)
	}
	return nil
}

// refusal returns an error of an input as VALIDATION.
func refusal(err error) error {
	var refused *fault.Error
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return invalid("%s", err)
}

// standing finds out where the import stands. done is true where the part has had effect
// already.
func (w *importer) standing(ctx context.Context, p *ImportPart, out *ImportedPart) (done bool, err error) {
	if w.DryRun {
		return false, nil
	}
	was, is, known, err := w.store.find(ctx)
	if err != nil {
		return false, err
	}
	conflict := func(text string) error {
		out.stands(&is)
		return fault.New(fault.Conflict, "%s", text).With("stands", out)
	}
	first := p.Offset == 0
	switch {
	case known && was.id == p.Run && (is.At.Offset > p.Offset || is.Finished):
		out.stands(&is)
		return true, nil
	case first && known && !is.Finished && !p.Restart:
		return false, conflict("an import of this file was interrupted")
	case first && known:
		w.was = &was
	case first:
	case !known:
		return false, invalid("no import of this input is known: it is begun at offset 0")
	case is.By != p.By || is.Spreadsheet != p.Spreadsheet:
		return false, conflict("the import was begun with another by or spreadsheet")
	case is.Finished || is.At.Offset != p.Offset || was.id != p.Run && !is.At.follows(p.Before):
		return false, conflict("the import of this file stands elsewhere")
	default:
		w.was, w.at = &was, is
	}
	return false, nil
}

// follows reports whether a text stands before a place.
func (at position) follows(before string) bool {
	digest := sha256.Sum256([]byte(before))
	return int64(len(before)) == at.Behind && hex.EncodeToString(digest[:]) == at.Digest
}

// part imports a batch of a part, and ends the import behind the last one.
func (w *importer) part(ctx context.Context, l *lines, p *ImportPart) error {
	w.at.Failures, w.at.At = nil, position{Line: p.Line, Offset: p.Offset}
	batch, end := w.read()
	if len(batch) == 0 && !errors.Is(end, io.EOF) {
		w.at.At.Offset, w.at.At.Line = p.Offset, p.Line
		return cutIsNoError(end, p)
	}
	if len(batch) > 0 {
		if err := w.put(ctx, batch); err != nil {
			return err
		}
	}
	if !p.Last || !errors.Is(end, io.EOF) {
		return nil
	}
	w.at.At, w.at.Finished = l.at(), true
	if w.DryRun {
		return nil
	}
	return w.store.finish(ctx, w.was, run{w.id, l.offset}, &w.at)
}

// stands says where an import stands.
func (out *ImportedPart) stands(at *state) {
	out.Offset, out.Line, out.Behind, out.Counts, out.Finished = at.At.Offset, at.At.Line, at.At.Behind, at.Counts, at.Finished
	out.By, out.Spreadsheet = at.By, at.Spreadsheet
	if at.Failures != nil {
		out.Failures = at.Failures
	}
}

// ExportedPart is a page of an export.
type ExportedPart struct {
	Text    string   `json:"text"`    // whole lines, in the first page of a CSV with its header
	Columns []string `json:"columns"` // the members of the records; a change of them ends the export
	Count   int      `json:"count"`   // how many records there are
	Next    *string  `json:"next"`    // the cursor of the next page, null for none
}

// Page returns a page of the export, behind a cursor. It returns the errors of Run.
func (ex *Export) Page(ctx context.Context, cursor string) (*ExportedPart, error) {
	if err := errUsers(ex.Entity); err != nil {
		return nil, err
	}
	var text strings.Builder
	w := newExportWriter(ex, &text)
	page, err := w.page(ctx, cursor)
	if err != nil {
		return nil, err
	}
	out := &ExportedPart{Text: text.String(), Columns: w.columns, Count: page.Count}
	if page.Next != "" {
		out.Next = &page.Next
	}
	return out, nil
}
