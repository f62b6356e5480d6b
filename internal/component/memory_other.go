//go:build !linux

package component

// memory is one instance's linear memory, from Go's heap where the operating
// system's own calls were not tried.
type memory struct{ b []byte }

func newMemory(size int) (*memory, error) { return &memory{make([]byte, size)}, nil }

// discard makes [from, to) zero again.
func (m *memory) discard(from, to int) {
	if from < to {
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

// Free lets go of the memory.
func (m *memory) Free() { m.b = nil }
