package config

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Options are the options of Apply, Check and NewPlan.
type Options struct {
	// DryRun makes Apply do everything and keep nothing.
	DryRun bool
	// Prune removes the objects that a section of the manifest does not name.
	Prune bool
	// Compile compiles a source, or parses the module of that name where module is not
	// "", and returns the modules that it imports, as component.Engine.Check. It returns a
	// *component.SourceError for a mistake of the author. It is called outside of the
	// transaction, for what differs from what is stored; without such sources it may be
	// nil.
	Compile func(ctx context.Context, tenant tenant.ID, module string, source component.Source) (imports []string, err error)
	// Keyring seals the secrets of webhooks and components; where there are none it may
	// be nil.
	Keyring *secret.Keyring
	// Keys names the valid API keys that act for any of the users, by id, for the
	// effect of a dry run; nil names none.
	Keys func(ctx context.Context, q db.Querier, users map[user.ID]bool) ([]string, error)
	// Inline is how many records the transaction that makes the change may visit; 0
	// is 1,000. A change that visits more is prepared in short steps first, at the
	// given Pace. A negative value, for tests, is none.
	Inline int
	// Expected are the changes that the author was shown; Apply makes these or returns
	// CONFLICT, as for an edit of an older version. nil expects nothing.
	Expected []Expected
	// Pace controls the preparation and receives its progress.
	Pace records.Pace
}

// inline is the default of Options.Inline; so many take about a tenth of a second.
const inline = 1000

// Result is what Apply did or, with DryRun, would have done.
type Result struct {
	Tenant  tenant.ID
	Changes []Change // none when the tenant was so already
	// Gone lists what objects that the Spec names lose because it leaves it out:
	// fields, with how many records hold a value, and what users have.
	Gone []string
	// Effect is what the change does beyond its objects; nil except in a dry run.
	Effect *Effect
	// Warnings are sentences for the author of a Spec that was applied.
	Warnings []string
}

// errDryRun and errRaced roll the transaction back: errDryRun is success, errRaced is retried.
var (
	errDryRun = errors.New("dry run")
	errRaced  = errors.New("the tenant was made by somebody else meanwhile")
)

// Apply makes the configuration of h's tenant equal to m, all or nothing, recorded
// for its author. Applying the same Spec twice changes nothing the second time.
//
// Apply returns *Problems when m is wrong, alone or against what is stored; an error
// of another package (CONFLICT for a host that is taken or data that would break) is
// the Cause of a Problem. For edits it returns NOT_FOUND when one removes or activates
// an object that does not exist, or the tenant does not exist, and CONFLICT when one
// was made against another version: the details are kind, name, version, stored and
// asked, the last two as JSON. It also returns CONFLICT when the tenant changes too
// often to be planned, or is being deleted.
func Apply(ctx context.Context, h db.Handle, clk clock.Clock, by Author, m *Spec, opts Options) (*Result, error) {
	a, err := start(ctx, h, clk, by, m, opts)
	if err != nil {
		return nil, err
	}
	if err := a.apply(ctx, h); err != nil {
		return nil, err
	}
	return a.result(ctx, h)
}

