package records

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// The bounds of explanations and counts. Each node explains and counts for one
// tenant at one thing at a time, so that nothing else of it, and nobody else, waits
// for long.
const (
	MaxCount     = 10_000          // things are counted so far
	maxLooked    = 20_000          // rows are looked at for one count
	maxAskTime   = 5 * time.Second // and this is how long one request may take
	maxAsking    = 64
	maxAskingOne = 8
)

// asking returns the gate that admits explanations and counts.
func newAsking() *admission.Gate {
	return admission.NewGate(admission.Limits{Running: 2, PerKey: 1, Waiting: maxAsking, WaitingPerKey: maxAskingOne, MaxWait: maxAskTime})
}

// newCounting returns the gate that admits counts of lists, which take some
// milliseconds each.
func newCounting() *admission.Gate {
	return admission.NewGate(admission.Limits{Running: 4, PerKey: 2, Waiting: 4 * maxAsking, WaitingPerKey: maxAsking, MaxWait: maxAskTime})
}

// question admits an explanation or a count of what a change opens, bounds its
// time and gives it a core: asking is the session that it must ask with. leave must be called
// at the end. It returns OVERLOADED when too many are asked.
func (s *Session) question(ctx context.Context) (bounded context.Context, asking *Session, leave func(), err error) {
	return s.admit(ctx, s.store.asking)
}

// admit is question at a gate.
func (s *Session) admit(ctx context.Context, at *admission.Gate) (bounded context.Context, asking *Session, leave func(), err error) {
	exit, err := at.Enter(ctx, string(s.viewer.Tenant()))
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "too many explanations and counts are asked for").After(time.Second)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, maxAskTime)
	work, err := s.store.cores.Start(bounded, string(s.viewer.Tenant()))
	if err != nil {
		cancel()
		exit()
		return nil, nil, nil, tooLong(ctx, err)
	}
	return bounded, s.working(work), func() { work.Stop(); cancel(); exit() }, nil
}

// tooLong returns OVERLOADED for an error that comes of the time that a question
// may take, and not of the request's end.
func tooLong(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fault.New(fault.Overloaded, "the answer takes too long right now").After(time.Second)
	}
	return err
}

