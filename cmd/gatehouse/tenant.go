package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

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
			ID: t.ID, DisplayName: t.DisplayName, Hosts: append([]string{}, t.Hosts...), AdminHosts: append([]string{}, t.AdminHosts...),
			BaseURL: t.BaseURL, PublicAPI: t.Settings.PublicAPI.Enabled, ExternalIdentity: t.Settings.ExternalIdentity.Enabled,
		}
		l.add(line, line.ID, line.DisplayName, strings.Join(line.Hosts, ","), line.BaseURL,
			strconv.FormatBool(line.PublicAPI), strconv.FormatBool(line.ExternalIdentity))
	}
	return l.print(e.stdout, *asJSON)
}
