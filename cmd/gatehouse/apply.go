package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// applyCommand provisions a tenant and prints each change on one line.
func applyCommand(f *flags) action {
	file := f.StringP("file", "f", "", "`FILE` of the manifest; - is standard input")
	f.mustHave = append(f.mustHave, "file")
	var opts manifest.Options
	f.BoolVar(&opts.DryRun, "dry-run", false, "do everything and print it, but keep nothing")
	f.BoolVar(&opts.Prune, "prune", false, "remove what a section of the manifest does not name (users are deactivated)")
	f.listing("")
	return func(ctx context.Context) error {
		name, src, err := f.readFile(*file)
		if err != nil {
			return err
		}
		c, err := f.config()
		if err != nil {
			return err
		}
		work := func(d *db.DB) error { return f.apply(ctx, d, source{name, src}, opts) }
		if opts.DryRun {
			return f.without(ctx, c, work)
		}
		return f.with(ctx, c, work)
	}
}

// source is a text and the name of the file that it comes from.
type source struct {
	name string
	text []byte
}

func (f *flags) apply(ctx context.Context, d *db.DB, src source, opts manifest.Options) (err error) {
	if opts.Keyring, err = f.keyring(ctx, d); err != nil {
		return err
	}
	c := &compiler{flags: f}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	opts.Compile = c.compile
	opts.Keys = apikey.New(d, clock.System(), nil).OfUsers
	result, err := f.provision(ctx, d, src, opts)
	if err != nil {
		return f.problems(err)
	}
	if opts.DryRun {
		f.say("dry run: nothing was kept")
	}
	return printChanges(f.stdout, result.Changes, f.asJSON)
}

// provision applies a manifest, and reports on standard error how far it is and what
// its author should know of the changes.
func (e *env) provision(ctx context.Context, d *db.DB, src source, opts manifest.Options) (*manifest.Result, error) {
	opts.Pace.Progress = e.progress()
	result, err := manifest.Apply(ctx, d, clock.System(), src.name, src.text, e.getenv, opts)
	if ctx.Err() != nil && err != nil {
		return nil, fmt.Errorf("%w: nothing was changed; apply the manifest again to resume", err)
	}
	if err != nil {
		return nil, err
	}
	for _, gone := range result.Gone {
		e.say("removed, because the manifest leaves it out: %s", gone)
	}
	if result.Effect != nil {
		for _, line := range result.Effect.Lines() {
			e.say("%s", line)
		}
	}
	for _, w := range result.Warnings {
		e.say("warning: %s", w)
	}
	return result, nil
}

// progress returns a function that reports a long change on standard error, at
// most once a second.
func (e *env) progress() func(records.Progress) {
	last := time.Now()
	return func(p records.Progress) {
		if time.Since(last) < time.Second {
			return
		}
		last = time.Now()
		what := "owners' roles"
		if p.Entity != "" {
			what = "entity " + p.Entity
		}
		e.say("%s: %s of %s records", what, thousands(p.Done), thousands(p.Total))
	}
}

// compiler compiles the sources of logic components. It starts the engine with
// the first of them.
type compiler struct {
	flags *flags
	*component.Engine
}

func (c *compiler) compile(ctx context.Context, tenant tenant.ID, module string, source component.Source) (imports []string, err error) {
	if c.Engine == nil {
		if c.Engine, err = c.flags.engine(ctx); err != nil {
			return nil, err
		}
	}
	return c.Check(ctx, string(tenant), module, source)
}

func (c *compiler) close(ctx context.Context) error {
	if c.Engine == nil {
		return nil
	}
	return c.Close(context.WithoutCancel(ctx))
}

// readFile reads a file, or standard input for "-", and returns its name for
// messages.
func (e *env) readFile(name string) (string, []byte, error) {
	if name == "-" {
		src, err := io.ReadAll(e.stdin)
		return "<stdin>", src, err
	}
	src, err := os.ReadFile(name)
	return name, src, err
}

// problems prints several problems of a manifest, one a line, and returns an
// error that counts them. It returns any other error unchanged.
func (e *env) problems(err error) error {
	var p *manifest.Problems
	if !errors.As(err, &p) || len(p.List) < 2 {
		return err
	}
	e.say("%s", p.Error())
	return fmt.Errorf("%s: %d mistakes; nothing was changed", p.File, len(p.List))
}

func printChanges(out io.Writer, changes []manifest.Change, asJSON bool) error {
	if asJSON {
		return printLines(out, changes)
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintln(out, "nothing changed")
		return err
	}
	for _, c := range changes {
		if _, err := fmt.Fprintln(out, c.Line()); err != nil {
			return err
		}
	}
	return nil
}