// start does the work that precedes the transaction.
func start(ctx context.Context, h db.Handle, clk clock.Clock, by Author, m *Spec, opts Options) (*application, error) {
	problems := m.problems
	if err := by.early(m); err != nil {
		return nil, err
	}
	if m.tenant == "" {
		return nil, problems.err()
	}
	if opts.Keyring == nil && m.hasSecrets() {
		return nil, errors.New("config: Options.Keyring is needed to seal the secrets of tenant " + string(m.tenant))
	}
	a := &application{m: m, by: by, problems: problems, clk: clk, opts: opts, passwords: newPasswords(), probed: map[fieldAt]bool{}, built: map[custom.Digest]built{}}
	if len(problems.List) == 0 {
		if err := a.passwords.prepare(ctx, h, m); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// result returns what was done, with the counts that are made after the transaction.
func (a *application) result(ctx context.Context, h db.Handle) (*Result, error) {
	m := a.m
	r := &Result{Tenant: m.tenant, Gone: a.goneOfUsers, Warnings: append(m.shortSecrets(), a.warnings...)}
	var fields []GoneField
	for _, f := range a.goneFields {
		gone, err := f.counted(ctx, h)
		if err != nil {
			return nil, err
		}
		fields = append(fields, gone)
		if !a.tellsField(gone.Entity) {
			gone.Hidden = true
		}
		r.Gone = append(r.Gone, gone.String())
	}
	if err := a.warnOfOld(ctx, h, r); err != nil {
		return nil, err
	}
	if a.opts.DryRun {
		var err error
		if r.Effect, err = a.effect(ctx, h, fields); err != nil {
			return nil, err
		}
		a.tell(r.Effect)
	}
	for _, c := range a.changes {
		r.Changes = append(r.Changes, c.public())
	}
	owned, err := owned(ctx, h, a.after)
	if err != nil {
		return nil, err
	}
	if !owned {
		r.Warnings = append(r.Warnings, "tenant "+string(m.tenant)+" has no active owner: nobody may do everything there")
	}
	if !a.opts.DryRun {
		if err := records.Sweep(ctx, h); err != nil {
			r.Warnings = append(r.Warnings, "what the tenant does not use any more was not removed yet, a server will: "+err.Error())
		}
	}
	return r, nil
}

// application is one call of Apply, Check, NewPlan or Write. run may be called more
// than once; its results are those of the last call.
type application struct {
	m         *Spec
	by        Author
	problems  *Problems // of the Spec alone
	clk       clock.Clock
	opts      Options
	passwords *passwords

	planned   *Plan // that is written; nil for none
	checkOnly bool  // ends before anything is written

	checked bool // a dry run has checked the records
	author  author
	config  *access.Config   // as it was before the change
	probed  map[fieldAt]bool // as of the plan
	built   map[custom.Digest]built
	changes []change
	after   *state

	goneFields  []goneField
	goneOfUsers []string
	warnings    []string
	expiring    []*schema.Entity // whose records are kept for less time than before

	// What a dry run's effect is counted from.
	before                    *state
	paths                     []string // of the changes
	configBefore, configAfter *access.Config
	visits                    []records.Visit
	stopping                  Affected
}

func (a *application) run(ctx context.Context, tx tenant.ConfigTx, log *tenant.History) error {
	p := &plan{
		Problems: &Problems{List: append([]Problem{}, a.problems.List...), Left: a.problems.Left},
		m:        a.m, prune: a.opts.Prune, hash: a.passwords.hash, keyring: a.opts.Keyring, built: a.built,
	}
	if len(a.problems.List) > 0 { // it ends in an error: what could not be read is not taken as absent
		p.prune = false
		p.hash = func(_ chosen, stored string) string { return stored }
	}
	w := &writer{ctx: ctx, tx: tx, p: p, now: clock.Micros(a.clk.Now()), inline: a.inline(), dryRun: a.opts.DryRun}
	if err := w.load(); err != nil {
		return err
	}
	if err := w.enter(a.by); err != nil {
		return err
	}
	a.author, a.config, p.probed = p.author, w.config, a.probed
	p.after = p.before.clone()
	for _, s := range sections {
		s.merge(p)
	}
	if err := p.checkVersions(); err != nil {
		return err
	}
	if err := p.build(); err != nil {
		return err
	}
	if err := w.loadHolders(); err != nil {
		return err
	}
	if err := w.defineEndpoints(); err != nil {
		return err
	}
	for _, s := range sections {
		s.check(p)
	}
	if err := w.checkUserData(); err != nil {
		return err
	}
	if err := w.checkManaged(); err != nil {
		return err
	}
	if err := p.err(); err != nil {
		return err
	}
	p.diff()
	if err := w.allowed(); err != nil {
		return err
	}
	if a.checkOnly {
		return errDryRun
	}
	if err := a.planned.unchanged(p); err != nil {
		return err
	}
	if err := p.asExpected(a.opts.Expected); err != nil {
		return err
	}
	if len(p.changes) > 0 {
		err := w.write(log)
		var long *records.Long
		if a.checked && errors.As(err, &long) {
			err = nil
		}
		if err != nil {
			return err
		}
	}
	a.changes, a.after = p.changes, p.after
	a.goneFields, a.goneOfUsers, a.warnings, a.expiring = p.goneFields(), p.goneOfUsers(), p.warnings, p.expiring()
	if a.opts.DryRun {
		a.before, a.paths, a.stopping, a.visits = p.before, p.paths(), p.stopping(), w.visited
		if a.configAfter = w.after; !w.fresh {
			a.configBefore = w.config
		}
		return errDryRun
	}
	return nil
}
