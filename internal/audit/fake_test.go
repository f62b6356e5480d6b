package audit

import (
	"context"
	"sync"

	"gatehouse/internal/tenant"
)

// memory is a store in memory; before may make a write fail or block.
type memory struct {
	mu        sync.Mutex
	before    func(ctx context.Context, tenant tenant.ID, blocks []packed) error
	counting  func() error     // may make count fail
	news      chan struct{}    // closed by tell
	entries   map[string]Entry // by tenant and id
	usage     map[usageKey]usageRow
	batches   map[string]int64
	writes    int
	isLasting bool
}

func (m *memory) write(ctx context.Context, tenant tenant.ID, day int64, blocks []packed) error {
	if m.before != nil {
		if err := m.before(ctx, tenant, blocks); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if m.entries == nil {
		m.entries = map[string]Entry{}
	}
	for _, b := range blocks {
		if b.day != day {
			panic("a block of another day")
		}
		for _, e := range contents(b) {
			m.entries[string(tenant)+e.ID] = e
		}
	}
	return nil
}

// contents are the entries of a block.
func contents(b packed) (list []Entry) {
	head, err := unpack(b.head)
	if err != nil {
		panic(err)
	}
	bodies, err := unpack(b.bodies)
	if err != nil {
		panic(err)
	}
	err = readHead(head, func(e *found) {
		if err := e.texts(bodies); err != nil {
			panic(err)
		}
		list = append(list, e.Entry)
	})
	if err != nil {
		panic(err)
	}
	return list
}

func (m *memory) count(_ context.Context, tenant tenant.ID, batch int64, usage []usageRow) error {
	if m.counting != nil {
		if err := m.counting(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.usage == nil {
		m.usage, m.batches = map[usageKey]usageRow{}, map[string]int64{}
	}
	if m.batches[string(tenant)] >= batch {
		return nil
	}
	m.batches[string(tenant)] = batch
	for _, u := range usage {
		sum := m.usage[u.usageKey]
		sum.usageKey = u.usageKey
		sum.add(&u.usageSums)
		m.usage[u.usageKey] = sum
	}
	return nil
}

func (m *memory) remember(context.Context, tenant.ID, []string, int64) error { return nil }
func (m *memory) lasting(error) bool                                         { return m.isLasting }

func (m *memory) written() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news == nil {
		m.news = make(chan struct{})
	}
	return m.news
}

// tell signals that the database has accepted another caller's write.
func (m *memory) tell() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news != nil {
		close(m.news)
		m.news = nil
	}
}
