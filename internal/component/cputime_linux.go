package component

import (
	"syscall"
	"time"
)

// threadCPU returns the CPU time that the calling thread has used. To compare two
// results, the goroutine must be locked to its thread.
func threadCPU(time.Time) time.Duration {
	const thread = 1 // RUSAGE_THREAD, which package syscall does not name
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		panic(err) // cannot happen: both arguments are valid
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
