//go:build !race

package manifest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gatehouse/internal/manifest"
)

// TestExportIsWhatWasApplied checks, for random tenants, that applying an
// export changes nothing, and that applying it to another tenant produces the
// same export.
func TestExportIsWhatWasApplied(t *testing.T) {
	each(t, func(p *place) {
		n := 0
		p.vars["HOME"] = "${HOME}" // so that drawn texts are stored unchanged
		rapid.Check(t, func(r *rapid.T) {
			n++
			id := fmt.Sprintf("t-%d", n)
			for range rapid.IntRange(1, 2).Draw(r, "manifests") {
				src := flowText(drawManifest(r, id))
				if _, err := p.try(src, manifest.Options{Prune: true}); err != nil {
					r.Fatalf("%v\n%s", err, src)
				}
			}
			out := p.exportFor(r, id)
			for _, opts := range []manifest.Options{{}, {Prune: true}} {
				res, err := p.try(out, opts)
				if err != nil {
					r.Fatalf("apply of the export: %v\n%s", err, out)
				}
				for _, c := range res.Changes {
					r.Errorf("apply of the export: %s\n%s", c.Line(), out)
				}
			}
			copied := strings.ReplaceAll(out, id, id+"-copy")
			if _, err := p.try(copied, manifest.Options{}); err != nil {
				r.Fatalf("apply of a copy: %v\n%s", err, copied)
			}
			if again := p.exportFor(r, id+"-copy"); again != copied {
				r.Errorf("the copy differs:\n%s\nwant:\n%s", again, copied)
			}
		})
	})
}

func TestMistakesBeyondCounting(t *testing.T) {
	err := manifest.Check("m.yaml", []byte("tenant: acme\nroles:\n"+strings.Repeat("  - {nam: x}\n", 100_000)), os.Getenv)
	if err == nil || !strings.HasSuffix(err.Error(), "m.yaml: and 199900 more") {
		t.Errorf("told: %.200s", err)
	}
}
