package db

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fitness is what a server is good for. A higher one is preferred.
type fitness int

const (
	lost     fitness = iota // it does not answer, or is not what target_session_attrs asks for
	unseen                  // nobody has asked it yet
	readOnly                // it answers and refuses writes, as a standby does
	writable
)

// hosts are the servers that the URL names.
type hosts struct {
	list []*host
}

// host is one server of the URL.
type host struct {
	config *pgx.ConnConfig // of this host alone, for the watch

	mu        sync.Mutex
	fitness   fitness
	since     time.Time
	addresses map[string]bool // to which it was dialed
}

// hostsOf returns the servers of a configuration, in the order of the URL.
func hostsOf(config *pgx.ConnConfig, links *links) *hosts {
	hs := &hosts{}
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for len(ways) > 0 {
		first := ways[0]
		mine := func(w *pgconn.FallbackConfig) bool { return w.Host == first.Host && w.Port == first.Port }
		h := &host{config: config.Copy(), fitness: unseen, addresses: map[string]bool{}}
		var of []*pgconn.FallbackConfig // of one host there may be two, with TLS and without
		for _, w := range ways {
			if mine(w) {
				of = append(of, w)
			}
		}
		ways = slices.DeleteFunc(ways, mine)
		use(h.config, of)
		h.config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			h.mu.Lock()
			h.addresses[address] = true
			h.mu.Unlock()
			return links.connect(ctx, network, address, true)
		}
		hs.list = append(hs.list, h)
	}
	return hs
}

func use(config *pgx.ConnConfig, ways []*pgconn.FallbackConfig) {
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = ways[0].Host, ways[0].Port, ways[0].TLSConfig, ways[1:]
}

// order makes a connection try the fittest server first.
func (hs *hosts) order(config *pgx.ConnConfig) {
	if len(hs.list) < 2 {
		return
	}
	order := slices.Clone(hs.list)
	slices.SortStableFunc(order, func(a, b *host) int { return cmp.Compare(b.is(), a.is()) })
	var ways []*pgconn.FallbackConfig
	for _, h := range order {
		c := h.config
		ways = append(ways, &pgconn.FallbackConfig{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig})
		ways = append(ways, c.Fallbacks...)
	}
	use(config, ways)
}

// best returns the fitness of the fittest server.
func (hs *hosts) best() fitness {
	best := lost
	for _, h := range hs.list {
		best = max(best, h.is())
	}
	return best
}

// worse returns the addresses of servers to leave: another is writable, and they are not; or
// another is read-only, and they have been lost for some time. Addresses that a fitter server
// has, too, are not among them.
func (hs *hosts) worse() (addresses []string) {
	best := hs.best()
	keep := map[string]bool{}
	for _, h := range hs.list {
		h.mu.Lock()
		worse := best == writable && h.fitness < best && h.fitness != unseen || best == readOnly && h.fitness == lost && time.Since(h.since) > lostFor
		for address := range h.addresses {
			if worse {
				addresses = append(addresses, address)
			} else {
				keep[address] = true
			}
		}
		h.mu.Unlock()
	}
	return slices.DeleteFunc(addresses, func(a string) bool { return keep[a] })
}

func (h *host) is() fitness {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fitness
}

// becomes notes the fitness and returns the one before.
func (h *host) becomes(f fitness) (was fitness) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was = h.fitness
	if was != f {
		h.fitness, h.since = f, time.Now()
	}
	return was
}

// heard returns when the server last sent something, on any connection.
func (h *host) heard(links *links) (last time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for address := range h.addresses {
		if at := time.Unix(0, links.last(address).Load()); at.After(last) {
			last = at
		}
	}
	return last
}
