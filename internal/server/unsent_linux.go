package server

import (
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
const tcpNotSentLowat = 25

// maxUnsent is how much of an answer the system takes off our hands while the
// client cannot take it yet.
const maxUnsent = 128 << 10

// boundUnsent keeps answers that clients do not read in our memory, where they
// are counted: the system would take megabytes for each connection. What is on
// its way to a client that reads is not bounded by it. A system that does not
// know it goes on as it does.
func boundUnsent(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
			})
		}
	}
}
