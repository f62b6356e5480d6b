package config

import (
	"context"
	"errors"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
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
	// Losing are the users named in the change who may do less after it, by
	// e-mail address.
	Losing []string
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
	if err := a.apply(ctx, h); err != nil {
		return nil, err
	}
	r := &Result{Tenant: m.tenant, Gone: a.goneOfUsers, Losing: a.losing, Warnings: append(m.shortSecrets(), a.warnings...)}
	for _, f := range a.goneFields {
		told, err := f.told(ctx, h)
		if err != nil {
			return nil, err
		}
		r.Gone = append(r.Gone, told)
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
	if !opts.DryRun {
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

	checked bool // a dry run has looked at the records
	changes []change
	after   *state

	goneFields  []goneField
	goneOfUsers []string
	losing      []string
	warnings    []string
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
	w := &writer{ctx: ctx, tx: tx, p: p, now: clock.Micros(a.clk.Now()), inline: a.inline()}
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
	p.diff()
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
	a.goneFields, a.goneOfUsers, a.losing, a.warnings = p.goneFields(), p.goneOfUsers(), p.losing(), p.warnings
	if a.opts.DryRun {
		return errDryRun
	}
	return nil
}

// Objects returns the objects of a kind, with their versions, by name. VALIDATION
// when there is no such kind, NOT_FOUND when there is no such tenant.
func Objects(ctx context.Context, h db.Handle, kindName string) ([]Object, error) {
	k, ok := find(kindName)
	if !ok {
		return nil, fault.New(fault.Validation, "there is no kind of object %q", kindName)
	}
	s, err := exported(ctx, h)
	if err != nil {
		return nil, err
	}
	var list []Object
	for _, key := range k.keys(s) {
		list = append(list, k.object(s, key))
	}
	return list, nil
}

// Export returns the configuration of a tenant as it is stored: to apply it
// changes nothing. Secrets and passwords are left out. NOT_FOUND when there is
// no such tenant.
func Export(ctx context.Context, h db.Handle) (*Value, error) {
	s, err := exported(ctx, h)
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for _, section := range sections {
		pairs = append(pairs, section.export(s)...)
	}
	return block(pairs...), nil
}
