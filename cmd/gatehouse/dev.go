package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"gatehouse/internal/db"
	"gatehouse/internal/manifest"
	"gatehouse/internal/tenant"
)

// dev are the flags of the command dev.
type dev struct {
	*serveFlags
	file  string // the manifest
	prune bool
	types string // the file of the TypeScript declarations, "" for none
}

// devCommand serves as serve does, and applies a manifest at the start and each time
// that it or a file that it names has changed (contract S19).
func devCommand(f *flags) action {
	d := &dev{}
	f.StringVarP(&d.file, "file", "f", "", "`FILE` of the manifest")
	f.mustHave = append(f.mustHave, "file")
	f.BoolVar(&d.prune, "prune", false, "remove what a section of the manifest does not name (users are deactivated)")
	f.StringVar(&d.types, "types", "", "`FILE`.d.ts that gets TypeScript declarations for the tenant's components after each apply")
	d.serveFlags = newServeFlags(f)
	return func(ctx context.Context) error {
		if err := d.check(); err != nil {
			return err
		}
		return d.serve(ctx, hooks{beside: d.follow})
	}
}

// check returns an error for files that cannot be what the flags want of them: it tells
// of a name that is mistyped before anything is served.
func (d *dev) check() error {
	if d.file == "-" {
		return d.wrong("--file -: expected a file, which can be watched")
	}
	switch info, err := os.Stat(d.file); {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return d.wrong("--file %s: expected a file, which can be watched", d.file)
	case d.types != "" && !strings.HasSuffix(d.types, ".d.ts"):
		return d.wrong("--types %s: expected a name that ends in .d.ts, because the file is overwritten", d.types)
	}
	return nil
}

// follow applies the manifest, and again after each change, until ctx ends.
func (d *dev) follow(ctx context.Context, r *running) {
	place := "the data of " + d.data
	if r.db.Engine() == db.Postgres {
		place = "the database"
	}
	d.say("serves http://%s with %s; applies %s at each change of it or of a file that it names", r.address, place, d.file)
	w := watch(d.file, d.getenv)
	for again := true; again; again = w.wait(ctx) {
		d.say("applying %s", d.file)
		switch err := d.apply(ctx, r); {
		case err == nil:
			d.say("applied")
		case ctx.Err() == nil:
			d.say("not applied, the configuration stays as it was: %s", d.mistakes(err))
		default:
			d.say("not applied: %s", oneLine(err))
		}
	}
}

// apply applies the manifest as it is now; when it returns nil the server works with it.
func (d *dev) apply(ctx context.Context, r *running) error {
	if info, err := os.Stat(d.file); err == nil && !info.Mode().IsRegular() { // it was one at the start
		return fmt.Errorf("%s is no file", d.file)
	}
	name, text, err := d.readFile(d.file)
	if err != nil {
		return err
	}
	c := &compiler{flags: d.flags, Engine: r.engine}
	result, err := d.provision(ctx, r.db, source{name, text}, manifest.Options{Prune: d.prune, Keyring: r.keyring, Compile: c.compile})
	if err != nil {
		return err
	}
	r.Directory().Forget()
	if err := printChanges(d.stderr, result.Changes, false); err != nil {
		return err
	}
	if err := d.writeTypes(ctx, r.db, result.Tenant); err != nil {
		d.say("--types: %s", oneLine(err))
	}
	return nil
}

// mistakes prints each mistake of a manifest at its place, one a line, and returns how
// many there are. It returns the text of any other error.
func (d *dev) mistakes(err error) string {
	var p *manifest.Problems
	if !errors.As(err, &p) {
		return oneLine(err)
	}
	for _, line := range p.Places() {
		d.say("%s", line)
	}
	if n := len(p.List) + p.Left; n > 1 {
		return thousands(int64(n)) + " mistakes"
	}
	return "1 mistake"
}

// writeTypes writes the TypeScript declarations of a tenant, if the flags ask for them
// and they are not there, so that an editor does not read them again for nothing.
func (d *dev) writeTypes(ctx context.Context, database *db.DB, id tenant.ID) error {
	if d.types == "" {
		return nil
	}
	t, err := openTenant(ctx, database, id)
	if err != nil {
		return err
	}
	declarations, err := t.declarations(ctx)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(d.types); err == nil && bytes.Equal(old, declarations) {
		return nil
	}
	return os.WriteFile(d.types, declarations, 0o644) //nolint:gosec // it holds no secrets, and others' editors may read it
}
