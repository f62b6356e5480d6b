package prove

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// meter sends reads at a fixed rate, whether or not earlier ones were answered, and
// measures each from the time it was due.
type meter struct {
	p     *proof
	c     *client
	paths []string
	ask   func(n int) // sends the n-th request in place of a read of the paths, if set
	most  int         // concurrent requests; askers if not set

	begun time.Time    // when the first was due
	next  atomic.Int64 // the number of the next request
	rate  int
	mu    sync.Mutex
	turns []time.Time // when attacks began and ended, by turns
	took  map[bool][]time.Duration
}

// askers is the default limit of concurrent requests.
const askers = 64

// capacity returns how many reads a second the server answers when it does nothing else,
// while this process takes its own share of the machine.
func (m *meter) capacity(lasts time.Duration) int {
	var done atomic.Int64
	var wait sync.WaitGroup
	begun := time.Now()
	for i := range 8 {
		wait.Go(func() {
			for n := i; time.Since(begun) < lasts; n++ {
				m.read(n)
				done.Add(1)
			}
		})
	}
	wait.Wait()
	return int(float64(done.Load()) / time.Since(begun).Seconds())
}

func (m *meter) read(n int) {
	if m.ask != nil {
		m.ask(n)
		return
	}
	a, err := m.c.do("GET", m.paths[n%len(m.paths)], "")
	if err != nil || a.status != http.StatusOK {
		m.p.fail("a read beside: %v %v", a, err)
	}
}

// run sends requests at the rate until ctx ends.
func (m *meter) run(ctx context.Context, rate int) {
	var wait sync.WaitGroup
	m.begun, m.rate = time.Now(), rate
	for range m.atOnce() {
		wait.Go(func() {
			for {
				n := int(m.next.Add(1)) - 1
				due := m.due(n)
				select {
				case <-time.After(time.Until(due)):
				case <-ctx.Done():
					return
				}
				m.read(n)
				m.note(due)
			}
		})
	}
	wait.Wait()
}

func (m *meter) atOnce() int { return cmp.Or(m.most, askers) }

// due returns the time at which the n-th request is due.
func (m *meter) due(n int) time.Time {
	return m.begun.Add(time.Duration(n) * time.Second / time.Duration(m.rate))
}

// catchUp waits, while run is running, until the requests due before an instant have been
// sent. It returns false if that takes longer than patience.
func (m *meter) catchUp(before time.Time) bool {
	for asked := time.Now(); time.Since(asked) < patience; time.Sleep(10 * time.Millisecond) {
		if m.due(int(m.next.Load()) - m.atOnce()).After(before) {
			return true
		}
	}
	return false
}

func (m *meter) note(due time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	beside := false
	for _, at := range m.turns {
		if at.Before(due) {
			beside = !beside
		}
	}
	m.took[beside] = append(m.took[beside], time.Since(due))
}

// turn records whether requests due from now on are beside an attack.
func (m *meter) turn(attacked bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if attacked != (len(m.turns)%2 == 1) {
		m.turns = append(m.turns, time.Now())
	}
}

// take returns the times recorded since its last call: those of requests alone, and those
// of requests beside attacks.
func (m *meter) take() (alone, beside []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	alone, beside = m.took[false], m.took[true]
	m.took = map[bool][]time.Duration{}
	return alone, beside
}

// quantile returns a quantile of sorted times.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	took = slices.Sorted(slices.Values(took))
	return took[int(q*float64(len(took)-1))]
}

// memory samples the memory of a process without the pages of files that it has mapped,
// such as the database's, because the system can reclaim those.
type memory struct {
	file string
	most atomic.Int64
}

// watch samples until ctx ends.
func (n *node) watch(ctx context.Context) *memory {
	m := &memory{file: fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid)}
	go func() {
		for ctx.Err() == nil {
			m.most.Store(max(m.most.Load(), m.now()))
			time.Sleep(4 * time.Millisecond)
		}
	}()
	return m
}

// now returns the current size in bytes, 0 if it is unknown or the process has ended.
func (m *memory) now() int64 {
	b, err := os.ReadFile(m.file)
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(b))
	if len(fields) < 3 {
		return 0
	}
	resident, err1 := strconv.ParseInt(fields[1], 10, 64)
	shared, err2 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return (resident - shared) * int64(os.Getpagesize())
}

// restart resets the peak and returns the current size.
func (m *memory) restart() int64 {
	is := m.now()
	m.most.Store(is)
	return is
}

// peak returns the largest size since restart.
func (m *memory) peak() int64 { return max(m.most.Load(), m.now()) }
