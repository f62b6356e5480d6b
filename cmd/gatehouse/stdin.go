package main

import (
	"context"
	"io"
)

// interruptible reads an input that may have nothing to read for long, as a pipe and a
// terminal: a Read that waits returns the error of ctx when that ends. What waits for the
// input then is left to the end of the process.
type interruptible struct {
	ctx context.Context
	in  io.Reader
	buf []byte
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err // the Read before may still use buf
	}
	if len(r.buf) < len(p) {
		r.buf = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	buf, done := r.buf[:len(p)], make(chan result, 1)
	go func() {
		n, err := r.in.Read(buf)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
