//go:build console

package console

import (
	"embed"
	"io/fs"
)

// dist is made by the front-end build (npm run build in web) and is not in the repository.
//
//go:embed all:dist
var dist embed.FS

// built has the files of the front-end build.
var built = func() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // only for a name that is no path
	}
	return files
}()
