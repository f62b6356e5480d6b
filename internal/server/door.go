package server

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"
)

// door is a listener that is closed without a loss. Closing a TCP listener
// resets the connections that the system has taken for it and nobody has
// accepted, though their callers may have sent a request; a door that is being
// closed lets those in first.
type door struct {
	net.Listener
	shut   bool
	inside []net.Conn // who was let in while it was shut
}

// close makes Accept give those who wait already, and then net.ErrClosed.
func (d *door) close() {
	if t, ok := d.Listener.(*net.TCPListener); !ok || t.SetDeadline(time.Unix(1, 0)) != nil {
		_ = d.Close() // it fails where serving failed, which Serve says
	}
}

// Accept is for one goroutine, as net/http calls it.
func (d *door) Accept() (net.Conn, error) {
	if !d.shut {
		c, err := d.Listener.Accept()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return c, err
		}
		d.shut, d.inside = true, lastCall(d.Listener.(*net.TCPListener))
	}
	if len(d.inside) == 0 {
		return nil, net.ErrClosed
	}
	c := d.inside[0]
	d.inside = d.inside[1:]
	return c, nil
}

// lastCall closes l and returns the connections that waited.
func lastCall(l *net.TCPListener) (conns []net.Conn) {
	var files []*os.File
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // fails where l is closed: nobody waits
			for {
				c, _, err := syscall.Accept(int(fd)) // l does not block: the end is EAGAIN
				if err != nil {
					return
				}
				syscall.CloseOnExec(c)
				files = append(files, os.NewFile(uintptr(c), "connection"))
			}
		})
	}
	_ = l.Close()
	for _, f := range files {
		if c, err := net.FileConn(f); err == nil { // a copy; who left by now is no loss
			conns = append(conns, c)
		}
		_ = f.Close()
	}
	return conns
}
