package component

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// execution is what Go knows of a run (or of a compilation) while it lasts.
type execution struct {
	ctx       context.Context
	started   time.Time
	deadline  time.Time
	yielded   time.Time
	waited    time.Duration // in host calls and for the core: no CPU time
	maxPages  uint32
	maxOutput int // bytes
	host      Host

	expired     bool  // over the deadline
	outOfMemory bool  // growth was refused
	stopped     error // why the run must end without a verdict of its own

	console      []Line
	consoleBytes int
	hostCalls    int
	hostBytes    int
	hostCtx      context.Context // made at the first call
	cancelHost   context.CancelFunc
	failure      *thrown
	rejections   map[uint64]uint64 // promises rejected and not handled: their reasons
}

func newExecution(ctx context.Context, timeout time.Duration) *execution {
	now := time.Now()
	return &execution{ctx: ctx, started: now, yielded: now, deadline: now.Add(timeout)}
}

// end releases what the execution holds.
func (x *execution) end() {
	if x.cancelHost != nil {
		x.cancelHost()
	}
}

// look stops a cancelled run at once and marks an expired one.
func (x *execution) look(now time.Time) {
	if err := x.ctx.Err(); err != nil {
		x.stopped = err
		panic(errStop)
	}
	if now.After(x.deadline) {
		x.expired = true
	}
}

// print keeps a line of the console.
func (x *execution) print(level int, text []byte) {
	if len(x.console) >= MaxConsoleLines || x.consoleBytes+len(text) > MaxConsoleBytes {
		return
	}
	if len(text) > MaxConsoleLine {
		n := MaxConsoleLine
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	x.consoleBytes += len(text)
	x.console = append(x.console, Line{Level: levels[max(0, min(level, len(levels)-1))], Text: string(text)})
}

var levels = [...]string{"debug", "log", "info", "warn", "error"}

// thrown is what the prelude tells about an uncaught error.
type thrown struct {
	Fail    bool           `json:"fail"`
	Status  int            `json:"status"`
	Code    string         `json:"code"`
	Name    string         `json:"name"`
	Message string         `json:"message"`
	Stack   string         `json:"stack"`
	Details map[string]any `json:"details"`
}

// failed keeps what the prelude tells of an uncaught error.
func (x *execution) failed(text []byte) {
	t := &thrown{}
	if len(text) > maxFailure {
		text = nil
	}
	if err := json.Unmarshal(text, t); err != nil {
		t = &thrown{Message: "an error that cannot be shown"}
	}
	x.failure = t
}

// budget bounds what all instances together have grown by.
type budget struct {
	used atomic.Int64
	max  int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.max {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) release(n int64) { b.used.Add(-n) }
