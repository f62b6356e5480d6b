package component

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Program is a compiled component: the memory image of an instance in which its top
// level has run. It is safe for concurrent use, and need not be closed.
type Program struct {
	engine *Engine
	image  *image
}

// Size returns the memory that the program holds, in bytes.
func (p *Program) Size() int { return p.image.owned }

// Compile parses a component's source, an ES module whose default export is the
// handler, and runs its top level once, within CompileTurns and the memory limit of
// a run; records.* are refused there.
//
// The error is a *SourceError when the source is at fault. Otherwise it is
// OVERLOADED when a place, memory or time is lacking, ErrClosed, ctx's error, or
// that of Ready.
func (e *Engine) Compile(ctx context.Context, source string) (*Program, error) {
	return e.CompileFor(ctx, "", source)
}

// CompileFor is Compile, counted against a tenant.
func (e *Engine) CompileFor(ctx context.Context, tenant, source string) (*Program, error) {
	if len(source) > MaxSource {
		return nil, &SourceError{Message: fmt.Sprintf("the source is larger than %d KiB", MaxSource>>10)}
	}
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
	i.run = x
	if err := i.load(e.machine.base); err != nil {
		return nil, err
	}
	img := i.compile(source)
	i.wipe()
	e.spent(tenant, x.cpu())
	switch {
	case x.stopped != nil:
		return nil, x.stopped
	case img != nil:
		return &Program{engine: e, image: img}, nil
	}
	return nil, i.sourceError(x)
}

// compile returns the image of a source that compiled. It returns nil for any other;
// the execution and i.err say why.
func (i *instance) compile(source string) *image {
	defer i.recovered()
	m := i.machine
	i.call(enterSeed, uint64(rand.Uint32()), uint64(rand.Uint32()), uint64(rand.Uint32()), uint64(rand.Uint32())) //nolint:gosec // Math.random is no secret
	code := uint32(i.must("wasm_malloc", uint64(len(source)+1)))
	file := uint32(i.must("wasm_malloc", uint64(len(sourceFile)+1)))
	i.writeText(code, source)
	i.writeText(file, sourceFile)
	const module = 1
	handle := uint32(i.must("qjs_eval", uint64(code), uint64(len(source)), uint64(file), module))
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
	if i.err != nil || i.run.failure != nil || i.run.expired {
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
	f := i.outcome(x, nil, MaxMemory)
	if x.failure == nil && i.err == nil && !x.expired {
		return errors.New("component: the engine did not come to rest after compiling")
	}
	e := &SourceError{Message: f.Message, Line: f.Line, Column: f.Column}
	switch {
	case x.expired:
		e.Message = fmt.Sprintf("parsing and the top level did not finish within %d million turns of the engine's loops", CompileTurns/1_000_000)
	case strings.Contains(e.Message, "could not load module"):
		e.Message = "import is not available in a component (" + e.Message + ")"
	}
	return e
}
