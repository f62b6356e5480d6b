//go:build !windows

package server

import (
	"net"
	"os"
	"syscall"
)

// closeAndTake closes l and returns the connections that waited.
func closeAndTake(l *net.TCPListener) (conns []net.Conn) {
	var files []*os.File
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // fails where l is closed: nothing waits then
			for {
				c, _, err := syscall.Accept(int(fd)) // l does not block: EAGAIN ends the loop
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
		if c, err := net.FileConn(f); err == nil { // duplicates the descriptor; if the client has left by now, nothing is lost
			conns = append(conns, c)
		}
		_ = f.Close()
	}
	return conns
}
