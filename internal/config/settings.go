package config

import (
	"net/url"
	"slices"
	"strings"

	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// settingsKeys are the top-level keys that make up the tenant itself.
var settingsKeys = []string{"tenant", "display_name", "hosts", "admin_hosts", "base_url", "public_api",
	"unauthenticated_per_ip_per_minute", "dedup_retention_days", "external_identity"}

func (d *decoder) settings(m *Spec, key string, n *Value) {
	switch key {
	case "tenant":
		var id string
		d.to(&id)(n)
		if id == "" {
			if !d.has(n.Place.Path) {
				d.fail(n, "expected the tenant's name, [a-z][a-z0-9-]*")
			}
		} else if err := tenant.CheckID(id); err != nil {
			d.fail(n, "%s", err)
		} else {
			m.tenant = id
		}
	case "display_name":
		d.to(&m.displayName)(n)
	case "hosts":
		m.hosts = d.hosts(m, key, n)
	case "admin_hosts":
		m.adminHosts = d.hosts(m, key, n)
	case "base_url":
		m.baseURL = d.url(n, false)
	case "unauthenticated_per_ip_per_minute":
		d.count(&m.unauthenticated)(n)
	case "dedup_retention_days":
		d.retention(&m.dedupRetention, n)
	case "public_api":
		m.publicAPI = tenant.DefaultSettings().PublicAPI
		d.object(n, "public_api",
			member{"enabled", d.flag(&m.publicAPI.Enabled)},
			member{"log_standard_requests", d.flag(&m.publicAPI.LogStandardRequests)})
	case "external_identity":
		m.external = d.externalIdentity(m, n)
	}
}

// The bounds of dedup_retention_days, where it is not 0 (contract W13).
const (
	minRetention = 30
	maxRetention = 36_500
)

// retention reads dedup_retention_days: 0, which is for ever, or a number of days.
func (d *decoder) retention(p *int, n *Value) {
	days, before := 0, len(d.List)
	d.between(&days, 0, maxRetention)(n)
	if days != 0 && days < minRetention {
		d.bad(n, "expected 0, which is for ever, or %d to %d days, found %d", minRetention, maxRetention, days)
	} else if len(d.List) == before {
		*p = days
	}
}

// hosts reads a list of host names into their canonical form.
func (d *decoder) hosts(m *Spec, key string, n *Value) []string {
	list := []string{}
	d.list(n, "a list of hosts", func(_ int, item *Value) {
		text, ok := d.text(item)
		if !ok {
			return
		}
		host, ok := httpapi.CanonicalHost(text)
		switch {
		case !ok:
			d.bad(item, "expected a host name or address, found %s", d.found(item))
		case slices.Contains(list, host):
			d.bad(item, "the host %s stands twice", host)
		default:
			list = append(list, host)
			m.mark(item, key, host)
		}
	})
	return list
}

// url reads an absolute http(s) URL without query, and without a path unless
// withPath. A slash at the end is dropped.
func (d *decoder) url(n *Value, withPath bool) string {
	text, ok := d.text(n)
	if !ok {
		return ""
	}
	expected := "expected an address like https://acme.example, without path or query"
	if withPath {
		expected = "expected an address like https://portal.acme.example/app, without query"
	}
	u, err := url.Parse(text)
	if err == nil && u.User != nil {
		d.bad(n, "%s: it has user information", expected)
		return ""
	}
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || strings.ContainsAny(text, "?# \t\r\n") ||
		!withPath && strings.Trim(u.Path, "/") != "" {
		d.bad(n, "%s, found %s", expected, d.found(n))
		return ""
	}
	if _, ok := httpapi.CanonicalHost(u.Host); !ok {
		d.bad(n, "%s, found %s", expected, d.found(n))
		return ""
	}
	return strings.TrimRight(text, "/")
}

func (d *decoder) externalIdentity(m *Spec, n *Value) tenant.ExternalIdentity {
	e := tenant.DefaultSettings().ExternalIdentity
	d.object(n, "external_identity",
		member{"enabled", d.flag(&e.Enabled)},
		member{"open_registration", d.flag(&e.OpenRegistration)},
		member{"activation_mode", func(v *Value) {
			if mode, ok := d.oneOf(v, "svc_email", "app_managed", "none"); ok {
				e.ActivationMode = mode
			}
		}},
		member{"default_permission_set", func(v *Value) {
			d.to(&e.DefaultPermissionSet)(v)
			m.mark(v, "external_identity", "default_permission_set")
		}},
		member{"welcome_email", d.flag(&e.WelcomeEmail)},
		member{"app_url", func(v *Value) { e.AppURL = d.url(v, true) }},
		member{"cors_allowed_origins", func(v *Value) {
			e.CORSAllowedOrigins = []string{}
			d.texts(v, "cors_allowed_origins", func(item *Value, text string) {
				origins, err := httpapi.ParseOrigins([]string{text})
				switch {
				case err != nil:
					d.bad(item, "%s", err)
				case len(origins) == 0:
					d.bad(item, "expected an origin like https://portal.acme.example")
				case !slices.Contains(e.CORSAllowedOrigins, origins[0]):
					e.CORSAllowedOrigins = append(e.CORSAllowedOrigins, origins[0])
				}
			})
		}},
		member{"rate_limit_per_minute", d.count(&e.RateLimitPerMinute)},
		member{"limits", func(v *Value) {
			var members []member
			for _, l := range limitsOf(&e.Limits) {
				members = append(members, member{l.key, d.count(l.value)})
			}
			d.object(v, "limits", members...)
		}})
	return e
}

type namedLimit struct {
	key   string
	value *int
}

// limitsOf names the limits of External Identity as the manifest does.
func limitsOf(l *tenant.IdentityLimits) []namedLimit {
	return []namedLimit{
		{"register_per_ip_per_hour", &l.RegisterPerIPPerHour},
		{"register_per_tenant_per_hour", &l.RegisterPerTenantPerHour},
		{"login_per_ip_per_minute", &l.LoginPerIPPerMinute},
		{"login_per_email_per_15_minutes", &l.LoginPerEmailPer15Minutes},
		{"login_block_minutes", &l.LoginBlockMinutes},
		{"reset_per_email_per_hour", &l.ResetPerEmailPerHour},
		{"reset_per_tenant_per_hour", &l.ResetPerTenantPerHour},
		{"refresh_per_token_per_minute", &l.RefreshPerTokenPerMinute},
		{"verify_per_ip_per_minute", &l.VerifyPerIPPerMinute},
		{"password_reset_per_ip_per_minute", &l.PasswordResetPerIPPerMinute},
	}
}

// mergeSettings makes the tenant what the keys that are present say.
func mergeSettings(p *plan) {
	m := p.m
	t := &tenant.Tenant{ID: m.tenant, DisplayName: m.tenant, Settings: tenant.DefaultSettings()}
	if p.before.tenant != nil {
		copied := *p.before.tenant
		t = &copied
	}
	if m.has("display_name") {
		t.DisplayName = m.displayName
	}
	if m.has("public_api") {
		t.Settings.PublicAPI = m.publicAPI
	}
	if m.has("unauthenticated_per_ip_per_minute") {
		t.Settings.UnauthenticatedPerIPPerMinute = m.unauthenticated
	}
	if m.has("dedup_retention_days") {
		t.Settings.DedupRetentionDays = m.dedupRetention
	}
	if m.has("external_identity") {
		t.Settings.ExternalIdentity = m.external
	}
	had := t.Hosts
	if m.has("hosts") {
		t.Hosts = slices.Sorted(slices.Values(m.hosts))
	}
	if m.has("admin_hosts") {
		t.AdminHosts = slices.Sorted(slices.Values(m.adminHosts))
	}
	switch {
	case m.has("base_url"):
		t.BaseURL = m.baseURL
	case len(m.hosts) > 0 && (t.BaseURL == "" || lostHost(t.BaseURL, had, t.Hosts)):
		t.BaseURL = "https://" + m.hosts[0]
	}
	p.after.tenant = t
}

// lostHost reports whether the base URL is the default made from a host that
// the tenant no longer has: links to it would be dead.
func lostHost(base string, had, has []string) bool {
	host, ok := strings.CutPrefix(base, "https://")
	return ok && slices.Contains(had, host) && !slices.Contains(has, host)
}

func checkSettings(p *plan) {
	t := p.after.tenant
	for _, h := range t.AdminHosts {
		if slices.Contains(t.Hosts, h) {
			p.add(p.m.later([]string{"admin_hosts", h}, []string{"hosts", h}), "the host %s stands in both hosts and admin_hosts: a host serves one of the two", h)
		}
	}
	set := t.Settings.ExternalIdentity.DefaultPermissionSet
	if set == "" || p.after.sets[set] != nil {
		return
	}
	if p.m.has("external_identity") {
		p.add(p.m.place("external_identity", "default_permission_set"),
			"external_identity: there is no permission set %s to be the default", show(set))
	} else {
		p.add(p.m.place("permission_sets"), "permission set %s cannot be removed: it is the default of external_identity", set)
	}
}

// tenantView is the tenant in the change history.
type tenantView struct {
	DisplayName     string                  `json:"display_name"`
	Hosts           []string                `json:"hosts"`
	AdminHosts      []string                `json:"admin_hosts"`
	BaseURL         string                  `json:"base_url"`
	PublicAPI       tenant.PublicAPI        `json:"public_api"`
	Unauthenticated int                     `json:"unauthenticated_per_ip_per_minute"`
	DedupRetention  int                     `json:"dedup_retention_days"`
	External        tenant.ExternalIdentity `json:"external_identity"`

	Templates map[string]tenant.EmailTemplate `json:"email_templates,omitempty"`
}

func viewTenant(t *tenant.Tenant) any {
	if t == nil {
		return nil
	}
	return tenantView{t.DisplayName, slices.Clip(append([]string{}, t.Hosts...)), append([]string{}, t.AdminHosts...), t.BaseURL,
		t.Settings.PublicAPI, t.Settings.UnauthenticatedPerIPPerMinute, t.Settings.DedupRetentionDays,
		t.Settings.ExternalIdentity, t.Settings.EmailTemplates}
}

func exportSettings(s *state) []pair {
	t := s.tenant
	e := t.Settings.ExternalIdentity
	identity := []pair{
		{"enabled", yes(e.Enabled)},
		{"open_registration", yes(e.OpenRegistration)},
		{"activation_mode", str(e.ActivationMode)},
	}
	if e.DefaultPermissionSet != "" {
		identity = append(identity, pair{"default_permission_set", str(e.DefaultPermissionSet)})
	}
	identity = append(identity, pair{"welcome_email", yes(e.WelcomeEmail)})
	if e.AppURL != "" {
		identity = append(identity, pair{"app_url", str(e.AppURL)})
	}
	if e.CORSAllowedOrigins != nil {
		identity = append(identity, pair{"cors_allowed_origins", strs(e.CORSAllowedOrigins)})
	}
	var limits []pair
	for _, l := range limitsOf(&e.Limits) {
		limits = append(limits, pair{l.key, num(*l.value)})
	}
	identity = append(identity, pair{"rate_limit_per_minute", num(e.RateLimitPerMinute)}, pair{"limits", block(limits...)})
	pairs := []pair{
		{"tenant", str(t.ID)},
		{"display_name", str(t.DisplayName)},
		{"hosts", strs(t.Hosts)},
		{"admin_hosts", strs(t.AdminHosts)},
	}
	if t.BaseURL != "" {
		pairs = append(pairs, pair{"base_url", str(t.BaseURL)})
	}
	return append(pairs,
		pair{"public_api", flow(pair{"enabled", yes(t.Settings.PublicAPI.Enabled)},
			pair{"log_standard_requests", yes(t.Settings.PublicAPI.LogStandardRequests)})},
		pair{"unauthenticated_per_ip_per_minute", num(t.Settings.UnauthenticatedPerIPPerMinute)},
		pair{"dedup_retention_days", num(t.Settings.DedupRetentionDays)},
		pair{"external_identity", block(identity...)})
}
