package component

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"gatehouse/internal/fault"
)

// Run is one call of a component, or of a webhook verifier.
type Run struct {
	// Tenant is the tenant that the run is counted against.
	Tenant string
	// Inputs and Ctx are the handler's arguments, as JSON; empty means {}.
	Inputs, Ctx []byte
	// Host serves records.*; nil refuses every call.
	Host Host
	// Timeout is the time the run may take, host calls included; 0 means
	// DefaultTimeout. For a verifier it is CPU time, VerifierCPU by default.
	Timeout time.Duration
	// Memory is the memory that the run may use, at most MaxMemory; 0 means
	// MaxMemory, or for a verifier VerifierMemory in addition to its input.
	Memory int
	// Verifier, when set, makes this the run of a verifier: the handler gets
	// {rawBody, rawBytes, headers, config, method, query, url}, and there is neither
	// records nor respond.
	Verifier *VerifierInput
}

// VerifierInput is the argument of a webhook verifier.
type VerifierInput struct {
	RawBody []byte // as received
	Headers []byte // JSON
	Config  []byte // JSON
	Request []byte // JSON: {method, query, url}
}

// Host performs records.* for a component. Call gets the arguments as a JSON
// object: {entity, id}, {entity, where, sort, search, fields, limit, cursor}, {entity, fields}, {entity,
// id, fields}, {entity, id} for records.get, .list, .create, .update, .delete, and
// {entity, id, with} for .share and .unshare. It returns JSON of at most room
// bytes; it must return ErrHostBytes for a longer result, before it builds that.
// ctx ends with the run's deadline.
//
// A *fault.Error becomes an error that the script may catch, with code, status and
// details. OVERLOADED, and an error that is not a *fault.Error, end the run and are
// returned by Program.Run.
type Host interface {
	Call(ctx context.Context, name string, args []byte, room int) (result []byte, err error)
}

// ErrHostBytes means that a run would receive more than MaxHostBytes; it is an
// EXECUTION_ERROR.
var ErrHostBytes = fault.New(fault.ExecutionError, "more than %d MiB of records in one run", MaxHostBytes>>20)

// Result is the result of a run. Either Failed or Value is set.
type Result struct {
	// Value is JSON of what the handler returned, null for undefined. It is UTF-8,
	// and a double holds each of its numbers. It has no lone surrogate, except that
	// of a verifier, which returns an event unchanged. With Responds it is {status,
	// headers, body} as the handler gave them to respond(), unchecked.
	Value    []byte
	Responds bool
	Failed   *Failure
	Console  []Line
	CPU      time.Duration // without host calls
	Wall     time.Duration // without waiting for a place in the pool
	Used     Used
}

// Used is what a run used of its limits.
type Used struct {
	HostCalls int // of MaxHostCalls
	HostBytes int // of MaxHostBytes
	Memory    int // the most that it held, in bytes of MaxMemory
}

// Line is one line of console output.
type Line struct {
	Level string `json:"level"` // debug, log, info, warn, error
	Text  string `json:"text"`
	// AtUS is when it was printed, in microseconds since its component began, and
	// Line where, in the component's source; both are 0 in a run stored by an older version.
	AtUS int64 `json:"at_us,omitempty"`
	Line int   `json:"line,omitempty"`
	// Component is the name of the component that printed it. The caller sets it.
	Component string `json:"component,omitempty"`
}

// Run calls the handler in a new copy of the program's image. What the component
// did wrong, exceeding its time included, is in Result.Failed.
//
// The error is not the component's: OVERLOADED when a place, memory or time is
// lacking, ctx's error, ErrClosed, the error of Ready, or an error of the Host that
// ended the run. The Result is never nil.
func (p *Program) Run(ctx context.Context, r Run) (*Result, error) {
	if err := r.check(); err != nil {
		return &Result{Failed: failure(err)}, nil
	}
	e := p.engine
	if err := e.begin(ctx); err != nil {
		return &Result{}, err
	}
	defer e.active.Done()
	leave, err := enter(ctx, e.runs, r.Tenant)
	if err != nil {
		return &Result{}, err
	}
	defer leave()
	work, err := e.cores.Start(ctx, r.Tenant)
	if err != nil {
		return &Result{}, err
	}
	defer work.Stop()
	i, err := e.take()
	if err != nil {
		return &Result{}, err
	}
	x := r.execution(ctx)
	defer x.end()
	x.work = work
	work.Within(x.deadline.Sub(x.started))
	i.run = x
	if err := i.load(p.image); err != nil {
		e.put(i, x)
		return &Result{}, err
	}
	value := i.handle(&r)
	result := &Result{Value: value, Responds: x.responds && value != nil, Console: x.console, Wall: time.Since(x.started), CPU: x.cpu()}
	result.Used = Used{HostCalls: min(x.hostCalls, MaxHostCalls), HostBytes: min(x.hostBytes, MaxHostBytes), Memory: int(i.pages.Get()) * pageSize}
	p.secrets.inThrown(x.failure)
	result.Failed = i.outcome(x, value, r.Memory)
	if bug := runtime.Error(nil); x.stopped == nil && errors.As(i.err, &bug) {
		x.stopped = i.err // a bug of a host function, not of the script
	}
	e.put(i, x)
	p.secrets.inResult(result)
	e.spent(r.Tenant, result.CPU)
	if x.stopped != nil {
		return result, x.stopped
	}
	return result, nil
}

