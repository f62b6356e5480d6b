package manifest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

// Options are the choices of an apply.
type Options = config.Options

// Result is what an apply did.
type Result = config.Result

// Change is one object that an apply created, updated or deleted.
type Change = config.Change

// operator is the author of what the command line applies.
var operator = config.Operator("operator: apply")

// Apply makes a tenant what the manifest src says, all or nothing. file names
// the manifest in messages; source_file is relative to its folder. It fails with
// *Problems when the manifest is not right, alone or against what is stored; a
// refusal of another package (a host taken, data that would break) is among them
// with its line. Applying the same manifest twice changes nothing the second time.
func Apply(ctx context.Context, d *db.DB, clk clock.Clock, file string, src []byte, getenv func(string) string,
	opts Options) (*Result, error) {
	doc, spec := decode(file, src, getenv, filesIn(filepath.Dir(file)))
	if spec == nil {
		return nil, doc.err()
	}
	if spec.Tenant() == "" {
		return nil, doc.located(spec.Err())
	}
	r, err := config.Apply(ctx, d.For(spec.Tenant()), clk, operator, spec, opts)
	return r, doc.located(err)
}

// Check reads a manifest without a database, and without the files that it
// names: what it finds does not depend on what is stored. Its error is *Problems.
func Check(file string, src []byte, getenv func(string) string) error {
	doc, spec := decode(file, src, getenv, nil)
	if spec == nil {
		return doc.err()
	}
	return doc.located(spec.Err())
}

// Files returns the paths of the files that a manifest names, each once and as far as
// the manifest can be read; those of relative paths begin where that of file begins.
func Files(file string, src []byte, getenv func(string) string) []string {
	var list []string
	_, _ = decode(file, src, getenv, func(path string) ([]byte, error) {
		if path = filepath.Join(filepath.Dir(file), path); !slices.Contains(list, path) {
			list = append(list, path)
		}
		return nil, nil
	}) // whose mistakes are for Apply to tell
	return list
}

// decode reads a manifest; the Spec is nil when it is no document of values.
func decode(file string, src []byte, getenv func(string) string, read func(path string) ([]byte, error)) (*document, *config.Spec) {
	doc, root := parse(file, src)
	if root == nil {
		return doc, nil
	}
	return doc, config.Decode(config.Source{Root: root, Getenv: getenv, Read: read})
}

// Export writes the manifest of a tenant as it is stored: Apply of it changes
// nothing. Secrets and passwords are left out. NOT_FOUND when there is no such
// tenant.
func Export(ctx context.Context, d *db.DB, tenantID tenant.ID) ([]byte, error) {
	root, err := config.Export(ctx, d.For(tenantID))
	if err != nil {
		return nil, err
	}
	return render(root)
}

// filesIn reads sources of a folder and the folders below it; links that lead
// out of it are refused, and what is no file: a pipe may have nothing to read for ever.
func filesIn(dir string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }() // nothing is written in it
		f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // it was only read
		switch info, err := f.Stat(); {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is no file", path)
		}
		return io.ReadAll(io.LimitReader(f, component.MaxSource+1))
	}
}
