package prove

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// deliveryStorm has senders that deliver different events to nodes that are killed
// meanwhile. They repeat each event until it is acknowledged.
type deliveryStorm struct {
	p     *proof
	s     *shop
	total int

	next  atomic.Int64 // the next event to be sent
	acked atomic.Int64
	bases []atomic.Pointer[string] // the address of each node

	mu       sync.Mutex
	events   map[int]string // the id under which each event was acknowledged
	receipts map[int]int
}

// While nodes are killed at random and providers repeat deliveries until they are
// acknowledged, sometimes two at once, every event is stored once, with its effects.
func TestProveDeliveriesInAStorm(t *testing.T) {
	underRace(t)
	together(t)
	eachEngine(t, func(t *testing.T, engine db.Engine) {
		p := begin(t, "ONCE-2", engine)
		nodes := map[db.Engine]int{db.SQLite: 1, db.Postgres: 2}[engine]
		st := &deliveryStorm{
			p: p, s: newShop(t, engine, 8), total: scale(300, 5000),
			bases: make([]atomic.Pointer[string], nodes), events: map[int]string{}, receipts: map[int]int{},
		}
		st.rage(scale(4, 100))
	})
}

// rage sends all events while it kills nodes, one at a time.
func (st *deliveryStorm) rage(kills int) {
	p := st.p
	p.t.Helper()
	nodes := make([]*node, len(st.bases))
	for i := range nodes {
		nodes[i] = st.s.start()
		st.bases[i].Store(&nodes[i].public)
	}
	var senders sync.WaitGroup
	for id := range 8 {
		senders.Go(func() { st.send(id) })
	}
	for kill := range kills {
		p.tried(1)
		at := int64(st.total*kill/kills + p.rand.IntN(max(1, st.total/kills)))
		for begun := time.Now(); st.acked.Load() < at && time.Since(begun) < time.Minute; {
			time.Sleep(200 * time.Microsecond)
		}
		time.Sleep(p.between(0, 8*time.Millisecond))
		i := p.rand.IntN(len(nodes))
		nodes[i].kill()
		if nodes[i].panicked() {
			p.fail("panic: %s%s", nodes[i].stdout(), nodes[i].stderr())
		}
		nodes[i] = st.s.start()
		st.bases[i].Store(&nodes[i].public)
	}
	senders.Wait()
	for _, n := range nodes {
		n.kill()
	}
	st.judge()
}

// send delivers events until there are no more.
func (st *deliveryStorm) send(id int) {
	random := rand.New(rand.NewPCG(st.p.seed, uint64(id)+200))
	c := provider()
	defer c.CloseIdleConnections()
	for {
		event := int(st.next.Add(1)) - 1
		if event >= st.total {
			return
		}
		if random.IntN(5) == 0 { // another machine of the provider sends the event, too
			var other sync.WaitGroup
			way := rand.New(rand.NewPCG(st.p.seed, uint64(event)+1_000_000))
			other.Go(func() { st.insist(c, way, event) })
			st.insist(c, random, event)
			other.Wait()
		} else {
			st.insist(c, random, event)
		}
		st.acked.Add(1)
		if random.IntN(10) == 0 { // the provider repeats an event that was acknowledged
			st.insist(c, random, event)
		}
	}
}

// ref and mode of an event follow from its number.
func ref(event int) string { return fmt.Sprintf("event %d", event) }

func mode(event int) string {
	if event%4 == 3 {
		return "signed"
	}
	return "token"
}

// insist delivers one event until it is acknowledged.
func (st *deliveryStorm) insist(c *http.Client, random *rand.Rand, event int) {
	begun := time.Now()
	for time.Since(begun) < 3*patience {
		base := *st.bases[random.IntN(len(st.bases))].Load()
		a, err := st.s.deliver(c, base, mode(event), ref(event), st.s.counters[event%len(st.s.counters)])
		switch {
		case hung(err):
			st.p.fail("no answer: %v", err)
			return
		case err != nil:
			st.p.add("cut_off", 1)
			time.Sleep(5 * time.Millisecond)
			continue
		case a.status == http.StatusConflict || a.status == http.StatusServiceUnavailable:
			st.p.add(fmt.Sprintf("answered_%d", a.status), 1) // the provider will retry
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			continue
		}
		st.note(event, a)
		return
	}
	st.p.fail("%s was not acknowledged in %s", ref(event), 3*patience)
}

// note records an acknowledgement. An event has one id and at most one receipt: all other
// answers report a duplicate.
func (st *deliveryStorm) note(event int, a *answer) {
	id, receipt := a.acknowledged()
	st.mu.Lock()
	defer st.mu.Unlock()
	if known := st.events[event]; id == "" || known != "" && id != known {
		st.p.fail("%s was %q: %s %q", ref(event), known, a, id)
		return
	}
	st.events[event] = id
	if receipt {
		st.receipts[event]++
	}
	if st.receipts[event] > 1 {
		st.p.fail("%s has a second receipt: %s", ref(event), a)
	}
}

// judge compares what is stored with what was acknowledged, which must be every event.
func (st *deliveryStorm) judge() {
	p := st.p
	p.t.Helper()
	gone(p.t, st.s.world, backends(p.t, st.s.world))
	if st.s.engine == db.Postgres { // each deadlock costs a second, the deadlock_timeout
		n, err := st.s.number(`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`)
		if err != nil {
			p.fail("%v", err)
		}
		p.add("deadlocks", int(n))
		if n > 0 {
			p.fail("%d deadlocks: two nodes took what they hold in different orders", n)
		}
	}
	n := st.s.start()
	defer n.kill()
	ids := map[string]bool{}
	for _, id := range st.events {
		ids[id] = true
	}
	if len(st.events) != st.total || len(ids) != st.total {
		p.fail("%d of %d events were acknowledged, with %d ids", len(st.events), st.total, len(ids))
	}
	p.add("events", len(ids))
	p.add("receipts_lost", len(ids)-len(st.receipts))
	check(p, st.s, n, "in the end", books{}.and(st.total))
	c := n.client(st.s.token)
	defer c.close()
	list, err := everyHalf(c)
	if err != nil {
		p.fail("%v", err)
	}
	for event := range st.total {
		got := list[ref(event)]
		slices.Sort(got)
		if !slices.Equal(got, []int{1, 2}) {
			p.fail("the effects of %s are %v", ref(event), got)
		}
	}
	if st.s.engine == db.SQLite {
		n.kill()
		integrity(p, filepath.Join(st.s.dir, db.FileName))
	}
}
