// Package enginecache names the folder in which all test processes keep the
// compiled JavaScript engine. To compile it takes each of them a fraction of a
// second, and several seconds under the race detector.
package enginecache

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Dir is the folder, for component.Options.CacheDir: the user's own, because
// what is in it is run as machine code. It is "", which means no cache, where
// there can be none.
func Dir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	versions := sums()
	if versions == nil {
		return ""
	}
	hash := sha256.Sum256(versions)
	dir := filepath.Join(base, "gatehouse-tests", "engine-"+hex.EncodeToString(hash[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	return dir
}

// sums is the go.sum of the module that is tested, nil where it is not found.
// The folder is named by it because the compiler's version must be known, and
// a test binary does not carry that.
func sums() []byte {
	dir, err := os.Getwd() // of the tested package, as go test starts it
	for err == nil && dir != filepath.Dir(dir) {
		if b, err := os.ReadFile(filepath.Join(dir, "go.sum")); err == nil {
			return b
		}
		dir = filepath.Dir(dir)
	}
	return nil
}
