package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"syscall"
	"time"

	"gatehouse/bench/contact"
)

// visible is how many records each viewer of the flat lists may see.
const visible = 20

// region is the value that all records of the flat lists have in an indexed
// field: a filter by it matches those a viewer may see and all that they may not.
const region = "north"

// ways are the kinds of visibility, each with the viewer who has only it.
var ways = []struct{ name, viewer string }{
	{"ownership", owning},
	{"explicit share", shared},
	{"role hierarchy", leading},
	{"sharing rule, owner's role", ruled},
	{"sharing rule, field value", matched},
}

// dataset is an installation with n records, of which each viewer sees 20.
type dataset struct {
	*instance
	n    int
	keys map[string]string
}

// flatSQLite measures the flat lists and the traversal on SQLite.
func flatSQLite(ctx context.Context, c *config, rep *report) error {
	return flat(ctx, c, rep, "SQLite", func(_ context.Context, name string) (*instance, error) {
		return sqliteInstance(c, name), nil
	})
}

// flat fills two installations of an engine and compares their lists, then
// walks down the large one.
func flat(ctx context.Context, c *config, rep *report, engine string, open func(context.Context, string) (*instance, error)) error {
	var servers [2]*server
	defer func() {
		for _, s := range servers {
			if s != nil {
				s.stop(syscall.SIGTERM)
			}
		}
	}()
	var sets [2]*dataset
	for i, n := range []int{c.small, c.large} {
		if n == c.small && !c.wants("flat") {
			continue
		}
		g, err := open(ctx, fmt.Sprintf("flat-%d", n))
		if err != nil {
			return err
		}
		if sets[i], err = g.fillFlat(ctx, n); err != nil {
			return err
		}
	}
	for i, set := range sets {
		if set == nil {
			continue
		}
		s, err := set.serve(ctx, serverCore)
		if err != nil {
			return err
		}
		servers[i] = s
	}
	if c.wants("flat") {
		for _, list := range []struct{ suffix, query string }{{"", ""}, {", filtered", "&filter[region]=" + region}} {
			for _, way := range ways {
				name := way.name + list.suffix
				row, err := compareSizes(ctx, c, servers, sets, way.viewer, list.query)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", engine, name, err)
				}
				row.engine, row.way = engine, name
				log.Printf("%-10s %-36s %d of %d: %s, of %d: %s, ratio %.2f", engine, name, visible, c.small,
					row.small, c.large, row.large, row.ratio())
				rep.flat = append(rep.flat, row)
			}
		}
	}
	if !c.wants("traversal") {
		return nil
	}
	row, err := traverse(ctx, c, servers[1], sets[1].keys[bulk])
	if err != nil {
		return fmt.Errorf("%s, traversal: %w", engine, err)
	}
	row.engine = engine
	log.Printf("%-10s traversal: first pages %s, at record %d %s, ratio %.2f", engine, row.first, c.depth, row.deep, row.ratio())
	rep.traversals = append(rep.traversals, row)
	return nil
}

// fillFlat provisions the installation and makes n records. Those a viewer may
// see lie at even distances from the oldest to the newest.
func (g *instance) fillFlat(ctx context.Context, n int) (*dataset, error) {
	g.filtered = true
	if err := g.apply(ctx, false); err != nil {
		return nil, err
	}
	emails := []string{bulk, member, desk}
	for _, way := range ways {
		emails = append(emails, way.viewer)
	}
	keys, err := g.keys(ctx, emails...)
	if err != nil {
		return nil, err
	}
	s, err := g.serve(ctx, anyCore)
	if err != nil {
		return nil, err
	}
	defer s.stop(syscall.SIGTERM)

	special := make(map[int]string) // position → the viewer who may see it
	for w, way := range ways {
		for k := range visible {
			special[k*n/visible+w+1] = way.viewer
		}
	}
	owners := map[string]string{owning: owning, leading: member, ruled: desk}
	ids, err := g.fill(ctx, s, keys, n, func(i int) planned {
		p := planned{owner: bulk, fields: contact.Fields(i)}
		p.fields["region"] = region
		viewer := special[i]
		if owner, has := owners[viewer]; has {
			p.owner = owner
		}
		if viewer == matched {
			p.fields["stage"] = contact.Won
		}
		return p
	})
	if err != nil {
		return nil, err
	}
	for i, viewer := range special {
		if viewer != shared {
			continue
		}
		_, err := g.run(ctx, "share", "add", "--tenant", tenantName, "--entity", "contact",
			"--record", ids[i], "--user", shared, "--access", "read")
		if err != nil {
			return nil, err
		}
	}
	return &dataset{instance: g, n: n, keys: keys}, nil
}

