package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/config"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/schema"
)

// reply returns an answer with data, which it charges.
func reply(c *httpapi.Authed, data any, err error) (httpapi.Reply, error) {
	if err != nil {
		return httpapi.Reply{}, err
	}
	b, err := json.Marshal(data, json.Deterministic(true))
	if err != nil {
		return httpapi.Reply{}, err
	}
	return httpapi.Reply{Data: b}, c.Hold(cap(b))
}

var errSearches = fault.New(fault.Overloaded, "too many searches of this kind run right now; try again soon").After(2 * time.Second)

// search waits for the turn of the request's tenant to search. leave must be called. It
// returns OVERLOADED when there is none soon.
func (s *Service) search(ctx context.Context, c *httpapi.Authed) (leave func(), err error) {
	leave, err = s.searching.Enter(ctx, string(c.Config.Tenant.ID))
	if errors.Is(err, admission.ErrFull) {
		err = errSearches
	}
	return leave, err
}

// replyList is reply for a list; next is where the next page begins, "" for the last one.
func (s *Service) replyList(c *httpapi.Authed, data any, count int, scope, next string) (httpapi.Reply, error) {
	r, err := reply(c, data, nil)
	if err != nil {
		return r, err
	}
	meta := httpapi.ListMeta{Count: count}
	if next != "" {
		cursor := s.cursors.Seal(scope, next)
		meta.HasMore, meta.NextCursor = true, &cursor
	}
	r.Meta, err = json.Marshal(meta)
	return r, err
}

// Limits of lists, in entries and in bytes.
const (
	defaultLimit = 50
	maxLimit     = 500
	maxListBytes = 2 << 20
)

// limitOf returns the query parameter limit: a whole number from 1, of which maxLimit is
// served at most.
func limitOf(c *httpapi.Authed, otherwise int) (int, error) {
	text := c.Request.URL.Query().Get("limit")
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault.Fields("limit: expected a whole number from 1", map[string]string{"limit": "expected a whole number from 1"})
	}
	return min(n, maxLimit), nil
}

func (s *Service) kinds(_ context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	list := []ConfigKind{}
	for _, d := range config.Describe() {
		list = append(list, ConfigKind{d.Kind, d.Section, d.ID, config.Changing(d.Kind), config.Reading(d.Kind), d.Members})
	}
	return s.replyList(c, list, len(list), "", "")
}

// unnamed is what stands in a path for the name of an object of a kind that has one only.
const unnamed = "-"

func (s *Service) object(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	kind, name := c.Params.Get("kind"), c.Params.Get("name")
	if err := config.MayRead(c.Viewer, kind); err != nil {
		return httpapi.Reply{}, err
	}
	if name == unnamed && (kind == "tenant" || kind == "user_fields") {
		name = ""
	}
	o, err := s.store.object(ctx, c.Config.Tenant.ID, kind, name)
	return reply(c, shown(o), err)
}

func shown(o config.Object) ConfigObject {
	shown := ConfigObject{Kind: o.Kind, Name: o.Name, Version: o.Version}
	if o.Value != nil {
		shown.Value = o.Value.AsJSON()
	}
	return shown
}

// objects lists the objects of a kind by name; users newest first, as users does.
func (s *Service) objects(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	kind := c.Params.Get("kind")
	if err := config.MayRead(c.Viewer, kind); err != nil {
		return httpapi.Reply{}, err
	}
	if kind == "user" {
		return s.userObjects(ctx, c)
	}
	limit, err := limitOf(c, maxLimit)
	if err != nil {
		return httpapi.Reply{}, err
	}
	scope := c.ListScope()
	after, err := s.cursors.Open(scope, c.Request.URL.Query().Get("cursor"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	all, err := s.store.objects(ctx, c.Config.Tenant.ID, kind)
	if err != nil {
		return httpapi.Reply{}, err
	}
	slices.SortFunc(all, func(a, b config.Object) int { return cmp.Compare(a.Name, b.Name) })
	search := strings.ToLower(c.Request.URL.Query().Get("search"))
	list, size, next := []ConfigObject{}, 0, ""
	for _, o := range all {
		if after != "" && o.Name <= after[1:] || o.Value == nil || !strings.Contains(strings.ToLower(o.Name), search) {
			continue
		}
		one := shown(o)
		if size += len(one.Value); len(list) == limit || len(list) > 0 && size > maxListBytes {
			next = "=" + list[len(list)-1].Name // a name may be empty, a position not
			break
		}
		list = append(list, one)
	}
	return s.replyList(c, list, len(list), scope, next)
}

// maxExportUsers bounds the users of a manifest that is shown: they are all in memory.
const maxExportUsers = 20_000

func (s *Service) manifest(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := full(c.Viewer); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.turn(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	value, version, err := s.store.export(ctx, c.Config.Tenant.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	text, err := s.manifests.Render(value)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := c.Hold(3 * len(text)); err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, ManifestText{Text: string(text), Version: version}, nil)
}

// maxCounted bounds the records of an entity type that are counted.
const maxCounted = 10_000

func (s *Service) entities(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	list := []EntityLine{}
	rules := map[string]int{}
	if config.MayRead(c.Viewer, "sharing_rule") == nil {
		for _, r := range c.Config.Rules {
			rules[r.Entity]++
		}
	}
	for _, e := range c.Config.Schema.Entities {
		line := EntityLine{Name: e.Name, Label: e.Label, Sharing: string(e.Sharing), Fields: len(e.Fields), Rules: rules[e.Name]}
		line.Indexed = len(slices.DeleteFunc(slices.Clone(e.Fields), func(f *schema.Field) bool { return !f.Indexed && !f.Unique }))
		if c.Viewer.ReachesAll(e, access.Read) {
			n, err := s.store.count(ctx, c.Config.Tenant.ID, e, maxCounted)
			if err != nil {
				return httpapi.Reply{}, err
			}
			line.Records = &Bounded{Count: min(n, maxCounted), More: n > maxCounted}
		}
		list = append(list, line)
	}
	return s.replyList(c, list, len(list), "", "")
}
