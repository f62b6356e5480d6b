package main

import (
	"context"

	"gatehouse/internal/custom"
	"gatehouse/internal/typings"
)

// typesCommand prints TypeScript declarations of what a tenant's logic components find,
// and nothing else, on standard output.
func typesCommand(f *flags) action {
	f.forTenant()
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			declarations, err := t.declarations(ctx)
			if err != nil {
				return err
			}
			_, err = f.stdout.Write(declarations)
			return err
		})
	}
}

// declarations returns the TypeScript declarations of the tenant.
func (t *tenantDB) declarations(ctx context.Context) ([]byte, error) {
	defs, err := custom.Load(ctx, t.handle())
	if err != nil {
		return nil, err
	}
	return typings.Declarations(t.config.Schema, defs), nil
}
