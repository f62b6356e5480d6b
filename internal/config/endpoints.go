package config

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"slices"

	"gatehouse/internal/custom"
)

// endpointDecl is a custom endpoint as the file has it; its users stand by
// e-mail key. What it says of secrets is nil where the stored one is kept.
type endpointDecl struct {
	custom.Endpoint
	secret, previous *string
}

func (d *decoder) endpoints(m *Spec, key string, n *Value) {
	d.list(n, "a list of custom endpoints", func(_ int, item *Value) {
		e := &endpointDecl{Endpoint: custom.Endpoint{
			Auth: custom.APIKey, Reply: custom.Result, LogRequests: true,
			RateLimitPerMinute: custom.DefaultRateLimit, MaxBodyBytes: custom.DefaultMaxBodyBytes,
		}}
		marks, before := map[string]*Value{}, len(d.List)
		marked := func(name string, read func(*Value)) member {
			return member{name, func(v *Value) { marks[name] = v; read(v) }}
		}
		choice := func(to func(string), choice ...string) func(*Value) {
			return func(v *Value) {
				if s, ok := d.oneOf(v, choice...); ok {
					to(s)
				}
			}
		}
		given := d.object(item, "a custom endpoint",
			marked("slug", d.to(&e.Slug)),
			marked("target", func(v *Value) { e.Target = d.target(v) }),
			marked("auth", choice(func(s string) { e.Auth = custom.Auth(s) }, string(custom.APIKey), string(custom.Token), string(custom.Signed))),
			marked("reply", choice(func(s string) { e.Reply = custom.Reply(s) }, string(custom.Result), string(custom.Receipt))),
			marked("verifier", d.to(&e.Verifier)),
			marked("webhook_secret", func(v *Value) { e.secret = d.sharedSecret(v, false) }),
			marked("previous_webhook_secret", func(v *Value) { e.previous = d.sharedSecret(v, true) }),
			marked("run_as", d.someone(&e.RunAs)),
			marked("log_requests", d.flag(&e.LogRequests)),
			marked("external_users", d.flag(&e.ExternalUsers)),
			marked("rate_limit_per_minute", d.count(&e.RateLimitPerMinute)),
			marked("max_body_bytes", d.between(&e.MaxBodyBytes, 1, custom.MaxBodyBytes)))
		if !given["slug"] {
			if item.Kind == Mapping {
				d.fail(item, "a custom endpoint needs a slug")
			}
			return
		}
		if e.Slug == "" && d.has(marks["slug"].Place.Path) || !d.identified(m, item, "custom endpoint", key, e.Slug) {
			return
		}
		for name, at := range marks {
			m.mark(at, key, e.Slug, name)
		}
		if len(d.List) == before {
			d.fitting(e, item, marks)
		}
		m.endpoints = append(m.endpoints, e)
	})
}

// target reads what an endpoint runs.
func (d *decoder) target(n *Value) custom.Target {
	var component, automation string
	before := len(d.List)
	given := d.object(n, "a target", member{"component", d.to(&component)}, member{"automation", d.to(&automation)})
	if len(d.List) == before && (given["component"] == given["automation"] || component+automation == "") {
		d.fail(n, "target: expected either {component: NAME} or {automation: NAME}")
	}
	if given["component"] {
		return custom.Target{Kind: custom.ToComponent, Name: component}
	}
	return custom.Target{Kind: custom.ToAutomation, Name: automation}
}

// sharedSecret reads a webhook secret; messages never show it.
func (d *decoder) sharedSecret(n *Value, mayBeEmpty bool) *string {
	s, ok := d.text(n)
	if ok && s == "" && !mayBeEmpty {
		d.bad(n, "expected a secret that is not empty; leave the key out to keep the stored one")
		return nil
	}
	if !ok {
		return nil
	}
	return &s
}

