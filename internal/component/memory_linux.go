package component

import (
	"fmt"
	"syscall"
)

// memory is an instance's linear memory. Pages of it that were never accessed take
// up no memory. It never moves.
type memory struct{ b []byte }

// newMemory reserves size bytes, all zero. It fails when the operating system
// refuses them.
func newMemory(size int) (*memory, error) {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("component: reserve memory: %w", err)
	}
	return &memory{b}, nil
}

// discard clears [from, to), both multiples of the operating system's page, and
// returns the memory.
func (m *memory) discard(from, to int) {
	if from >= to {
		return
	}
	if err := syscall.Madvise(m.b[from:to], syscall.MADV_DONTNEED); err != nil {
		clear(m.b[from:to])
	}
}

// Reallocate implements experimental.LinearMemory. It is called once, when the
// module is instantiated.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.b)) {
		return nil
	}
	return m.b[:size]
}

// Free returns the address space. The module must not be used again.
func (m *memory) Free() {
	if m.b != nil {
		_ = syscall.Munmap(m.b) // a failure cannot be handled
		m.b = nil
	}
}
