// Package enginecache names the folder in which all test processes keep the compiled
// JavaScript engine. Compiling it takes a fraction of a second, and several seconds with
// the race detector.
package enginecache

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
)

// Dir returns the folder, for component.Options.CacheDir. It is in the user's own cache,
// because its files are executed. Dir returns "", which means no cache, if the folder
// cannot be made.
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

// sums returns the go.sum of the tested module, nil if it is not found. It is part of the
// folder's name because the cache depends on the compiler's version, which a test binary
// does not know.
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
