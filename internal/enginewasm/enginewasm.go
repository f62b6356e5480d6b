// Package enginewasm embeds the JavaScript engine of logic components, a WebAssembly
// binary: QuickJS-ng as built by the npm package quickjs-wasi 3.6.2 (MIT).
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

// Sum is the SHA-256 of the binary. Package component relies on its memory layout
// and its exports.
const Sum = "d4c9375f2b1ca4dc95f72c8aa2982a7a9951ac8011490d79c6582df732b4bbd9"

// Without the engine, the build fails here with "pattern
// run-scripts-fetch-engine/quickjs.wasm: no matching files found". Run
// scripts/fetch-engine, or make, which runs it.
//
//go:embed run-scripts-fetch-engine/quickjs.wasm
var binary []byte

// Binary returns the engine, which must not be changed. It returns an error when the
// checksum of the embedded file is not Sum.
func Binary() ([]byte, error) {
	sum := sha256.Sum256(binary)
	if hex.EncodeToString(sum[:]) != Sum {
		return nil, errors.New("enginewasm: the embedded engine is not the pinned one; run scripts/fetch-engine and build again")
	}
	return binary, nil
}
