package main

import (
	"context"
	"fmt"
	"strings"

	"gatehouse/internal/automation"
	"gatehouse/internal/clock"
	"gatehouse/internal/custom"
	"gatehouse/internal/endpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/inputs"
)

// endpointToken makes a webhook token and prints it, alone, because it cannot be
// shown again. The address and a sample request go to standard error.
func endpointToken(f *flags) action {
	f.forTenant()
	slug := f.required("slug", "`slug` of the endpoint, one with auth: token")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			before, err := t.endpoint(ctx, *slug)
			if err != nil {
				return err
			}
			token, err := endpoint.NewToken(ctx, t.DB, clock.System(), actor, t.config.Tenant.ID, *slug)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(f.stdout, token.Reveal()); err != nil {
				return err
			}
			address := t.config.Tenant.BaseURL + "/public/v1/custom/" + *slug
			if before.TokenPrefix == "" {
				f.say("The token is shown only this once.")
			} else {
				f.say("The token is shown only this once; the one before it has stopped.")
			}
			f.say("URL: %s", address)
			f.say("curl -X POST %s -H 'X-Webhook-Token: %s' -H 'Content-Type: application/json' -H 'Idempotency-Key: a-name-of-your-own' -d '%s'",
				address, token.Reveal(), sampleBody(before.inputs))
			return nil
		})
	}
}

// definedEndpoint is an endpoint, and what its target declares to take.
type definedEndpoint struct {
	*custom.Endpoint
	inputs []inputs.Declaration
}

// endpoint returns the endpoint with a slug. It returns NOT_FOUND when there is none.
func (t *tenantDB) endpoint(ctx context.Context, slug string) (definedEndpoint, error) {
	all, err := custom.Load(ctx, t.handle())
	if err != nil {
		return definedEndpoint{}, err
	}
	e := definedEndpoint{Endpoint: all.Endpoints[slug]}
	if e.Endpoint == nil {
		return e, fault.New(fault.NotFound, "there is no endpoint %q", slug)
	}
	if c := all.Components[e.Target.Name]; e.Target.Kind == custom.ToComponent && c != nil {
		e.inputs = c.Inputs
	}
	if a := all.Automations[e.Target.Name]; e.Target.Kind == custom.ToAutomation && a != nil {
		flow, problems := automation.Decode(a.Flow)
		if len(problems) > 0 {
			return e, problems
		}
		e.inputs = flow.InputSchema
	}
	return e, nil
}

// sampleBody returns a JSON object with a value for each required input: names have only
// letters, digits, _ and -.
func sampleBody(declared []inputs.Declaration) string {
	values := map[inputs.Type]string{inputs.Text: `"text"`, inputs.Number: "1", inputs.Boolean: "true", inputs.JSON: "{}"}
	body := ""
	for _, d := range declared {
		if d.Required {
			body += fmt.Sprintf(", %q: %s", d.Name, values[d.Type])
		}
	}
	return "{" + strings.TrimPrefix(body, ", ") + "}"
}
