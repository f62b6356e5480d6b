package signin

import (
	"context"
	"math"
	"strconv"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/user"
)

// Limits charges requests to the budgets of addresses, e-mail addresses and tenants. It
// may be used by several goroutines at once.
type Limits struct {
	Limiter *ratelimit.Limiter
	Clock   clock.Clock
	// Name comes first in the key of every budget, so that the budgets of two features
	// are apart.
	Name string
	// Blocked is called when an e-mail address has been blocked for some minutes.
	Blocked func(c *httpapi.Call, minutes int)
}

// Budget is one limit (contract L7) for one address, e-mail address, token or tenant.
//
// If two budgets apply and one refuses a request, neither is charged. Otherwise a caller
// that has used up its own budget could use up the tenant's with requests that are
// refused anyway. Every request is charged to the budget of its address, even if its body
// cannot be read. Only valid requests are charged to the budgets of an e-mail address and
// of the tenant, whether or not the account exists.
type Budget struct {
	key    string
	limit  int
	window time.Duration
}

// Rate is how many requests a budget allows in a window.
type Rate struct {
	Limit  int
	Window time.Duration
}

// Of returns the budget of one user of a limit. Its key includes the tenant.
func (l *Limits) Of(c *httpapi.Call, use, whose string, r Rate) Budget {
	return Budget{l.Name + "/" + string(c.Config.Tenant.ID) + "/" + use + "/" + whose, r.Limit, r.Window}
}

// OfAddress returns the budget of the client's address.
func (l *Limits) OfAddress(c *httpapi.Call, use string, r Rate) Budget {
	return l.Of(c, use+"/address", httpapi.AddressKey(c.IP), r)
}

// OfEmail returns the budget of an e-mail address.
func (l *Limits) OfEmail(c *httpapi.Call, use, email string, r Rate) Budget {
	return l.Of(c, use+"/email", user.EmailKey(email), r)
}

// OfTenant returns the budget of the tenant.
func (l *Limits) OfTenant(c *httpapi.Call, use string, r Rate) Budget {
	return l.Of(c, use, "tenant", r)
}

// Take charges all budgets, or none if one of them is used up; then it returns
// TOO_MANY_REQUESTS. The answer's headers show the tightest one.
func (l *Limits) Take(c *httpapi.Call, budgets ...Budget) error {
	if err := l.Peek(c, budgets...); err != nil {
		return err
	}
	for _, b := range budgets {
		r := l.charge(c, b)
		if !r.Allowed { // another request came first
			return refuse(c, r)
		}
		show(c, r)
	}
	return nil
}

// charge counts a request against one budget. The server takes the charge back if it
// answers OVERLOADED.
func (l *Limits) charge(c *httpapi.Call, b Budget) ratelimit.Result {
	r, charge := l.Limiter.Charge(b.key, b.limit, b.window)
	c.Charged(charge)
	return r
}

// Charge counts a request against one budget, whether or not it is used up, and makes the
// answer's headers show it if it is the tightest.
func (l *Limits) Charge(c *httpapi.Call, b Budget) { show(c, l.charge(c, b)) }

// Peek is Take without the charge.
func (l *Limits) Peek(c *httpapi.Call, budgets ...Budget) error {
	for _, b := range budgets {
		if r := l.Limiter.Peek(b.key, b.limit, b.window); !r.Allowed {
			return refuse(c, r)
		}
	}
	return nil
}

// Show makes the answer's headers show a budget if it is tighter than what they show so
// far.
func (l *Limits) Show(c *httpapi.Call, b Budget) { show(c, l.Limiter.Peek(b.key, b.limit, b.window)) }

// refuse returns TOO_MANY_REQUESTS and makes the answer's headers show r.
func refuse(c *httpapi.Call, r ratelimit.Result) error {
	c.TellLimit(r)
	seconds := int(math.Ceil(r.Reset.Seconds()))
	return fault.New(fault.TooManyRequests, "too many attempts; try again in %d s", seconds).After(r.Reset)
}

func show(c *httpapi.Call, r ratelimit.Result) {
	if told := c.ToldLimit(); told == nil || told.Allowed && r.Remaining < told.Remaining {
		c.TellLimit(r)
	}
}

// Guess identifies a password for the limit of guesses: by the e-mail address and the
// epoch of its account, 0 if there is none. A new password has a new epoch, so on every
// node neither the count nor a block of the old password applies to it.
type Guess struct {
	Email string
	Epoch int64
}

func (l *Limits) ofGuess(c *httpapi.Call, g Guess) Budget {
	use := "login/" + strconv.FormatInt(g.Epoch, 10)
	limits := &c.Config.Tenant.Settings.ExternalIdentity.Limits
	return l.OfEmail(c, use, g.Email, Rate{limits.LoginPerEmailPer15Minutes, 15 * time.Minute})
}

// CheckBlock returns TOO_MANY_REQUESTS for a guess with an e-mail address that is blocked.
func (l *Limits) CheckBlock(c *httpapi.Call, g Guess) error {
	b := l.ofGuess(c, g)
	if left, blocked := l.Limiter.Blocked(b.key); blocked {
		return refuse(c, ratelimit.Result{Limit: b.limit, Reset: left})
	}
	return nil
}

// TakeGuess charges a guess to its e-mail address. The first one over the limit blocks the
// address, for all callers, for as long as the tenant's settings say; TakeGuess then
// returns TOO_MANY_REQUESTS. After that time the address has all its attempts again,
// even if the window has not ended. It returns OVERLOADED if too many addresses are
// blocked.
func (l *Limits) TakeGuess(c *httpapi.Call, g Guess) error {
	if err := l.CheckBlock(c, g); err != nil {
		return err
	}
	b := l.ofGuess(c, g)
	r := l.charge(c, b)
	if r.Allowed {
		show(c, r)
		return l.CheckBlock(c, g) // another request may have blocked it since, which begins a new window
	}
	minutes := c.Config.Tenant.Settings.ExternalIdentity.Limits.LoginBlockMinutes
	block := time.Duration(minutes) * time.Minute
	if !l.Limiter.Block(b.key, l.Clock.Now().Add(block)) {
		c.TellLimit(r)
		return fault.New(fault.Overloaded, "too many e-mail addresses are blocked; try again later").After(r.Reset)
	}
	l.Limiter.Forget(b.key)
	l.Blocked(c, minutes)
	r.Reset = block
	return refuse(c, r)
}

// Admit waits for a place to check a password and then charges the attempt to its e-mail
// address: attempts that wait, and may be refused with OVERLOADED, must not block an
// account. leave must be called afterwards.
func (l *Limits) Admit(ctx context.Context, c *httpapi.Call, h *Hasher, g Guess) (leave func(), err error) {
	if err := l.CheckBlock(c, g); err != nil {
		return nil, err
	}
	leave, err = h.Admit(ctx, c.Config.Tenant.ID)
	if err != nil {
		return nil, err
	}
	if err := l.TakeGuess(c, g); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}
