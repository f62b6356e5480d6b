package main

import (
	"context"
	"errors"

	"gatehouse/internal/manifest"
)

// exportCommand prints the manifest of a tenant, and nothing else, on standard output.
func exportCommand(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("export")
	tenantID := f.tenant()
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	out, err := manifest.Export(ctx, d, *tenantID)
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(out)
	return err
}
