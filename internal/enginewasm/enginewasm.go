// Package enginewasm carries the JavaScript engine of logic components as a
// WebAssembly binary: QuickJS-ng as built by the npm package quickjs-wasi
// 3.6.2 (MIT).
//
// The binary is not in the repository. scripts/fetch-engine fetches it and
// checks it; make does so before it builds.
package enginewasm

import (
	"crypto/sha256"
	_ "embed" // for the engine itself
	"encoding/hex"
	"errors"
)

// Sum is the SHA-256 of the one binary this program was written against. Its
// memory layout and its exports are part of what internal/component relies on.
const Sum = "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9"

// Without the engine the build stops here, and says "pattern
// run-scripts-fetch-engine/quickjs.wasm: no matching files found": run
// scripts/fetch-engine, or make, which does it first.
//
//go:embed run-scripts-fetch-engine/quickjs.wasm
var binary []byte

// Binary is the engine, after its checksum was verified. It must not be
// changed.
func Binary() ([]byte, error) {
	sum := sha256.Sum256(binary)
	if hex.EncodeToString(sum[:]) != Sum {
		return nil, errors.New("enginewasm: the embedded engine is not the pinned one; run scripts/fetch-engine and build again")
	}
	return binary, nil
}
