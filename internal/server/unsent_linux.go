package server

import (
	"net"
	"syscall"
)

// tcpNotSentLowat is TCP_NOTSENT_LOWAT, which package syscall does not name.
const tcpNotSentLowat = 25

// maxUnsent is how much of an answer the kernel buffers for a client that does
// not read.
const maxUnsent = 128 << 10

// boundUnsent keeps answers that clients do not read in our memory, where they
// are counted: the kernel would buffer megabytes for each connection. It does
// not bound what is on its way to a client that reads. Where the kernel does
// not know the option, nothing changes.
func boundUnsent(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		if raw, err := t.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpNotSentLowat, maxUnsent)
			})
		}
	}
}
