// Package console serves the single-page app of the administration: the files that the
// front-end build has put into the folder dist, which the build tag console embeds. A
// binary without the tag serves one page that says how to get the console.
package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/httpapi"
)

// Base is the path under which the console is, without a slash at its end.
const Base = "/admin"

// Site is the console's files. It does not change and may be used by several goroutines
// at once.
type Site struct {
	files map[string]*file // by path below Base
	index *file
}

// file is a file in all the encodings that there are of it.
type file struct {
	header    http.Header
	encodings []encoding // smallest first; the last one is the plain file
}

type encoding struct {
	name string // "" for none
	etag string
	body []byte
}

// policy is the Content-Security-Policy of every page: nothing but files and answers of
// this host, no inline script, and no other page may frame it. Styles may be inline,
// because components set them on elements.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Cache-Control: the build puts a hash into the name of each asset.
const (
	forever = "public, max-age=31536000, immutable"
	never   = "no-store"
	ask     = "no-cache"
)

// New returns the site of this binary.
func New() *Site {
	if built == nil {
		return &Site{index: newFile("index.html", []byte(absent), never)}
	}
	s, err := newSite(built)
	if err != nil {
		panic("console: " + err.Error()) // the build is broken
	}
	return s
}

// absent is the page of a binary without the console.
const absent = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Gatehouse</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:36rem;padding:0 1.5rem;color-scheme:light dark}code{font-family:ui-monospace,monospace}</style>
</head><body><h1>This binary has no console</h1>
<p>It was built by <code>make server</code>, without the front end. <code>make build</code> builds <code>bin/gatehouse</code> with the console, which is then at this address.</p>
<p>Everything else works: the API, the admin API under <code>/admin/v1/</code> and all commands.</p></body></html>
`

// newSite reads the files of a build. It returns an error if there is no index.html.
func newSite(built fs.FS) (*Site, error) {
	s := &Site{files: map[string]*file{}}
	err := fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.Contains([]string{".br", ".gz"}, path.Ext(name)) {
			return err
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		cache := ask
		switch {
		case name == "index.html":
			cache = never
		case strings.HasPrefix(name, assets):
			cache = forever
		}
		f := newFile(name, body, cache)
		for _, of := range []struct{ name, ending string }{{"gzip", ".gz"}, {"br", ".br"}} {
			if packed, err := fs.ReadFile(built, name+of.ending); err == nil {
				f.encodings = append([]encoding{newEncoding(of.name, packed)}, f.encodings...)
			}
		}
		s.files[name] = f
		return nil
	})
	if err != nil {
		return nil, err
	}
	if s.index = s.files["index.html"]; s.index == nil {
		return nil, fmt.Errorf("the build has no index.html: npm run build in web makes it")
	}
	return s, nil
}

// assets is the folder of files that have a hash in their names.
const assets = "assets/"

func newFile(name string, body []byte, cache string) *file {
	kind := mime.TypeByExtension(path.Ext(name))
	switch path.Ext(name) { // these do not depend on the machine's table of types
	case ".js":
		kind = "text/javascript; charset=utf-8"
	case ".css":
		kind = "text/css; charset=utf-8"
	case ".html":
		kind = "text/html; charset=utf-8"
	case ".svg":
		kind = "image/svg+xml"
	case ".woff2":
		kind = "font/woff2"
	case ".json", ".webmanifest":
		kind = "application/json"
	}
	if kind == "" {
		kind = "application/octet-stream"
	}
	h := http.Header{
		"Content-Type": {kind}, "Cache-Control": {cache}, "X-Content-Type-Options": {"nosniff"}, "Referrer-Policy": {"no-referrer"},
		"Content-Security-Policy": {policy}, "X-Frame-Options": {"DENY"}, "Cross-Origin-Opener-Policy": {"same-origin"},
		"Cross-Origin-Resource-Policy": {"same-origin"}, "Permissions-Policy": {"camera=(), geolocation=(), microphone=(), payment=(), usb=()"},
		"Vary": {"Accept-Encoding"},
	}
	return &file{header: h, encodings: []encoding{newEncoding("", body)}}
}

func newEncoding(name string, body []byte) encoding {
	sum := sha256.Sum256(body)
	return encoding{name: name, body: body, etag: `"` + hex.EncodeToString(sum[:12]) + `"`}
}

// Page returns the answer to GET for a path under Base: a file, or for a path that is none
// the app itself, which shows the page of that address. A file that is missing among the
// assets is 404: the app of another version asks for it. The answer refers to memory of
// the site, which must not be changed.
func (s *Site) Page(address string, request http.Header) httpapi.Reply {
	name := strings.TrimPrefix(strings.TrimPrefix(address, Base), "/")
	f := s.files[name]
	switch {
	case f != nil:
	case strings.HasPrefix(name, assets):
		h := s.index.header.Clone()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		return httpapi.Reply{Status: http.StatusNotFound, Bare: true, Header: h, Data: []byte("there is no such file in this version of the console\n")}
	default:
		f = s.index
	}
	e := f.best(request)
	h := f.header.Clone()
	h.Set("Etag", e.etag)
	if e.name != "" {
		h.Set("Content-Encoding", e.name)
	}
	if f != s.index && matches(request["If-None-Match"], e.etag) {
		return httpapi.Reply{Status: http.StatusNotModified, Bare: true, Header: h, Data: []byte{}}
	}
	return httpapi.Reply{Bare: true, Header: h, Data: e.body}
}

// best returns the smallest encoding that the client takes.
func (f *file) best(request http.Header) encoding {
	takes := accepted(request["Accept-Encoding"])
	for _, e := range f.encodings {
		if e.name == "" || takes[e.name] {
			return e
		}
	}
	return f.encodings[len(f.encodings)-1]
}

// accepted returns the encodings that a header names, without those of weight zero.
func accepted(lines []string) map[string]bool {
	names := map[string]bool{}
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			name, params, _ := strings.Cut(strings.TrimSpace(one), ";")
			weight, hasWeight := strings.CutPrefix(strings.TrimSpace(params), "q=")
			if q, err := strconv.ParseFloat(weight, 64); hasWeight && (err != nil || q == 0) {
				continue
			}
			names[strings.ToLower(strings.TrimSpace(name))] = true
		}
	}
	return names
}

func matches(lines []string, etag string) bool {
	for _, line := range lines {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == etag {
				return true
			}
		}
	}
	return false
}
