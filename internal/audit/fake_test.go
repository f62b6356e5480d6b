package audit

import (
	"context"
	"sync"
)

// memory is a store in memory; before may make a write fail or stand still.
type memory struct {
	mu        sync.Mutex
	before    func(ctx context.Context, entries []row) error
	entries   map[string]row // by tenant and id
	usage     map[usageKey]usageRow
	writes    int
	isLasting bool
}

func (m *memory) write(ctx context.Context, tenant string, entries []row, usage []usageRow, retry bool) error {
	if m.before != nil {
		if err := m.before(ctx, entries); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.entries == nil {
		m.entries, m.usage = map[string]row{}, map[usageKey]usageRow{}
	}
	added := 0
	for _, e := range entries {
		if _, ok := m.entries[tenant+e.id]; !ok {
			m.entries[tenant+e.id] = e
			added++
		}
	}
	if retry && len(entries) > 0 && added == 0 {
		return nil
	}
	for _, u := range usage {
		sum := m.usage[u.usageKey]
		sum.usageKey = u.usageKey
		sum.requests += u.requests
		sum.errors += u.errors
		sum.latencyMicros += u.latencyMicros
		for i := range sum.buckets {
			sum.buckets[i] += u.buckets[i]
		}
		m.usage[u.usageKey] = sum
	}
	return nil
}

func (m *memory) remember(context.Context, string, []string, int64) error { return nil }
func (m *memory) lasting(error) bool                                      { return m.isLasting }
