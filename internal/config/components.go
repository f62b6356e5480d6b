package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"gatehouse/internal/access"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
)

// componentDecl is a logic component as the file has it.
type componentDecl struct {
	custom.Component
	file  string // source_file, "" when the source is in the manifest
	place Place  // of the source, or of source_file
	lines bool   // of the source, as Value.Lines
	// bad is set when there is no source to be compiled.
	bad bool
}

var componentTable = table[componentDecl]{
	text("name", func(c *componentDecl) *string { return &c.Name }).when(inExport).needed("snake_case"),
	declared("inputs", func(c *componentDecl) *[]inputs.Declaration { return &c.Inputs }).says("what it takes"),
	declared("outputs", func(c *componentDecl) *[]inputs.Declaration { return &c.Outputs }).says("what it returns; for its readers"),
	contextOf(func(c *componentDecl) *custom.Context { return &c.Context }),
	between("timeout_ms", func(c *componentDecl) *int { return &c.TimeoutMS }, 1, custom.MaxTimeoutMS).says("how long a run may take"),
	{
		key: "source", kind: TextMember, doc: "the JavaScript; in the place of source_file", read: func(*decoder, *componentDecl, *Value) {},
		tell: func(c *componentDecl, _ func(string) string) *Value { return long(c.Source) },
		past: func(c, _ *componentDecl) *Value { // a digest tells that it changed
			digest := sha256.Sum256([]byte(c.Source))
			return str("sha256:" + hex.EncodeToString(digest[:8]))
		},
	},
	{key: "source_file", kind: TextMember, doc: "a file beside the manifest; in the place of source", read: func(*decoder, *componentDecl, *Value) {}},
}

func newComponent() *componentDecl {
	return &componentDecl{Component: custom.Component{
		Context: custom.Context{Kind: custom.Caller}, TimeoutMS: custom.DefaultTimeoutMS,
		Inputs: []inputs.Declaration{}, Outputs: []inputs.Declaration{},
	}}
}

func (d *decoder) components(m *Spec, key string, n *Value) {
	d.list(n, "a list of logic components", func(_ int, item *Value) {
		c := newComponent()
		given := componentTable.read(d, item, "a logic component", c)
		source, file := given["source"], given["source_file"]
		if !d.named(item, "a logic component", given, c.Name) || !d.identified(m, item, subject{key, c.Name, "logic component"}) {
			return
		}
		if context := given["execution_context"]; context != nil {
			m.mark(context, key, c.Name, "execution_context")
		}
		switch {
		case (source == nil) == (file == nil):
			d.fail(item, "logic component %s needs exactly one of source and source_file", c.Name)
			c.bad = true
		case source != nil:
			d.within("source", func() { c.bad = !d.source(c, source) })
		default:
			d.within("source_file", func() { c.bad = !d.sourceFile(c, file) })
		}
		m.components = append(m.components, c)
	})
}

// source reads a source that is in the manifest.
func (d *decoder) source(c *componentDecl, n *Value) bool {
	var ok bool
	c.place, c.lines = n.Place, n.Lines
	c.Source, ok = d.verbatim(n)
	switch {
	case !ok:
		return false
	case c.Source == "":
		d.bad(n, "expected JavaScript with export default function handler(inputs, ctx)")
		return false
	case len(c.Source) > component.MaxSource:
		d.bad(n, "the source is larger than %d KiB", component.MaxSource>>10)
		return false
	}
	return true
}

// sourceFile reads a source that is in a file of its own.
func (d *decoder) sourceFile(c *componentDecl, n *Value) bool {
	var ok bool
	c.place, c.lines = n.Place, n.Lines
	if c.file, ok = d.text(n); !ok {
		return false
	}
	if !filepath.IsLocal(filepath.FromSlash(c.file)) {
		d.bad(n, "expected a path below the manifest's folder, found %s", d.found(n))
		return false
	}
	if d.read == nil {
		return true
	}
	b, err := d.read(filepath.FromSlash(c.file))
	switch {
	case err != nil:
		d.bad(n, "%s", err)
		return false
	case len(b) == 0:
		d.inFile(c, 1, "expected JavaScript with export default function handler(inputs, ctx)")
		return false
	case len(b) > component.MaxSource:
		d.inFile(c, 1, "the source is larger than %d KiB", component.MaxSource>>10)
		return false
	}
	if at := InvalidUTF8(b); at >= 0 {
		d.inFile(c, lineOf(string(b), at), "expected UTF-8 text")
		return false
	}
	for i := range b {
		if b[i] == 0 {
			d.inFile(c, lineOf(string(b), i), "expected text without the character U+0000")
			return false
		}
	}
	c.Source = string(b)
	return true
}

// inFile is add for a mistake in the file of a component's source.
func (p *Problems) inFile(c *componentDecl, line int, format string, args ...any) {
	p.Note(Problem{Place: c.place, File: c.file, Line: line, Text: fmt.Sprintf(format, args...)})
}

// wrongSource notes what the compiler says about a component, at the author's line.
func (c *componentDecl) wrongSource(p *Problems, err *component.SourceError) {
	text := printable(err.Message)
	if err.Line > 0 {
		text += fmt.Sprintf(" (column %d)", err.Column)
	}
	switch {
	case c.file != "":
		p.inFile(c, max(err.Line, 1), "%s", text)
	case c.lines || err.Line == 0:
		p.Note(Problem{Place: c.place, Line: max(err.Line, 0), Text: fmt.Sprintf("logic component %s: %s", c.Name, text)})
	default:
		p.add(c.place, "logic component %s: line %d of the source: %s", c.Name, err.Line, text)
	}
}

func mergeComponents(p *plan) {
	for _, c := range p.m.components {
		p.after.components[c.Name] = &c.Component
	}
	drop(p, "logic_components", p.before.components, p.after.components)
}

func checkComponents(p *plan) {
	for _, c := range p.m.components {
		was := p.before.components[c.Name]
		if was == nil {
			was = &custom.Component{}
		}
		p.checkContext(subject{"logic_components", c.Name, "logic component"}, c.Context, was.Context)
	}
}

var componentKind = kind{
	name: kindComponent, section: "logic_components", id: "name",
	changing: []string{access.ManageEndpoints}, reading: []string{access.ManageEndpoints},
	keys: keysOf(func(s *state) map[string]*custom.Component { return s.components }),
	view: func(s, _ *state, key string) any {
		if c := s.components[key]; c != nil {
			return componentTable.view(&componentDecl{Component: *c}, nil)
		}
		return nil
	},
	tell: func(s *state, key string) *Value {
		return block(componentTable.export(&componentDecl{Component: *s.components[key]}, s.email)...)
	},
	write: writeComponent,
}

func writeComponent(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteComponent(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.components[c.key]
	is.Context.UserID = w.idOf(is.Context.UserID)
	return custom.PutComponent(w.ctx, w.tx, &is)
}
