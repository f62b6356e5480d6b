package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// captured is an answer that the floor repeats; see floor/main.go.
type captured struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// capture fetches an answer of Gatehouse and keeps it for the floor.
func capture(ctx context.Context, s *server, path, token, file string) error {
	resp, body, err := fetch(ctx, s.base, path, token)
	if err != nil {
		return err
	}
	header := resp.Header.Clone()
	header.Del("Date") // net/http writes its own
	return writeJSON(file, captured{Status: resp.StatusCode, Header: header, Body: body})
}

// madeUp returns an answer of the size Gatehouse's would have, for runs without it.
func madeUp(file string, body []byte) error {
	return writeJSON(file, captured{
		Status: http.StatusOK,
		Header: http.Header{
			"Content-Type":          {"application/json"},
			"Content-Length":        {fmt.Sprint(len(body))},
			"Cache-Control":         {"no-store"},
			"Vary":                  {"Origin"},
			"X-Request-Id":          {"0199aa00-0000-7000-8000-000000000000"},
			"X-Ratelimit-Limit":     {"100000000"},
			"X-Ratelimit-Remaining": {"99999999"},
			"X-Ratelimit-Reset":     {"60"},
		},
		Body: body,
	})
}

func writeJSON(file string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// startFloor serves the captured answers.
func startFloor(ctx context.Context, c *config) (*server, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	argv := []string{filepath.Join(c.bin, "floor"), "-listen", listen, "-one", c.oneFile(), "-list", c.listFile()}
	s, err := launch{name: "floor", cores: serverCore, logs: c.work, argv: argv}.start(ctx)
	if err != nil {
		return nil, err
	}
	s.base = "http://" + listen
	if err := s.ready(ctx, s.base+contacts); err != nil {
		s.stop(syscall.SIGTERM)
		return nil, err
	}
	return s, nil
}

func (c *config) oneFile() string  { return filepath.Join(c.work, "one.json") }
func (c *config) listFile() string { return filepath.Join(c.work, "list.json") }

// pocketBase is the peer and the line that it prints when it starts.
type pocketBase struct {
	c           *config
	User, Token string

	Email, Password string // of the user
	Few             string // the token of the second user of the queries

	name    string // of its folder; "pocketbase" if empty
	records int    // those of the throughput data set if 0
}

const pocketContacts = "/api/collections/contact/records"

// pocketList is the path of a list like Gatehouse's: newest first, without a total.
const pocketList = pocketContacts + "?perPage=50&sort=-created,-id&skipTotal=1"

// start serves PocketBase, with more flags if they are given; the first start
// fills it.
func (p *pocketBase) start(ctx context.Context, cores string, flags ...string) (*server, error) {
	listen, err := freeAddr()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(p.c.work, cmp.Or(p.name, "pocketbase"))
	argv := []string{filepath.Join(p.c.bin, "pocketbase"), "-data", filepath.Join(dir, "data"), "-listen", listen, "-records", fmt.Sprint(cmp.Or(p.records, p.c.records))}
	s, err := launch{name: "pocketbase", cores: cores, logs: dir, argv: append(argv, flags...)}.start(ctx)
	if err != nil {
		return nil, err
	}
	s.base = "http://" + listen
	if err := s.ready(ctx, s.base+"/api/health"); err != nil {
		s.stop(syscall.SIGTERM)
		return nil, err
	}
	said, err := os.ReadFile(s.out)
	if err == nil {
		line, _, _ := bytes.Cut(said, []byte("\n"))
		err = json.Unmarshal(line, p)
	}
	if err != nil {
		s.stop(syscall.SIGTERM)
		return nil, err
	}
	return s, nil
}

// ids lists up to want records, spread over all.
func (p *pocketBase) ids(ctx context.Context, s *server, want int) ([]string, error) {
	var all []string
	for page := 1; ; page++ {
		path := fmt.Sprintf("%s?perPage=500&page=%d&fields=id&skipTotal=1&sort=-created,-id", pocketContacts, page)
		_, body, err := fetch(ctx, s.base, path, p.Token)
		if err != nil {
			return nil, err
		}
		var reply struct{ Items []struct{ ID string } }
		if err := json.Unmarshal(body, &reply); err != nil {
			return nil, err
		}
		for _, item := range reply.Items {
			all = append(all, item.ID)
		}
		if len(reply.Items) < 500 {
			return spread(all, want), nil
		}
	}
}

// spread takes want elements at even distances.
func spread(all []string, want int) []string {
	if len(all) <= want {
		return all
	}
	taken := make([]string, want)
	for i := range taken {
		taken[i] = all[i*len(all)/want]
	}
	return taken
}

// gets makes the prepared requests that read each path.
func gets(paths ...string) []string {
	lines := make([]string, len(paths))
	for i, path := range paths {
		lines[i] = "GET\t" + path
	}
	return lines
}

// prefixed puts a path before every id.
func prefixed(path string, ids []string) []string {
	paths := make([]string, len(ids))
	for i, id := range ids {
		paths[i] = strings.TrimSuffix(path, "/") + "/" + id
	}
	return paths
}
