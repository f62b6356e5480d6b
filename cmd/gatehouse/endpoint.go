package main

import (
	"context"
	"fmt"

	"gatehouse/internal/clock"
	"gatehouse/internal/endpoint"
)

// endpointToken makes a webhook token and prints it, alone, because it cannot be
// shown again. The address and a sample request go to standard error.
func endpointToken(f *flags) action {
	f.forTenant()
	slug := f.required("slug", "`slug` of the endpoint, one with auth: token")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			token, err := endpoint.NewToken(ctx, t.DB, clock.System(), actor, t.config.Tenant.ID, *slug)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(f.stdout, token.Reveal()); err != nil {
				return err
			}
			address := t.config.Tenant.BaseURL + "/public/v1/custom/" + *slug
			f.say("The token is shown only this once; the one before it has stopped.")
			f.say("URL: %s", address)
			f.say("curl -X POST %s -H 'X-Webhook-Token: %s' -H 'Content-Type: application/json' -H 'Idempotency-Key: a-name-of-your-own' -d '{}'",
				address, token.Reveal())
			return nil
		})
	}
}