// execution returns the execution of the run, with its limits. end must be called
// on the same goroutine.
func (r *Run) execution(ctx context.Context) *execution {
	x := newExecution(ctx, r.Tenant, r.Timeout)
	x.host = r.Host
	x.maxPages = uint32(r.Memory / pageSize)
	x.maxOutput = MaxOutput
	if v := r.Verifier; v != nil {
		x.maxOutput = max(MaxOutput, 2*len(v.RawBody)+64<<10) // the result contains the delivery
		x.stopAtMemory, x.exact = true, true
		x.limitCPU(r.Timeout)
	}
	return x
}

// check sets the defaults. It returns EXECUTION_ERROR for an input that is too
// large.
func (r *Run) check() *fault.Error {
	timeout, memory, size := DefaultTimeout, MaxMemory, len(r.Inputs)+len(r.Ctx)
	if v := r.Verifier; v != nil {
		// The verifier's memory contains the body three times, once with two bytes a
		// character.
		timeout, memory, size = VerifierCPU, VerifierMemory+4*len(v.RawBody), len(v.RawBody)
		r.Host = nil
	}
	if r.Timeout <= 0 {
		r.Timeout = timeout
	}
	r.Timeout = min(r.Timeout, MaxTimeout)
	if r.Memory <= 0 {
		r.Memory = memory
	}
	r.Memory = max(4<<20, min(r.Memory, MaxMemory))
	if size > MaxInput {
		return fault.New(fault.ExecutionError, "The input is larger than %d MiB.", MaxInput>>20)
	}
	return nil
}

// handle calls the handler and runs the jobs of its promises. It returns the result
// as JSON, or nil; then the execution and i.err say why.
func (i *instance) handle(r *Run) (value []byte) {
	defer i.recovered()
	switch {
	case r.Verifier != nil: // only its pages are limited, see stopAtMemory
		i.must("qjs_set_memory_limit", uint64(r.Memory))
		i.must("qjs_set_gc_threshold", uint64(r.Memory/2)) // a verifier ends before collecting garbage pays
	case r.Memory != MaxMemory:
		i.must("qjs_set_memory_limit", engineLimit(r.Memory))
	}
	args := make([]uint64, 0, 9)
	entry := enterComponent
	if v := r.Verifier; v != nil {
		entry = enterVerifier
		args = append(args, i.give("JS_NewStringLen", i.surrogatesLen(v.RawBody), func(dst []byte) { i.surrogates(dst, v.RawBody) }),
			i.give("JS_NewUint8ArrayCopy", len(v.RawBody), func(dst []byte) { copy(dst, v.RawBody) }), i.parse(v.Headers), i.parse(v.Config), i.parse(v.Request))
	} else {
		args = append(args, i.parse(r.Inputs), i.parse(r.Ctx))
	}
	for range 4 {
		args = append(args, uint64(rand.Uint32())) //nolint:gosec // Math.random is no secret
	}
	if i.err != nil || i.run.failure != nil {
		return nil
	}
	text := i.call(entry, args...)
	i.drain()
	if text == jsUndefined {
		text = i.call(enterOutcome)
		if text == jsUndefined && i.run.failure == nil {
			i.run.failure = &thrown{Message: "the handler's promise was never settled"}
		}
	}
	return i.output(text)
}

// recovered turns the panic with errStop of a host function into a trap. It must be
// deferred.
func (i *instance) recovered() {
	if v := recover(); v != nil {
		if v != errStop { //nolint:errorlint // a panic's value, not an error chain
			panic(v)
		}
		if i.err == nil {
			i.err = errStop
		}
	}
}

