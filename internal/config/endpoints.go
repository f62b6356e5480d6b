package config

import (
	"cmp"
	"crypto/subtle"
	"fmt"
	"slices"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
)

// endpointDecl is a custom endpoint as the file has it; its users stand by
// e-mail key. What it says of secrets is nil where the stored one is kept.
type endpointDecl struct {
	custom.Endpoint
	secret, previous *string
}

var endpointTable = table[endpointDecl]{
	text("slug", func(e *endpointDecl) *string { return &e.Slug }).when(inExport).needed("the last segment of its path"),
	{
		key: "target", kind: TargetMember, required: true, doc: "the logic component or automation that runs",
		read: func(d *decoder, e *endpointDecl, v *Value) { e.Target = d.target(v) },
		tell: func(e *endpointDecl, _ func(string) string) *Value {
			return flow(pair{string(e.Target.Kind), str(e.Target.Name)})
		},
	},
	choice("auth", func(e *endpointDecl) *custom.Auth { return &e.Auth }, custom.APIKey, custom.Token, custom.Signed).says("who may call"),
	unlessReceipt(with(choice("reply", func(e *endpointDecl) *custom.Reply { return &e.Reply }, custom.Result, custom.Receipt), custom.Token, custom.Signed)).says("what a webhook answers; with a provider's signature a receipt when absent"),
	with(text("verifier", func(e *endpointDecl) *string { return &e.Verifier }), custom.Signed).says("the logic component that checks signatures"),
	{ // of the secrets the change history has that there are some, never which
		key: "webhook_secret", kind: SecretMember, doc: "checked by the verifier; kept when absent",
		read:   func(d *decoder, e *endpointDecl, v *Value) { e.secret = d.sharedSecret(v, false) },
		past:   func(e, prev *endpointDecl) *Value { return sealedText(e.SealedSecret, prev.SealedSecret) },
		secret: func(e *endpointDecl) string { return e.SealedSecret },
	},
	{
		key: "previous_webhook_secret", kind: SecretMember, doc: "the secret before, which is taken too; kept when absent",
		read:   func(d *decoder, e *endpointDecl, v *Value) { e.previous = d.sharedSecret(v, true) },
		past:   func(e, prev *endpointDecl) *Value { return sealedText(e.SealedPrevious, prev.SealedPrevious) },
		secret: func(e *endpointDecl) string { return e.SealedPrevious },
	},
	{
		key: "run_as", kind: TextMember, doc: "the e-mail address of the user whom it runs as",
		read: func(d *decoder, e *endpointDecl, v *Value) { d.someone(&e.RunAs)(v) },
		tell: func(e *endpointDecl, email func(string) string) *Value { return str(email(e.RunAs)) },
		show: notEmpty,
	},
	{key: "defined_by", past: func(e, _ *endpointDecl) *Value { return str(e.DefinedBy) }},
	flag("log_requests", func(e *endpointDecl) *bool { return &e.LogRequests }).says("calls are in the audit log"),
	with(flag("external_users", func(e *endpointDecl) *bool { return &e.ExternalUsers }), custom.APIKey).says("access tokens of external users may call"),
	with(flag("allow_get", func(e *endpointDecl) *bool { return &e.AllowGet }), custom.Signed).when(sparse).says("the verifier answers GET, too: a provider's challenge"),
	with(count("rate_limit_per_minute", func(e *endpointDecl) *int { return &e.RateLimitPerMinute }), custom.Token, custom.Signed).says("calls of a webhook"),
	between("max_body_bytes", func(e *endpointDecl) *int { return &e.MaxBodyBytes }, 1, custom.MaxBodyBytes).says("the size of a body"),
}

// with has Export leave out a member that does not go with the endpoint's auth.
func with(a attr[endpointDecl], auth ...custom.Auth) attr[endpointDecl] {
	tell := a.tell
	a.past = func(e, _ *endpointDecl) *Value { return tell(e, asIs) }
	a.tell = func(e *endpointDecl, email func(string) string) *Value {
		if !slices.Contains(auth, e.Auth) {
			return &Value{}
		}
		return tell(e, email)
	}
	return a
}

// unlessReceipt has Export leave out the reply of a signed endpoint that is the default
// there.
func unlessReceipt(a attr[endpointDecl]) attr[endpointDecl] {
	tell := a.tell
	a.tell = func(e *endpointDecl, email func(string) string) *Value {
		if e.Auth == custom.Signed && e.Reply == custom.Receipt {
			return &Value{}
		}
		return tell(e, email)
	}
	return a
}

func newEndpoint() *endpointDecl {
	return &endpointDecl{Endpoint: custom.Endpoint{
		Auth: custom.APIKey, Reply: custom.Result, LogRequests: true,
		RateLimitPerMinute: custom.DefaultRateLimit, MaxBodyBytes: custom.DefaultMaxBodyBytes,
	}}
}

