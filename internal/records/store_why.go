package records

import (
	"context"
	"errors"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Why explains what a viewer may do with a record, or with a user. It returns
// FORBIDDEN unless the session's own viewer may do everything in the same
// tenant, and NOT_FOUND when there is no such entity type, or no such record.
// It takes no locks: the explanation is consistent only if nothing changes
// meanwhile.
func (s *Session) Why(ctx context.Context, of access.Viewer, entity, id string) (*Why, error) {
	if !s.viewer.AllEntityAccess() || of.Tenant() != s.viewer.Tenant() {
		return nil, fault.New(fault.Forbidden, "only the tenant owner or a user with all_entity_access may ask this")
	}
	return s.explain(ctx, of, entity, id)
}

// explain is Why for a viewer who may ask.
func (s *Session) explain(ctx context.Context, of access.Viewer, entity, id string) (*Why, error) {
	if entity == schema.UserEntity {
		return s.whyUser(ctx, of, id)
	}
	r, err := of.On(entity)
	if err != nil {
		return nil, err
	}
	why, grants := &Why{role: of.Role()}, of.Grants(r.Entity)
	for _, cause := range access.Causes {
		why.way(cause)
	}
	if err := s.sourcesOf(ctx, why, of, r.Entity, id); err != nil {
		return nil, err
	}
	seen := false
	for _, v := range verbsOfRecords {
		reached, err := inScope(ctx, s.h, r.Scope(v), r.Entity, id)
		if err != nil {
			return nil, err
		}
		at := VerbWhy{Verb: v, Reached: reached, Sets: setsAllowing(grants, func(g *access.EntityRights) bool { return g.May(v) })}
		seen = seen || v == access.Read && reached
		switch { // the same answers as Session.on and findFor
		case !r.May(v):
			at.Code = fault.Forbidden
		case !seen:
			at.Code = fault.NotFound
		case !reached:
			at.Code = fault.Forbidden
		}
		why.Verbs = append(why.Verbs, at)
	}
	why.fields(r.Entity, grants)
	return why, nil
}

// probe asks whether a source opens the record for a verb.
type probe struct {
	src  access.Source
	verb access.Verb
}

// maxConditions bounds the conditions of one statement.
const maxConditions = 400

// sourcesOf adds to why the sources that open a record. It returns NOT_FOUND when
// there is no such record.
func (s *Session) sourcesOf(ctx context.Context, why *Why, of access.Viewer, e *schema.Entity, id string) error {
	var probes []probe
	for _, v := range verbsOfRecords {
		all, some := of.Sources(e, v)
		for i := range all {
			why.add(&all[i], v, whole(e))
		}
		for _, src := range some {
			probes = append(probes, probe{src, v})
		}
	}
	if len(probes) == 0 { // only to find out whether there is such a record
		probes = []probe{{access.Source{Kind: access.ByOwner}, access.Create}}
	}
	for part := range slices.Chunk(probes, maxConditions) {
		if err := s.ask(ctx, why, e, id, part); err != nil {
			return err
		}
	}
	if err := s.askParent(ctx, why, of, e, id); err != nil {
		return err
	}
	why.finish()
	return nil
}

// askParent explains the parent of a record that it opens.
func (s *Session) askParent(ctx context.Context, why *Why, of access.Viewer, e *schema.Entity, id string) error {
	f := e.Controller()
	if f == nil {
		return nil
	}
	var parent *ParentWhy
	for _, r := range why.way(access.ControlledByParent).Reasons {
		if parent == nil {
			rec, err := findRow(ctx, s.h, e, id, "")
			if err != nil {
				return err
			}
			parent = &ParentWhy{Entity: f.Target, ID: parentID(e, rec.data)}
			if parent.Why, err = s.explain(ctx, of, parent.Entity, parent.ID); err != nil {
				return err
			}
		}
		r.Parent = parent
	}
	return nil
}

// ask runs some probes on the record, in one statement. Each is the condition
// that its way has in the visibility predicate.
func (s *Session) ask(ctx context.Context, why *Why, e *schema.Entity, id string, probes []probe) error {
	st := newStatement("SELECT r.owner_id", e.StoredAs(), id)
	for _, p := range probes {
		w := p.src.Way()
		st.WriteString(", CASE WHEN ")
		ways[w.Kind].condition(st, &w)
		st.WriteString(" THEN 1 ELSE 0 END")
	}
	st.WriteString(" FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id = $3")
	found := false
	err := s.h.Query(ctx, st.String(), func(row db.Row) error {
		found = true
		why.Owner = user.ID(row.Text(0))
		for i := range probes {
			if row.Bool(1 + i) {
				why.add(&probes[i].src, probes[i].verb, ways[probes[i].src.Kind].why)
			}
		}
		return nil
	}, st.args...)
	if err == nil && !found {
		err = errUnseen
	}
	return err
}

// whyUser explains what a viewer may do with a user. Users are not shared.
func (s *Session) whyUser(ctx context.Context, of access.Viewer, id string) (*Why, error) {
	if _, err := user.ByID(ctx, s.h, user.ID(id)); errors.Is(err, user.ErrUnknown) {
		return nil, fault.New(fault.NotFound, "there is no such user")
	} else if err != nil {
		return nil, err
	}
	r, err := of.OnUsers()
	if err != nil {
		return nil, err
	}
	why, grants, asks := &Why{role: of.Role()}, of.Grants(r.Entity), &Session{viewer: of}
	cause, text := ReachInternal, "internal users reach every user"
	if of.External() {
		cause, text = ReachSelf, "it is the user's own row"
	}
	why.way(cause)
	for _, v := range verbsOfRecords {
		_, refused := asks.rightsOnUsers(id, v)
		at := VerbWhy{Verb: v, Code: fault.CodeOf(refused), Sets: []string{}}
		if v != access.Delete { // users cannot be deleted through records
			at.Sets = setsAllowing(grants, func(g *access.EntityRights) bool { return g.May(v) })
			at.Reached = asks.reachesUser(user.ID(id))
		}
		if at.Reached {
			why.add(&access.Source{Cause: cause}, v, func(*Why, *Reason) string { return text })
		}
		why.Verbs = append(why.Verbs, at)
	}
	why.finish()
	why.fields(r.Entity, grants)
	return why, nil
}
