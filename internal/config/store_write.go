package config

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// writer carries a plan out inside its transaction.
type writer struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of application.run
	tx     tenant.ConfigTx
	p      *plan
	now    int64          // microseconds UTC
	config *access.Config // as it was before
	fresh  bool           // there is no such tenant yet
	after  *access.Config // as it is going to be
	inline int            // records that may be visited
	dryRun bool
	// visited is, in a dry run, what the records' part of the change looks at.
	visited []records.Visit
	roles   []records.RoleChange
	fields  []*schema.Field   // of users, as they are stored
	keys    map[string]string // e-mail keys of stored users by id, as far as they were asked for
}

// write stores the plan's changes, brings the records in line and records what
// was changed. A refusal becomes a problem with its line.
func (w *writer) write(log *tenant.History) error {
	if w.fresh {
		if err := w.claim(); err != nil {
			return err
		}
	}
	for _, k := range kinds {
		for _, c := range w.p.changes {
			if c.kind != k.name {
				continue
			}
			if err := k.write(w, c); err != nil {
				return err
			}
		}
	}
	var err error
	if w.after, err = access.Load(w.ctx, w.tx); err != nil {
		return err
	}
	t := &records.Transition{Before: w.config, After: w.after, Roles: w.roles, Inline: w.inline}
	if w.dryRun {
		if w.visited, err = w.visits(t); err != nil {
			return err
		}
	}
	if err := t.Run(w.ctx, w.tx); err != nil {
		return w.p.m.refusedRecords(err)
	}
	for _, c := range w.p.changes {
		after := c.after
		if c.kind == kindUser { // who is new has an id by now
			after = userKind.view(w.p.after, w.p.before, c.key)
		}
		log.Record(c.kind, c.name, c.before, after)
	}
	return nil
}

// claim makes the row of a new tenant, which whoever makes it at the same time
// waits for. Who finds a change history then came second: what they read before
// was not the tenant.
func (w *writer) claim() error {
	if err := w.putTenant(); err != nil {
		return err
	}
	history, err := tenant.Changes(w.ctx, w.tx, 1)
	if err == nil && len(history) > 0 {
		err = errRaced
	}
	return err
}

func (w *writer) putTenant() error {
	err := tenant.Put(w.ctx, w.tx, w.p.after.tenant, w.now)
	section := "hosts"
	if !w.p.m.has(section) {
		section = "admin_hosts"
	}
	return w.located(err, section)
}

// located turns a refusal into a problem at the place of an object.
func (w *writer) located(err error, path ...string) error { return w.p.m.located(err, path...) }

func (m *Spec) located(err error, path ...string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	return &Problems{List: []Problem{{Place: m.place(path...), Text: f.Message, Cause: err}}}
}

// refusedRecords is located for records that stand against a change.
func (m *Spec) refusedRecords(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Details["entity"] == nil {
		return err
	}
	entity, _ := f.Details["entity"].(string)
	field, _ := f.Details["field"].(string)
	return m.located(err, "entities", entity, "field", field)
}

// passwords keeps what was found out about the manifest's passwords: hashing
// takes long, and the transaction holds up others.
type passwords struct {
	verified map[[2]string]bool // by stored hash and password
	hashes   map[chosen]string  // new ones, by user and password: each has a salt of its own
}

func newPasswords() *passwords {
	return &passwords{verified: map[[2]string]bool{}, hashes: map[chosen]string{}}
}

// prepare does ahead of the transaction what hash is going to be asked.
func (s *passwords) prepare(ctx context.Context, q db.Querier, m *Spec) error {
	for _, decl := range m.users {
		if decl.password == "" {
			continue
		}
		prev, err := user.ByEmail(ctx, q, decl.Email)
		if errors.Is(err, user.ErrUnknown) {
			prev, err = &user.User{}, nil
		}
		if err != nil {
			return err
		}
		s.hash(chosen{decl.Key, decl.password}, prev.PasswordHash)
	}
	return nil
}

// chosen is the password that a configuration gives to the user with an e-mail key.
type chosen struct{ userKey, password string }

// hashing returns what is stored of a password instead of the hash stored now.
type hashing func(c chosen, stored string) string

// hash returns the stored hash if it is the password's, else a new one.
func (s *passwords) hash(c chosen, stored string) string {
	if stored != "" {
		key := [2]string{stored, c.password}
		same, known := s.verified[key]
		if !known {
			same = secret.VerifyPassword(stored, c.password)
			s.verified[key] = same
		}
		if same {
			return stored
		}
	}
	if s.hashes[c] == "" {
		fresh, err := secret.HashPassword(c.password)
		if err != nil {
			panic("config: a checked password cannot be hashed: " + err.Error())
		}
		s.hashes[c] = fresh
	}
	return s.hashes[c]
}
