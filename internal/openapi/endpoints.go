package openapi

import (
	"fmt"
	"maps"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
)

// target is what a document says of the target of a custom endpoint.
type target struct {
	inputs, outputs []inputs.Declaration
	flow            bool
}

// endpoints describes the custom endpoints that the viewer may call by API key or
// access token and, for those who define endpoints, the webhooks (contract C1, C2).
func (d *document) endpoints(defined *custom.Definitions) error {
	tagged := false
	for _, slug := range slices.Sorted(maps.Keys(defined.Endpoints)) {
		e := defined.Endpoints[slug]
		if e.Auth == custom.APIKey && d.viewer.External() && !e.ExternalUsers || e.Auth != custom.APIKey && !d.viewer.May(access.ManageEndpoints) {
			continue
		}
		t, err := targetOf(defined, e)
		if err != nil {
			return fmt.Errorf("custom endpoint %s: %w", slug, err)
		}
		if t == nil {
			continue // its target is gone: every call is NOT_FOUND
		}
		if !tagged {
			d.tag("Custom endpoints", "What the tenant defined itself.")
			tagged = true
		}
		operations := obj("post", d.endpoint(e, t).object(d))
		if e.AllowGet {
			operations = operations.with("get", challenge(e).object(d))
		}
		d.path("/custom/"+slug, operations)
	}
	return nil
}

// targetOf returns what an endpoint runs, or nil when that does not exist.
func targetOf(defined *custom.Definitions, e *custom.Endpoint) (*target, error) {
	if e.Target.Kind == custom.ToComponent {
		if c := defined.Components[e.Target.Name]; c != nil {
			return &target{inputs: c.Inputs, outputs: c.Outputs}, nil
		}
		return nil, nil
	}
	a := defined.Automations[e.Target.Name]
	if a == nil {
		return nil, nil
	}
	flow, problems := automation.Decode(a.Flow)
	if len(problems) > 0 {
		return nil, problems
	}
	return &target{inputs: flow.InputSchema, outputs: flow.Outputs, flow: true}, nil
}

func (d *document) endpoint(e *custom.Endpoint, t *target) *operation {
	o := &operation{
		tag: "Custom endpoints", id: "Endpoint." + e.Slug, summary: "Call " + e.Slug, status: 200, anyError: true,
		about:   fmt.Sprintf("Runs the %s %s. A body has at most %d bytes.", e.Target.Kind, e.Target.Name, e.MaxBodyBytes),
		refused: []string{"VALIDATION", "NOT_FOUND", "CONFLICT", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "EXECUTION_ERROR", "EXECUTION_TIMEOUT"},
	}
	result := envelope(t.data(), t.meta())
	if !t.flow && e.Reply == custom.Result {
		o.ownAnswer = "What the component answers by respond()."
	}
	switch e.Auth {
	case custom.APIKey:
		o.security, o.body, o.answer = d.credentials(), jsonBody(t.input()), result
		return o
	case custom.Signed:
		o.security = list{}
		o.about += " The provider's signature is checked by the component " + e.Verifier + "."
		if o.ownAnswer == "" {
			o.ownAnswer = "What the verifier answers to a challenge."
		} else {
			o.ownAnswer = "What the verifier answers to a challenge, or the component by respond()."
		}
		o.body = jsonBody(obj("type", "object"))
		o.webhookAnswer(e, result)
		return o
	}
	o.security = list{obj("webhookToken", list{})}
	o.parameters = list{obj("name", "Idempotency-Key", "in", "header", "description", "A delivery with a key that was seen runs nothing and is a duplicate.",
		"schema", obj("type", "string", "minLength", 1, "maxLength", 255))}
	o.body = obj("required", true, "content", obj("application/json", obj("schema", t.input()), "application/x-www-form-urlencoded", obj("schema", t.input()), "multipart/form-data", obj("schema", t.input())))
	o.webhookAnswer(e, result)
	return o
}

// webhookAnswer describes the answers to a delivery.
func (o *operation) webhookAnswer(e *custom.Endpoint, result object) {
	o.answer = obj("oneOf", list{result, ref("schemas", "Duplicate")})
	if e.Reply == custom.Receipt {
		o.answer = ref("schemas", "Duplicate")
		o.more = obj("202", success(ref("schemas", "Receipt")))
	}
}

// challenge describes GET of an endpoint whose verifier answers it (contract W17).
func challenge(e *custom.Endpoint) *operation {
	return &operation{
		tag: "Custom endpoints", id: "Endpoint." + e.Slug + ".challenge", summary: "Challenge " + e.Slug, security: list{},
		about:     "What the component " + e.Verifier + " answers to a provider that asks whether the address is right. It runs nothing.",
		ownAnswer: "What the verifier answers to a challenge.",
	}
}

// input describes the declared inputs (contract N1 to N4).
func (t *target) input() object {
	properties, required := object{}, []string{}
	for _, in := range t.inputs {
		s := declared(in)
		if in.Required {
			required = append(required, in.Name)
		} else {
			s = orNull(s)
		}
		properties = properties.with(in.Name, s)
	}
	out := obj("type", "object", "properties", properties)
	if len(required) > 0 {
		out = out.with("required", texts(required...))
	}
	return out
}

func declared(in inputs.Declaration) object {
	switch in.Type {
	case inputs.Number:
		return obj("type", "number")
	case inputs.Boolean:
		return obj("type", "boolean")
	case inputs.JSON:
		return obj("type", list{"object", "array"})
	}
	s := obj("type", "string")
	if !in.Pattern.IsZero() {
		s = s.with("pattern", in.Pattern.String())
	}
	return s
}

// data describes what a call returns: every declared output of an automation, null
// where it did not set one; of a component what its handler returns, for which its
// outputs are documentation.
func (t *target) data() object {
	properties, names := object{}, []string{}
	for _, out := range t.outputs {
		properties, names = properties.with(out.Name, orNull(declared(out))), append(names, out.Name)
	}
	switch {
	case t.flow:
		return obj("type", "object", "required", texts(names...), "properties", properties)
	case len(names) > 0:
		return obj("description", "What the handler returns.", "type", list{"object", "array", "string", "number", "boolean", "null"}, "properties", properties)
	}
	return obj("description", "What the handler returns.")
}

func (t *target) meta() object {
	if !t.flow {
		return nil
	}
	return obj("type", "object", "required", texts("nodesExecuted", "durationMs"),
		"properties", obj("nodesExecuted", obj("type", "integer"), "durationMs", obj("type", "integer")))
}
