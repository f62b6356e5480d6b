package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
)

// How much a storm of logins may delay reads of records, and how much memory it may take.
const (
	stormWait   = 30 * time.Millisecond // on the p99 of the reads
	stormMemory = 300 << 20
	attackers   = 32
)

// Logins cannot take the cores from other requests: reads at a fifth of the server's
// capacity are hardly delayed while 32 clients log in as fast as the server lets them.
func TestProveALoginStormLeavesDataAlone(t *testing.T) {
	asShipped(t)
	p := begin(t, "STORM-login", db.SQLite)
	w := newPortal(t, db.SQLite)
	// Reads are not logged, because the test measures logins and not the disk.
	w.apply(strings.Replace(w.manifest("none", often, ""), "log_standard_requests: true", "log_standard_requests: false", 1))
	w.token = w.key(owner)
	n := w.serve()
	c := n.client(w.token)
	defer c.close()
	m := &meter{p: p, c: c, took: map[bool][]time.Duration{}}
	for i := range 50 {
		a, err := c.do("POST", contact, fmt.Sprintf(`{"first_name":"Contact %d"}`, i))
		if err != nil || a.status != http.StatusCreated {
			t.Fatal(a, err)
		}
		r, _ := a.record() // without an id the reads fail
		m.paths = append(m.paths, contact+"/"+r.ID)
	}
	rate := max(1, m.capacity(time.Duration(scale(1, 10))*time.Second)/5)
	p.set("reads_per_second", int64(rate))
	ctx, cancel := context.WithCancel(t.Context())
	var reads sync.WaitGroup
	reads.Go(func() { m.run(ctx, rate) })
	time.Sleep(time.Second)
	m.take()

	mem := n.watch(ctx)
	var alone, beside []time.Duration
	for range scale(1, 5) {
		time.Sleep(time.Duration(scale(2, 20)) * time.Second)
		p.highest("memory_idle_mib", mem.restart()>>20)
		m.turn(true)
		loginStorm(p, n, w, time.Duration(scale(3, 20))*time.Second)
		m.turn(false)
		p.highest("memory_storm_mib", mem.peak()>>20)
		a, b := m.take()
		alone, beside = append(alone, a...), append(beside, b...)
	}
	cancel()
	reads.Wait()
	judgeStorm(p, alone, beside, n.peakRSS())
	if n.panicked() || !n.running() {
		p.fail("the process did not stay as it was: %s%s", n.stdout(), n.stderr())
	}
}

// judgeStorm compares the figures with the bounds.
func judgeStorm(p *proof, alone, beside []time.Duration, peak int64) {
	p.t.Helper()
	p.set("peak_rss_mib", peak>>20)
	for name, took := range map[string][]time.Duration{"alone": alone, "storm": beside} {
		p.set("reads_"+name, int64(len(took)))
		p.set("p50_"+name+"_us", quantile(took, 0.5).Microseconds())
		p.set("p99_"+name+"_us", quantile(took, 0.99).Microseconds())
		p.set("most_"+name+"_us", quantile(took, 1).Microseconds())
	}
	more := quantile(beside, 0.99) - quantile(alone, 0.99)
	p.set("p99_more_us", more.Microseconds())
	if more > strictly(stormWait) {
		p.fail("p99 of reads is %s longer beside a storm of logins", more)
	}
	if peak > stormMemory {
		p.fail("the process took up %d MiB", peak>>20)
	}
}

// loginStorm runs clients that each send one login after the other, with right and wrong
// passwords, for addresses with and without an account.
func loginStorm(p *proof, n *node, w *portal, lasts time.Duration) {
	p.t.Helper()
	v := n.visitor()
	defer v.close()
	logins := []string{
		members("email", eva, "password", w.passwords[eva]), members("email", dora, "password", w.passwords[dora]),
		members("email", eva, "password", "a wrong password"), members("email", "nora@customer.example", "password", "a wrong password"),
		members("email", rita, "password", w.passwords[rita]),
	}
	may := []int{http.StatusOK, http.StatusUnauthorized, http.StatusServiceUnavailable}
	var wait sync.WaitGroup
	begun := time.Now()
	for id := range attackers {
		random := rand.New(rand.NewPCG(p.seed, uint64(id)+300))
		wait.Go(func() {
			for time.Since(begun) < lasts {
				a, err := v.send("POST", auth+"login", logins[random.IntN(len(logins))])
				if err != nil || !slices.Contains(may, a.status) {
					p.fail("a login in the storm: %v %v", a, err)
					return
				}
				p.tried(1)
				p.add(fmt.Sprintf("answered_%d", a.status), 1)
				p.most("slowest_login", a.at.Sub(a.sent))
			}
		})
	}
	wait.Wait()
}

// peakRSS returns the peak resident memory of the process in bytes, or 0 if the system
// does not report it.
func (n *node) peakRSS() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}