// call calls one of the prelude's functions. If that throws an exception, call
// reports it and returns null.
func (i *instance) call(entry int, args ...uint64) uint64 {
	if i.err != nil {
		return jsNull
	}
	m := i.machine
	for n, a := range args {
		i.store64(m.scratch+uint32(8*n), a)
	}
	v := i.must("JS_Call", m.jsctx, m.enter[entry], jsUndefined, uint64(len(args)), uint64(m.scratch))
	if i.err != nil {
		return jsNull
	}
	if tagOf(v) == jsException>>32 {
		if entry != enterFailed {
			i.report()
		}
		return jsNull
	}
	return v
}

// report calls the prelude to describe the pending exception.
func (i *instance) report() {
	e := i.must("JS_GetException", i.machine.jsctx)
	if i.run.expired || i.err != nil {
		return
	}
	i.call(enterFailed, e)
	if i.run.failure == nil && i.err == nil {
		i.run.failure = &thrown{Name: "InternalError", Message: "out of memory"}
	}
}

// drain runs the jobs of promises until there are none.
func (i *instance) drain() {
	for i.must("qjs_is_job_pending") != 0 && i.err == nil {
		if i.run.checkLimits(time.Now()); int32(i.must("qjs_execute_pending_job")) < 0 {
			i.report()
			if i.run.expired {
				return
			}
		}
	}
	if unhandled := i.run.rejections; len(unhandled) > 0 && i.run.failure == nil && i.err == nil {
		i.call(enterFailed, i.load64(unhandled[0].reason))
	}
}

// parse returns the value of a JSON text; empty text means {}.
func (i *instance) parse(text []byte) uint64 {
	if len(text) == 0 {
		text = []byte("{}")
	}
	return i.give("JS_ParseJSON", len(text), func(dst []byte) { copy(dst, text) })
}

// give returns a value of n bytes, which fill writes, made by one of the engine's
// functions of (context, bytes, length).
func (i *instance) give(function string, n int, fill func(dst []byte)) uint64 {
	at := uint32(i.must("wasm_malloc", uint64(n+1)))
	if i.err != nil {
		return jsNull
	}
	if at == 0 {
		i.run.failure = &thrown{Name: "InternalError", Message: "out of memory"}
		return jsNull
	}
	dst := i.view(at, uint32(n+1))
	dst[n] = 0
	fill(dst[:n])
	v := i.must(function, i.machine.jsctx, uint64(at), uint64(n), uint64(at)+uint64(n))
	i.must("wasm_free", uint64(at))
	if i.err == nil && tagOf(v) == jsException>>32 {
		i.report()
		return jsNull
	}
	return v
}

// output returns a copy of the result v, or nil when there is none or it is too
// long.
func (i *instance) output(v uint64) []byte {
	if i.err != nil || i.run.failure != nil || !isText(v) {
		return nil
	}
	length := i.machine.scratch + 128
	at := uint32(i.must("JS_ToCStringLen2", i.machine.jsctx, uint64(length), v, 0))
	if i.err != nil {
		return nil
	}
	if at == 0 {
		i.run.failure = &thrown{Name: "InternalError", Message: "out of memory"}
		return nil
	}
	n := i.load32(length)
	if int(n) > i.run.maxOutput {
		i.run.failure = &thrown{Message: fmt.Sprintf("the handler returned more than %d KiB", i.run.maxOutput>>10)}
		return nil
	}
	text := append([]byte(nil), i.view(at, n)...)
	if problem := wellFormed(text, i.run.exact); problem != "" {
		i.run.failure = &thrown{Message: problem}
		return nil
	}
	return text
}

// maxRejections is how many rejected promises are remembered.
const maxRejections = 1000

// rejection is the engine's promise rejection handler: it keeps a list of rejected
// promises that are not handled. promise and reason point to values that it owns,
// and frees when they are not needed.
func (i *instance) rejection(promise, reason uint32, handled bool) {
	x := i.run
	if promise == 0 || reason == 0 { // there was no memory for them
		return
	}
	one := rejection{promise, reason}
	if !handled && len(x.rejections) < maxRejections {
		x.rejections = append(x.rejections, one)
		return
	}
	if handled {
		who := i.load64(promise)
		at := len(x.rejections) - 1 // mostly the newest
		for at >= 0 && i.load64(x.rejections[at].promise) != who {
			at--
		}
		if at >= 0 {
			i.free(x.rejections[at])
			x.rejections = slices.Delete(x.rejections, at, at+1)
		}
	}
	i.free(one)
}

func (i *instance) free(r rejection) {
	i.nested("qjs_free_value", uint64(r.promise))
	i.nested("qjs_free_value", uint64(r.reason))
}
