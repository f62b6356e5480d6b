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

// queried is a contestant that has data of both sizes and serves them.
type queried interface {
	fill(ctx context.Context, n int) error
	serve(ctx context.Context) error
	stop()
	// asked is the query as the viewer of few or of nearly all records asks it.
	asked(ctx context.Context, q query, few bool) (asked, error)
}

// queriesSQLite measures the queries on SQLite, and beside them PocketBase's of the same records.
func queriesSQLite(ctx context.Context, c *config, rep *report) error {
	ours := &queriedGatehouse{c: c, open: func(_ context.Context, name string) (*instance, error) { return sqliteInstance(c, name), nil }}
	return queries(ctx, c, rep, "SQLite", c.many, ours, &queriedPocketBase{c: c})
}

// queriesPostgres measures the queries on PostgreSQL.
func queriesPostgres(ctx context.Context, c *config, rep *report, open func(context.Context, string) (*instance, error)) error {
	return queries(ctx, c, rep, "PostgreSQL", c.manyOnPostgres, &queriedGatehouse{c: c, open: open})
}

// queries fills two data sets of each contestant, of which the first is Gatehouse on an engine, the larger with many
// records, and measures filtered, sorted and searched pages.
func queries(ctx context.Context, c *config, rep *report, engine string, many int, contestants ...queried) error {
	for _, n := range []int{c.small, many} {
		for _, who := range contestants {
			if err := who.fill(ctx, n); err != nil {
				return err
			}
		}
	}
	defer func() {
		for _, who := range contestants {
			who.stop()
		}
	}()
	for _, who := range contestants {
		if err := who.serve(ctx); err != nil {
			return err
		}
	}
	for _, viewer := range []struct {
		name    string
		few     bool
		rows    int
		queries []query
	}{{seesAll, false, 50, allQueries}, {seesFew, true, visible, fewQueries}} {
		for _, q := range viewer.queries {
			row := queryRow{engine: engine, many: many, query: q.name, viewer: viewer.name}
			if err := row.measure(ctx, c, contestants, q, viewer.few, viewer.rows); err != nil {
				return fmt.Errorf("%s, %s, %s: %w", engine, q.name, viewer.name, err)
			}
			log.Print(&row)
			rep.queries = append(rep.queries, row)
		}
	}
	return nil
}

// measure asks every contestant for the query, whose pages must have rows records.
func (r *queryRow) measure(ctx context.Context, c *config, contestants []queried, q query, few bool, rows int) error {
	lists := make([]asked, len(contestants))
	for k, who := range contestants {
		var err error
		if lists[k], err = who.asked(ctx, q, few); err != nil {
			return err
		}
	}
	took, err := inTurns(ctx, c.requests, rows, lists...)
	if err != nil {
		return err
	}
	r.ours = took[0]
	if len(took) > 1 {
		r.theirs = took[1]
	}
	return nil
}

// queriedGatehouse is Gatehouse on the engine of open.
type queriedGatehouse struct {
	c       *config
	open    func(context.Context, string) (*instance, error)
	sets    []*dataset
	servers [2]*server
}

func (g *queriedGatehouse) fill(ctx context.Context, n int) error {
	in, err := g.open(ctx, fmt.Sprintf("queries-%d", n))
	if err != nil {
		return err
	}
	set, err := in.fillQueried(ctx, n)
	g.sets = append(g.sets, set)
	return err
}

func (g *queriedGatehouse) serve(ctx context.Context) (err error) {
	for i, set := range g.sets {
		if g.servers[i], err = set.serve(ctx, serverCore); err != nil {
			return err
		}
	}
	return nil
}

func (g *queriedGatehouse) stop() { stopAll(g.servers) }

func (g *queriedGatehouse) asked(ctx context.Context, q query, few bool) (asked, error) {
	list := asked{servers: g.servers, rows: gatehouseRows}
	for i, set := range g.sets {
		list.tokens[i] = set.keys[bulk]
		if few {
			list.tokens[i] = set.keys[owning]
		}
		var err error
		if list.paths[i], err = q.path(ctx, g.c, g.servers[i], list.tokens[i]); err != nil {
			return asked{}, err
		}
	}
	return list, nil
}

// queriedPocketBase is PocketBase with the same records.
type queriedPocketBase struct {
	c       *config
	sets    []*pocketBase
	servers [2]*server
}

func (p *queriedPocketBase) fill(ctx context.Context, n int) error {
	set, err := fillPeer(ctx, p.c, n)
	p.sets = append(p.sets, set)
	return err
}

func (p *queriedPocketBase) serve(ctx context.Context) (err error) {
	for i, set := range p.sets {
		if p.servers[i], err = set.start(ctx, serverCore, "-queried"); err != nil {
			return err
		}
	}
	return nil
}

func (p *queriedPocketBase) stop() { stopAll(p.servers) }

func (p *queriedPocketBase) asked(_ context.Context, q query, few bool) (asked, error) {
	list := asked{servers: p.servers, rows: pocketRows}
	for i, set := range p.sets {
		list.paths[i], list.tokens[i] = q.pocketPath(p.c), set.Token
		if few {
			list.tokens[i] = set.Few
		}
	}
	return list, nil
}

// stopAll stops the servers that were started.
func stopAll(servers [2]*server) {
	for _, s := range servers {
		if s != nil {
			s.stop(syscall.SIGTERM)
		}
	}
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
