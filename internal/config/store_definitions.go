package config

import (
	"context"
	"errors"
	"maps"

	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/user"
)

// define takes stored definitions into the state. key gives the e-mail key of a
// user's id.
func (s *state) define(defs *custom.Definitions, key func(id string) (string, error)) (err error) {
	to := func(id *string) {
		if *id != "" && err == nil {
			*id, err = key(*id)
		}
	}
	maps.Copy(s.modules, defs.Modules)
	for name, c := range defs.Components {
		to(&c.Context.UserID)
		s.components[name] = c
	}
	for name, a := range defs.Automations {
		to(&a.Context.UserID)
		s.automations[name] = a
	}
	for slug, e := range defs.Endpoints {
		to(&e.RunAs)
		to(&e.DefinedBy)
		s.endpoints[slug] = e
	}
	return err
}

// loadDefinitions completes a state. Of users that it does not have, only the addresses
// that definitions name are read.
func (s *state) loadDefinitions(ctx context.Context, q db.Querier) error {
	defs, err := custom.Load(ctx, q)
	if err != nil {
		return err
	}
	keys := make(map[string]string, len(s.users))
	for key, u := range s.users {
		keys[string(u.ID)] = key
	}
	return s.define(defs, func(id string) (string, error) {
		if key, ok := keys[id]; ok {
			return key, nil
		}
		u, err := user.ByID(ctx, q, user.ID(id)) // one that was not loaded, or is nobody
		switch {
		case errors.Is(err, user.ErrUnknown):
			keys[id] = id
		case err != nil:
			return "", err
		default:
			keys[id] = u.Key
			s.people[u.Key] = u.Email
		}
		return keys[id], nil
	})
}

// loadDefinitions adds to the stored state the users that its definitions name.
func (w *writer) loadDefinitions() error {
	p := w.p
	p.people, w.keys = map[string]*user.User{}, map[string]string{}
	defs, err := custom.Load(w.ctx, w.tx)
	if err != nil {
		return err
	}
	if err := p.before.define(defs, w.keyOf); err != nil {
		return err
	}
	var keys []string
	for _, c := range p.m.components {
		keys = append(keys, c.Context.UserID)
	}
	for _, a := range p.m.automations {
		keys = append(keys, a.Context.UserID)
	}
	for _, e := range p.m.endpoints {
		keys = append(keys, e.RunAs)
	}
	for _, key := range keys {
		if key == "" || p.people[key] != nil {
			continue
		}
		u, err := user.ByEmail(w.ctx, w.tx, key)
		switch {
		case err == nil:
			p.people[key] = u
		case !errors.Is(err, user.ErrUnknown):
			return err
		}
	}
	return nil
}

// keyOf is the e-mail key of a stored user; an id of nobody is left as it is.
func (w *writer) keyOf(id string) (string, error) {
	if key, known := w.keys[id]; known {
		return key, nil
	}
	u, err := user.ByID(w.ctx, w.tx, user.ID(id))
	switch {
	case errors.Is(err, user.ErrUnknown):
		w.keys[id] = id
	case err != nil:
		return "", err
	default:
		w.keys[id] = u.Key
		w.p.people[w.keys[id]] = u
	}
	return w.keys[id], nil
}

// idOf undoes keyOf, once the users are written.
func (w *writer) idOf(key string) string {
	if u := w.p.person(key); u != nil {
		return string(u.ID)
	}
	return key
}

// defineEndpoints says who defined each endpoint: as before while that is an
// active user, or else the tenant's owner.
func (w *writer) defineEndpoints() error {
	p := w.p
	owner, searched := "", false
	for _, slug := range sortedKeys(p.after.endpoints) {
		e, named := p.after.endpoints[slug], p.m.names("custom_endpoints", slug)
		if named && p.defines(slug) {
			copied := *e
			copied.DefinedBy = p.author.key
			p.after.endpoints[slug] = &copied
			continue
		}
		homeless := p.after.homeless(e)
		switch definer := p.person(e.DefinedBy); {
		case !homeless && p.before.endpoints[slug] != nil,
			homeless && definer != nil && definer.Active,
			homeless && !named && p.before.homeless(e): // it is as it was
			continue
		}
		if !searched {
			var err error
			if owner, err = w.oldestOwner(); err != nil {
				return err
			}
			searched = true
		}
		if owner == "" && homeless {
			p.add(p.m.place("custom_endpoints", slug), "custom endpoint %s: nobody to run it as: add run_as: EMAIL to it, or an active user with owner: true", slug)
			continue
		}
		copied := *e
		copied.DefinedBy = owner
		p.after.endpoints[slug] = &copied
	}
	return nil
}

// defines reports whether the author defines an endpoint with the change: a user whose
// endpoint is new, or takes the place of one that ran as its caller, or whose definer
// is not active any more (contract X2).
func (p *plan) defines(slug string) bool {
	was, is := p.before.endpoints[slug], p.after.endpoints[slug]
	if p.author.key == "" {
		return false
	}
	if was == nil {
		return true
	}
	definer := p.person(was.DefinedBy)
	return p.after.homeless(is) && (!p.before.homeless(was) && p.before.actor(was) == "" || definer == nil || !definer.Active)
}

// oldestOwner returns the e-mail key of the active owner that the tenant has had
// longest, as of after the plan; "" when there is none.
func (w *writer) oldestOwner() (key string, err error) {
	p := w.p
	if !w.fresh {
		err = user.Each(w.ctx, w.tx, func(u *user.User) error {
			at := u.Key
			if planned := p.after.users[at]; planned != nil {
				u = planned
			}
			if u.Owner && u.Active {
				key = at
				p.people[at] = u
				return errFound
			}
			return nil
		})
		if err != nil && !errors.Is(err, errFound) {
			return "", err
		}
	}
	for _, decl := range p.m.users {
		if u := p.after.users[decl.Key]; key == "" && u != nil && u.Owner && u.Active {
			key = decl.Key
		}
	}
	return key, nil
}
