package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"gatehouse/internal/component"
)

// sourceDecl says where the source of a logic component or module stands.
type sourceDecl struct {
	file  string // source_file, "" when the source is in the manifest
	place Place  // of the source, or of source_file
	lines bool   // of the source, as Value.Lines
	// bad is set when there is no source to be compiled.
	bad bool
}

// sourceMember is a member that is a source; the change history has a digest of it.
func sourceMember[T any](of func(*T) string) attr[T] {
	return attr[T]{
		key: "source", kind: TextMember, doc: "the JavaScript; in the place of source_file", read: func(*decoder, *T, *Value) {},
		tell: func(o *T, _ func(string) string) *Value { return long(of(o)) },
		past: func(o, _ *T) *Value { return digestOf(of(o)) },
	}
}

func sourceFileMember[T any]() attr[T] {
	return attr[T]{key: "source_file", kind: TextMember, doc: "a file beside the manifest; in the place of source", read: func(*decoder, *T, *Value) {}}
}

// digestOf tells that a source changed.
func digestOf(source string) *Value {
	digest := sha256.Sum256([]byte(source))
	return str("sha256:" + hex.EncodeToString(digest[:8]))
}

// sources reads the one that is given of source and source_file. expected is what is
// said of an empty source.
func (d *decoder) sources(s *sourceDecl, item *Value, o subject, given map[string]*Value, text *string, expected string) {
	source, file := given["source"], given["source_file"]
	ok := false
	switch {
	case (source == nil) == (file == nil):
		d.fail(item, "%s %s needs exactly one of source and source_file", o.what, o.name)
	case source != nil:
		d.within("source", func() { *text, ok = d.source(s, source, expected) })
	default:
		d.within("source_file", func() { *text, ok = d.sourceFile(s, file, expected) })
	}
	s.bad = !ok
}

// source reads a source that is in the manifest.
func (d *decoder) source(s *sourceDecl, n *Value, expected string) (string, bool) {
	s.place, s.lines = n.Place, n.Lines
	text, ok := d.verbatim(n)
	switch {
	case !ok:
		return "", false
	case text == "":
		d.bad(n, "%s", expected)
		return "", false
	case len(text) > component.MaxSource:
		d.bad(n, "the source is larger than %d KiB", component.MaxSource>>10)
		return "", false
	}
	return text, true
}

// sourceFile reads a source that is in a file of its own.
func (d *decoder) sourceFile(s *sourceDecl, n *Value, expected string) (string, bool) {
	var ok bool
	s.place, s.lines = n.Place, n.Lines
	if s.file, ok = d.text(n); !ok {
		return "", false
	}
	if !filepath.IsLocal(filepath.FromSlash(s.file)) {
		d.bad(n, "expected a path below the manifest's folder, found %s", d.found(n))
		return "", false
	}
	if d.read == nil {
		return "", true
	}
	b, err := d.read(filepath.FromSlash(s.file))
	var failed *fs.PathError
	switch {
	case errors.As(err, &failed):
		d.bad(n, "cannot read %s: %s", s.file, failed.Err)
		return "", false
	case err != nil:
		d.bad(n, "%s", err)
		return "", false
	case len(b) == 0:
		d.inFile(s, 1, "%s", expected)
		return "", false
	case len(b) > component.MaxSource:
		d.inFile(s, 1, "the source is larger than %d KiB", component.MaxSource>>10)
		return "", false
	}
	if at := InvalidUTF8(b); at >= 0 {
		d.inFile(s, lineOf(string(b), at), "expected UTF-8 text")
		return "", false
	}
	for i := range b {
		if b[i] == 0 {
			d.inFile(s, lineOf(string(b), i), "expected text without the character U+0000")
			return "", false
		}
	}
	return string(b), true
}

// inFile is add for a mistake in the file of a source.
func (p *Problems) inFile(s *sourceDecl, line int, format string, args ...any) {
	p.Note(Problem{Place: s.place, File: s.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// wrongSource notes what the compiler says about a source, at the author's line. what
// names the object whose source it is, and by the one that was compiled with it, if
// that is another.
func (s *sourceDecl) wrongSource(p *Problems, what, by string, err *component.SourceError) {
	text := printable(err.Message)
	if err.Line > 0 {
		text += fmt.Sprintf(" (column %d)", err.Column)
	}
	if by != "" {
		text += " (in " + by + ")"
	}
	switch {
	case s.file != "":
		p.Note(Problem{Place: s.place, File: s.file, Line: max(err.Line, 1), Column: err.Column, Text: text})
	case s.lines || err.Line == 0:
		p.Note(Problem{Place: s.place, Line: max(err.Line, 0), Column: err.Column, Text: fmt.Sprintf("%s: %s", what, text)})
	default:
		p.add(s.place, "%s: line %d of the source: %s", what, err.Line, text)
	}
}
