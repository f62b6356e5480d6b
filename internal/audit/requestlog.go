package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
)

const (
	logFlushBytes = 32 << 10              // a buffer this full is written at once
	logFlushEvery = 50 * time.Millisecond // no line waits longer, unless the writer is stuck
	logMaxBytes   = 4 << 20               // what may wait for a stuck writer before callers wait, too
	logMaxText    = 8 << 10               // of a text that a client chose
)

// RequestLog writes the process's standard output: one JSON object a line.
//
// One goroutine collects and writes lines. When the writer blocks, callers
// continue until 4 MiB wait, and then wait as well: lines are neither dropped
// nor held in unbounded memory. When the writer fails, the lines of that write
// are lost, which only Close's error can report. A RequestLog is safe for
// concurrent use.
type RequestLog struct {
	out io.Writer
	clk clock.Clock

	mu     sync.Mutex
	space  sync.Cond // on mu: the buffer was taken
	buf    []byte
	closed bool
	err    error // the first error of the writer
	torn   bool  // the last write ended inside a line

	begun, full chan struct{} // the buffer has something; it has enough
	closing     chan struct{}
	done        chan struct{}
	once        sync.Once
}

// NewRequestLog starts a request log. Close must be called at the end. clk
// gives the time of lines other than a request's.
func NewRequestLog(out io.Writer, clk clock.Clock) *RequestLog {
	l := &RequestLog{
		out: out, clk: clk,
		begun: make(chan struct{}, 1), full: make(chan struct{}, 1),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	l.space.L = &l.mu
	go l.run()
	return l
}

// Line writes the line of one request (contract G1). It keeps nothing of ev.
func (l *RequestLog) Line(ev *Event) {
	l.mu.Lock()
	l.wait()
	l.buf = appendLine(l.buf, ev)
	l.appended(false)
	l.mu.Unlock()
}

// Emit writes another line of the process: its event, the time, and the fields
// in the order of their names. A value that is not JSON is written as text. Our
// tokens are taken out of texts, and a "path" is redacted as in Line.
func (l *RequestLog) Emit(event string, fields map[string]any) {
	line := append([]byte(`{"event":`), appendQuoted(nil, event)...)
	line = append(line, `,"time":"`...)
	line = clock.AppendRFC3339Micro(line, clock.Micros(l.clk.Now()))
	line = append(line, '"')
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "event" || name == "time" {
			continue
		}
		line = append(line, ',')
		line = appendQuoted(line, name)
		line = append(line, ':')
		if path, ok := fields[name].(string); ok && name == "path" {
			line = appendQuoted(line, RedactPath(path))
			continue
		}
		line = appendValue(line, fields[name])
	}
	line = append(line, '}', '\n')

	l.mu.Lock()
	l.wait()
	l.buf = append(l.buf, line...)
	l.appended(true)
	l.mu.Unlock()
}

// Close writes what is left and ends the goroutine. It returns the writer's
// first error. Later lines are written at once, by their callers.
func (l *RequestLog) Close() error {
	l.once.Do(func() { close(l.closing) })
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// wait returns when the buffer may grow. mu must be held.
func (l *RequestLog) wait() {
	for len(l.buf) >= logMaxBytes && !l.closed {
		l.space.Wait()
	}
}

// appended makes sure that what was appended is written. mu must be held.
func (l *RequestLog) appended(now bool) {
	if l.closed {
		l.note(l.write(l.buf))
		l.buf = l.buf[:0]
		return
	}
	signal(l.begun)
	if now || len(l.buf) >= logFlushBytes {
		signal(l.full)
	}
}

// signal wakes a receiver, now or at its next receive.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (l *RequestLog) run() {
	defer close(l.done)
	spare := make([]byte, 0, 2*logFlushBytes)
	timer := time.NewTimer(logFlushEvery)
	for last := false; ; {
		select {
		case <-l.begun:
			timer.Reset(logFlushEvery)
			select {
			case <-l.full:
			case <-timer.C:
			case <-l.closing:
			}
		case <-l.closing:
			last = true
		}
		l.mu.Lock()
		full := l.buf
		l.buf = spare[:0]
		l.space.Broadcast()
		if last {
			l.closed = true
			l.note(l.write(full))
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		if err := l.write(full); err != nil {
			l.mu.Lock()
			l.note(err)
			l.mu.Unlock()
		}
		spare = full
	}
}

// write passes lines to the writer. It must not be called concurrently: run
// calls it, and once run has ended, the holder of mu.
func (l *RequestLog) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	if l.torn { // end the torn line
		if _, err := l.out.Write([]byte{'\n'}); err != nil {
			return err
		}
		l.torn = false
	}
	n, err := l.out.Write(lines)
	if err != nil && n > 0 && n < len(lines) {
		l.torn = lines[n-1] != '\n'
	}
	return err
}

// note keeps the writer's first error. mu must be held.
func (l *RequestLog) note(err error) {
	if l.err == nil {
		l.err = err
	}
}

// appendLine appends the line of a request.
func appendLine(dst []byte, ev *Event) []byte {
	auth := ev.Auth
	if auth == "" {
		auth = credential.None
	}
	dst = append(dst, `{"event":"public_api.request","time":"`...)
	dst = clock.AppendRFC3339Micro(dst, clock.Micros(ev.Start))
	dst = appendOrNull(append(dst, `","tenant":`...), string(ev.Tenant))
	dst = appendOrNull(append(dst, `,"request_id":`...), cut(ev.RequestID, logMaxText))
	dst = appendQuoted(append(dst, `,"method":`...), cut(ev.Method, logMaxText))
	dst = appendQuoted(append(dst, `,"path":`...), cut(RedactPath(ev.Path), logMaxText))
	dst = appendOrNull(append(dst, `,"route":`...), ev.Route)
	dst = strconv.AppendInt(append(dst, `,"status":`...), int64(ev.Status), 10)
	dst = appendOrNull(append(dst, `,"error_code":`...), ev.ErrorCode)
	if ev.Reason != "" {
		dst = appendQuoted(append(dst, `,"reason":`...), reason(ev))
	}
	dst = appendMillis(append(dst, `,"duration_ms":`...), ev.Duration)
	dst = appendOrNull(append(dst, `,"ip":`...), cut(ev.IP, logMaxText))
	dst = appendQuoted(append(dst, `,"auth":`...), string(auth))
	dst = appendOrNull(append(dst, `,"user_id":`...), string(ev.UserID))
	dst = appendOrNull(append(dst, `,"api_key_id":`...), ev.APIKeyID)
	dst = appendOrNull(append(dst, `,"api_key_prefix":`...), cut(ev.APIKeyPrefix, logMaxText))
	return append(dst, '}', '\n')
}

// appendValue appends a field of Emit.
func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendQuoted(dst, maskTokens(v))
	case error:
		return appendQuoted(dst, maskTokens(v.Error()))
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case bool:
		return strconv.AppendBool(dst, v)
	case fmt.Stringer:
		return appendQuoted(dst, maskTokens(v.String()))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return appendQuoted(dst, fmt.Sprint(v))
	}
	return append(dst, b...)
}
