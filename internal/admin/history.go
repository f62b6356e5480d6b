package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// keptKinds are kinds of the change history that package config does not have, and the
// permissions one of which lets read them.
var keptKinds = map[string][]string{
	"api_key": {access.ManageUsers}, "webhook_token": {access.ManageEndpoints}, "jwt_key": {access.TenantSettings},
}

// historyKinds are the kinds of which a viewer may read the history; nil is all.
func historyKinds(w access.Viewer) []string {
	if w.TenantOwner() {
		return nil
	}
	kinds := []string{}
	for _, kind := range config.Kinds() {
		if config.MayRead(w, kind) == nil {
			kinds = append(kinds, kind)
		}
	}
	for kind, oneOf := range keptKinds {
		if slices.ContainsFunc(oneOf, w.May) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

// history lists what was changed, newest first, of the kinds that the viewer may read.
func (s *Service) history(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	limit, err := limitOf(c, defaultLimit)
	if err != nil {
		return httpapi.Reply{}, err
	}
	limit = min(limit, 200)
	q := c.Request.URL.Query()
	scope := c.ListScope()
	below, err := s.cursors.Open(scope, q.Get("cursor"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	kinds := historyKinds(c.Viewer)
	if kind := q.Get("kind"); kind != "" {
		if kinds != nil && !slices.Contains(kinds, kind) {
			return httpapi.Reply{}, fault.New(fault.Forbidden, "the history of %s needs a permission that you lack", kind)
		}
		kinds = []string{kind}
	}
	leave, err := s.search(ctx, c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	list, size, full := []HistoryEntry{}, 0, error(nil)
	filter := tenant.ChangeFilter{Kinds: kinds, Name: q.Get("name"), Actor: q.Get("who"), Limit: limit}
	next, err := s.store.changes(ctx, c.Config.Tenant.ID, filter, below, func(change tenant.Change) bool {
		size += sizeOf(change.Before) + sizeOf(change.After)
		if len(list) > 0 && size > maxListBytes {
			return false
		}
		if full = c.Hold(4 * size); full != nil {
			return false
		}
		list = append(list, entryOf(change))
		return true
	})
	if err := errors.Join(full, err); err != nil {
		return httpapi.Reply{}, err
	}
	return s.replyList(c, list, len(list), scope, next)
}

// sizeOf returns the size of a value of the history, which is JSON as it is stored.
func sizeOf(v any) int {
	raw, _ := v.(json.RawMessage)
	return len(raw)
}

func entryOf(change tenant.Change) HistoryEntry {
	actor, actedAs, _ := strings.Cut(change.Actor, " as ")
	as := config.Change{Action: change.Action, Kind: change.Kind, Name: change.Name, Before: change.Before, After: change.After}
	return HistoryEntry{
		ID: change.ID, At: clock.FromMicros(change.At), Actor: actor, ActedAs: actedAs, Action: change.Action, Kind: change.Kind, Name: change.Name,
		Before: change.Before, After: change.After, Differences: differences(as.Differences()),
	}
}
