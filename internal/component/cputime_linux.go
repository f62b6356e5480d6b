package component

import (
	"syscall"
	"time"
)

// threadCPU is the CPU time that the calling thread has used. The goroutine must
// be locked to it where two of these are compared.
func threadCPU(time.Time) time.Duration {
	const thread = 1 // RUSAGE_THREAD, which package syscall does not name
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err) // it takes no argument that could be wrong
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
