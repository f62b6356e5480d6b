package identity

import (
	"time"

	"gatehouse/internal/httpapi"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
)

func limitsOf(c *httpapi.Call) *tenant.IdentityLimits {
	return &c.Config.Tenant.Settings.ExternalIdentity.Limits
}

func perMinute(n int) signin.Rate { return signin.Rate{Limit: n, Window: time.Minute} }

func perHour(n int) signin.Rate { return signin.Rate{Limit: n, Window: time.Hour} }

// blocked counts and logs that an e-mail address was blocked.
func (s *Service) blocked(c *httpapi.Call, minutes int) {
	s.counts.blocks.Add(1)
	s.emit("identity.login_blocked", map[string]any{"tenant": c.Config.Tenant.ID, "ip": c.IP.String(), "minutes": minutes})
}
