package config

import (
	"net/url"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
)

// settingsTable are the top-level keys that make up the tenant itself.
var settingsTable = table[tenant.Tenant]{
	{
		key: "tenant", kind: TextMember, required: true, doc: "the name, which stays", show: inExport, read: (*decoder).tenantID,
		tell: func(t *tenant.Tenant, _ func(string) string) *Value { return str(string(t.ID)) },
	},
	text("display_name", func(t *tenant.Tenant) *string { return &t.DisplayName }).says("the name that people see"),
	hosts("hosts", func(t *tenant.Tenant) *[]string { return &t.Hosts }).says("hosts of the Public API"),
	hosts("admin_hosts", func(t *tenant.Tenant) *[]string { return &t.AdminHosts }).says("hosts of the administration"),
	address("base_url", func(t *tenant.Tenant) *string { return &t.BaseURL }, false).says("where links in mails begin; from the first host when absent"),
	within("public_api", func(t *tenant.Tenant) *tenant.PublicAPI { return &t.Settings.PublicAPI }, publicAPITable,
		func() tenant.PublicAPI { return tenant.DefaultSettings().PublicAPI }, true).says("the Public API"),
	within("staff", func(t *tenant.Tenant) *tenant.Staff { return &t.Settings.Staff }, staffTable,
		func() tenant.Staff { return tenant.DefaultSettings().Staff }, true).says("the sign-in to the administration"),
	count("unauthenticated_per_ip_per_minute", func(t *tenant.Tenant) *int { return &t.Settings.UnauthenticatedPerIPPerMinute }).says("requests of an address without valid credentials"),
	{
		key: "dedup_retention_days", kind: NumberMember, low: 0, high: maxRetention, doc: "how long deliveries are known again; 0 is for ever, else at least 30",
		read: func(d *decoder, t *tenant.Tenant, v *Value) { d.retention(&t.Settings.DedupRetentionDays, v) },
		copy: func(to, from *tenant.Tenant) { to.Settings.DedupRetentionDays = from.Settings.DedupRetentionDays },
		tell: func(t *tenant.Tenant, _ func(string) string) *Value { return num(t.Settings.DedupRetentionDays) },
	},
	within("external_identity", func(t *tenant.Tenant) *tenant.ExternalIdentity { return &t.Settings.ExternalIdentity }, identityTable,
		func() tenant.ExternalIdentity { return tenant.DefaultSettings().ExternalIdentity }, false).says("registration and login of external users"),
}

var staffTable = table[tenant.Staff]{
	choice("second_factor", func(s *tenant.Staff) *string { return &s.SecondFactor }, tenant.FactorOptional, tenant.FactorRequired).says("whether staff must have one-time codes"),
}

var publicAPITable = table[tenant.PublicAPI]{
	flag("enabled", func(a *tenant.PublicAPI) *bool { return &a.Enabled }).says("it answers"),
	flag("log_standard_requests", func(a *tenant.PublicAPI) *bool { return &a.LogStandardRequests }).says("requests to records are in the audit log"),
}

var identityTable = table[tenant.ExternalIdentity]{
	flag("enabled", func(e *tenant.ExternalIdentity) *bool { return &e.Enabled }).says("it answers"),
	flag("open_registration", func(e *tenant.ExternalIdentity) *bool { return &e.OpenRegistration }).says("anybody may register"),
	choice("activation_mode", func(e *tenant.ExternalIdentity) *string { return &e.ActivationMode }, "svc_email", "app_managed", "none").says("how a registered user becomes active"),
	text("default_permission_set", func(e *tenant.ExternalIdentity) *string { return &e.DefaultPermissionSet }).when(notEmpty).says("what registered users get"),
	flag("welcome_email", func(e *tenant.ExternalIdentity) *bool { return &e.WelcomeEmail }).says("a mail once a user is active"),
	address("app_url", func(e *tenant.ExternalIdentity) *string { return &e.AppURL }, true).when(notEmpty).says("where links in mails lead"),
	{
		key: "cors_allowed_origins", kind: TextsMember, doc: "origins of browsers; those of app_url when absent", read: (*decoder).origins,
		tell: func(e *tenant.ExternalIdentity, _ func(string) string) *Value {
			if e.CORSAllowedOrigins == nil {
				return &Value{}
			}
			return strs(e.CORSAllowedOrigins)
		},
	},
	count("rate_limit_per_minute", func(e *tenant.ExternalIdentity) *int { return &e.RateLimitPerMinute }).says("requests of an external user"),
	within("limits", func(e *tenant.ExternalIdentity) *tenant.IdentityLimits { return &e.Limits }, limitsTable, nil, false).says("how often each operation may be tried"),
}

