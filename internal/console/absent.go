//go:build !console

package console

import "io/fs"

// built is nil: this binary has no console.
var built fs.FS