// page is the part of a list's answer that is looked at.
type page struct {
	Data []json.RawMessage
	Meta struct {
		HasMore    bool
		NextCursor *string
	}
}

// timedList asks for a list and measures the whole exchange.
func timedList(ctx context.Context, s *server, path, token string) (time.Duration, page, error) {
	began := time.Now()
	_, body, err := fetch(ctx, s.base, path, token)
	took := time.Since(began)
	if err != nil {
		return 0, page{}, err
	}
	var p page
	err = json.Unmarshal(body, &p)
	return took, p, err
}

// compareSizes asks the two servers in turn for the list of one viewer; query
// goes on the limit.
func compareSizes(ctx context.Context, c *config, servers [2]*server, sets [2]*dataset, viewer, query string) (flatRow, error) {
	var took [2][]time.Duration
	for n := range c.requests + 20 {
		for i, s := range servers {
			d, p, err := timedList(ctx, s, contacts+"?limit=50"+query, sets[i].keys[viewer])
			if err != nil {
				return flatRow{}, err
			}
			if len(p.Data) != visible || p.Meta.HasMore {
				return flatRow{}, fmt.Errorf("%s sees %d records (more: %t) among %d, not %d", viewer, len(p.Data), p.Meta.HasMore, sets[i].n, visible)
			}
			if n >= 20 { // the first ones warm up
				took[i] = append(took[i], d)
			}
		}
	}
	return flatRow{small: median(took[0]), large: median(took[1])}, nil
}

// pagesCompared is how many pages at the top and around the depth are timed.
const pagesCompared = 20

// traverse walks down with limit 200, once for the cursors, then asks for the
// first pages and for those around the depth in turn.
func traverse(ctx context.Context, c *config, s *server, token string) (traversalRow, error) {
	const limit = 200
	deepest := c.depth/limit + pagesCompared/2
	paths := make([]string, 0, deepest)
	path := fmt.Sprintf("%s?limit=%d", contacts, limit)
	for range deepest {
		paths = append(paths, path)
		_, p, err := timedList(ctx, s, path, token)
		if err != nil {
			return traversalRow{}, err
		}
		if len(p.Data) != limit || p.Meta.NextCursor == nil {
			return traversalRow{}, fmt.Errorf("page %d has %d records and is the last: more data is needed", len(paths), len(p.Data))
		}
		path = fmt.Sprintf("%s?limit=%d&cursor=%s", contacts, limit, url.QueryEscape(*p.Meta.NextCursor))
	}
	// The first page of all has no cursor and is left out.
	pages := min(pagesCompared, (deepest-1)/2)
	top, deep := paths[1:1+pages], paths[deepest-pages:]
	var first, last []time.Duration
	for range max(1, c.requests/pages) {
		for i := range top {
			for _, side := range []struct {
				path string
				into *[]time.Duration
			}{{top[i], &first}, {deep[i], &last}} {
				d, _, err := timedList(ctx, s, side.path, token)
				if err != nil {
					return traversalRow{}, err
				}
				*side.into = append(*side.into, d)
			}
		}
	}
	return traversalRow{first: median(first), deep: median(last)}, nil
}
