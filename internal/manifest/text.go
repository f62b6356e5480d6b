package manifest

import (
	"errors"

	"gatehouse/internal/config"
)

// Text is a manifest that was read and is not applied yet.
type Text struct {
	doc  *document
	spec *config.Spec
}

// Read reads a manifest that comes from somewhere else than a file of the operator's:
// getenv is what its variables are, and it must not name files. The error is *Problems
// when it is no document of values; other mistakes are in the Spec.
func Read(src []byte, getenv func(string) string) (*Text, error) {
	doc, spec := decode("manifest", src, getenv, func(string) ([]byte, error) { return nil, errNoFiles })
	if spec == nil {
		return nil, doc.err()
	}
	return &Text{doc, spec}, nil
}

var errNoFiles = errors.New("a manifest that is uploaded cannot name files: expected source in the place of source_file")

// Spec returns what the manifest asks for.
func (t *Text) Spec() *config.Spec { return t.spec }

// Line returns the line of a path, from 1; 0 for what the manifest does not have.
func (t *Text) Line(path string) int {
	if at := t.doc.places[config.Place{Path: path}]; at.line > 0 {
		return at.line
	}
	return t.doc.places[config.Place{Path: path, Key: true}].line
}

// Located gives the *config.Problems in an error their lines: it becomes *Problems.
func (t *Text) Located(err error) error { return t.doc.located(err) }

// Render writes a configuration that config.Export returned.
func Render(root *config.Value) ([]byte, error) { return render(root) }
