package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// effect counts what a dry run found, after its transaction. It reads every user
// when the change may narrow the rights of users that it does not name.
func (a *application) effect(ctx context.Context, h db.Handle, fields []GoneField) (*Effect, error) {
	e := &Effect{Reindexed: slices.Concat([]records.Visit{}, a.visits), Fields: slices.Concat([]GoneField{}, fields), Endpoints: a.stopping}
	if len(a.changes) == 0 {
		return e, nil
	}
	off := map[user.ID]bool{} // the ids of those who are deactivated
	n := &narrowing{before: a.configBefore, after: a.configAfter, known: map[string]bool{}}
	judge := func(was, is *user.User) {
		switch {
		case !was.Active:
		case !is.Active:
			off[was.ID] = true
			e.Losing.add(was.Email)
		case n.loses(was, is):
			e.Losing.add(was.Email)
		}
	}
	for _, key := range sortedKeys(a.before.users) {
		judge(a.before.users[key], a.after.users[key])
	}
	if a.narrows() {
		sets, err := user.Assignments(ctx, h)
		if err != nil {
			return nil, err
		}
		err = user.Each(ctx, h, func(u *user.User) error {
			if a.before.users[u.Key] == nil {
				u.Sets = sets[u.ID]
				judge(u, u)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(off) == 0 || a.opts.Keys == nil {
		return e, nil
	}
	keys, err := a.opts.Keys(ctx, h, off)
	for _, name := range keys {
		e.Keys.add(name)
	}
	return e, err
}

// narrows reports whether the change concerns an object that gives rights to users
// that the change does not name.
func (a *application) narrows() bool {
	return a.configBefore != nil && slices.ContainsFunc(a.changes, func(c change) bool {
		return c.before != nil && slices.Contains([]string{kindEntity, kindUserFields, kindRole, kindSet, kindRule}, c.kind)
	})
}

// narrowing tells who loses rights between two configurations. Users who have
// the same role and permission sets are judged once.
type narrowing struct {
	before, after *access.Config
	known         map[string]bool
}

func (n *narrowing) loses(was, is *user.User) bool {
	if n.before == nil { // there was no tenant
		return false
	}
	b, a := n.rightsOf(was), n.rightsOf(is)
	key := fmt.Sprintf("%+v %+v", b, a)
	loses, known := n.known[key]
	if !known {
		loses = access.Loses(n.before, b, n.after, a)
		n.known[key] = loses
	}
	return loses
}

// rightsOf is a user as far as rights depend on it. Who the user is, and their
// address, are the same before and after, and so are any.
func (n *narrowing) rightsOf(u *user.User) access.Identity {
	id := access.IdentityOf(u)
	id.UserID, id.Email, id.EmailKey = "u", "", "u"
	if !slices.ContainsFunc(n.before.Rules, (*access.SharingRule).MatchesViewer) {
		id.Custom = nil
	}
	return id
}

// visits counts the records that a transition looks at.
func (w *writer) visits(t *records.Transition) ([]records.Visit, error) {
	list, err := t.Visits(w.ctx, w.tx, maxCounted)
	slices.SortFunc(list, func(a, b records.Visit) int { return strings.Compare(a.Entity, b.Entity) })
	return slices.DeleteFunc(list, func(v records.Visit) bool { return v.Records == 0 }), err
}
