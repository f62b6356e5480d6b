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

// budget is one limit of contract L7, for one address,
// e-mail address, token or tenant.
//
// Where two apply, a request that one of them refuses is charged to neither:
// otherwise whoever has used up their own share could go on and use up, with
// requests that are refused anyway, what everybody shares. A budget of an
// address is charged by every request, those with a body that cannot be read
// included; those of an e-mail address and of the tenant by requests that say
// what they want, whether or not there is such an account.
type budget struct {
	key    string
	limit  int
	window time.Duration
}

func limitsOf(c *httpapi.Call) *tenant.IdentityLimits {
	return &c.Config.Tenant.Settings.ExternalIdentity.Limits
}

// budgetOf names a budget; every key carries the tenant.
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

// take charges every budget, or none when one of them is used up: then it is
// TOO_MANY_REQUESTS. The answer's headers tell of the tightest.
func (s *Service) take(c *httpapi.Call, budgets ...budget) error {
	if err := s.peek(c, budgets...); err != nil {
		return err
	}
	for _, b := range budgets {
		r := s.charge(c, b)
		if !r.Allowed { // another request came between
			return refuse(c, r)
		}
		tell(c, r)
	}
	return nil
}

// charge counts a request against one budget; the server takes it back where the
// request is shed with OVERLOADED.
func (s *Service) charge(c *httpapi.Call, b budget) ratelimit.Result {
	r, charge := s.limiter.Charge(b.key, b.limit, b.window)
	c.Charged(charge)
	return r
}

// peek is take without charging.
func (s *Service) peek(c *httpapi.Call, budgets ...budget) error {
	for _, b := range budgets {
		if r := s.limiter.Peek(b.key, b.limit, b.window); !r.Allowed {
			return refuse(c, r)
		}
	}
	return nil
}

func refuse(c *httpapi.Call, r ratelimit.Result) error {
	c.TellLimit(r)
	seconds := int(math.Ceil(r.Reset.Seconds()))
	return fault.New(fault.TooManyRequests, "too many attempts; try again in %d s", seconds).After(r.Reset)
}

// tell makes the answer's headers tell of r if that is tighter than what they
// would tell so far.
func tell(c *httpapi.Call, r ratelimit.Result) {
	if told := c.ToldLimit(); told == nil || told.Allowed && r.Remaining < told.Remaining {
		c.TellLimit(r)
	}
}

// guessed is whose password may be guessed at: an e-mail address, and the epoch
// of its account, 0 where there is none. With another password guessing begins
// anew: on every node neither the count nor a block of the time before holds.
type guessed struct {
	email string
	epoch int64
}

func ofLogin(c *httpapi.Call, g guessed) budget {
	use := "login/" + strconv.FormatInt(g.epoch, 10)
	return ofEmail(c, use, g.email, limitsOf(c).LoginPerEmailPer15Minutes, 15*time.Minute)
}

// blocked refuses a login for an e-mail address that is blocked.
func (s *Service) blocked(c *httpapi.Call, g guessed) error {
	b := ofLogin(c, g)
	if left, blocked := s.limiter.Blocked(b.key); blocked {
		return refuse(c, ratelimit.Result{Limit: b.limit, Reset: left})
	}
	return nil
}

// takeLogin charges an e-mail address with a login. One attempt too many blocks
// the address for the time the tenant says, whoever the next ones come from.
// After that time it has all its attempts again, however much longer the window
// would have run.
func (s *Service) takeLogin(c *httpapi.Call, g guessed) error {
	if err := s.blocked(c, g); err != nil {
		return err
	}
	limits, b := limitsOf(c), ofLogin(c, g)
	r := s.charge(c, b)
	if r.Allowed {
		tell(c, r)
		return s.blocked(c, g) // since a moment ago: the window is a new one by that
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
