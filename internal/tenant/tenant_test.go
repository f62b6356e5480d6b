package tenant_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"gatehouse/internal/tenant"
)

func TestWhereATenantsAppLives(t *testing.T) {
	for _, c := range []struct {
		base, app string
		cors      []string
		lives     string
		origins   []string
	}{
		{"https://acme.example", "", nil, "https://acme.example", []string{"https://acme.example"}},
		{"https://acme.example", "https://app.acme.example:8443/portal", nil, "https://app.acme.example:8443/portal", []string{"https://app.acme.example:8443"}},
		{"https://acme.example", "https://app.acme.example", []string{"https://other.example"}, "https://app.acme.example", []string{"https://other.example"}},
		{"https://acme.example", "", []string{}, "https://acme.example", []string{}}, // none, and not the default
		{"", "", nil, "", nil},
	} {
		is := &tenant.Tenant{BaseURL: c.base, Settings: tenant.DefaultSettings()}
		is.Settings.ExternalIdentity.AppURL, is.Settings.ExternalIdentity.CORSAllowedOrigins = c.app, c.cors
		if is.AppURL() != c.lives || !reflect.DeepEqual(is.IdentityOrigins(), c.origins) {
			t.Errorf("%+v: %s, %q", c, is.AppURL(), is.IdentityOrigins())
		}
	}
}

// TestANewTenantIsClosed holds contract D9: nothing answers before it is enabled.
func TestANewTenantIsClosed(t *testing.T) {
	s := tenant.DefaultSettings()
	if s.PublicAPI.Enabled || s.ExternalIdentity.Enabled || s.ExternalIdentity.ActivationMode == tenant.ActivateAtOnce || s.ExternalIdentity.DefaultPermissionSet != "" {
		t.Errorf("%+v", s)
	}
	limits := reflect.ValueOf(s.ExternalIdentity.Limits)
	for i := range limits.NumField() {
		if limits.Field(i).Int() < 1 {
			t.Errorf("%s has no limit", limits.Type().Field(i).Name)
		}
	}
}

// TestAnIDIsNotDecoded: json.Unmarshal makes no ID of what a request says, with or
// without a tag.
func TestAnIDIsNotDecoded(t *testing.T) {
	var body struct{ Tenant tenant.ID }
	if err := json.Unmarshal([]byte(`{"tenant": "other"}`), &body); err == nil || body.Tenant != "" {
		t.Errorf("a body made the id %q: %v", body.Tenant, err)
	}
}
