// Command sbom says what is in a release: sbom VERSION BINARY… prints a CycloneDX document,
// sbom -notices VERSION BINARY… the licences of others. It reads the Go modules from the
// binaries themselves, the packages of the console from web/package-lock.json, and the
// JavaScript engine from scripts/fetch-engine. It runs in the root of the repository. The
// same input gives the same bytes.
package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	args := os.Args[1:]
	notices := len(args) > 0 && args[0] == "-notices"
	if notices {
		args = args[1:]
	}
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom [-notices] VERSION BINARY…")
		os.Exit(2)
	}
	parts, err := partsOf(args[1:])
	if err == nil && notices {
		err = printNotices(parts)
	} else if err == nil {
		err = printDocument(args[0], parts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// part is something of others that a release contains.
type part struct {
	name, version string
	purl          string // its package URL, https://github.com/package-url
	licence       string // its SPDX name, where the package says it
	sha256        string // of a file that is contained as it is
	folder        string // has its licence
}

// partsOf returns the parts of all binaries, in the order of their package URLs.
func partsOf(binaries []string) ([]part, error) {
	known := map[string]part{}
	for _, file := range binaries {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, err
		}
		goVersion := strings.TrimPrefix(info.GoVersion, "go")
		known["pkg:golang/std@"+goVersion] = part{name: "std", version: goVersion, purl: "pkg:golang/std@" + goVersion, licence: "BSD-3-Clause"}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			purl := "pkg:golang/" + m.Path + "@" + m.Version
			known[purl] = part{name: m.Path, version: m.Version, purl: purl}
		}
	}
	console, err := consoleParts()
	if err != nil {
		return nil, err
	}
	engine, err := enginePart()
	if err != nil {
		return nil, err
	}
	for _, p := range append(console, engine) {
		known[p.purl] = p
	}
	parts := make([]part, 0, len(known))
	for _, p := range known {
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.purl, b.purl) })
	return parts, nil
}

// consoleParts returns the packages that the console is built from, without those that
// only build and test it.
func consoleParts() ([]part, error) {
	text, err := os.ReadFile("web/package-lock.json")
	if err != nil {
		return nil, err
	}
	var lock struct {
		Packages map[string]struct {
			Version, License string
			Dev              bool
		}
	}
	if err := json.Unmarshal(text, &lock); err != nil {
		return nil, fmt.Errorf("web/package-lock.json: %w", err)
	}
	var parts []part
	for folder, p := range lock.Packages {
		if folder == "" || p.Dev {
			continue
		}
		name := folder[strings.LastIndex(folder, "node_modules/")+len("node_modules/"):]
		parts = append(parts, part{
			name: name, version: p.Version, licence: p.License, folder: filepath.Join("web", folder),
			purl: "pkg:npm/" + strings.Replace(name, "@", "%40", 1) + "@" + p.Version,
		})
	}
	return parts, nil
}

var pinned = regexp.MustCompile(`(?s)\npackage=([a-z-]+)@([0-9.]+)\nsum=([0-9a-f]{64})\n`)

// enginePart returns the JavaScript engine, which scripts/fetch-engine pins.
func enginePart() (part, error) {
	text, err := os.ReadFile("scripts/fetch-engine")
	if err != nil {
		return part{}, err
	}
	m := pinned.FindStringSubmatch(string(text))
	if m == nil {
		return part{}, errors.New("scripts/fetch-engine does not say what it pins")
	}
	return part{
		name: m[1], version: m[2], sha256: m[3], purl: "pkg:npm/" + m[1] + "@" + m[2], licence: "MIT", folder: "scripts/sbom/" + m[1],
	}, nil
}

// printDocument prints a CycloneDX 1.5 document.
func printDocument(version string, parts []part) error {
	components := make([]map[string]any, 0, len(parts))
	for _, p := range parts {
		c := map[string]any{"type": "library", "name": p.name, "version": p.version, "purl": p.purl, "bom-ref": p.purl}
		if p.licence != "" {
			c["licenses"] = []any{map[string]any{"expression": p.licence}}
		}
		if p.sha256 != "" {
			c["hashes"] = []any{map[string]any{"alg": "SHA-256", "content": p.sha256}}
		}
		components = append(components, c)
	}
	whole, err := json.Marshal([]any{version, components})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(whole) // the serial number follows from the content, as a UUID of version 8
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	id := hex.EncodeToString(sum[:16])
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	return out.Encode(map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"serialNumber": "urn:uuid:" + strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-"),
		"metadata": map[string]any{"component": map[string]any{
			"type": "application", "name": "gatehouse", "version": version, "bom-ref": "gatehouse",
			"licenses": []any{map[string]any{"expression": "Apache-2.0"}},
		}},
		"components": components,
	})
}

// printNotices prints the licence of each part. A part without one is an error.
func printNotices(parts []part) error {
	for _, p := range parts {
		folder := p.folder
		if folder == "" {
			var err error
			if folder, err = moduleFolder(p); err != nil {
				return err
			}
		}
		texts, err := licences(folder)
		if err != nil {
			return err
		}
		if len(texts) == 0 {
			if p.licence == "" {
				return fmt.Errorf("%s has no licence in %s", p.purl, folder)
			}
			texts = []string{"The package says " + p.licence + " and has no text of it.\n"}
		}
		fmt.Printf("%s\n%s %s\n\n%s\n", strings.Repeat("=", 80), p.name, p.version, strings.Join(texts, "\n"))
	}
	return nil
}

func moduleFolder(p part) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}", p.name + "@" + p.version}
	if p.name == "std" {
		args = []string{"env", "GOROOT"}
	}
	out, err := exec.CommandContext(context.Background(), "go", args...).Output()
	return strings.TrimSpace(string(out)), err
}

// licences returns the texts of the licence and notice files of a folder.
func licences(folder string) (texts []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if !e.Type().IsRegular() || !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "NOTICE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
