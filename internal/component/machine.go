package component

import (
	"bytes"
	"context"
	_ "embed" // for the prelude
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"gatehouse/internal/admission"
	"gatehouse/internal/enginewasm"
	"gatehouse/internal/enginewasm/fuel"
)

//go:embed prelude.js
var prelude string

const (
	preludeFile = "gatehouse.js" // the prelude's name in stack traces
	sourceFile  = "component.js" // that of the author's source
)

// Values as the engine represents them on a 32-bit machine: a tag in the upper
// half.
const (
	jsInt       = 0
	jsFalse     = 1 << 32
	jsTrue      = 1<<32 | 1
	jsNull      = 2 << 32
	jsUndefined = 3 << 32
	jsException = 6 << 32
	tagString   = -7
	tagRope     = -6 // a string whose parts are not joined yet
	tagObject   = -1
)

// Indexes of the array of functions that the prelude returns.
const (
	enterComponent = iota
	enterVerifier
	enterOutcome
	enterHandler
	enterFailed
	enterSeed
	enterSettings
	enterRefuse
	entries
)

// machine is the compiled engine, with the image of an instance in which only the
// prelude has run.
type machine struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	now     func() time.Time
	memory  *admission.Budget // for what instances hold beyond the base image, by tenant

	base    *image
	jsctx   uint64          // the engine's context
	scratch uint32          // a few words for arguments and lengths
	enter   [entries]uint64 // the prelude's functions
}

// newMachine compiles the engine, or loads it from cacheDir, and makes the base
// image. It fails when the embedded engine is not the expected one, and when
// cacheDir cannot be used.
func newMachine(ctx context.Context, cacheDir string, now func() time.Time, memory *admission.Budget) (_ *machine, err error) {
	binary, err := enginewasm.Binary()
	if err != nil {
		return nil, err
	}
	binary, err = fuel.Rewrite(binary, MaxMemory/pageSize)
	if err != nil {
		return nil, err
	}
	config := wazero.NewRuntimeConfig().WithMemoryLimitPages(MaxMemory / pageSize).WithDebugInfoEnabled(false)
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("component: cache of the compiled engine: %w", err)
		}
		config = config.WithCompilationCache(cache)
	}
	m := &machine{runtime: wazero.NewRuntimeWithConfig(ctx, config), now: now, memory: memory}
	defer func() {
		if err != nil {
			_ = m.runtime.Close(ctx) // the first error is returned
		}
	}()
	if err := m.imports(ctx); err != nil {
		return nil, err
	}
	m.module, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), binary)
	if err != nil {
		return nil, fmt.Errorf("component: compile the engine: %w", err)
	}
	if err := m.boot(); err != nil {
		return nil, fmt.Errorf("component: start the engine: %w", err)
	}
	return m, nil
}

// imports defines the functions that the engine imports: host calls, its interrupt
// handler, fuel, and the part of WASI that it needs.
func (m *machine) imports(ctx context.Context) error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	type function struct {
		name   string
		params []api.ValueType
		result []api.ValueType
		do     func(i *instance, stack []uint64)
	}
	zero := func(_ *instance, stack []uint64) { stack[0] = 0 }
	bad := func(_ *instance, stack []uint64) { stack[0] = 8 } // WASI: bad file descriptor
	one, two, four := []api.ValueType{i32}, []api.ValueType{i32, i32}, []api.ValueType{i32, i32, i32, i32}
	modules := map[string][]function{
		fuel.Module: {
			{fuel.Tick, nil, one, func(i *instance, stack []uint64) { stack[0] = i.tick() }},
			{fuel.Grow, one, one, func(i *instance, stack []uint64) { stack[0] = i.grow(uint32(stack[0])) }},
		},
		"env": {
			{"host_get_timezone_offset", two, one, zero}, // UTC
			{"host_interrupt", nil, one, func(i *instance, stack []uint64) { stack[0] = i.interrupted() }},
			{"host_promise_rejection", []api.ValueType{i32, i32, i32}, nil, func(i *instance, stack []uint64) {
				i.rejection(uint32(stack[0]), uint32(stack[1]), uint32(stack[2]) != 0)
			}},
			{"host_module_normalize", two, one, func(i *instance, stack []uint64) {
				stack[0] = i.resolve(uint32(stack[0]), uint32(stack[1]))
			}},
			{"host_module_load", two, one, func(i *instance, stack []uint64) {
				stack[0] = i.loadModule(uint32(stack[0]), uint32(stack[1]))
			}},
			{"host_call", []api.ValueType{i32, i32, i32, i32, i32}, one, func(i *instance, stack []uint64) {
				stack[0] = i.hostCall(uint32(stack[3]), uint32(stack[4]))
			}},
		},
		"wasi_snapshot_preview1": {
			{"clock_time_get", []api.ValueType{i32, i64, i32}, one, func(i *instance, stack []uint64) {
				stack[0] = i.clock(uint32(stack[2]), m.now())
			}},
			{"fd_close", one, one, bad},
			{"fd_fdstat_get", two, one, bad},
			{"fd_seek", []api.ValueType{i32, i64, i32, i32}, one, bad},
			{"fd_write", four, one, bad},
			{"random_get", two, one, func(i *instance, stack []uint64) {
				stack[0] = i.random(uint32(stack[0]), uint32(stack[1]))
			}},
		},
	}
	for name, functions := range modules {
		b := m.runtime.NewHostModuleBuilder(name)
		for _, f := range functions {
			b.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(ctx context.Context, stack []uint64) {
				f.do(instanceOf(ctx), stack)
			}), f.params, f.result).Export(f.name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("component: imports of %s: %w", name, err)
		}
	}
	return nil
}

