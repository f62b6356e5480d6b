package audit

import (
	"sync"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

const (
	maxNames      = 16 << 10  // users seen, and pending, at once
	namesAtOnce   = 32        // looked up between two writes
	namesNotAgain = time.Hour // after which an address is looked up again
)

// names tracks which users' e-mail addresses must be stored: those seen for the
// first time in an hour. The entries have ids only, but a deleted user can
// still be searched by address.
type names struct {
	mu      sync.Mutex
	seen    map[userOf]time.Time
	pending map[tenant.ID][]string // users by tenant
	count   int                    // of pending
}

type userOf struct {
	tenant tenant.ID
	user   string
}

func newNames() names {
	return names{seen: map[userOf]time.Time{}, pending: map[tenant.ID][]string{}}
}

func (n *names) saw(tenant tenant.ID, user string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key := userOf{tenant, user}
	at, ok := n.seen[key]
	now := time.Now()
	if ok && now.Sub(at) < namesNotAgain || n.count >= maxNames {
		return
	}
	if len(n.seen) >= maxNames {
		clear(n.seen)
	}
	n.seen[key] = now
	n.pending[tenant] = append(n.pending[tenant], user)
	n.count++
}

// some reports whether any user is pending.
func (n *names) some() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count > 0
}

// take returns a tenant and some of its pending users, or none.
func (n *names) take() (tenant tenant.ID, users []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for t, list := range n.pending {
		count := min(len(list), namesAtOnce)
		if count == len(list) {
			delete(n.pending, t)
		} else {
			n.pending[t] = list[count:]
		}
		n.count -= count
		return t, list[:count]
	}
	return "", nil
}

// rememberUsers looks up some new users, or all of them. A failure does not
// matter: the next entry of the user tries again.
func (r *Recorder) rememberUsers(all bool) {
	for {
		tenant, users := r.names.take()
		if len(users) == 0 {
			return
		}
		if err := r.store.remember(r.ctx, tenant, users, clock.Micros(r.clk.Now())); err != nil {
			r.names.forget(tenant, users)
		}
		if !all {
			return
		}
	}
}

func (n *names) forget(tenant tenant.ID, users []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, user := range users {
		delete(n.seen, userOf{tenant, user})
	}
}
