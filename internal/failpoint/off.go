//go:build !failpoints

package failpoint

// At does nothing.
func At(string) {}
