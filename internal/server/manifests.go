package server

import (
	"errors"

	"gatehouse/internal/admin"
	"gatehouse/internal/config"
	"gatehouse/internal/manifest"
)

// manifests is the text form of configurations that the administration takes: YAML.
type manifests struct{}

func (manifests) Render(root *config.Value) ([]byte, error) { return manifest.Render(root) }

func (manifests) Read(src []byte, getenv func(string) string) (admin.Manifest, error) {
	text, err := manifest.Read(src, getenv)
	if err != nil {
		return nil, plainProblems(err)
	}
	return manifestText{text}, nil
}

type manifestText struct{ *manifest.Text }

func (t manifestText) Located(err error) error { return plainProblems(t.Text.Located(err)) }

// plainProblems returns the problems of a manifest as those of a configuration, which have
// their lines by now. It returns any other error unchanged.
func plainProblems(err error) error {
	var found *manifest.Problems
	if errors.As(err, &found) {
		return &found.Problems
	}
	return err
}
