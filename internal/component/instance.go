package component

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"gatehouse/internal/enginewasm/fuel"
)

// instance is one copy of the engine with its own memory. It serves one run
// at a time, of any program.
type instance struct {
	machine *machine
	module  api.Module
	mem     *memory
	pages   api.MutableGlobal
	sp      api.MutableGlobal
	high    int // memory from here on is zero

	// outer and inner are the engine's functions, for calls from Go and for calls
	// from within a host function: one api.Function must not be called recursively.
	outer, inner map[string]api.Function
	ctx          context.Context

	cStrings []uint32 // to free when the host function returns

	held   int64 // memory beyond the base image, taken from the shared budget
	heldBy string

	run *execution
	err error // the first trap; after one the instance is not used again
}

// instanceContext carries the instance to the host functions, without an
// allocation.
type instanceContext struct {
	context.Context
	i *instance
}

func instanceOf(ctx context.Context) *instance {
	if c, ok := ctx.(*instanceContext); ok {
		return c.i
	}
	panic(errors.New("component: called from outside a run"))
}

// errStop unwinds a run that must not continue; the execution says why.
var errStop = errors.New("component: stopped")

// instantiate returns a new instance, without an image. It returns OVERLOADED: once
// the engine has started, only memory can be lacking.
func (m *machine) instantiate() (*instance, error) {
	mem, err := newMemory(MaxMemory)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoMemory, err)
	}
	i := &instance{machine: m, mem: mem, outer: map[string]api.Function{}, inner: map[string]api.Function{}}
	i.ctx = &instanceContext{context.Background(), i}
	ctx := experimental.WithMemoryAllocator(i.ctx, experimental.MemoryAllocatorFunc(
		func(_, _ uint64) experimental.LinearMemory { return mem }))
	i.module, err = m.runtime.InstantiateModule(ctx, m.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		mem.Free()
		return nil, fmt.Errorf("%w (component: new instance: %w)", errNoMemory, err)
	}
	i.pages = i.module.ExportedGlobal(fuel.GlobalPages).(api.MutableGlobal)
	i.sp = i.module.ExportedGlobal("__stack_pointer").(api.MutableGlobal)
	i.high = int(i.pages.Get()) * pageSize
	return i, nil
}

// initialize starts the engine. Later instances load an image of the result
// instead.
func (i *instance) initialize() error {
	i.must("_initialize")
	if i.must("qjs_init") != 0 && i.err == nil {
		return errors.New("qjs_init failed")
	}
	i.must("qjs_set_memory_limit", engineLimit(MaxMemory))
	i.must("qjs_set_max_stack_size", maxJSStack)
	i.must("qjs_set_gc_threshold", 2<<20)
	i.must("qjs_set_interrupt_handler", 1)
	i.must("qjs_set_promise_rejection_handler", 1)
	i.must("qjs_set_module_loader", 1)
	return i.err
}

// engineLimit returns how much of size bytes of memory the engine may allocate.
func engineLimit(size int) uint64 {
	return uint64(size - stackBytes - size>>engineReserveShift)
}

// close frees the memory; nothing else can fail.
func (i *instance) close() {
	i.giveBack()
	_ = i.module.Close(context.Background())
}

// hold takes n bytes of the shared budget for a tenant. It returns false when the
// tenant may not have them.
func (i *instance) hold(tenant string, n int64) bool {
	if n > 0 && !i.machine.memory.Take(tenant, n) {
		return false
	}
	i.held, i.heldBy = i.held+n, tenant
	return true
}

func (i *instance) giveBack() {
	i.machine.memory.Release(i.heldBy, i.held)
	i.held = 0
}

// must calls one of the engine's functions. After a trap, which is kept in i.err, it
// does nothing and returns 0.
func (i *instance) must(name string, args ...uint64) uint64 { return i.enter(i.outer, name, args) }

func (i *instance) enter(set map[string]api.Function, name string, args []uint64) uint64 {
	if i.err != nil {
		return 0
	}
	f := set[name]
	if f == nil {
		if f = i.module.ExportedFunction(name); f == nil {
			i.err = fmt.Errorf("component: the engine has no function %s", name)
			return 0
		}
		set[name] = f
	}
	var stack [8]uint64
	copy(stack[:], args)
	if err := f.CallWithStack(i.ctx, stack[:]); err != nil {
		i.err = err
		return 0
	}
	return stack[0]
}

