package main

import (
	"context"

	"gatehouse/internal/manifest"
)

// exportCommand prints the manifest of a tenant, and nothing else, on standard output.
func exportCommand(f *flags) action {
	f.forTenant()
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			out, err := manifest.Export(ctx, t.DB, t.config.Tenant.ID)
			if err != nil {
				return err
			}
			_, err = f.stdout.Write(out)
			return err
		})
	}
}