func (d *decoder) endpoints(m *Spec, key string, n *Value) {
	d.list(n, "a list of custom endpoints", func(_ int, item *Value) {
		e := newEndpoint()
		before := len(d.List)
		marks := endpointTable.read(d, item, "a custom endpoint", e)
		if marks["slug"] == nil {
			if item.Kind == Mapping {
				d.fail(item, "a custom endpoint needs a slug")
			}
			return
		}
		if e.Slug == "" && d.has(marks["slug"].Place.Path) || !d.identified(m, item, subject{key, e.Slug, "custom endpoint"}) {
			return
		}
		for name, at := range marks {
			m.mark(at, key, e.Slug, name)
		}
		if e.Auth == custom.Signed && marks["reply"] == nil {
			e.Reply = custom.Receipt
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
		{"reply", []custom.Auth{custom.Token, custom.Signed}},
		{"verifier", []custom.Auth{custom.Signed}},
		{"webhook_secret", []custom.Auth{custom.Signed}},
		{"previous_webhook_secret", []custom.Auth{custom.Signed}},
		{"allow_get", []custom.Auth{custom.Signed}},
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
	return slices.ContainsFunc(m.endpoints, func(e *endpointDecl) bool { return e.secret != nil || e.previous != nil }) ||
		slices.ContainsFunc(m.components, func(c *componentDecl) bool { return len(c.secrets) > 0 })
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
		e.SealedSecret = p.seal(custom.SecretPurpose, e.SealedSecret, decl.secret)
		e.SealedPrevious = p.seal(custom.SecretPurpose, e.SealedPrevious, decl.previous)
		if e.Auth == custom.Signed && e.SealedSecret == "" && !p.m.names("custom_endpoints", e.Slug, "webhook_secret") {
			p.add(p.m.place("custom_endpoints", e.Slug), "custom endpoint %s needs a webhook_secret", e.Slug)
		}
		p.after.endpoints[e.Slug] = &e
	}
	drop(p, "custom_endpoints", p.before.endpoints, p.after.endpoints)
}

// seal is the stored form of a secret: what is stored already when that is it,
// or when none is given.
func (p *plan) seal(purpose, stored string, given *string) string {
	if given == nil {
		return stored
	}
	if *given == "" {
		return ""
	}
	if stored != "" {
		plain, err := p.keyring.Open(purpose, stored)
		if err == nil && subtle.ConstantTimeCompare(plain, []byte(*given)) == 1 {
			return stored
		}
	}
	return p.keyring.Seal(purpose, []byte(*given))
}

func checkEndpoints(p *plan) {
	for _, slug := range sortedKeys(p.after.endpoints) {
		e := p.after.endpoints[slug]
		if e.Target.Kind == custom.ToAutomation {
			p.checkTarget(slug, "target", subject{"automations", e.Target.Name, "automation"},
				p.before.automations[e.Target.Name] != nil, p.after.automations[e.Target.Name] != nil)
		} else {
			p.checkTarget(slug, "target", subject{"logic_components", e.Target.Name, "logic component"},
				p.before.components[e.Target.Name] != nil, p.after.components[e.Target.Name] != nil)
		}
		p.checkTarget(slug, "verifier", subject{"logic_components", e.Verifier, "logic component"},
			p.before.components[e.Verifier] != nil, p.after.components[e.Verifier] != nil)
		was := p.before.endpoints[slug]
		if was == nil {
			was = &custom.Endpoint{}
		}
		if p.m.names("custom_endpoints", slug, "run_as") && !p.mayName(e.RunAs, was.RunAs) {
			p.unnameable(p.m.place("custom_endpoints", slug, "run_as"), "custom endpoint "+slug+": run_as")
			continue
		}
		if p.m.names("custom_endpoints", slug, "run_as") && e.RunAs != "" && p.person(e.RunAs) == nil {
			p.add(p.m.place("custom_endpoints", slug, "run_as"), "custom endpoint %s: run_as: there is no user %s", slug, show(e.RunAs))
		}
	}
}

// checkTarget finds an endpoint whose target or verifier, its member key, does not
// exist, or not any more.
func (p *plan) checkTarget(slug, key string, o subject, was, is bool) {
	switch {
	case is, o.name == "": // decoding has told of a missing one
	case p.m.names("custom_endpoints", slug):
		p.add(p.m.place("custom_endpoints", slug, key), "custom endpoint %s: %s: there is no %s %s", slug, key, o.what, show(o.name))
	case was:
		p.add(p.m.place(o.section), "%s %s cannot be removed: custom endpoint %s needs it", o.what, o.name, slug)
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

var endpointKind = kind{
	name: kindEndpoint, section: "custom_endpoints", id: "slug",
	changing: []string{access.ManageEndpoints}, reading: []string{access.ManageEndpoints},
	keys: keysOf(func(s *state) map[string]*custom.Endpoint { return s.endpoints }),
	view: func(s, prev *state, slug string) any {
		is, was := s.endpoints[slug], &custom.Endpoint{}
		if is == nil {
			return nil
		}
		if prev != nil && prev.endpoints[slug] != nil {
			was = prev.endpoints[slug]
		}
		return endpointTable.view(&endpointDecl{Endpoint: *is}, &endpointDecl{Endpoint: *was})
	},
	secrets: func(s *state, slug string) []string { // the webhook token's prefix tells one token from another
		e := s.endpoints[slug]
		return append(endpointTable.secrets(&endpointDecl{Endpoint: *e}), e.TokenPrefix)
	},
	tell: func(s *state, slug string) *Value { // without secrets and webhook tokens
		return flow(endpointTable.export(&endpointDecl{Endpoint: *s.endpoints[slug]}, s.email)...)
	},
	write: writeEndpoint,
}

func writeEndpoint(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteEndpoint(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.endpoints[c.key]
	is.RunAs, is.DefinedBy = w.idOf(is.RunAs), w.idOf(is.DefinedBy)
	return custom.PutEndpoint(w.ctx, w.tx, &is)
}