// nested is must for host functions. A trap unwinds the host function, too.
func (i *instance) nested(name string, args ...uint64) uint64 {
	v := i.enter(i.inner, name, args)
	if i.err != nil {
		panic(errStop)
	}
	return v
}

// ---- memory: offsets come from the engine and are not trusted ----

// view returns the memory at [at, at+n), valid until the engine runs again.
func (i *instance) view(at, n uint32) []byte {
	if uint64(at)+uint64(n) > uint64(len(i.mem.b)) {
		panic(errStop)
	}
	return i.mem.b[at : at+n : at+n]
}

func (i *instance) load32(at uint32) uint32     { return binary.LittleEndian.Uint32(i.view(at, 4)) }
func (i *instance) load64(at uint32) uint64     { return binary.LittleEndian.Uint64(i.view(at, 8)) }
func (i *instance) store32(at, v uint32)        { binary.LittleEndian.PutUint32(i.view(at, 4), v) }
func (i *instance) store64(at uint32, v uint64) { binary.LittleEndian.PutUint64(i.view(at, 8), v) }

// writeText writes s and a zero byte.
func (i *instance) writeText(at uint32, s string) {
	b := i.view(at, uint32(len(s)+1))
	copy(b, s)
	b[len(s)] = 0
}

// readText returns a text that ends with a zero byte, or "" for one that is longer than
// most bytes.
func (i *instance) readText(at uint32, most int) string {
	b := i.mem.b[min(int(at), len(i.mem.b)):]
	end := bytes.IndexByte(b[:min(most+1, len(b))], 0)
	if end < 0 {
		return ""
	}
	return string(b[:end])
}

func tagOf(v uint64) int32 { return int32(v >> 32) }

func isText(v uint64) bool { return tagOf(v) == tagString || tagOf(v) == tagRope }

// ---- functions that the engine calls ----

// tick is called when a run has used up its fuel. It returns the next supply, after
// a checkpoint.
func (i *instance) tick() uint64 {
	i.run.turns += supply
	i.checkpoint()
	return supply
}

// checkpoint yields the core to other runs and requests when it is time, and ends a
// run that was cancelled, or is over its limit and the grace period after it. The
// work of host functions uses almost no fuel: they must call checkpoint about every
// millisecond.
func (i *instance) checkpoint() {
	x := i.run
	now := time.Now()
	if now.Sub(x.yielded) > yieldEvery {
		if err := x.work.Yield(); err != nil {
			x.stop(err)
		}
		runtime.Gosched()
		x.yielded = time.Now()
		x.waited += x.yielded.Sub(now)
		now = x.yielded
	}
	if x.checkLimits(now) {
		panic(errStop)
	}
}

// interrupted is the engine's interrupt handler, which it calls every few thousand
// branches and calls of a script. A result of 1 ends the script with a stack trace.
func (i *instance) interrupted() uint64 {
	i.run.checkLimits(time.Now())
	if i.run.expired {
		return 1
	}
	return 0
}

// grow raises the number of pages in use and returns the old one, or -1 at the
// run's own limit. It stops the run when the shared budget has no more for the
// tenant.
func (i *instance) grow(n uint32) uint64 {
	pages := uint32(i.pages.Get())
	const refused = 0xffffffff
	x := i.run
	if n > x.maxPages || pages+n > x.maxPages {
		x.outOfMemory = true
		if x.stopAtMemory {
			panic(errStop)
		}
		return refused
	}
	if !i.hold(x.tenant, int64(n)*pageSize) {
		x.stop(errNoMemory)
	}
	i.pages.Set(uint64(pages + n))
	return uint64(pages)
}

func (i *instance) clock(at uint32, now time.Time) uint64 {
	i.store64(at, uint64(now.UnixNano()))
	return 0
}

func (i *instance) random(at, n uint32) uint64 {
	if n > MaxRandomBytes {
		return 28 // WASI: invalid argument
	}
	_, _ = rand.Read(i.view(at, n)) // never fails
	return 0
}
