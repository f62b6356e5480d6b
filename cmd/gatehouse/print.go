package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"gatehouse/internal/clock"
)

// list collects the rows of a list: the values that --json prints, and the cells
// of the table.
type list struct {
	header []string
	values []any
	cells  [][]string
}

func (l *list) add(value any, cells ...string) {
	l.values = append(l.values, value)
	l.cells = append(l.cells, cells)
}

// print writes a table, or with asJSON each value as one JSON object a line.
func (l *list) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printLines(w, l.values)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range slices.Concat([][]string{l.header}, l.cells) {
		for i, cell := range row {
			row[i] = printable(cell)
		}
		if _, err := fmt.Fprintln(tw, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return tw.Flush()
}

// jsonEncoder returns an encoder that does not escape <, > and &.
func jsonEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// printLines writes each value as one JSON object a line.
func printLines[T any](w io.Writer, values []T) error {
	enc := jsonEncoder(w)
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// printJSON writes a value over several lines, indented.
func printJSON(w io.Writer, v any) error {
	enc := jsonEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printable replaces control characters, which could move a terminal's cursor,
// and returns "-" for an empty cell.
func printable(cell string) string {
	if cell == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\ufffd'
		}
		return r
	}, cell)
}

// instant formats a stored time for a list; it returns nil for 0, no time.
func instant(micros int64) *string {
	if micros == 0 {
		return nil
	}
	text := string(clock.AppendRFC3339Micro(nil, micros))
	return &text
}

// orNull returns nil for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orEmpty returns "" for nil.
func orEmpty(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// thousands formats a count with separators: 300,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}
