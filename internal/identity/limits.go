package identity

import (
	"math"
	"strconv"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// budget is one limit of contract L7 for one address, e-mail address, token or tenant.
//
// If two budgets apply and one refuses a request, neither is charged. Otherwise a caller
// that has used up its own budget could use up the tenant's with requests that are
// refused anyway. Every request is charged to the budget of its address, even if its body
// cannot be read. Only valid requests are charged to the budgets of an e-mail address and
// of the tenant, whether or not the account exists.
type budget struct {
	key    string
	limit  int
	window time.Duration
}

func limitsOf(c *httpapi.Call) *tenant.IdentityLimits {
	return &c.Config.Tenant.Settings.ExternalIdentity.Limits
}

// budgetOf returns a budget. Its key includes the tenant.
func budgetOf(c *httpapi.Call, use, whose string, limit int, window time.Duration) budget {
	return budget{"identity/" + string(c.Config.Tenant.ID) + "/" + use + "/" + whose, limit, window}
}

func ofAddress(c *httpapi.Call, use string, limit int, window time.Duration) budget {
	return budgetOf(c, use+"/address", httpapi.AddressKey(c.IP), limit, window)
}

func ofEmail(c *httpapi.Call, use, email string, limit int, window time.Duration) budget {
	return budgetOf(c, use+"/email", user.EmailKey(email), limit, window)
}

func ofTenant(c *httpapi.Call, use string, limit int, window time.Duration) budget {
	return budgetOf(c, use, "tenant", limit, window)
}

// take charges all budgets, or none if one of them is used up; then it returns
// TOO_MANY_REQUESTS. The answer's headers show the tightest one.
func (s *Service) take(c *httpapi.Call, budgets ...budget) error {
	if err := s.peek(c, budgets...); err != nil {
		return err
	}
	for _, b := range budgets {
		r := s.charge(c, b)
		if !r.Allowed { // another request came first
			return refuse(c, r)
		}
		showLimit(c, r)
	}
	return nil
}

// charge counts a request against one budget. The server takes the charge back if it
// answers OVERLOADED.
func (s *Service) charge(c *httpapi.Call, b budget) ratelimit.Result {
	r, charge := s.limiter.Charge(b.key, b.limit, b.window)
	c.Charged(charge)
	return r
}

// peek is take without the charge.
func (s *Service) peek(c *httpapi.Call, budgets ...budget) error {
	for _, b := range budgets {
		if r := s.limiter.Peek(b.key, b.limit, b.window); !r.Allowed {
			return refuse(c, r)
		}
	}
	return nil
}

// refuse returns TOO_MANY_REQUESTS and makes the answer's headers show r.
func refuse(c *httpapi.Call, r ratelimit.Result) error {
	c.TellLimit(r)
	seconds := int(math.Ceil(r.Reset.Seconds()))
	return fault.New(fault.TooManyRequests, "too many attempts; try again in %d s", seconds).After(r.Reset)
}

// showLimit makes the answer's headers show r if it is tighter than what they show so
// far.
func showLimit(c *httpapi.Call, r ratelimit.Result) {
	if told := c.ToldLimit(); told == nil || told.Allowed && r.Remaining < told.Remaining {
		c.TellLimit(r)
	}
}

// loginKey identifies a password for the limit of guesses: by the e-mail address and the
// epoch of its account, 0 if there is none. A new password has a new epoch, so on every
// node neither the count nor a block of the old password applies to it.
type loginKey struct {
	email string
	epoch int64
}

func ofLogin(c *httpapi.Call, g loginKey) budget {
	use := "login/" + strconv.FormatInt(g.epoch, 10)
	return ofEmail(c, use, g.email, limitsOf(c).LoginPerEmailPer15Minutes, 15*time.Minute)
}

// blocked returns TOO_MANY_REQUESTS for a login with an e-mail address that is blocked.
func (s *Service) blocked(c *httpapi.Call, g loginKey) error {
	b := ofLogin(c, g)
	if left, blocked := s.limiter.Blocked(b.key); blocked {
		return refuse(c, ratelimit.Result{Limit: b.limit, Reset: left})
	}
	return nil
}

// takeLogin charges a login to its e-mail address. The first one over the limit blocks the
// address, for all callers, for as long as the tenant's settings say; takeLogin then
// returns TOO_MANY_REQUESTS. After that time the address has all its attempts again,
// even if the window has not ended. It returns OVERLOADED if too many addresses are
// blocked.
func (s *Service) takeLogin(c *httpapi.Call, g loginKey) error {
	if err := s.blocked(c, g); err != nil {
		return err
	}
	limits, b := limitsOf(c), ofLogin(c, g)
	r := s.charge(c, b)
	if r.Allowed {
		showLimit(c, r)
		return s.blocked(c, g) // another request may have blocked it since, which begins a new window
	}
	block := time.Duration(limits.LoginBlockMinutes) * time.Minute
	if !s.limiter.Block(b.key, s.clock.Now().Add(block)) {
		c.TellLimit(r)
		return fault.New(fault.Overloaded, "too many e-mail addresses are blocked; try again later").After(r.Reset)
	}
	s.limiter.Forget(b.key)
	s.counts.blocks.Add(1)
	s.emit("identity.login_blocked", map[string]any{"tenant": c.Config.Tenant.ID, "ip": c.IP.String(), "minutes": limits.LoginBlockMinutes})
	r.Reset = block
	return refuse(c, r)
}