// fitting finds members that do not go with the endpoint's auth, and missing ones.
func (d *decoder) fitting(e *endpointDecl, item *Value, marks map[string]*Value) {
	fits := []struct {
		key  string
		auth []custom.Auth
	}{
		{"reply", []custom.Auth{custom.Token}},
		{"verifier", []custom.Auth{custom.Signed}},
		{"webhook_secret", []custom.Auth{custom.Signed}},
		{"previous_webhook_secret", []custom.Auth{custom.Signed}},
		{"external_users", []custom.Auth{custom.APIKey}},
		{"rate_limit_per_minute", []custom.Auth{custom.Token, custom.Signed}},
	}
	for _, f := range fits {
		if at := marks[f.key]; at != nil && !slices.Contains(f.auth, e.Auth) {
			names := make([]string, len(f.auth))
			for i, a := range f.auth {
				names[i] = string(a)
			}
			d.fail(at, "custom endpoint %s: %s goes with auth: %s only, found auth: %s", e.Slug, f.key, orList(names), e.Auth)
		}
	}
	if marks["target"] == nil {
		d.fail(item, "custom endpoint %s needs a target: {component: NAME} or {automation: NAME}", e.Slug)
	}
	if e.Auth == custom.Signed && e.Verifier == "" {
		d.fail(cmp.Or(marks["verifier"], item), "custom endpoint %s needs a verifier: the logic component that checks the signature", e.Slug)
	}
}

// hasSecrets reports whether there is anything to be sealed.
func (m *Spec) hasSecrets() bool {
	return slices.ContainsFunc(m.endpoints, func(e *endpointDecl) bool { return e.secret != nil || e.previous != nil })
}

// shortSecrets warns of secrets that can be guessed.
func (m *Spec) shortSecrets() []string {
	var list []string
	for _, e := range m.endpoints {
		for _, one := range []struct {
			key   string
			value *string
		}{{"webhook_secret", e.secret}, {"previous_webhook_secret", e.previous}} {
			if one.value != nil && *one.value != "" && len(*one.value) < custom.MinSecret {
				list = append(list, fmt.Sprintf("custom endpoint %s: %s has fewer than %d characters: it can be guessed",
					e.Slug, one.key, custom.MinSecret))
			}
		}
	}
	return list
}

func mergeEndpoints(p *plan) {
	for _, decl := range p.m.endpoints {
		e := decl.Endpoint
		if prev := p.before.endpoints[e.Slug]; prev != nil {
			e.DefinedBy, e.TokenPrefix = prev.DefinedBy, prev.TokenPrefix
			if e.Auth == custom.Signed {
				e.SealedSecret, e.SealedPrevious = prev.SealedSecret, prev.SealedPrevious
			}
		}
		e.SealedSecret = p.seal(e.SealedSecret, decl.secret)
		e.SealedPrevious = p.seal(e.SealedPrevious, decl.previous)
		if e.Auth == custom.Signed && e.SealedSecret == "" && !p.m.names("custom_endpoints", e.Slug, "webhook_secret") {
			p.add(p.m.place("custom_endpoints", e.Slug), "custom endpoint %s needs a webhook_secret", e.Slug)
		}
		p.after.endpoints[e.Slug] = &e
	}
	if p.prunes("custom_endpoints") {
		for slug := range p.before.endpoints {
			if !p.m.names("custom_endpoints", slug) {
				delete(p.after.endpoints, slug)
			}
		}
	}
}

// seal is the stored form of a secret: what is stored already when that is it,
// or when none is given.
func (p *plan) seal(stored string, given *string) string {
	if given == nil {
		return stored
	}
	if *given == "" {
		return ""
	}
	if stored != "" {
		plain, err := p.keyring.Open(custom.SecretPurpose, stored)
		if err == nil && subtle.ConstantTimeCompare(plain, []byte(*given)) == 1 {
			return stored
		}
	}
	return p.keyring.Seal(custom.SecretPurpose, []byte(*given))
}

func checkEndpoints(p *plan) {
	for _, slug := range sortedKeys(p.after.endpoints) {
		e := p.after.endpoints[slug]
		if e.Target.Kind == custom.ToAutomation {
			p.checkTarget(slug, "target", "automation", e.Target.Name, "automations",
				p.before.automations[e.Target.Name] != nil, p.after.automations[e.Target.Name] != nil)
		} else {
			p.checkTarget(slug, "target", "logic component", e.Target.Name, "logic_components",
				p.before.components[e.Target.Name] != nil, p.after.components[e.Target.Name] != nil)
		}
		p.checkTarget(slug, "verifier", "logic component", e.Verifier, "logic_components",
			p.before.components[e.Verifier] != nil, p.after.components[e.Verifier] != nil)
		if p.m.names("custom_endpoints", slug, "run_as") && e.RunAs != "" && p.person(e.RunAs) == nil {
			p.add(p.m.place("custom_endpoints", slug, "run_as"), "custom endpoint %s: run_as: there is no user %s", slug, show(e.RunAs))
		}
	}
}

