package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/examples/demo"
	"gatehouse/internal/access"
	"gatehouse/internal/apikey"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/wtf8"
)

// demoCommand makes a demo tenant if there is none, and serves it.
func demoCommand(f *flags) action {
	s := newServeFlags(f)
	return func(ctx context.Context) error {
		return s.serve(ctx, hooks{before: func(d *db.DB, l net.Listener) error {
			if err := f.makeDemo(ctx, d); err != nil {
				return err
			}
			token, example, err := demoKey(ctx, d)
			if err != nil {
				return err
			}
			webhook, err := endpoint.NewToken(ctx, d, clock.System(), actor, demo.Tenant, demo.Webhook)
			if err != nil && fault.CodeOf(err) != fault.NotFound { // the demo's manifest may have been changed
				return err
			}
			signIns, err := f.demoSignIns(ctx, d)
			if err != nil {
				return err
			}
			f.sayDemo(l.Addr().String(), samples{token: token, webhook: webhook.Reveal(), record: example})
			f.sayConsole(l.Addr().String(), signIns)
			return nil
		}})
	}
}

// makeDemo provisions the demo tenant, unless a tenant of that name exists, and
// its records.
func (f *flags) makeDemo(ctx context.Context, d *db.DB) (err error) {
	t, err := openTenant(ctx, d, demo.Tenant)
	if fault.CodeOf(err) == fault.NotFound {
		c := &compiler{flags: f}
		defer func() { err = errors.Join(err, c.close(ctx)) }()
		_, err = manifest.Apply(ctx, d, clock.System(), "manifest.yaml", demo.Manifest, f.getenv, manifest.Options{Compile: c.compile})
		if err == nil {
			t, err = openTenant(ctx, d, demo.Tenant)
		}
	}
	if err != nil {
		return err
	}
	return seedDemo(ctx, t)
}

// seedDemo creates the demo's records if there are none. A demo that was stopped
// while it created them keeps those it has; to start again, remove the data folder.
func seedDemo(ctx context.Context, t *tenantDB) error {
	all := records.New(t.DB, t.directory, clock.System(), nil).As(access.System(t.config, "the demo's records"))
	page, err := all.List(ctx, "account", records.Query{Limit: 1})
	if err != nil || page.Count > 0 {
		return err
	}
	list, err := demo.Records()
	if err != nil {
		return err
	}
	ids := map[string]string{}
	for _, rec := range list {
		owner, err := t.user(ctx, rec.Owner)
		if err != nil {
			return fmt.Errorf("demo record %s: %w", rec.Key, err)
		}
		created, err := all.Create(ctx, rec.Entity, demoMembers(t.config, rec, string(owner.ID), ids))
		if err != nil {
			return fmt.Errorf("demo record %s: %w", rec.Key, err)
		}
		ids[rec.Key] = created.ID()
	}
	return nil
}

// demoMembers returns the body that creates a demo record: its owner, and its
// fields, with ids for references.
func demoMembers(config *access.Config, rec demo.Record, owner string, ids map[string]string) []records.Member {
	members := []records.Member{{Name: "owner_id", Value: quote(owner)}}
	entity := config.Schema.Entity(rec.Entity)
	for name, value := range rec.Fields {
		v := jsontext.Value(value)
		if f := entity.Field(name); f != nil && f.Target != "" {
			v = quote(ids[schema.Unquote(v)])
		}
		members = append(members, records.Member{Name: name, Value: v})
	}
	return members
}

func quote(s string) jsontext.Value { return wtf8.AppendUTF8(nil, s) }

// demoUser is the user that the demo's key acts for.
const demoUser = "sam@demo.example"

// demoKey replaces the demo's API key, because a token cannot be shown again, and
// returns the token and the id of a contact that it may read.
func demoKey(ctx context.Context, d *db.DB) (token, example string, err error) {
	const name = "gatehouse demo"
	directory := access.NewDirectory(d)
	keys := apikey.New(d, clock.System(), directory)
	old, err := keys.List(ctx, demo.Tenant)
	if err != nil {
		return "", "", err
	}
	for _, k := range slices.DeleteFunc(old, func(k apikey.Key) bool { return k.Name != name }) {
		if err := keys.Delete(ctx, actor, demo.Tenant, k.ID); err != nil {
			return "", "", err
		}
	}
	_, made, err := keys.Create(ctx, actor, demo.Tenant, apikey.CreateSpec{
		Email: demoUser, Name: name, RateLimitPerMinute: apikey.DefaultRateLimit,
	})
	if err != nil {
		return "", "", err
	}
	config, err := directory.Current(ctx, demo.Tenant)
	if err != nil {
		return "", "", err
	}
	resolved, err := keys.Resolve(ctx, config, made.Reveal())
	if err != nil {
		return "", "", err
	}
	page, err := records.New(d, directory, clock.System(), nil).As(resolved.Viewer).List(ctx, "contact", records.Query{Limit: 1})
	if err != nil {
		return "", "", err
	}
	if page.Count == 0 {
		return "", "", errors.New("the demo tenant holds no contact that its key's user may see; remove the data folder to start anew")
	}
	return made.Reveal(), records.Record(page.Records[1 : len(page.Records)-1]).ID(), nil
}

// samples are what the printed commands use: the token of a key, that of a webhook, and
// the id of a record.
type samples struct{ token, webhook, record string }

// sayDemo prints commands that work as pasted.
func (e *env) sayDemo(addr string, with samples) {
	token, webhook, example := with.token, with.webhook, with.record
	base := "http://" + addr + "/public/v1"
	auth := ` -H "Authorization: Bearer ` + token + `"`
	e.say(`
Gatehouse serves the demo tenant at http://%s. Its key acts for %s; paste into another terminal:

  who am I       curl -s %s/me%s
  list           curl -s "%s/data/contact?limit=3"%s
  read one       curl -s %s/data/contact/%s%s
  create         curl -s -X POST %s/data/contact%s -H "Content-Type: application/json" -d '{"first_name":"Ada","last_name":"Lovelace"}'
  change         curl -s -X PATCH %s/data/contact/%s%s -H "Content-Type: application/json" -d '{"title":"Countess"}'
  delete         curl -s -X DELETE %s/data/contact/%s%s
  own endpoint   curl -s -X POST %s/custom/quote%s -H "Content-Type: application/json" -d '{"account":"%s","lines":[{"item":"pump","quantity":2,"price":349.5}]}'
  webhook        curl -s -X POST %s/custom/web-lead -H "X-Webhook-Token: %s" -H "Idempotency-Key: lead-1" -d first_name=Grace -d last_name=Hopper -d email=grace@example.com
  a customer     curl -s -X POST %s/auth/login -H "Content-Type: application/json" -d '{"email":"%s","password":"%s"}'

Ctrl-C ends it; the data stays. Each start makes the key and the webhook's token anew: those of the start before stop working.
docs/api.md explains every endpoint.
`, addr, demoUser, base, auth, base, auth, base, example, auth, base, auth, base, example, auth, base, example, auth,
		base, auth, demo.Account, base, webhook, base, demo.Customer, demo.Password)
}