// boot makes the base image. The prelude is compiled in another instance and loaded
// as bytecode, because parsing leaves garbage that would be part of every image.
func (m *machine) boot() error {
	code, err := m.compilePrelude()
	if err != nil {
		return err
	}
	i, err := m.start()
	if err != nil {
		return err
	}
	defer i.close()
	m.jsctx = i.must("qjs_get_context_ptr")
	m.scratch = uint32(i.must("wasm_malloc", 256))
	at := i.must("wasm_malloc", uint64(len(code)))
	if i.err != nil {
		return i.err
	}
	copy(i.view(uint32(at), uint32(len(code))), code)
	const readBytecode = 1
	main := i.must("JS_ReadObject", m.jsctx, at, uint64(len(code)), readBytecode)
	function := i.must("JS_EvalFunction", m.jsctx, main)
	i.must("wasm_free", at)
	if err := i.enterPrelude(function); err != nil {
		return err
	}
	i.must("qjs_run_gc")
	if i.err != nil {
		return i.err
	}
	m.base = i.snapshot(nil)
	return nil
}

// start returns a new instance with an initialized engine.
func (m *machine) start() (*instance, error) {
	i, err := m.instantiate()
	if err != nil {
		return nil, err
	}
	x := newExecution(context.Background(), "", 10*time.Second)
	x.maxPages = MaxMemory / pageSize
	i.run = x
	if err := i.initialize(); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// compilePrelude returns the prelude's bytecode, without its source.
func (m *machine) compilePrelude() ([]byte, error) {
	i, err := m.start()
	if err != nil {
		return nil, err
	}
	defer i.close()
	ctx := i.must("qjs_get_context_ptr")
	text := i.must("wasm_malloc", uint64(len(prelude)+1))
	file := i.must("wasm_malloc", uint64(len(preludeFile)+1))
	size := i.must("wasm_malloc", 8)
	if i.err != nil {
		return nil, i.err
	}
	i.writeText(uint32(text), prelude)
	i.writeText(uint32(file), preludeFile)
	const compileOnly, bytecode, stripSource = 1 << 5, 1 << 0, 1 << 4
	main := i.must("JS_Eval", ctx, text, uint64(len(prelude)), file, compileOnly)
	at := i.must("JS_WriteObject", ctx, size, main, bytecode|stripSource)
	if i.err != nil {
		return nil, i.err
	}
	if at == 0 {
		return nil, errors.New("the prelude did not compile")
	}
	return bytes.Clone(i.view(uint32(at), i.load32(uint32(size)))), nil
}

// enterPrelude calls the prelude's function, which returns the array of functions
// that Go calls, and stores these in m.enter.
func (i *instance) enterPrelude(function uint64) error {
	m := i.machine
	name := i.must("wasm_malloc", 8)
	if i.err != nil {
		return i.err
	}
	i.writeText(uint32(name), "host")
	host := i.load64(uint32(i.must("qjs_new_host_function", name, 4, 4)))
	i.must("wasm_free", name)
	i.store64(m.scratch, host)
	table := i.must("JS_Call", m.jsctx, function, jsUndefined, 1, uint64(m.scratch))
	if i.err == nil && tagOf(table) != tagObject {
		return errors.New("the prelude did not run")
	}
	for n := range m.enter {
		m.enter[n] = i.must("JS_GetPropertyUint32", m.jsctx, table, uint64(n))
		if i.err == nil && tagOf(m.enter[n]) != tagObject {
			return fmt.Errorf("the prelude has no entry %d", n)
		}
	}
	return i.err
}

// close frees the runtime and everything in it.
func (m *machine) close(ctx context.Context) error { return m.runtime.Close(ctx) }