// checkTarget finds a target or verifier that is not, or no longer, there.
func (p *plan) checkTarget(slug, key, what, name, section string, was, is bool) {
	switch {
	case is, name == "": // decoding has told of a missing one
	case p.m.names("custom_endpoints", slug):
		p.add(p.m.place("custom_endpoints", slug, key), "custom endpoint %s: %s: there is no %s %s", slug, key, what, show(name))
	case was:
		p.add(p.m.place(section), "%s %s cannot be removed: custom endpoint %s needs it", what, name, slug)
	}
}

// homeless reports whether an endpoint of a state is a webhook that neither its
// run_as nor its target gives a user: it runs as the one who defined it
// (contract X2). The context system gives it rights and no name.
func (s *state) homeless(e *custom.Endpoint) bool {
	if e.Auth == custom.APIKey || e.RunAs != "" {
		return false
	}
	if e.Target.Kind == custom.ToComponent {
		c := s.components[e.Target.Name]
		return c != nil && c.Context.Kind != custom.SpecificUser
	}
	a := s.automations[e.Target.Name]
	return a != nil && a.Context.Kind != custom.SpecificUser
}

// endpointView is a custom endpoint in the change history. Of the secrets it
// tells that there are some, never which.
type endpointView struct {
	Target        map[string]string `json:"target"`
	Auth          string            `json:"auth"`
	Reply         string            `json:"reply"`
	RunAs         string            `json:"run_as"`
	DefinedBy     string            `json:"defined_by"`
	LogRequests   bool              `json:"log_requests"`
	ExternalUsers bool              `json:"external_users"`
	RateLimit     int               `json:"rate_limit_per_minute"`
	MaxBodyBytes  int               `json:"max_body_bytes"`
	Verifier      string            `json:"verifier"`
	Secret        string            `json:"webhook_secret"`
	Previous      string            `json:"previous_webhook_secret"`
}

// viewEndpoint shows an endpoint; prev is the same endpoint before the change, or nil.
func viewEndpoint(e, prev *custom.Endpoint) any {
	if e == nil {
		return nil
	}
	if prev == nil {
		prev = &custom.Endpoint{}
	}
	return endpointView{
		map[string]string{string(e.Target.Kind): e.Target.Name}, string(e.Auth), string(e.Reply), e.RunAs, e.DefinedBy, e.LogRequests,
		e.ExternalUsers, e.RateLimitPerMinute, e.MaxBodyBytes, e.Verifier,
		viewSecret(e.SealedSecret, prev.SealedSecret), viewSecret(e.SealedPrevious, prev.SealedPrevious),
	}
}

func viewSecret(sealed, prev string) string {
	switch {
	case sealed == "":
		return ""
	case prev != "" && prev != sealed:
		return "(changed)"
	}
	return "(set)"
}

// exportEndpoints leaves secrets and webhook tokens out.
func exportEndpoints(s *state) []pair {
	var list []*Value
	for _, slug := range sortedKeys(s.endpoints) {
		e := s.endpoints[slug]
		pairs := []pair{{"slug", str(slug)}, {"target", flow(pair{string(e.Target.Kind), str(e.Target.Name)})}, {"auth", str(string(e.Auth))}}
		if e.Auth == custom.Token {
			pairs = append(pairs, pair{"reply", str(string(e.Reply))})
		}
		if e.Auth == custom.Signed {
			pairs = append(pairs, pair{"verifier", str(e.Verifier)})
		}
		if e.RunAs != "" {
			pairs = append(pairs, pair{"run_as", str(s.email(e.RunAs))})
		}
		pairs = append(pairs, pair{"log_requests", yes(e.LogRequests)})
		if e.Auth == custom.APIKey {
			pairs = append(pairs, pair{"external_users", yes(e.ExternalUsers)})
		} else {
			pairs = append(pairs, pair{"rate_limit_per_minute", num(e.RateLimitPerMinute)})
		}
		list = append(list, flow(append(pairs, pair{"max_body_bytes", num(e.MaxBodyBytes)})...))
	}
	return []pair{{"custom_endpoints", rows(list)}}
}
