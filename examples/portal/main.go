// Command portal serves the sample portal: static files, the two paths that the
// links in mails have, and a config.json that gives the page the API's address. Any
// other static file server can do this; README.md lists the requirements.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"time"
)

//go:embed app
var app embed.FS

// defaultAPI is also named by the Content-Security-Policy in index.html.
const defaultAPI = "http://127.0.0.1:8081"

func main() {
	listen := flag.String("listen", "127.0.0.1:8090", "address of the portal")
	api := flag.String("api", defaultAPI, "where the browser reaches the tenant's API")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *listen, *api)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "portal:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, api string) error {
	h, err := handler(api)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })() // on an interrupt; Serve returns the outcome
	fmt.Fprintf(os.Stderr, "The portal is at http://%s, its API at %s.\n", l.Addr(), api)
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler returns the handler of the portal for the API at an origin.
func handler(api string) (http.Handler, error) {
	u, err := url.Parse(api)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("--api: expected an address like %s, not %q", defaultAPI, api)
	}
	origin := u.Scheme + "://" + u.Host
	config, err := json.Marshal(map[string]string{"api": origin})
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(app, "app")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "*")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /config.json", file("config.json", config))
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if name != "index.html" {
			mux.Handle("GET /"+name, file(name, content))
			continue
		}
		page := file(name, bytes.ReplaceAll(content, []byte(defaultAPI), []byte(origin)))
		for _, pattern := range []string{"GET /{$}", "GET /verify", "GET /reset-password"} {
			mux.Handle(pattern, page)
		}
	}
	return withHeaders(mux), nil
}

// file returns a handler that serves one file.
func file(name string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}

// withHeaders adds the headers that a page with tokens should have. The rest of the
// Content-Security-Policy is in index.html, but frame-ancestors works only in a
// header.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}
