package prove

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(stormClientsFile); file != "" {
		if err := beStormClients(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(filepath.Dir(built)) // if it fails, a folder is left in /tmp
	}
	os.Exit(code)
}

// proving reports whether to run the long measurements.
var proving = os.Getenv("GATEHOUSE_PROVE") != ""

// scale returns how many trials a test has: few in "make test", half of them under the
// race detector, many when proving.
func scale(short, long int) int {
	switch {
	case proving:
		return long
	case racing:
		return max(1, short/2)
	default:
		return short
	}
}

// strictly returns the bound itself when proving. In "make test" other tests use the
// machine, and a delay says nothing of the product: there it returns the time after
// which something has hung.
func strictly(bound time.Duration) time.Duration {
	switch {
	case !proving:
		return max(bound, patience)
	case racing:
		return 6 * bound
	default:
		return bound
	}
}

// "make test" runs each proof once: with the program as it is shipped, or with a
// race build where many requests and a shutdown meet. "make prove" runs them all.

// asShipped skips a test whose program is a race build.
func asShipped(t *testing.T) {
	t.Helper()
	if racing {
		t.Skip("runs with the program as it is shipped")
	}
}

// underRace skips a test whose program is not a race build, except when proving.
func underRace(t *testing.T) {
	t.Helper()
	if !racing && !proving {
		t.Skip("runs under the race detector")
	}
}

// together runs a test in parallel with the others that call it, because they mostly wait
// for processes that they started. Tests that measure times run alone, before these. When
// proving, all tests run alone.
func together(t *testing.T) {
	t.Helper()
	if !proving {
		t.Parallel()
	}
}

var (
	built  string
	binary = sync.OnceValues(func() (string, error) {
		if given := os.Getenv("GATEHOUSE_PROVE_BINARY"); given != "" {
			return given, nil
		}
		dir, err := os.MkdirTemp("", "gatehouse-prove-")
		if err != nil {
			return "", err
		}
		built = filepath.Join(dir, "gatehouse")
		args := []string{"build", "-p", "2", "-buildvcs=false", "-o", built}
		if racing {
			// The Makefile's flags, so that what it compiled is used again.
			args = append(args, "-race", "-gcflags=modernc.org/sqlite/lib=-race=false",
				"-gcflags=golang.org/x/crypto/argon2=-race=false", "-gcflags=golang.org/x/crypto/blake2b=-race=false")
		}
		out, err := exec.Command("go", append(args, "gatehouse/cmd/gatehouse")...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("build the program: %w: %s", err, out)
		}
		return built, nil
	})
)

// program returns the path of the program under test.
func program(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// eachEngine runs a test on both engines.
func eachEngine(t *testing.T, fn func(t *testing.T, engine db.Engine)) {
	t.Helper()
	for _, engine := range dbtest.Engines {
		t.Run(string(engine), func(t *testing.T) { fn(t, engine) })
	}
}

// proof collects one figure.
type proof struct {
	t      *testing.T
	id     string
	engine db.Engine
	seed   uint64
	rand   *rand.Rand // for one goroutine
	begun  time.Time

	mu       sync.Mutex
	trials   int
	failures int
	figures  map[string]any
}

// begin starts a figure, whose line is printed when the test ends.
func begin(t *testing.T, id string, engine db.Engine) *proof {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv("GATEHOUSE_PROVE_SEED"); given != "" {
		n, err := strconv.ParseUint(given, 10, 64)
		if err != nil {
			t.Fatalf("GATEHOUSE_PROVE_SEED: %v", err)
		}
		seed = n
	}
	p := &proof{
		t: t, id: id, engine: engine, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), begun: time.Now(),
		figures: map[string]any{},
	}
	t.Cleanup(p.print)
	return p
}

func (p *proof) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := map[string]any{
		"id": p.id, "engine": p.engine, "trials": p.trials, "failures": p.failures, "seed": p.seed,
		"seconds": int(time.Since(p.begun).Seconds()), "race": racing,
	}
	for name, value := range p.figures {
		line[name] = value
	}
	b, err := json.Marshal(line)
	if err != nil {
		p.t.Error(err)
	}
	fmt.Printf("PROVE %s\n", b)
}

// fail counts a failure. The test continues, so that its line has the count.
func (p *proof) fail(format string, args ...any) {
	p.t.Helper()
	p.mu.Lock()
	p.failures++
	n := p.failures
	p.mu.Unlock()
	if n <= 20 {
		p.t.Errorf("seed %d: "+format, append([]any{p.seed}, args...)...)
	}
}

// tries reports whether the i-th of a list of trials is made: each when proving, else one in some,
// as the seed decides.
func (p *proof) tries(i, some int) bool {
	return proving || (i+int(p.seed%uint64(some)))%some == 0
}

// tried adds to the number of trials.
func (p *proof) tried(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trials += n
}

// add adds to a figure of the line.
func (p *proof) add(name string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, _ := p.figures[name].(int)
	p.figures[name] = was + n
}

// most keeps the longest duration under a name, in milliseconds.
func (p *proof) most(name string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, _ := p.figures[name+"_ms"].(int64)
	p.figures[name+"_ms"] = max(was, d.Milliseconds())
}

// between returns a random duration.
func (p *proof) between(from, to time.Duration) time.Duration {
	return from + time.Duration(p.rand.Int64N(int64(to-from)))
}
