package server

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestAClosingDoorLetsInWhoWaits: nobody accepts while 50 connections come and
// send; all of them are let in after the door began to close, and nobody later.
// Closing the listener alone resets all 50.
func TestAClosingDoorLetsInWhoWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{Listener: l}
	var callers []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		callers = append(callers, c)
	}
	d.close()
	for n := 0; ; n++ {
		c, err := d.Accept()
		if errors.Is(err, net.ErrClosed) {
			if n != len(callers) {
				t.Fatalf("%d of %d were let in", n, len(callers))
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		asked := make([]byte, 1)
		if _, err := io.ReadFull(c, asked); err != nil || asked[0] != '?' {
			t.Fatalf("connection %d: %q, %v", n, asked, err)
		}
		if _, err := c.Write([]byte("!")); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range callers {
		if got, err := io.ReadAll(c); err != nil || string(got) != "!" {
			t.Errorf("caller %d got %q, %v", i, got, err)
		}
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("a closed door takes connections")
		_ = c.Close()
	}
}
