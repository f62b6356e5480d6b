package records

import (
	"math/rand/v2"
	"testing"
)

// TestStringsAreSkippedAsTheyEnd compares skipString with a reading byte by byte.
func TestStringsAreSkippedAsTheyEnd(t *testing.T) {
	byByte := func(data []byte) int {
		for i := 1; i < len(data); i++ {
			switch data[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(data)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		data := []byte{'"'}
		for range random.IntN(12) {
			data = append(data, `"\ax`[random.IntN(4)])
		}
		if got, want := skipString(data, 0), byByte(data); got != want {
			t.Fatalf("%s ends at %d, not at %d", data, got, want)
		}
		if got, want := skipString(append([]byte("{"), data...), 1), byByte(data)+1; got != want {
			t.Fatalf("%s behind a brace ends at %d, not at %d", data, got, want)
		}
	}
}
