package signin

import (
	"net/url"
	"strings"

	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
)

// Sender returns the address that mails about accounts come from: no-reply at the host of
// the tenant's base URL, with the tenant's name.
func Sender(t *tenant.Tenant) string {
	host := "localhost"
	if u, err := url.Parse(t.BaseURL); err == nil && u.Hostname() != "" && !strings.Contains(u.Hostname(), ":") {
		host = u.Hostname()
	}
	return mail.Address(t.DisplayName, "no-reply@"+host)
}
