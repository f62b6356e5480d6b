// Package tenant holds what one customer is: its hosts, its settings, and the
// one write path of its configuration.
package tenant

import (
	"fmt"
	"net/url"
	"regexp"
)

// Tenant is one customer at one version of its configuration. It is not
// changed after it was loaded.
type Tenant struct {
	ID          ID
	DisplayName string
	Hosts       []string // canonical: no port, lower case, no trailing dot
	AdminHosts  []string
	BaseURL     string // for links, iss and webhook addresses; never taken from a request
	Version     int64  // grows with every change of configuration
	Settings    Settings
}

// HostKind says which of a tenant's two lists of hosts has a host. The zero value
// is neither.
type HostKind uint8

// The kinds.
const (
	_          HostKind = iota
	PublicHost          // of Tenant.Hosts
	AdminHost           // of Tenant.AdminHosts
)

// Settings are the switches and limits of a tenant, as the manifest names them.
type Settings struct {
	PublicAPI                     PublicAPI        `json:"public_api"`
	UnauthenticatedPerIPPerMinute int              `json:"unauthenticated_per_ip_per_minute"`
	ExternalIdentity              ExternalIdentity `json:"external_identity"`
	// DedupRetentionDays is how long webhooks remember what they have seen, at
	// least 30; 0 is for ever (contract W13).
	DedupRetentionDays int   `json:"dedup_retention_days,omitempty"`
	Staff              Staff `json:"staff"`
	// EmailTemplates are those that replace a default, by name.
	EmailTemplates map[string]EmailTemplate `json:"email_templates,omitempty"`
}

// Staff are the settings of the sign-in to the administration.
type Staff struct {
	SecondFactor string `json:"second_factor"` // optional or required
}

// FactorRequired reports whether the tenant demands a second factor of its staff.
func (s Staff) FactorRequired() bool { return s.SecondFactor == FactorRequired }

// The values of Staff.SecondFactor.
const (
	FactorOptional = "optional"
	FactorRequired = "required"
)

// EmailTemplate is the text of a mail (contract M1).
type EmailTemplate struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
}

// PublicAPI are the switches of the Public API.
type PublicAPI struct {
	Enabled             bool `json:"enabled"`
	LogStandardRequests bool `json:"log_standard_requests"`
}

// ExternalIdentity are the settings of the end-users' login.
type ExternalIdentity struct {
	Enabled              bool           `json:"enabled"`
	OpenRegistration     bool           `json:"open_registration"`
	ActivationMode       string         `json:"activation_mode"` // svc_email, app_managed or none
	DefaultPermissionSet string         `json:"default_permission_set"`
	WelcomeEmail         bool           `json:"welcome_email"`
	AppURL               string         `json:"app_url"`              // "" means the base URL
	CORSAllowedOrigins   []string       `json:"cors_allowed_origins"` // nil means the origin of AppURL
	RateLimitPerMinute   int            `json:"rate_limit_per_minute"`
	Limits               IdentityLimits `json:"limits"`
}

// ActivateAtOnce is the activation mode in which a registered user is active
// without any proof.
const ActivateAtOnce = "none"

// IdentityLimits are the limits of External Identity (contract L7).
type IdentityLimits struct {
	RegisterPerIPPerHour        int `json:"register_per_ip_per_hour"`
	RegisterPerTenantPerHour    int `json:"register_per_tenant_per_hour"`
	LoginPerIPPerMinute         int `json:"login_per_ip_per_minute"`
	LoginPerEmailPer15Minutes   int `json:"login_per_email_per_15_minutes"`
	LoginBlockMinutes           int `json:"login_block_minutes"`
	ResetPerEmailPerHour        int `json:"reset_per_email_per_hour"`
	ResetPerTenantPerHour       int `json:"reset_per_tenant_per_hour"`
	RefreshPerTokenPerMinute    int `json:"refresh_per_token_per_minute"`
	VerifyPerIPPerMinute        int `json:"verify_per_ip_per_minute"`
	PasswordResetPerIPPerMinute int `json:"password_reset_per_ip_per_minute"`
}

// DefaultSettings are the values that hold where a manifest is silent (contract D9).
func DefaultSettings() Settings {
	return Settings{
		PublicAPI:                     PublicAPI{Enabled: false, LogStandardRequests: true},
		UnauthenticatedPerIPPerMinute: 1000,
		Staff:                         Staff{SecondFactor: FactorOptional},
		ExternalIdentity: ExternalIdentity{
			OpenRegistration:   true,
			ActivationMode:     "svc_email",
			RateLimitPerMinute: 1000,
			Limits: IdentityLimits{
				RegisterPerIPPerHour: 5, RegisterPerTenantPerHour: 30, LoginPerIPPerMinute: 10,
				LoginPerEmailPer15Minutes: 5, LoginBlockMinutes: 30, ResetPerEmailPerHour: 3, ResetPerTenantPerHour: 30,
				RefreshPerTokenPerMinute: 60, VerifyPerIPPerMinute: 30, PasswordResetPerIPPerMinute: 30,
			},
		},
	}
}

// AppURL is where the tenant's own app lives.
func (t *Tenant) AppURL() string {
	if u := t.Settings.ExternalIdentity.AppURL; u != "" {
		return u
	}
	return t.BaseURL
}

// IdentityOrigins are the origins whose pages may call with an external JWT or
// /auth (contract O3).
func (t *Tenant) IdentityOrigins() []string {
	if list := t.Settings.ExternalIdentity.CORSAllowedOrigins; list != nil {
		return list
	}
	u, err := url.Parse(t.AppURL())
	if err != nil || u.Host == "" {
		return nil
	}
	return []string{u.Scheme + "://" + u.Host}
}

var idRule = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// CheckID reports what is wrong with a tenant's name.
func CheckID(id string) error {
	if !idRule.MatchString(id) {
		return fmt.Errorf("tenant %q: expected [a-z][a-z0-9-]* of at most 63 characters", id)
	}
	return nil
}
