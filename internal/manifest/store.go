package manifest

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
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
	Compile func(ctx context.Context, tenant, source string) error
	// Keyring seals webhook secrets; without any in the manifest it may be nil.
	Keyring *secret.Keyring
	// Dir is the folder that source_file is relative to; "" is the manifest's.
	Dir string
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
	Tenant  string
	Changes []Change // none when the tenant was so already
	// Gone are the attributes, of objects that the manifest names, which go because
	// it does not name them; of fields with how many records hold a value.
	Gone []string
	// Warnings are sentences for the operator about a manifest that was applied.
	Warnings []string
}

// actor is whom the change history names.
const actor = "operator: apply"

// errDryRun and errRaced roll an apply back; the one is success, the other is tried again.
var (
	errDryRun = errors.New("dry run")
	errRaced  = errors.New("the tenant was made by somebody else meanwhile")
)

// Apply makes a tenant what the manifest src says, all or nothing. file names
// the manifest in messages. It fails with *Problems when the manifest is not
// right, alone or against what is stored; a refusal of another package (a host
// taken, data that would break) is among them with its line. Applying the same
// manifest twice changes nothing the second time.
func Apply(ctx context.Context, d *db.DB, clk clock.Clock, file string, src []byte, getenv func(string) string,
	opts Options) (*Result, error) {
	m, problems := parse(file, src, getenv, filesIn(cmp.Or(opts.Dir, filepath.Dir(file))))
	if m.tenant == "" {
		return nil, problems.err()
	}
	if opts.Keyring == nil && m.hasSecrets() {
		return nil, errors.New("manifest: Options.Keyring is needed to seal the webhook secrets of " + file)
	}
	h := d.For(m.tenant)
	if err := compileSources(ctx, h, m, problems, opts.Compile); err != nil {
		return nil, err
	}
	a := &application{m: m, problems: problems, clk: clk, opts: opts, passwords: newPasswords()}
	if len(problems.List) == 0 {
		if err := a.passwords.prepare(ctx, h, m); err != nil {
			return nil, err
		}
	}
	if err := a.apply(ctx, h); err != nil {
		return nil, err
	}
	r := &Result{Tenant: m.tenant, Gone: a.goneOfUsers, Warnings: append(m.shortSecrets(), a.warnings...)}
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
		r.Warnings = append(r.Warnings, "tenant "+m.tenant+" has no active owner: nobody may do everything there")
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
	m         *manifest
	problems  *Problems // of the manifest alone
	clk       clock.Clock
	opts      Options
	passwords *passwords

	checked bool // a dry run has looked at the records
	changes []change
	after   *state

	goneFields  []goneField
	goneOfUsers []string
	warnings    []string
}

func (a *application) run(ctx context.Context, tx db.Tx, log *tenant.History) error {
	p := &plan{
		Problems: &Problems{File: a.m.file, List: append([]Problem{}, a.problems.List...), Left: a.problems.Left},
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
	a.goneFields, a.goneOfUsers, a.warnings = p.goneFields(), p.goneOfUsers(), p.warnings
	if a.opts.DryRun {
		return errDryRun
	}
	return nil
}

// Export writes the manifest of a tenant as it is stored: Apply of it changes
// nothing. Secrets and passwords are left out. NOT_FOUND when there is no such
// tenant.
func Export(ctx context.Context, d *db.DB, tenantID string) ([]byte, error) {
	s, err := exported(ctx, d.For(tenantID))
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for _, section := range sections {
		pairs = append(pairs, section.export(s)...)
	}
	return render(pairs)
}
