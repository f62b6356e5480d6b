//go:build !linux

package component

// memory is an instance's linear memory. On systems other than Linux it is from
// Go's heap.
type memory struct{ b []byte }

func newMemory(size int) (*memory, error) { return &memory{make([]byte, size)}, nil }

// discard clears [from, to).
func (m *memory) discard(from, to int) {
	if from < to {
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

// Free releases the memory. The module must not be used again.
func (m *memory) Free() { m.b = nil }
