package component

import (
	"fmt"
	"syscall"
)

// memory is one instance's linear memory: address space from the operating
// system that takes up room only where it was touched. It never moves.
type memory struct{ b []byte }

// newMemory reserves size bytes, all zero.
func newMemory(size int) (*memory, error) {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("component: reserve memory: %w", err)
	}
	return &memory{b}, nil
}

// discard makes [from, to), both multiples of the operating system's page,
// zero again and gives the room back.
func (m *memory) discard(from, to int) {
	if from >= to {
		return
	}
	if err := syscall.Madvise(m.b[from:to], syscall.MADV_DONTNEED); err != nil {
		clear(m.b[from:to])
	}
}

// Reallocate is called once, when the module is instantiated.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.b)) {
		return nil
	}
	return m.b[:size]
}

// Free gives the address space back; the module must not run any more.
func (m *memory) Free() {
	if m.b != nil {
		_ = syscall.Munmap(m.b) // nothing to do about a failure
		m.b = nil
	}
}
