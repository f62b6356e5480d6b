package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// applyCommand prints each change in one line on standard output.
func applyCommand(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("apply")
	file := f.StringP("file", "f", "", "the manifest; - is standard input")
	var opts manifest.Options
	f.BoolVar(&opts.DryRun, "dry-run", false, "do everything and print it, but keep nothing")
	f.BoolVar(&opts.Prune, "prune", false, "remove what a section of the manifest does not name (users are deactivated)")
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args, "file"); err != nil {
		return err
	}
	name, src, err := e.readFile(*file)
	if err != nil {
		return err
	}
	d, err := e.create(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if opts.Keyring, err = e.keyring(ctx, f, d); err != nil {
		return err
	}
	c := newCompiler(f)
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	opts.Compile = c.compile
	opts.Pace.Progress = e.progress()
	opts.Keys = apikey.New(d, clock.System(), nil).OfUsers
	result, err := manifest.Apply(ctx, d, clock.System(), name, src, e.getenv, opts)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w: nothing was changed; apply the manifest again and it goes on from there", err)
	}
	if err != nil {
		return e.mistakes(err)
	}
	for _, gone := range result.Gone {
		e.say("goes, as the manifest leaves it out: %s", gone)
	}
	if result.Effect != nil {
		for _, line := range result.Effect.Lines() {
			e.say("%s", line)
		}
	}
	for _, w := range result.Warnings {
		e.say("warning: %s", w)
	}
	if opts.DryRun {
		e.say("dry run: nothing was kept")
	}
	return printChanges(e.stdout, result.Changes, *asJSON)
}

// progress reports a long change on standard error, at most once a second.
func (e *env) progress() func(records.Progress) {
	told := time.Now()
	return func(p records.Progress) {
		if time.Since(told) < time.Second {
			return
		}
		told = time.Now()
		what := "owners' roles"
		if p.Entity != "" {
			what = "entity " + p.Entity
		}
		e.say("%s: %s of %s records", what, thousands(p.Done), thousands(p.Total))
	}
}

// thousands writes a count as people read it: 300,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

// compiler compiles the sources of logic components; its engine starts with the
// first of them.
type compiler struct {
	flags  *flags
	engine *component.Engine
}

func newCompiler(f *flags) *compiler { return &compiler{flags: f} }

func (c *compiler) compile(ctx context.Context, tenant tenant.ID, source string) (err error) {
	if c.engine == nil {
		if c.engine, err = c.flags.env.engine(ctx, c.flags); err != nil {
			return err
		}
	}
	_, err = c.engine.CompileFor(ctx, string(tenant), source)
	return err
}

func (c *compiler) close(ctx context.Context) error {
	if c.engine == nil {
		return nil
	}
	return c.engine.Close(context.WithoutCancel(ctx)) // nothing runs any more
}

// readFile reads a file, or standard input for "-", with its name for messages.
func (e *env) readFile(name string) (string, []byte, error) {
	if name == "-" {
		src, err := io.ReadAll(e.stdin)
		return "<stdin>", src, err
	}
	src, err := os.ReadFile(name)
	return name, src, err
}

// mistakes tells of several problems in a line each, and leaves one line for the end.
func (e *env) mistakes(err error) error {
	var p *manifest.Problems
	if !errors.As(err, &p) || len(p.List) < 2 {
		return err
	}
	e.say("%s", p.Error())
	return fmt.Errorf("%s: %d mistakes; nothing was changed", p.File, len(p.List))
}

func printChanges(out io.Writer, changes []manifest.Change, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for _, c := range changes {
			if err := enc.Encode(c); err != nil {
				return err
			}
		}
		return nil
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
