package component

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Program is a compiled component: the memory image of an instance in which its top
// level has run. It is safe for concurrent use, and need not be closed.
type Program struct {
	engine  *Engine
	image   *image
	imports []string
	secrets *redactor // nil for none
}

// Imports returns the names of the modules that are in the program, sorted.
func (p *Program) Imports() []string { return p.imports }

// Size returns the memory that the program holds, in bytes.
func (p *Program) Size() int { return p.image.owned + p.secrets.size() }

// Compile parses a component's source, an ES module whose default export is the
// handler, and runs its top level once, within CompileTurns and the memory limit of
// a run; records.* are refused there.
//
// The error is a *SourceError when the source is at fault. Otherwise it is
// OVERLOADED when a place, memory or time is lacking, ErrClosed, ctx's error, or
// that of Ready.
func (e *Engine) Compile(ctx context.Context, source string) (*Program, error) {
	return e.CompileFor(ctx, "", Source{Text: source})
}

// CompileFor is Compile with modules and settings, counted against a tenant.
func (e *Engine) CompileFor(ctx context.Context, tenant string, source Source) (*Program, error) {
	return e.compile(ctx, tenant, &linker{source: &source, imports: map[string][]string{}})
}

// Check returns the names of the modules that a source imports, directly or by another,
// sorted. It compiles the source; where module is not "", it parses the module of that
// name in the place of the source, without running any of it. Its errors are those of
// Compile.
func (e *Engine) Check(ctx context.Context, tenant, module string, source Source) (imports []string, err error) {
	if module == "" {
		p, err := e.CompileFor(ctx, tenant, source)
		if err != nil {
			return nil, err
		}
		return p.imports, nil
	}
	l := &linker{source: &Source{Text: fmt.Sprintf("import %q; import %q", linked, module), Modules: source.Modules}, imports: map[string][]string{}, only: true}
	_, err = e.compile(ctx, tenant, l)
	var wrong *SourceError
	if errors.As(err, &wrong) && wrong.Message == linked {
		err = nil
	}
	l.imports[""] = nil
	return l.used(), err
}

func (e *Engine) compile(ctx context.Context, tenant string, l *linker) (*Program, error) {
	if err := l.source.check(); err != nil {
		return nil, err
	}
	secrets := newRedactor(l.source.Secrets)
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	defer e.active.Done()
	leave, err := enter(ctx, e.compiling, tenant)
	if err != nil {
		return nil, err
	}
	defer leave()
	i, err := e.machine.instantiate()
	if err != nil {
		return nil, err
	}
	defer i.close()
	work, err := e.cores.Start(ctx, tenant)
	if err != nil {
		return nil, err
	}
	defer work.Stop()
	x := newExecution(ctx, tenant, compileWall)
	x.work = work
	x.maxPages, x.maxTurns = MaxMemory/pageSize, CompileTurns
	x.links = l
	i.run = x
	if err := i.load(e.machine.base); err != nil {
		return nil, err
	}
	img := i.compile(l.source)
	i.wipe()
	e.spent(tenant, x.cpu())
	switch {
	case x.stopped != nil:
		return nil, x.stopped
	case img != nil:
		return &Program{engine: e, image: img, imports: l.used(), secrets: secrets}, nil
	}
	secrets.inThrown(x.failure)
	return nil, i.sourceError(x)
}

// compile returns the image of a source that compiled. It returns nil for any other;
// the execution and i.err say why.
func (i *instance) compile(source *Source) *image {
	defer i.recovered()
	m := i.machine
	i.call(enterSeed, uint64(rand.Uint32()), uint64(rand.Uint32()), uint64(rand.Uint32()), uint64(rand.Uint32())) //nolint:gosec // Math.random is no secret
	if len(source.Config) > 0 || len(source.Secrets) > 0 {
		i.call(enterSettings, i.parse(source.Config), i.parse(secretsJSON(source.Secrets)))
	}
	if i.err != nil || i.run.failure != nil {
		return nil
	}
	code := uint32(i.must("wasm_malloc", uint64(len(source.Text)+1)))
	file := uint32(i.must("wasm_malloc", uint64(len(sourceFile)+1)))
	i.writeText(code, source.Text)
	i.writeText(file, sourceFile)
	const module = 1
	handle := uint32(i.must("qjs_eval", uint64(code), uint64(len(source.Text)), uint64(file), module))
	if i.err != nil {
		return nil
	}
	promise := i.load64(handle)
	if tagOf(promise) == jsException>>32 {
		i.report()
		return nil
	}
	i.must("qjs_promise_mark_as_handled", uint64(handle))
	i.drain()
	if i.err != nil || i.run.failure != nil || i.run.expired || i.run.links.wrong != nil {
		return nil
	}
	const fulfilled, rejected = 1, 2
	state := i.must("qjs_promise_state", uint64(handle))
	exports := i.load64(uint32(i.must("qjs_promise_result", uint64(handle))))
	switch {
	case state == rejected:
		i.call(enterFailed, exports)
		return nil
	case state != fulfilled:
		i.run.failure = &thrown{Message: "the top level waits for a promise that is never settled"}
		return nil
	}
	if i.call(enterHandler, exports) != jsTrue {
		if i.run.failure == nil {
			i.run.failure = &thrown{Message: "there is no handler: export default function handler(inputs, ctx) { … }"}
		}
		return nil
	}
	i.must("wasm_free", uint64(code))
	i.must("wasm_free", uint64(file))
	i.must("qjs_run_gc")
	if i.err != nil || i.run.expired || i.sp.Get() != uint64(m.base.sp) {
		return nil
	}
	return i.snapshot(m.base)
}

// sourceError returns the *SourceError of a source that did not compile.
func (i *instance) sourceError(x *execution) error {
	if x.links.wrong != nil {
		return x.links.wrong
	}
	f := i.outcome(x, nil, MaxMemory)
	if x.failure == nil && i.err == nil && !x.expired {
		return errors.New("component: the engine did not come to rest after compiling")
	}
	e := &SourceError{Message: f.Message}
	e.Module, e.Line, e.Column = place(f.Stack)
	if x.expired {
		e.Message = fmt.Sprintf("parsing and the top level did not finish within %d million turns of the engine's loops", CompileTurns/1_000_000)
	}
	x.links.locate(e)
	return e
}
