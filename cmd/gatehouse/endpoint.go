package main

import (
	"context"
	"fmt"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/endpoint"
)

// endpointToken makes a webhook token and prints it, alone: nothing shows it
// again. The address and a sample request go to standard error.
func endpointToken(ctx context.Context, e *env, args []string) error {
	f := e.flags("endpoint token")
	tenantID := f.tenant()
	slug := f.String("slug", "", "`slug` of the endpoint, one with auth: token")
	if err := f.Parse(args, "tenant", "slug"); err != nil {
		return err
	}
	return e.onTenant(ctx, f, *tenantID, func(d *db.DB, config *access.Config) error {
		token, err := endpoint.NewToken(ctx, d, clock.System(), actor, *tenantID, *slug)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(e.stdout, token.Reveal()); err != nil {
			return err
		}
		address := config.Tenant.BaseURL + "/public/v1/custom/" + *slug
		e.say("The token is shown only this once; the one before it has stopped.")
		e.say("URL: %s", address)
		e.say("curl -X POST %s -H 'X-Webhook-Token: %s' -H 'Content-Type: application/json' -H 'Idempotency-Key: a-name-of-your-own' -d '{}'",
			address, token.Reveal())
		return nil
	})
}
