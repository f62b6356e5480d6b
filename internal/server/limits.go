package server

import (
	"net/netip"
	"slices"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/tenant"
)

const window = time.Minute // of every rate limit outside /auth (contract L1)

// take counts the request against a budget, which the answer's headers then
// describe.
func (x *exchange) take(budget string, perMinute int) bool {
	return x.takeMany(budget, perMinute, 1)
}

// takeMany is take for n requests, of which all are counted or none.
func (x *exchange) takeMany(budget string, perMinute, n int) bool {
	var charge ratelimit.Charge
	x.limit, charge = x.s.limiter.ChargeMany(budget, n, perMinute, window)
	x.limited = true
	x.charges = append(x.charges, charge)
	return x.limit.Allowed
}

// takeMore counts n more requests against the budget of the credential, but no more
// than a whole window has: a batch must be possible under any limit.
func (x *exchange) takeMore(n int) error {
	n = min(n, x.perMinute-1)
	if n > 0 && !x.takeMany(x.budget, x.perMinute, n) {
		return fault.New(fault.RateLimited, "too many requests: this one counts as %d, and %d are left; try again in %d s", n+1, x.limit.Remaining+1, seconds(x.limit.Reset)).
			After(x.limit.Reset)
	}
	return nil
}

// refuse counts the request against its address. It returns err, or
// RATE_LIMITED when the address's budget is used up.
func (x *exchange) refuse(err error) error {
	if !x.takeAddress() {
		return x.rateLimited()
	}
	return err
}

// charged reports whether the request counted against any budget.
func (x *exchange) charged() bool {
	counted := func(c ratelimit.Charge) bool { return c != ratelimit.Charge{} }
	return slices.ContainsFunc(x.charges, counted) || x.call != nil && slices.ContainsFunc(x.call.Charges(), counted)
}

// uncharge takes the request off every budget it counted against: what the
// platform sheds is charged to nobody (contract L5). A caller who hung up still
// pays; otherwise hanging up would make requests free.
func (x *exchange) uncharge() {
	if x.r.Context().Err() != nil {
		return
	}
	charges := x.charges
	if x.call != nil {
		charges = append(charges, x.call.Charges()...)
	}
	for _, c := range charges {
		x.s.limiter.Return(c)
	}
	x.returned = true
	x.counted = 0
	for _, c := range x.charges {
		x.counted += c.Requests()
	}
}

// settle ends what the request counts against, once its answer is known: one
// that is shed counts against nothing, and one that counts against nothing else
// counts against its address (contract L2, L5). Then x.limit is the limit that
// the answer's headers describe. failure is nil for a success.
func (x *exchange) settle(failure *fault.Error) {
	// A component's fail() may choose OVERLOADED with a status of its own; that
	// is charged.
	if failure != nil && failure.Code == fault.Overloaded && failure.Status == 0 && !failure.Charged {
		x.uncharge()
	}
	if x.call != nil && x.call.ToldLimit() != nil {
		x.limit, x.limited = *x.call.ToldLimit(), true
	}
	switch {
	case !x.limited && x.returned:
		x.peekAddress()
	case !x.limited:
		x.takeAddress()
	case x.returned && x.limit.Allowed && x.charged():
		x.limit.Remaining = min(x.limit.Limit, x.limit.Remaining+max(1, x.counted))
	}
}

func (x *exchange) rateLimited() error {
	return fault.New(fault.RateLimited, "too many requests; try again in %d s", seconds(x.limit.Reset)).After(x.limit.Reset)
}

// takeAddress counts the request against the budget that all requests of one
// address without a valid credential share (contract L2).
func (x *exchange) takeAddress() bool {
	return x.take(x.addressBudget())
}

// peekAddress is takeAddress without counting.
func (x *exchange) peekAddress() bool {
	budget, perMinute := x.addressBudget()
	x.limit, x.limited = x.s.limiter.Peek(budget, perMinute, window), true
	return x.limit.Allowed
}

// addressBudget returns the budget of the address: the tenant's, or the one for
// unknown hosts.
func (x *exchange) addressBudget() (budget string, perMinute int) {
	if x.surface == nil {
		return addressBudget("", x.ip), unknownHostPerMinute
	}
	return addressBudget(x.config.Tenant.ID, x.ip), x.surface.perAddress(&x.config.Tenant.Settings)
}

// addressBudget names the budget of an address at a tenant, or at none ("").
func addressBudget(tenant tenant.ID, ip netip.Addr) string {
	return string(tenant) + "/address/" + httpapi.AddressKey(ip)
}

// unknownHostPerMinute is the limit of an address where there is no tenant to
// set one.
const unknownHostPerMinute = 1000