// Explain explains what a viewer may do with a record, or with a user, that the
// session's own viewer may read, without what that one may not see, and what would
// open it for a verb. Who may ask about others is the caller's to decide. It
// returns NOT_FOUND and FORBIDDEN as Get does for the session's viewer, and
// OVERLOADED when too much is asked at once. It takes no locks.
func (s *Session) Explain(ctx context.Context, of access.Viewer, entity, id string, verb access.Verb) (*Explanation, error) {
	r, err := s.mayAsk(ctx, of, entity, id)
	if err != nil {
		return nil, err
	}
	bounded, s, leave, err := s.question(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	x := &Explanation{}
	if x.Why, err = s.explain(bounded, of, entity, id); err != nil {
		return nil, tooLong(ctx, err)
	}
	x.mask(s.viewer, r)
	if entity == schema.UserEntity {
		return x, nil
	}
	if err := s.work.Yield(); err != nil {
		return nil, tooLong(ctx, err)
	}
	f, err := s.factsOf(bounded, of, r, x.Why, id)
	if err != nil {
		return nil, tooLong(ctx, err)
	}
	x.Closed = f.closed(x.Why)
	if x.verbWhy(verb).Code != "" {
		err = s.openings(bounded, f, x, id, verb)
	}
	return x, tooLong(ctx, err)
}

// mayAsk returns the rights of the session's viewer, who must be able to read the
// record.
func (s *Session) mayAsk(ctx context.Context, of access.Viewer, entity, id string) (*access.EntityRights, error) {
	if of.Tenant() != s.viewer.Tenant() {
		return nil, fault.New(fault.Forbidden, "the user belongs to another tenant")
	}
	r, err := s.rights(entity, id, access.Read)
	if err != nil || entity == schema.UserEntity {
		return r, err
	}
	switch seen, err := s.visible(ctx, s.h, entity, id); {
	case err != nil:
		return nil, err
	case !seen:
		return nil, errUnseen
	}
	return r, nil
}

// factsOf reads what the words about a record are made of.
func (s *Session) factsOf(ctx context.Context, of access.Viewer, r *access.EntityRights, why *Why, id string) (*facts, error) {
	f := &facts{of: of, asks: s.viewer, rights: r, owner: string(why.Owner)}
	switch u, err := user.ByID(ctx, s.h, why.Owner); {
	case err == nil:
		f.owner, f.ownerRole = u.Name, u.Role
	case !errors.Is(err, user.ErrUnknown):
		return nil, err
	}
	var probes []probe
	for _, rule := range f.rules() {
		if len(rule.Where) > 0 && !rule.MatchesViewer() && len(probes) < maxConditions {
			probes = append(probes, probe{access.Source{Cause: access.RuleByValue, Kind: access.ByRule, Name: rule.StoredAs(), Rule: rule}, access.Read})
		}
	}
	if len(probes) == 0 {
		return f, nil
	}
	matching := &Why{}
	if err := s.ask(ctx, matching, r.Entity, id, probes); err != nil {
		return nil, err
	}
	for _, way := range matching.Ways {
		for _, reason := range way.Reasons {
			f.matching = append(f.matching, reason.Rule)
		}
	}
	return f, nil
}

// openings adds what would open the record for a verb.
func (s *Session) openings(ctx context.Context, f *facts, x *Explanation, id string, verb access.Verb) error {
	at, e := x.verbWhy(verb), f.rights.Entity
	one := Count{N: 1}
	if len(at.Sets) == 0 {
		for _, set := range allowing(f.of.Config(), e, verb, f.of.External()) {
			x.Openings = append(x.Openings, Opening{
				Kind: OpenBySet, Set: set, Text: "Give the user the permission set " + set + ", which allows " + verb.String() + " on " + e.Name, Reach: Reach{Users: one},
			})
		}
	}
	if at.Reached || e.ControlledBy != "" { // only what opens the parent opens it
		return nil
	}
	level := access.ReadOnly
	if verb == access.Update {
		level = access.Edit
	}
	if verb != access.Delete { // which no share and no rule gives
		shares, err := inScope(ctx, s.h, f.rights.Scope(access.Delete), e, id)
		if err != nil {
			return err
		}
		x.Openings = append(x.Openings, Opening{
			Kind: OpenByShare, Access: level, Text: "Share this " + e.Name + " with the user (" + string(level) + ")", May: shares, Reach: Reach{one, one},
		})
	}
	if f.ownerRole == "" {
		return nil
	}
	if role := f.of.Role(); role != "" && role != f.ownerRole && verb != access.Delete {
		reach, err := s.reach(ctx, f.rights, &access.SharingRule{Entity: e.Name, OwnedByRole: f.ownerRole, ShareWithRole: role, Access: level})
		if err != nil {
			return err
		}
		x.Openings = append(x.Openings, Opening{
			Kind: OpenByRule, OwnedByRole: f.ownerRole, Role: role, Access: level, Reach: reach,
			Text: "A rule: records of " + e.Name + " owned by " + f.ownerRole + " → " + role + " (" + string(level) + ")",
		})
	}
	if parent := parentOf(f.of.Config().Roles, f.ownerRole); parent != "" && parent != f.of.Role() {
		records, err := s.owned(ctx, f.rights, f.of.Config().Roles.Below(parent))
		if err != nil {
			return err
		}
		x.Openings = append(x.Openings, Opening{
			Kind: OpenByRole, Role: parent, Reach: Reach{records, one},
			Text: "Give the user the role " + parent + ", which stands above " + f.ownerRole,
		})
	}
	return nil
}

func parentOf(roles *access.Roles, name string) string {
	for _, role := range roles.List {
		if role.Name == name {
			return role.Parent
		}
	}
	return ""
}

// Reach counts what a sharing rule opens, or would open: the records of the entity
// type that it matches and that the session's viewer may read, and the active users
// whom it reaches. Counts go up to MaxCount. It returns NOT_FOUND and FORBIDDEN as
// List does, VALIDATION for a rule about a role, a field or a value that does not
// exist for the viewer, and OVERLOADED when too much is asked at once.
func (s *Session) Reach(ctx context.Context, rule *access.SharingRule) (Reach, error) {
	r, err := s.on(rule.Entity, access.Read)
	if err != nil {
		return Reach{}, err
	}
	if err := s.checkRule(r, rule); err != nil {
		return Reach{}, err
	}
	bounded, s, leave, err := s.question(ctx)
	if err != nil {
		return Reach{}, err
	}
	defer leave()
	reach, err := s.reach(bounded, r, rule)
	return reach, tooLong(ctx, err)
}

// checkViewed adds to bad what is wrong with a condition about the viewer.
func (s *Session) checkViewed(c access.Condition, f *schema.Field, bad map[string]string) map[string]string {
	at := "where[" + c.Field + "]"
	if c.Viewer == "" || !readableOfUsers(s.viewer, c) {
		bad[at] = access.ViewerExpected
	} else if err := c.Comparable(s.viewer.Config().Schema, f); err != nil {
		bad[at] = err.Error()
	}
	return bad
}

// checkRule checks a rule that a caller wrote, and brings its values into their
// canonical form.
func (s *Session) checkRule(r *access.EntityRights, rule *access.SharingRule) error {
	bad := map[string]string{}
	roles := s.viewer.Config().Roles
	if f := r.Entity.Controller(); f != nil {
		bad["entity"] = "records of " + r.Entity.Name + " are shared by their " + f.Target + " alone"
	}
	switch {
	case (rule.ShareWithRole == "") == (rule.ShareWith == ""):
		bad["share_with_role"] = "expected share_with_role or share_with, and not both"
	case rule.ShareWith != "" && !slices.Contains(access.Audiences, rule.ShareWith):
		bad["share_with"] = "expected internal, external or everyone"
	case rule.ShareWith == "" && !roles.Has(rule.ShareWithRole):
		bad["share_with_role"] = "there is no such role"
	}
	if (rule.OwnedByRole == "") == (len(rule.Where) == 0) {
		bad["owned_by_role"] = "expected owned_by_role or where[field], and not both"
	} else if rule.OwnedByRole != "" && !roles.Has(rule.OwnedByRole) {
		bad["owned_by_role"] = "there is no such role"
	}
	for i, c := range rule.Where {
		f := r.Entity.Comparand(c.Field)
		if !readableOf(r, f) {
			bad["where["+c.Field+"]"] = "unknown field"
			continue
		}
		if viewer, is := access.ViewerForm(string(c.Value)); is {
			rule.Where[i] = access.Condition{Field: c.Field, Viewer: viewer}
			bad = s.checkViewed(rule.Where[i], f, bad)
			continue
		}
		v, reason := f.ParseText(string(c.Value))
		if c.Field == schema.IDField {
			reason = access.IDExpected
		}
		if reason != "" {
			bad["where["+c.Field+"]"] = reason
		}
		rule.Where[i].Value = v
	}
	if len(bad) > 0 {
		return fault.Fields("some parameters are not valid", bad)
	}
	return nil
}

func (s *Session) reach(ctx context.Context, r *access.EntityRights, rule *access.SharingRule) (reach Reach, err error) {
	if rule.OwnedByRole != "" {
		reach.Records, err = s.owned(ctx, r, []string{rule.OwnedByRole})
	} else {
		reach.Records, err = s.matched(ctx, r, rule)
	}
	if err != nil {
		return reach, err
	}
	if rule.ShareWith != "" {
		reach.Users, err = s.audience(ctx, rule.ShareWith)
		return reach, err
	}
	reach.Users, err = s.holders(ctx, rule.ShareWithRole)
	return reach, err
}

// owned counts the records whose owner has one of some roles and that the viewer
// may read.
func (s *Session) owned(ctx context.Context, r *access.EntityRights, roles []string) (all Count, err error) {
	for _, role := range roles {
		if err := s.work.Yield(); err != nil {
			return all, err
		}
		st := newStatement(`SELECT CASE WHEN `, r.Entity.StoredAs())
		st.reached(r.Scope(access.Read))
		st.WriteString(` THEN 1 ELSE 0 END AS seen FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.owner_role = `)
		st.arg(role)
		st.WriteString(" ORDER BY r.created_at DESC")
		n, err := s.count(ctx, st)
		if err != nil {
			return all, err
		}
		all = Count{min(all.N+n.N, MaxCount), all.More || n.More || all.N+n.N > MaxCount}
		if all.N == MaxCount {
			return all, nil
		}
	}
	return all, nil
}

// count counts the seen rows of a statement, of which it looks at maxLooked.
func (s *Session) count(ctx context.Context, st *statement) (n Count, err error) {
	st.limit(maxLooked)
	text := `SELECT COALESCE(sum(l.seen), 0), count(*) FROM (` + st.String() + `) l`
	err = s.h.Query(ctx, text, func(row db.Row) error {
		seen, looked := int(row.Int(0)), row.Int(1)
		n = Count{min(seen, MaxCount), seen > MaxCount || looked == maxLooked}
		return nil
	}, st.args...)
	return n, err
}

// matched counts the records that a rule by field value matches and that the viewer
// may read, among the newest records of the entity type.
func (s *Session) matched(ctx context.Context, r *access.EntityRights, rule *access.SharingRule) (n Count, err error) {
	before := int64(everAfter)
	for looked := 0; looked < maxLooked; {
		w := window{before: before, limit: walkPage}
		st := newStatement(`SELECT `+rowColumns(s.h)+`, CASE WHEN `, r.Entity.StoredAs(), w.before, w.after)
		st.reached(r.Scope(access.Read))
		st.WriteString(" THEN 1 ELSE 0 END")
		s.candidates(st, nil)
		inOrder(st, nil, w)
		page := 0
		err := s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
			page++
			var rec row
			scanRow(dbRow, &rec)
			before = rec.createdAt
			if !dbRow.Bool(5) {
				return nil
			}
			if _, ok := matching(r.Entity, rule, rec.id, stored(r.Entity, rec.data)); ok {
				n.N++
			}
			return nil
		}, st.args...)
		if err != nil {
			return n, err
		}
		if looked += page; page < w.limit {
			return n, nil
		}
		if n.N >= MaxCount {
			break
		}
		if err := s.work.Yield(); err != nil {
			return n, err
		}
	}
	return Count{min(n.N, MaxCount), true}, nil
}

// holders counts the active users whom a role reaches: those who have it, and those
// who have an ancestor of it.
func (s *Session) holders(ctx context.Context, role string) (n Count, err error) {
	var names []string
	roles := s.viewer.Config().Roles
	for at := role; at != ""; at = parentOf(roles, at) {
		names = append(names, at)
	}
	all, err := user.CountWithRoles(ctx, s.h, names, MaxCount+1)
	return Count{min(all, MaxCount), all > MaxCount}, err
}

// audience counts the active users of an audience.
func (s *Session) audience(ctx context.Context, of access.Audience) (n Count, err error) {
	for _, kind := range []user.Type{user.Internal, user.External} {
		if of.Has(kind == user.External) {
			some, err := user.CountOfType(ctx, s.h, kind, MaxCount+1)
			if err != nil {
				return n, err
			}
			n.N += some
		}
	}
	return Count{min(n.N, MaxCount), n.N > MaxCount}, nil
}

func itoa(n int) string { return strconv.Itoa(n) }
