package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"syscall"
	"time"

	"gatehouse/bench/contact"
)

// query is a list that both contestants are asked for, each in its own words: ours is a query
// string, theirs a filter and an order of PocketBase.
type query struct {
	name   string
	ours   string
	filter string
	sort   string // newest first if empty
}

// fewQueries are for the viewer of 20 records. All records match, those that the viewer may not see, too.
var fewQueries = []query{
	{"equality", "filter[region]=" + contact.Region, "region = '" + contact.Region + "'", ""},
	{"range", "filter[score][gte]=0", "score >= 0", ""},
	{"prefix", "filter[code][prefix]=" + contact.Code, "code ~ '" + contact.Code + "%'", ""},
	{"sort", "sort=-score", "", "-score,-created,-id"},
	{"equality, sort", "filter[region]=" + contact.Region + "&sort=-score", "region = '" + contact.Region + "'", "-score,-created,-id"},
	{"search, a word", "search=" + contact.Word, "notes ~ '" + contact.Word + "'", ""},
	{"search, a beginning", "search=" + contact.Word[:4] + "*", "notes ~ '" + contact.Word[:4] + "'", ""},
}

// allQueries are for the viewer who owns nearly all; a tenth or a third of the records matches.
var allQueries = []query{
	{"equality", "filter[city]=" + contact.City, "city = '" + contact.City + "'", ""},
	{"range", fmt.Sprintf("filter[score][gte]=%d", contact.High), fmt.Sprintf("score >= %d", contact.High), ""},
	{"prefix", "filter[code][prefix]=" + contact.TenthCode, "code ~ '" + contact.TenthCode + "%'", ""},
	{"sort", "sort=-score", "", "-score,-created,-id"},
	{"equality, sort", "filter[city]=" + contact.City + "&sort=-score", "city = '" + contact.City + "'", "-score,-created,-id"},
	{"search, a word", "search=" + contact.Phrase, "notes ~ '" + contact.Phrase + "'", ""},
	{"search, a beginning", "search=" + contact.Phrase[:5] + "*", "notes ~ '" + contact.Phrase[:5] + "'", ""},
	{deepSort, "sort=-score", "", "-score,-created,-id"},
}

// deepSort is the query of a page far down in the order, c.page counted from 1.
const deepSort = "sort, a deep page"

// The two viewers, as the report names them.
const (
	seesFew = "20 among all"
	seesAll = "nearly all"
)

// queryAtMost is the required figure of a query: its time among many records in that among few.
const queryAtMost = 1.5

// slow is how long a contestant may take for all requests of one figure: where each takes long, fewer are asked.
const slow = 8 * time.Second

// asked is one contestant's list at both sizes.
type asked struct {
	servers [2]*server
	paths   [2]string
	tokens  [2]string
	rows    func([]byte) (int, error)
}

// queriesSQLite measures the queries on SQLite, and beside them PocketBase's of the same records.
func queriesSQLite(ctx context.Context, c *config, rep *report) error {
	return queries(ctx, c, rep, "SQLite", c.many, true, func(_ context.Context, name string) (*instance, error) {
		return sqliteInstance(c, name), nil
	})
}

// queries fills two installations of an engine, one with many records, and measures their filtered, sorted and searched
// pages. With beside it does the same with PocketBase.
func queries(ctx context.Context, c *config, rep *report, engine string, many int, beside bool, open func(context.Context, string) (*instance, error)) error {
	var running []*server
	defer func() {
		for _, s := range running {
			s.stop(syscall.SIGTERM)
		}
	}()
	sizes := [2]int{c.small, many}
	var ours, theirs [2]*server
	var sets [2]*dataset
	var peers [2]*pocketBase
	for i, n := range sizes {
		g, err := open(ctx, fmt.Sprintf("queries-%d", n))
		if err != nil {
			return err
		}
		if sets[i], err = g.fillQueried(ctx, n); err != nil {
			return err
		}
		if !beside {
			continue
		}
		if peers[i], err = fillPeer(ctx, c, n); err != nil {
			return err
		}
	}
	for i := range sizes {
		var err error
		if ours[i], err = sets[i].serve(ctx, serverCore); err != nil {
			return err
		}
		running = append(running, ours[i])
		if !beside {
			continue
		}
		if theirs[i], err = peers[i].start(ctx, serverCore, "-queried"); err != nil {
			return err
		}
		running = append(running, theirs[i])
	}
	for _, viewer := range []struct {
		name, ours string
		few        bool
		queries    []query
	}{{seesAll, bulk, false, allQueries}, {seesFew, owning, true, fewQueries}} {
		for _, q := range viewer.queries {
			mine := asked{servers: ours, rows: gatehouseRows}
			peer := asked{servers: theirs, rows: pocketRows}
			for i := range sizes {
				mine.tokens[i] = sets[i].keys[viewer.ours]
				var err error
				if mine.paths[i], err = q.path(ctx, c, ours[i], mine.tokens[i]); err != nil {
					return fmt.Errorf("%s, %s, %s: %w", engine, q.name, viewer.name, err)
				}
				if !beside {
					continue
				}
				peer.paths[i], peer.tokens[i] = q.pocketPath(c), peers[i].Token
				if viewer.few {
					peer.tokens[i] = peers[i].Few
				}
			}
			want := 50
			if viewer.few {
				want = visible
			}
			contestants := []asked{mine}
			if beside {
				contestants = append(contestants, peer)
			}
			took, err := inTurns(ctx, c.requests, want, contestants...)
			if err != nil {
				return fmt.Errorf("%s, %s, %s: %w", engine, q.name, viewer.name, err)
			}
			row := queryRow{engine: engine, query: q.name, viewer: viewer.name, ours: took[0]}
			line := fmt.Sprintf("%-10s %-22s %-13s %s → %s ms, ratio %.2f", engine, row.query, row.viewer, ms(row.ours[0]), ms(row.ours[1]), row.ours.ratio())
			if beside {
				row.theirs = took[1]
				line += fmt.Sprintf("; PocketBase %s → %s ms, ratio %.2f", ms(row.theirs[0]), ms(row.theirs[1]), row.theirs.ratio())
			}
			log.Print(line)
			rep.queries = append(rep.queries, row)
		}
	}
	return nil
}

