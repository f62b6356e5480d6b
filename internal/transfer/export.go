package transfer

import (
	"bufio"
	"context"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// Export writes the records of an entity type that a viewer may see.
type Export struct {
	Records   *records.Store
	Directory *access.Directory
	Viewer    access.Viewer
	Entity    string
	Format    Format
	// Query selects the records, their order and their members. Its limit and cursor
	// are not used.
	Query records.Query
	// Spreadsheet puts an apostrophe before texts of a CSV that a spreadsheet may take
	// for a formula.
	Spreadsheet bool
	// Progress is called after each page with the number of records so far.
	Progress func(n int64)
	// Holder bounds what a page takes, nil for no bound.
	Holder records.Holder
}

var errChanged = fault.New(fault.Conflict, "the fields of the entity type, or the user's rights on them, changed during the export: export it again")

// Run writes the records to out, page by page, and returns how many. It returns the
// errors of records.Session.List, and an error where the fields change meanwhile.
func (ex *Export) Run(ctx context.Context, out io.Writer) (n int64, err error) {
	if err := errUsers(ex.Entity); err != nil {
		return 0, err
	}
	w := newExportWriter(ex, out)
	cursor := ""
	for first := true; first || cursor != ""; first = false {
		page, err := w.page(ctx, cursor)
		n += int64(page.Count)
		if err != nil {
			return n, err
		}
		cursor = page.Next
		ex.Progress(n)
	}
	return n, nil
}

// page writes the page behind a cursor, the first one with the header.
func (w *exportWriter) page(ctx context.Context, cursor string) (page records.Page, err error) {
	ex := w.ex
	if ex.Viewer, err = ex.Directory.Renew(ctx, ex.Viewer); err != nil {
		return page, err
	}
	q := ex.Query
	q.Limit, q.Cursor = records.MaxLimit, cursor
	if page, err = ex.Records.As(ex.Viewer).Within(ex.Holder).List(ctx, ex.Entity, q); err != nil {
		return page, err
	}
	if w.columns == nil {
		r, err := ex.Viewer.On(ex.Entity)
		if err != nil {
			return page, err
		}
		w.columns = columnsOf(r, q.Fields)
	}
	if cursor == "" {
		if err := w.header(); err != nil {
			return page, err
		}
	}
	for _, rec := range httpapi.Elements(page.Records) {
		if err := w.record(rec); err != nil {
			return page, err
		}
	}
	return page, w.Flush()
}

// exportWriter writes records in the format of an export.
type exportWriter struct {
	*bufio.Writer
	ex      *Export
	columns []string
	line    []byte
}

func newExportWriter(ex *Export, out io.Writer) *exportWriter {
	return &exportWriter{Writer: bufio.NewWriterSize(out, 64<<10), ex: ex}
}

// header writes the names of the columns of a CSV.
func (w *exportWriter) header() error {
	if w.ex.Format != CSV {
		return nil
	}
	for i, name := range w.columns {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.line = append(w.line, name...)
	}
	return w.end()
}

// columnsOf returns the members of a record in their order: all, or beside id those that
// are selected.
func columnsOf(r *access.EntityRights, selected []string) []string {
	list := []string{idMember, ownerMember, created, updated}
	for i, f := range r.Entity.Fields {
		if r.ReadField[i] {
			list = append(list, f.Name)
		}
	}
	if len(selected) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(name string) bool { return name != idMember && !slices.Contains(selected, name) })
}

// record writes one record.
func (w *exportWriter) record(rec jsontext.Value) error {
	if w.ex.Format == NDJSON {
		w.line = append(w.line, rec...)
		return w.end()
	}
	o, err := httpapi.ParseObject(rec)
	if err != nil {
		return err
	}
	if len(o.Members) != len(w.columns) {
		return errChanged
	}
	for i, m := range o.Members {
		if m.Name != w.columns[i] {
			return errChanged
		}
		if i > 0 {
			w.line = append(w.line, ',')
		}
		switch {
		case schema.IsNull(m.Value):
		case m.Value.Kind() == '"':
			w.line = appendText(w.line, []byte(schema.Unquote(m.Value)), w.ex.Spreadsheet)
		default:
			w.line = appendCell(w.line, m.Value)
		}
	}
	return w.end()
}

// end writes the line.
func (w *exportWriter) end() error {
	_, err := w.Write(append(w.line, '\n'))
	w.line = w.line[:0]
	return err
}
