//go:build !windows

package server

import (
	"errors"
	"io"
	"net"
	"testing"
)

// TestADrainingListenerAcceptsWhatWaits: nothing is accepted while 50 clients
// connect and send; all of them are accepted after draining began, and no
// connection later. Closing the listener instead resets all 50.
func TestADrainingListenerAcceptsWhatWaits(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	draining := &drainingListener{Listener: l}
	var clients []net.Conn
	for range 50 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	draining.drain()
	for n := 0; ; n++ {
		c, err := draining.Accept()
		if errors.Is(err, net.ErrClosed) {
			if n != len(clients) {
				t.Fatalf("%d of %d were accepted", n, len(clients))
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
	for i, c := range clients {
		if got, err := io.ReadAll(c); err != nil || string(got) != "!" {
			t.Errorf("client %d got %q, %v", i, got, err)
		}
	}
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("a drained listener takes connections")
		_ = c.Close()
	}
}