// fillPeer makes PocketBase's n records.
func fillPeer(ctx context.Context, c *config, n int) (*pocketBase, error) {
	peer := &pocketBase{c: c, name: fmt.Sprintf("pocketbase-%d", n), records: n}
	began := time.Now()
	s, err := peer.start(ctx, anyCore, "-queried")
	if err != nil {
		return nil, err
	}
	s.stop(syscall.SIGTERM)
	log.Printf("%s: %d records made in %s", peer.name, n, time.Since(began).Round(time.Millisecond))
	return peer, nil
}

// deep reports whether the query asks for a page far down.
func (q query) deep() bool { return q.name == deepSort }

// path is the query's to Gatehouse; for a deep page it walks there for the cursor.
func (q query) path(ctx context.Context, c *config, s *server, token string) (string, error) {
	path := contacts + "?limit=50&" + q.ours
	if !q.deep() {
		return path, nil
	}
	next := path
	for range c.page - 1 {
		_, p, err := timedList(ctx, s, next, token)
		if err != nil {
			return "", err
		}
		if p.Meta.NextCursor == nil {
			return "", fmt.Errorf("there are fewer than %d pages", c.page)
		}
		next = path + "&cursor=" + url.QueryEscape(*p.Meta.NextCursor)
	}
	return next, nil
}

// pocketPath is the query's to PocketBase, without the total.
func (q query) pocketPath(c *config) string {
	v := url.Values{"perPage": {"50"}, "skipTotal": {"1"}, "sort": {cmp.Or(q.sort, "-created,-id")}}
	if q.filter != "" {
		v.Set("filter", q.filter)
	}
	if q.deep() {
		v.Set("page", fmt.Sprint(c.page))
	}
	return pocketContacts + "?" + v.Encode()
}

func gatehouseRows(body []byte) (int, error) {
	var p page
	err := json.Unmarshal(body, &p)
	return len(p.Data), err
}

func pocketRows(body []byte) (int, error) {
	var p struct{ Items []json.RawMessage }
	err := json.Unmarshal(body, &p)
	return len(p.Items), err
}

// inTurns asks every contestant at both sizes, one request after the other, and returns their medians.
// Each answer has to have want records. A contestant whose time is used up is asked no more.
func inTurns(ctx context.Context, requests, want int, contestants ...asked) ([]pair, error) {
	const warm, least = 5, 5 // requests that warm up; those measured however long they take
	took := make([][2][]time.Duration, len(contestants))
	used := make([]time.Duration, len(contestants))
	for n := range requests + warm {
		for k, a := range contestants {
			if used[k] > slow && n >= warm+least {
				continue
			}
			for i, s := range a.servers {
				began := time.Now()
				_, body, err := fetch(ctx, s.base, a.paths[i], a.tokens[i])
				d := time.Since(began)
				if err != nil {
					return nil, err
				}
				if got, err := a.rows(body); err != nil || got != want {
					return nil, fmt.Errorf("%s: %d records, not %d: %w", s.name, got, want, err)
				}
				used[k] += d
				if n >= warm {
					took[k][i] = append(took[k][i], d)
				}
			}
		}
	}
	medians := make([]pair, len(contestants))
	for k := range took {
		medians[k] = pair{median(took[k][0]), median(took[k][1])}
	}
	return medians, nil
}
