package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/identity"
	"gatehouse/internal/outbox"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/tenant"
)

// tenantLine is a tenant in a list.
type tenantLine struct {
	ID               string   `json:"tenant"`
	DisplayName      string   `json:"display_name"`
	Hosts            []string `json:"hosts"`
	AdminHosts       []string `json:"admin_hosts"`
	BaseURL          string   `json:"base_url"`
	PublicAPI        bool     `json:"public_api"`
	ExternalIdentity bool     `json:"external_identity"`
}

func tenantList(f *flags) action {
	f.listing("")
	return func(ctx context.Context) error {
		return f.onDatabase(ctx, func(d *db.DB) error {
			ids, err := tenant.List(ctx, d)
			if err != nil {
				return err
			}
			l := &list{header: []string{"TENANT", "DISPLAY NAME", "HOSTS", "BASE URL", "PUBLIC API", "EXTERNAL IDENTITY"}}
			for _, id := range ids {
				t, err := tenant.Load(ctx, d.For(id))
				if err != nil {
					return err
				}
				line := tenantLine{
					ID: string(t.ID), DisplayName: t.DisplayName, Hosts: append([]string{}, t.Hosts...), AdminHosts: append([]string{}, t.AdminHosts...),
					BaseURL: t.BaseURL, PublicAPI: t.Settings.PublicAPI.Enabled, ExternalIdentity: t.Settings.ExternalIdentity.Enabled,
				}
				l.add(line, line.ID, line.DisplayName, strings.Join(line.Hosts, ","), line.BaseURL,
					strconv.FormatBool(line.PublicAPI), strconv.FormatBool(line.ExternalIdentity))
			}
			return l.print(f.stdout, f.asJSON)
		})
	}
}

// tenantDelete deletes a tenant with all its data, or resumes a deletion.
func tenantDelete(f *flags) action {
	f.forTenant()
	confirm := f.required("confirm", "the `tenant` once more: only a backup undoes this")
	return func(ctx context.Context) error {
		if *confirm != string(f.tenant) {
			return f.wrong("--confirm %s is another name than --tenant %s", *confirm, f.tenant)
		}
		return f.onDatabase(ctx, func(d *db.DB) error {
			done, err := tenant.Delete(ctx, d, f.tenant)
			if ctx.Err() != nil && err != nil {
				return fmt.Errorf("%w: the tenant's hosts are unknown already; a server deletes the rest, or this command when it is given again", err)
			}
			if err != nil {
				return err
			}
			f.say("Tenant %s is deleted: %s rows.", f.tenant, thousands(done.Rows))
			if !done.Done {
				f.say("Requests that had begun before may still write. A server deletes what they write, or this command does when it is given again, after a minute; then the name is free.")
			}
			return nil
		})
	}
}

// tenantRotateKey gives a tenant a new key for access tokens. The old one is
// accepted until its tokens have expired.
func tenantRotateKey(f *flags) action {
	f.forTenant()
	return func(ctx context.Context) error {
		return f.onIdentity(ctx, func(t *tenantDB, s *identity.Service) error {
			if err := s.RotateKey(ctx, actor, t.config.Tenant.ID); err != nil {
				return err
			}
			f.say("New access tokens of %s are signed with a new key; those signed with the old one are valid until they expire.", f.tenant)
			return nil
		})
	}
}

// onIdentity is onTenant with External Identity. A running server sends the mails
// that do requests.
func (f *flags) onIdentity(ctx context.Context, do func(*tenantDB, *identity.Service) error) error {
	return f.onTenant(ctx, func(t *tenantDB) (err error) {
		keyring, err := f.keyring(ctx, t.DB)
		if err != nil {
			return err
		}
		clk := clock.System()
		s := identity.New(identity.Options{
			DB: t.DB, Directory: t.directory, Clock: clk, Keyring: keyring, Limiter: ratelimit.New(clk.Now, ratelimit.Options{}),
			Mailer: outbox.New(outbox.Options{DB: t.DB, Keyring: keyring, Clock: clk}),
		})
		defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
		return do(t, s)
	})
}
