package component

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"gatehouse/internal/fault"
)

// The operations behind the prelude's host(); the numbers are repeated there.
const (
	opCall = iota + 1
	opLog
	opHMAC
	opEqual
	opRandom
	opEncode
	opDecode
	opFailed
	opEd25519
	opECDSA
	opRespond
	opSHA256
	opURL
	opForm
)

// thrownByHost is returned by an operation to say that an exception is pending.
const thrownByHost = jsException

// hostCall performs host(operation, …) of the prelude, the only way from JavaScript
// into Go. argv points to argc pointers to values, the first of which is the
// operation. hostCall returns a pointer to the result, or 0 with an exception
// pending. The engine is in the middle of a call: hostCall must not call functions
// of the engine that run code of the author.
func (i *instance) hostCall(argc, argv uint32) uint64 {
	i.checkpoint()
	var args [4]uint64
	for n := range args {
		args[n] = jsUndefined
		if uint32(n) < argc {
			args[n] = i.load64(i.load32(argv + uint32(4*n)))
		}
	}
	result := i.operate(int(int32(args[0])), args[1], args[2], args[3])
	for _, at := range i.cStrings {
		i.nested("JS_FreeCString", i.machine.jsctx, uint64(at))
	}
	i.cStrings = i.cStrings[:0]
	if result == thrownByHost {
		return 0
	}
	at := i.nested("wasm_malloc", 8)
	if at == 0 {
		i.run.outOfMemory = true
		panic(errStop) // the engine cannot throw an exception here
	}
	i.store64(uint32(at), result)
	return at
}

func (i *instance) operate(op int, a, b, c uint64) uint64 {
	switch op {
	case opCall:
		return i.callHost(a, b)
	case opLog:
		stack, ok := i.textOf(c)
		if !ok {
			return thrownByHost
		}
		line, _ := position(string(stack)) // before the next call of the engine, which may move its memory
		text, ok := i.textOf(b)
		if !ok {
			return thrownByHost
		}
		i.run.print(int(int32(a)), line, i.toUTF8(text))
	case opHMAC:
		return i.hmac(a, b, int(int32(c)))
	case opEqual:
		return i.equal(a, b)
	case opRandom:
		b, ok := i.dataOf(a)
		if !ok {
			return thrownByHost
		}
		if len(b) > MaxRandomBytes {
			return i.newText([]byte("getRandomValues: more than 65536 bytes"))
		}
		_, _ = rand.Read(b) // never fails
	case opEncode:
		text, ok := i.textOf(a)
		if !ok {
			return thrownByHost
		}
		return i.newBytes(i.toUTF8(text))
	case opDecode:
		return i.decode(a, int(int32(b)))
	case opFailed:
		text, ok := i.textOf(a)
		if !ok {
			return thrownByHost
		}
		i.run.setFailure(text)
	case opEd25519:
		return i.verifies(a, b, c, ed25519Key)
	case opECDSA:
		return i.verifies(a, b, c, ecdsaKey)
	case opRespond:
		i.run.responds = true
	case opSHA256:
		return i.sha256Data(a, int(int32(b)))
	case opURL:
		return i.url(a, int(int32(b)))
	case opForm:
		return i.form(a, b == jsTrue)
	}
	return jsUndefined
}

// callHost passes a call to the run's Host. It returns a string: '=' and the
// result, or '!' and the error, both as JSON. OVERLOADED, which the script cannot
// handle, and an error that is not a *fault.Error end the run.
func (i *instance) callHost(name, args uint64) uint64 {
	x := i.run
	n, ok1 := i.textOf(name)
	a, ok2 := i.textOf(args)
	if !ok1 || !ok2 {
		return thrownByHost
	}
	nameText := string(n)
	x.hostCalls++
	x.hostBytes += len(a)
	var reply []byte
	var err error
	switch {
	case x.host == nil:
		err = fault.New(fault.ExecutionError, "%s is not available here", nameText)
	case x.hostCalls > MaxHostCalls:
		err = fault.New(fault.ExecutionError, "more than %d calls of records in one run", MaxHostCalls)
	case x.hostBytes > MaxHostBytes:
		err = ErrHostBytes
	default:
		reply, err = i.callOut(nameText, append([]byte(nil), a...))
	}
	x.hostBytes += len(reply)
	var refused *fault.Error
	switch {
	case err == nil:
		if reply == nil {
			reply = []byte("null")
		}
		return i.reply('=', reply)
	case errors.As(err, &refused) && refused.Code != fault.Overloaded:
		return i.reply('!', errorJSON(refused))
	default:
		x.stopped = err
		panic(errStop)
	}
}

// reply returns a string of a sign and text. It is built in the engine's memory,
// because text may be large.
func (i *instance) reply(sign byte, text []byte) uint64 {
	return i.build("JS_NewStringLen", 1+len(text), func(dst []byte) {
		dst[0] = sign
		copy(dst[1:], text)
	})
}

// callOut calls the Host. It does not count the time of the call as CPU time.
func (i *instance) callOut(name string, args []byte) ([]byte, error) {
	x := i.run
	if x.hostCtx == nil {
		x.hostCtx, x.cancelHost = context.WithDeadline(x.ctx, x.deadline)
	}
	before := time.Now()
	x.work.Pause()
	reply, err := guarded(x.hostCtx, x.host, name, args, MaxHostBytes-x.hostBytes)
	if err := x.work.Resume(); err != nil {
		x.stop(err)
	}
	now := time.Now()
	x.waited += now.Sub(before)
	x.yielded = now
	x.checkLimits(now)
	if x.expired { // a late answer is discarded
		panic(errStop)
	}
	return reply, err
}

// guarded calls the Host and turns its panic into an error: the WebAssembly runtime
// would take it for a trap of the script.
func guarded(ctx context.Context, host Host, name string, args []byte, room int) (reply []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("component: %s panicked: %v\n%s", name, v, debug.Stack())
		}
	}()
	return host.Call(ctx, name, args, room)
}

// errorJSON returns a fault in the form that the prelude reads.
func errorJSON(e *fault.Error) []byte {
	details := e.Details
	if details == nil {
		details = map[string]any{}
	}
	b, err := json.Marshal(map[string]any{"message": e.Message, "code": e.Code, "status": e.HTTPStatus(), "details": details})
	if err != nil {
		b, _ = json.Marshal(map[string]any{"message": e.Message, "code": e.Code, "status": e.HTTPStatus(), "details": map[string]any{}})
	}
	return b
}

func (i *instance) equal(a, b uint64) uint64 {
	x, ok1 := i.dataOf(a)
	y, ok2 := i.dataOf(b)
	switch {
	case !ok1 || !ok2:
		return thrownByHost
	case subtle.ConstantTimeCompare(x, y) == 1:
		return jsTrue
	}
	return jsFalse
}

// decode is TextDecoder.decode: with flag 1 it returns null for what is not UTF-8,
// with flag 2 it keeps a byte order mark.
func (i *instance) decode(v uint64, flags int) uint64 {
	b, ok := i.dataOf(v)
	if !ok {
		return thrownByHost
	}
	if flags&2 == 0 && len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf {
		b = b[3:]
	}
	bad := i.invalid(b)
	if bad > 0 && flags&1 != 0 {
		return jsNull
	}
	return i.build("JS_NewStringLen", len(b)+2*bad, func(dst []byte) { i.replaced(dst, b) })
}
