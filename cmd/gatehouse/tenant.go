package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
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

func tenantList(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("tenant list")
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
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
	return l.print(e.stdout, *asJSON)
}

// tenantDelete deletes a tenant and all that it has, or goes on with that.
func tenantDelete(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("tenant delete")
	tenantID := f.tenant()
	confirm := f.String("confirm", "", "the `tenant` once more: there is no way back but a backup")
	if err := f.Parse(args, "tenant", "confirm"); err != nil {
		return err
	}
	if *confirm != string(*tenantID) {
		return f.wrong("--confirm %s is another name than --tenant %s", *confirm, *tenantID)
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	done, err := tenant.Delete(ctx, d, *tenantID)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%w: nobody reaches the tenant any more; a server deletes the rest, or this command once more", err)
	}
	if err != nil {
		return err
	}
	e.say("Tenant %s is deleted: %s rows.", *tenantID, thousands(done.Rows))
	if !done.Done {
		e.say("What requests that had begun before still write is deleted by a server, or by this command once more, after a minute; then the name is free.")
	}
	return nil
}

// tenantRotateKey gives a tenant a new key for access tokens. The old one is
// accepted until its tokens have expired.
func tenantRotateKey(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("tenant rotate-jwt-key")
	tenantID := f.tenant()
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	return e.withIdentity(ctx, f, func(s *identity.Service) error {
		if err := s.RotateKey(ctx, actor, *tenantID); err != nil {
			return err
		}
		e.say("New access tokens of %s are signed with a new key; those signed with the old one are valid until they expire.", *tenantID)
		return nil
	})
}

// withIdentity runs fn with External Identity over the database that the flags
// name. Mails that fn asks for are sent by a running server.
func (e *env) withIdentity(ctx context.Context, f *flags, fn func(*identity.Service) error) (err error) {
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	keyring, err := e.keyring(ctx, f, d)
	if err != nil {
		return err
	}
	clk := clock.System()
	s := identity.New(identity.Options{
		DB: d, Directory: access.NewDirectory(d), Clock: clk, Keyring: keyring, Limiter: ratelimit.New(clk.Now, ratelimit.Options{}),
		Mailer: outbox.New(outbox.Options{DB: d, Keyring: keyring, Clock: clk}),
	})
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	return fn(s)
}