var limitsTable = table[tenant.IdentityLimits]{
	count("register_per_ip_per_hour", func(l *tenant.IdentityLimits) *int { return &l.RegisterPerIPPerHour }).says("registrations of an address"),
	count("register_per_tenant_per_hour", func(l *tenant.IdentityLimits) *int { return &l.RegisterPerTenantPerHour }).says("registrations of the tenant"),
	count("login_per_ip_per_minute", func(l *tenant.IdentityLimits) *int { return &l.LoginPerIPPerMinute }).says("logins of an address"),
	count("login_per_email_per_15_minutes", func(l *tenant.IdentityLimits) *int { return &l.LoginPerEmailPer15Minutes }).says("logins with an e-mail address in 15 minutes; one more blocks it"),
	count("login_block_minutes", func(l *tenant.IdentityLimits) *int { return &l.LoginBlockMinutes }).says("how long an account is blocked"),
	count("reset_per_email_per_hour", func(l *tenant.IdentityLimits) *int { return &l.ResetPerEmailPerHour }).says("password resets of an account"),
	count("reset_per_tenant_per_hour", func(l *tenant.IdentityLimits) *int { return &l.ResetPerTenantPerHour }).says("password resets of the tenant"),
	count("refresh_per_token_per_minute", func(l *tenant.IdentityLimits) *int { return &l.RefreshPerTokenPerMinute }).says("refreshes of a session"),
	count("verify_per_ip_per_minute", func(l *tenant.IdentityLimits) *int { return &l.VerifyPerIPPerMinute }).says("verifications of an address"),
	count("password_reset_per_ip_per_minute", func(l *tenant.IdentityLimits) *int { return &l.PasswordResetPerIPPerMinute }).says("password reset requests of an address"),
}

// hosts is a list of host names, brought into their canonical form.
func hosts(key string, at func(*tenant.Tenant) *[]string) attr[tenant.Tenant] {
	return attr[tenant.Tenant]{
		key: key, kind: TextsMember,
		read: func(d *decoder, t *tenant.Tenant, v *Value) { *at(t) = d.hosts(v) },
		copy: func(to, from *tenant.Tenant) { *at(to) = slices.Sorted(slices.Values(*at(from))) },
		tell: func(t *tenant.Tenant, _ func(string) string) *Value { return strs(*at(t)) },
	}
}

// address is a URL.
func address[T any](key string, at func(*T) *string, withPath bool) attr[T] {
	a := text(key, at)
	a.read = func(d *decoder, o *T, v *Value) { *at(o) = d.url(v, withPath) }
	if !withPath {
		return a.when(notEmpty)
	}
	return a
}

func (d *decoder) settings(m *Spec, key string, n *Value) {
	i := slices.IndexFunc(settingsTable, func(a attr[tenant.Tenant]) bool { return a.key == key })
	settingsTable[i].read(d, &m.settings, n)
	switch key {
	case "tenant":
		m.tenant = m.settings.ID
	case "hosts", "admin_hosts":
		for _, item := range n.Items {
			if host, ok := httpapi.CanonicalHost(d.meant(item)); ok {
				m.mark(item, key, host)
			}
		}
	case "external_identity":
		if set := n.Member("default_permission_set"); set != n {
			m.mark(set, key, "default_permission_set")
		}
	}
}

func (d *decoder) tenantID(t *tenant.Tenant, n *Value) {
	var id string
	d.to(&id)(n)
	if id == "" {
		if !d.has(n.Place.Path) {
			d.fail(n, "expected the tenant's name, [a-z][a-z0-9-]*")
		}
	} else if err := tenant.CheckID(id); err != nil {
		d.fail(n, "%s", err)
	} else {
		t.ID = tenant.ID(id)
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
func (d *decoder) hosts(n *Value) []string {
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

func (d *decoder) origins(e *tenant.ExternalIdentity, n *Value) {
	e.CORSAllowedOrigins = []string{}
	d.texts(n, "cors_allowed_origins", func(item *Value, text string) {
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
}

// mergeSettings makes the tenant what the keys that are present say.
func mergeSettings(p *plan) {
	m := p.m
	t := &tenant.Tenant{ID: m.tenant, DisplayName: string(m.tenant), Settings: tenant.DefaultSettings()}
	if p.before.tenant != nil {
		copied := *p.before.tenant
		t = &copied
	}
	had := t.Hosts
	for _, a := range settingsTable {
		if a.copy != nil && m.has(a.key) {
			a.copy(t, &m.settings)
		}
	}
	if first := m.settings.Hosts; !m.has("base_url") && len(first) > 0 && (t.BaseURL == "" || lostHost(t.BaseURL, had, t.Hosts)) {
		t.BaseURL = "https://" + first[0]
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

var tenantKind = kind{
	name:     kindTenant,
	changing: []string{access.TenantSettings, access.ManageEndpoints}, reading: []string{access.TenantSettings, access.ManageEndpoints},
	keys:  func(*state) []string { return []string{""} },
	title: func(s *state, _ string) string { return string(s.tenant.ID) },
	view: func(s, _ *state, _ string) any {
		if s.tenant == nil {
			return nil
		}
		v := settingsTable.past(s.tenant, nil)
		if len(s.tenant.Settings.EmailTemplates) > 0 {
			v.Members = append(v.Members, Member{str("email_templates"), templatesOf(s.tenant)})
		}
		return v.json()
	},
	tell:  func(s *state, _ string) *Value { return block(settingsTable.export(s.tenant, asIs)...) },
	write: writeTenant,
}

func writeTenant(w *writer, _ change) error {
	if w.fresh {
		return nil // claim made it
	}
	return w.putTenant()
}

func exportSettings(s *state) []pair { return settingsTable.export(s.tenant, asIs) }
