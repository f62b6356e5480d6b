package config

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Options are the choices of an apply.
type Options struct {
	// DryRun does everything and keeps nothing.
	DryRun bool
	// Prune removes the objects that a section of the manifest does not name.
	Prune bool
	// Compile compiles the source of a logic component, to learn whether it
	// can be: its error is a *component.SourceError when it is the author's
	// mistake. It is asked for sources that differ from what is stored, ahead of
	// the transaction; without such sources it may be nil.
	Compile func(ctx context.Context, tenant tenant.ID, source string) error
	// Keyring seals webhook secrets; without any in the manifest it may be nil.
	Keyring *secret.Keyring
	// Keys names the valid API keys that act for any of the users, by id, for the
	// effect of a dry run; nil names none.
	Keys func(ctx context.Context, q db.Querier, users map[user.ID]bool) ([]string, error)
	// Inline is how many records the transaction that makes the change may visit:
	// 0 is 1,000. What visits more is made ready in short steps first, as Pace
	// says. Less than 0 is none; it is for tests.
	Inline int
	// Pace is how it goes on, and whom it tells.
	Pace records.Pace
}

// inline is the default of Options.Inline: what takes about a tenth of a second.
const inline = 1000

// Result is what an apply did, or with DryRun would have done.
type Result struct {
	Tenant  tenant.ID
	Changes []Change // none when the tenant was so already
	// Gone are the attributes, of objects that the manifest names, which go because
	// it does not name them; of fields with how many records hold a value.
	Gone []string
	// Effect is what the change does beyond its objects; nil but for a dry run.
	Effect *Effect
	// Warnings are sentences for the operator about a manifest that was applied.
	Warnings []string
}

// errDryRun and errRaced roll an apply back; the one is success, the other is tried again.
var (
	errDryRun = errors.New("dry run")
	errRaced  = errors.New("the tenant was made by somebody else meanwhile")
)

// Apply makes the tenant of h what m says, all or nothing; the change history
// names actor. It fails with *Problems when m is not right, alone or against
// what is stored; a refusal of another package (a host taken, data that would
// break) is among them as its Cause. Of edits it fails with NOT_FOUND where one
// removes what does not exist, and with CONFLICT where one was made against
// another version: its details are kind, name, version, stored and asked, the last
// two as JSON. CONFLICT too when the tenant changes too often to be planned.
// Applying the same Spec twice changes nothing the second time.
func Apply(ctx context.Context, h db.Handle, clk clock.Clock, actor string, m *Spec, opts Options) (*Result, error) {
	a, err := start(ctx, h, clk, actor, m, opts)
	if err != nil {
		return nil, err
	}
	if err := a.apply(ctx, h); err != nil {
		return nil, err
	}
	return a.result(ctx, h)
}

// start does what is done ahead of the transaction.
func start(ctx context.Context, h db.Handle, clk clock.Clock, actor string, m *Spec, opts Options) (*application, error) {
	problems := m.problems
	if m.tenant == "" {
		return nil, problems.err()
	}
	if opts.Keyring == nil && m.hasSecrets() {
		return nil, errors.New("config: Options.Keyring is needed to seal the webhook secrets of tenant " + string(m.tenant))
	}
	if err := compileSources(ctx, h, m, problems, opts.Compile); err != nil {
		return nil, err
	}
	a := &application{m: m, actor: actor, problems: problems, clk: clk, opts: opts, passwords: newPasswords()}
	if len(problems.List) == 0 {
		if err := a.passwords.prepare(ctx, h, m); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// result is what was done, with what can be counted after the transaction.
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
		r.Gone = append(r.Gone, gone.String())
	}
	if a.opts.DryRun {
		var err error
		if r.Effect, err = a.effect(ctx, h, fields); err != nil {
			return nil, err
		}
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

// application is one apply; run may run more than once and leaves only what
// the last run made.
type application struct {
	m         *Spec
	actor     string
	problems  *Problems // of the manifest alone
	clk       clock.Clock
	opts      Options
	passwords *passwords

	planned   *Plan // that is written; nil for none
	checkOnly bool  // ends before anything is written

	checked bool // a dry run has looked at the records
	changes []change
	after   *state

	goneFields  []goneField
	goneOfUsers []string
	warnings    []string

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
		m:        a.m, prune: a.opts.Prune, hash: a.passwords.hash, keyring: a.opts.Keyring,
	}
	if len(a.problems.List) > 0 { // it ends in an error: what could not be read is not taken as absent
		p.prune = false
		p.hash = func(_, stored, _ string) string { return stored }
	}
	w := &writer{ctx: ctx, tx: tx, p: p, now: clock.Micros(a.clk.Now()), inline: a.inline(), dryRun: a.opts.DryRun}
	if err := w.load(); err != nil {
		return err
	}
	p.after = p.before.clone()
	for _, s := range sections {
		s.merge(p)
	}
	if err := p.checkVersions(); err != nil {
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
	if err := p.err(); err != nil {
		return err
	}
	if a.checkOnly {
		return errDryRun
	}
	p.diff()
	if err := a.planned.unchanged(p); err != nil {
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
	a.goneFields, a.goneOfUsers, a.warnings = p.goneFields(), p.goneOfUsers(), p.warnings
	if a.opts.DryRun {
		a.before, a.paths, a.stopping, a.visits = p.before, p.paths(), p.stopping(), w.visited
		if a.configAfter = w.after; !w.fresh {
			a.configBefore = w.config
		}
		return errDryRun
	}
	return nil
}
