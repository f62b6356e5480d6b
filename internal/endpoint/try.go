package endpoint

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// The bounds of what staff try (contract X9, W15). Tries take the tenant's places
// for runs like any other run; two at a time leave most of them to callers.
const (
	triesPerMinute     = 60  // runs of one user
	checksPerMinute    = 240 // checks of one user's drafts
	verifiersPerMinute = 20  // verifier tries of one user
	verifiersOfTenant  = 60  // verifier tries of all its staff
)

var tryLimits = admission.Limits{Running: 16, PerKey: 2, Waiting: 256, WaitingPerKey: 16, MaxWait: 5 * time.Second}

// tries bounds what staff try.
type tries struct {
	gate    *admission.Gate // by tenant
	limiter *ratelimit.Limiter
}

func newTries(clk clock.Clock) *tries {
	return &tries{gate: admission.NewGate(tryLimits), limiter: ratelimit.New(clk.Now, ratelimit.Options{})}
}

// take counts one try against a budget. It returns RATE_LIMITED when that is used
// up.
func (t *tries) take(budget string, perMinute int) error {
	r := t.limiter.Take(budget, perMinute, time.Minute)
	if r.Allowed {
		return nil
	}
	return fault.New(fault.RateLimited, "Too many tries: expected at most %d a minute.", perMinute).After(r.Reset)
}

// enter waits for one of the tenant's two places. It returns OVERLOADED when there
// is none in time, and ctx's error.
func (t *tries) enter(ctx context.Context, tenant string) (leave func(), err error) {
	leave, err = t.gate.Enter(ctx, tenant)
	if errors.Is(err, admission.ErrFull) {
		err = fault.New(fault.Overloaded, "Other tries of this tenant are still running. Try again soon.").After(time.Second)
	}
	return leave, err
}

// trial is a run that a user of the staff tries.
type trial struct {
	viewer access.Viewer // who tries
	as     access.Viewer // whom it runs as
	target custom.Target
	// draft is run in the place of what is stored; nil for what is stored.
	draft     []byte
	input     []byte
	event     *event // nil for none
	requestID string
	holder    records.Holder
}

// check returns the draft that a trial runs, or its problems. Its errors are those
// of drafter.read, and FORBIDDEN where the viewer may not try it.
func (s *Service) check(ctx context.Context, viewer access.Viewer, target custom.Target, text []byte) (*draft, []AdminProblem, error) {
	catalog, err := s.catalog(ctx, viewer.Config())
	if err != nil {
		return nil, nil, err
	}
	d := drafter{s: s, cfg: viewer.Config(), catalog: catalog}
	made, err := d.read(ctx, target, text)
	if err == nil && made != nil {
		err = mayRun(viewer, made.context())
	}
	return made, d.problems, err
}

// try runs a trial and keeps nothing: it commits no changes and does not record the
// run. Failures of the target are in the Outcome. It returns problems for a draft
// that could not be saved; NOT_FOUND when there is no such target; VALIDATION or
// EXECUTION_ERROR when the input is not what the target declares; FORBIDDEN when
// the target has an execution context that the viewer may not grant (contract A13).
func (s *Service) try(ctx context.Context, t trial) (*Outcome, []AdminProblem, error) {
	cfg := t.viewer.Config()
	leave, err := s.tries.enter(ctx, string(cfg.Tenant.ID))
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	j := &job{config: cfg, caller: t.as, target: t.target, event: t.event, requestID: t.requestID, holder: t.holder, dry: true, trier: &t.viewer}
	catalog, err := s.catalog(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	if t.draft != nil {
		made, problems, err := s.check(ctx, t.viewer, t.target, t.draft)
		if err != nil || len(problems) > 0 {
			return nil, problems, err
		}
		j.draft = made
		catalog = made.over(catalog)
	}
	decls, keep, err := catalog.declared(t.target)
	if err != nil {
		return nil, nil, err
	}
	if err := mayRun(t.viewer, catalog.context(t.target)); err != nil {
		return nil, nil, err
	}
	object, err := httpapi.ParseObject(t.input)
	if err != nil {
		return nil, nil, err
	}
	if j.inputs, err = inputs.FromJSON(decls, object.Members, keep); err != nil {
		return nil, nil, err
	}
	return s.execute(ctx, j), nil, nil
}

// context returns the execution context of a target that the catalog has.
func (c *catalog) context(t custom.Target) custom.Context {
	if t.Kind == custom.ToComponent {
		return c.Components[t.Name].Context
	}
	return c.flows[t.Name].Context
}

// runner returns the viewer that a user of the staff runs a trial as: themselves,
// or for the tenant's owner any active user, by id or e-mail address (contract
// A13). It returns FORBIDDEN, and NOT_FOUND when there is no such active user.
func (s *Service) runner(ctx context.Context, viewer access.Viewer, as string) (access.Viewer, error) {
	if as == "" || as == string(viewer.UserID()) || user.EmailKey(as) == user.EmailKey(viewer.Email()) {
		return viewer, nil
	}
	if !viewer.TenantOwner() {
		return access.Viewer{}, fault.New(fault.Forbidden, "only the tenant's owner may run as another user")
	}
	id := user.ID(as)
	if _, isID := clock.TimeOf(as); !isID {
		found, err := s.store.userByEmail(ctx, viewer.Config().Tenant.ID, as)
		if err != nil {
			return access.Viewer{}, err
		}
		id = found
	}
	unknown := fault.New(fault.NotFound, "there is no active user %q", as)
	if id == "" {
		return access.Viewer{}, unknown
	}
	other, err := s.dir.Viewer(ctx, viewer.Config(), id, false)
	if fault.CodeOf(err) == fault.Unauthorized {
		err = unknown
	}
	return other, err
}
