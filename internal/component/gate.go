package component

import (
	"context"
	"sync"
	"time"

	"gatehouse/internal/fault"
)

// gate decides who may run. Each tenant has its own limit and its own queue;
// a place that falls free goes to the next tenant in turn, so that one
// tenant's crowd does not make another wait behind it.
type gate struct {
	limits Options

	mu      sync.Mutex
	running int
	waiting int
	tenants map[string]*line
	turns   []*line // tenants with somebody waiting, the next to be served first
}

// line is what a tenant has running and waiting.
type line struct {
	running int
	queue   []chan struct{} // closed to let its owner in
}

func newGate(o Options) *gate { return &gate{limits: o, tenants: map[string]*line{}} }

// enter waits for a place. Without one in time the error is OVERLOADED.
func (g *gate) enter(ctx context.Context, tenant string) error {
	g.mu.Lock()
	l := g.tenants[tenant]
	if l == nil {
		l = &line{}
		g.tenants[tenant] = l
	}
	if len(l.queue) == 0 && l.running < g.limits.PerTenant && g.running < g.limits.Instances {
		l.running++
		g.running++
		g.mu.Unlock()
		return nil
	}
	if g.waiting >= g.limits.Waiting || len(l.queue) >= g.limits.WaitingPerTenant {
		g.mu.Unlock()
		return overloaded()
	}
	turn := make(chan struct{})
	if len(l.queue) == 0 {
		g.turns = append(g.turns, l)
	}
	l.queue = append(l.queue, turn)
	g.waiting++
	g.mu.Unlock()

	timer := time.NewTimer(g.limits.MaxWait)
	defer timer.Stop()
	var err error
	select {
	case <-turn:
		return nil
	case <-timer.C:
		err = overloaded()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if g.withdraw(tenant, l, turn) {
		return err
	}
	g.leave(tenant) // let in while giving up: pass it on
	return err
}

func overloaded() error {
	return fault.New(fault.Overloaded, "Too many components are running. Try again soon.").After(time.Second)
}

// withdraw takes a waiter out of its queue; false if it was let in meanwhile.
func (g *gate) withdraw(tenant string, l *line, turn chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, c := range l.queue {
		if c == turn {
			l.queue = append(l.queue[:n], l.queue[n+1:]...)
			g.waiting--
			if len(l.queue) == 0 {
				g.remove(l)
				if l.running == 0 {
					delete(g.tenants, tenant)
				}
			}
			return true
		}
	}
	return false
}

func (g *gate) remove(l *line) {
	for n, other := range g.turns {
		if other == l {
			g.turns = append(g.turns[:n], g.turns[n+1:]...)
			return
		}
	}
}

// leave gives a place back and lets the next one in.
func (g *gate) leave(tenant string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := g.tenants[tenant]
	own.running--
	g.running--
	for n, l := range g.turns {
		if l.running >= g.limits.PerTenant || g.running >= g.limits.Instances {
			continue
		}
		l.running++
		g.running++
		g.waiting--
		close(l.queue[0])
		l.queue = l.queue[1:]
		g.turns = append(g.turns[:n], g.turns[n+1:]...)
		if len(l.queue) > 0 {
			g.turns = append(g.turns, l)
		}
		break
	}
	if own.running == 0 && len(own.queue) == 0 {
		delete(g.tenants, tenant)
	}
}
