//go:build !linux

package server

import "net"

// boundUnsent does nothing: the kernel decides how much of an answer it
// buffers.
func boundUnsent(net.Conn) {}
