package main

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/openapi"
)

// openapiCommand prints the OpenAPI document of a tenant's public API, and nothing
// else, on standard output.
func openapiCommand(f *flags) action {
	f.forTenant()
	email := f.String("as", "", "only what the user with this e-mail `address` may do")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			viewer := access.System(t.config, "operator command openapi")
			if *email != "" {
				u, err := t.user(ctx, *email)
				if err != nil {
					return err
				}
				if viewer, err = t.directory.Viewer(ctx, t.config, u.ID, true); err != nil {
					return err
				}
			}
			out, err := openapi.Describe(ctx, t.handle(), viewer)
			if err != nil {
				return err
			}
			text := jsontext.Value(out)
			if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
				return err
			}
			_, err = f.stdout.Write(append(text, '\n'))
			return err
		})
	}
}
