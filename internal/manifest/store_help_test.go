package manifest_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// place is a database and an operator who applies manifests to it.
type place struct {
	*testing.T
	d     *db.DB
	clock *clock.Fake
	vars  map[string]string
	// phased prepares every change that visits a record in advance, one record
	// a step.
	phased bool
	// compiled lists the sources that apply compiled.
	compiled []string
}

func each(t *testing.T, fn func(p *place)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { fn(newPlace(t, d)) })
	t.Run("phased", func(t *testing.T) {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			p := newPlace(t, d)
			p.phased = true
			fn(p)
		})
	})
}

func newPlace(t *testing.T, d *db.DB) *place {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return &place{T: t, d: d, clock: clock.NewFake(start), vars: map[string]string{}}
}

func (p *place) try(src string, opts manifest.Options) (*manifest.Result, error) {
	p.clock.Advance(time.Second)
	if p.phased {
		opts.Inline, opts.Pace.Records = -1, 1
	}
	if opts.Compile == nil {
		opts.Compile, opts.Keyring = p.compile, p.keyring()
	}
	return manifest.Apply(context.Background(), p.d, p.clock, "acme.yaml", []byte(src),
		func(name string) string { return p.vars[name] }, opts)
}

// compile replaces the engine in tests: it rejects a source that contains
// !!error or !!placeless.
func (p *place) compile(_ context.Context, _ tenant.ID, _ string, given component.Source) ([]string, error) {
	source := given.Text
	p.compiled = append(p.compiled, source)
	if at := strings.Index(source, "!!error"); at >= 0 {
		line := 1 + strings.Count(source[:at], "\n")
		return nil, &component.SourceError{Message: "SyntaxError: that", Line: line, Column: at - strings.LastIndexByte(source[:at], '\n')}
	}
	if strings.Contains(source, "!!placeless") {
		return nil, &component.SourceError{Message: "there is no handler"}
	}
	return nil, nil
}

func (p *place) keyring() *secret.Keyring {
	k, err := secret.NewKeyring(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		p.Fatal(err)
	}
	return k
}

func (p *place) with(opts manifest.Options, src string) []string {
	p.Helper()
	r, err := p.try(src, opts)
	if err != nil {
		p.Fatalf("apply: %v\n%s", err, src)
	}
	lines := []string{}
	for _, c := range r.Changes {
		lines = append(lines, c.Line())
	}
	return lines
}

// apply applies a manifest and returns what it printed.
func (p *place) apply(src string) []string { p.Helper(); return p.with(manifest.Options{}, src) }
func (p *place) prune(src string) []string {
	p.Helper()
	return p.with(manifest.Options{Prune: true}, src)
}

// refused applies a manifest and checks that it is refused with exactly these
// messages.
func (p *place) refused(opts manifest.Options, src string, want ...string) {
	p.Helper()
	_, err := p.try(src, opts)
	if err == nil {
		p.Fatalf("the manifest was applied; want:\n%s", strings.Join(want, "\n"))
	}
	if got := err.Error(); got != strings.Join(want, "\n") {
		p.Errorf("refused with:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// printed compares the printed lines with the expected ones.
func (p *place) printed(got []string, want ...string) {
	p.Helper()
	if !slices.Equal(got, want) {
		p.Errorf("printed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func (p *place) export(id string) string {
	p.Helper()
	b, err := manifest.Export(context.Background(), p.d, tenant.ID(id))
	if err != nil {
		p.Fatalf("export: %v", err)
	}
	return string(b)
}

func (p *place) config(id string) *access.Config {
	p.Helper()
	c, err := access.Load(context.Background(), p.d.For(tenant.ID(id)))
	if err != nil {
		p.Fatal(err)
	}
	return c
}

func (p *place) user(id, email string) *user.User {
	p.Helper()
	u, err := user.ByEmail(context.Background(), p.d.For(tenant.ID(id)), email)
	if err != nil {
		p.Fatalf("%s: %v", email, err)
	}
	return u
}

func (p *place) history(id string) []tenant.Change {
	p.Helper()
	list, err := tenant.Changes(context.Background(), p.d.For(tenant.ID(id)), 1000)
	if err != nil {
		p.Fatal(err)
	}
	return list
}

// session returns the record store as the operator's own commands use it.
func (p *place) session(id string) *records.Session {
	dir := access.NewDirectory(p.d)
	return records.New(p.d, dir, p.clock, []byte("a key for cursors, in a test only")).
		As(access.System(p.config(id), "a test"))
}

// record creates a record. pairs are its JSON members: names and values in
// turn.
func (p *place) record(id, entity string, pairs ...string) {
	p.Helper()
	if err := p.tryRecord(id, entity, pairs...); err != nil {
		p.Fatal(err)
	}
}

func (p *place) tryRecord(id, entity string, pairs ...string) error {
	var members []records.Member
	for i := 0; i < len(pairs); i += 2 {
		members = append(members, records.Member{Name: pairs[i], Value: jsontext.Value(pairs[i+1])})
	}
	_, err := p.session(id).Create(context.Background(), entity, members)
	return err
}

func asProblems(p *place, err error) *manifest.Problems {
	p.Helper()
	var problems *manifest.Problems
	if !errors.As(err, &problems) {
		p.Fatalf("%v is no *manifest.Problems", err)
	}
	return problems
}

// acme is a complete tenant.
const acme = `tenant: acme
display_name: Acme GmbH
hosts: [acme.localhost, Shop.Acme.Example.]
public_api: {enabled: true}
external_identity:
  enabled: true
  default_permission_set: portal
  limits: {login_per_ip_per_minute: 7}
entities:
  - name: account
    fields:
      - {name: name, type: text, required: true, unique: true}
  - name: contact
    label: Contact person
    sharing: public_read
    fields:
      - {name: first_name, type: text, required: true}
      - {name: score, type: number, indexed: true}
      - {name: stage, type: select, options: [new, won, lost]}
      - {name: account, type: reference, entity: account}
user_fields: [{name: company, type: text}]
roles: [{name: ceo}, {name: sales, parent: ceo}, {name: support, parent: ceo}]
permission_sets:
  - name: portal
    entities:
      contact: {create: true, read: true, fields: {score: {read: true}}}
  - name: staff
    system: [tenant_settings, manage_users]
    all_entity_access: true
sharing_rules:
  - {entity: contact, owned_by_role: sales, share_with_role: support, access: read}
  - {entity: contact, where: {stage: won, score: 7}, share_with_role: support, access: edit}
users:
  - {email: olivia@acme.example, name: Olivia Owner, owner: true, role: ceo, password: "${OLIVIA_PASSWORD}"}
  - {email: Sam@acme.example, name: Sam Seller, role: sales, permission_sets: [staff]}
  - {email: eva@customer.example, type: external, role: support, permission_sets: [portal], locale: de}
`

// acmePlace applies the tenant acme to p and returns p.
func acmePlace(p *place) *place {
	p.Helper()
	p.vars["OLIVIA_PASSWORD"] = "correct horse battery"
	p.apply(acme)
	return p
}

// ownerRole returns the stored owner role of the only record of an entity type.
func ownerRole(p *place, id, entity string) (role string) {
	p.Helper()
	makeDue(p, id)
	err := p.d.For(tenant.ID(id)).Query(context.Background(), `SELECT owner_role FROM records WHERE tenant_id = $1 AND entity = $2`,
		func(r db.Row) error { role = r.Text(0); return nil }, entity)
	if err != nil {
		p.Fatal(err)
	}
	return role
}
