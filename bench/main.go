// Command bench measures Gatehouse beside its floor (a bare net/http handler that answers the
// same bytes) and PocketBase, and whether the time of lists stays the same as data grows.
//
// Every measured server runs alone on core 0 with GOMAXPROCS=1; the load comes
// from core 1. Contestants are measured in turns, round after round, and the medians of the
// rounds are compared, so that a change of the machine's speed affects all. Run it with
// "make bench"; it writes docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config has the flags, and the paths of files.
type config struct {
	gatehouse string // the binary under test
	bin       string // where floor and pocketbase are
	work      string // data folders, captured answers, logs; emptied at start

	rounds, seconds int
	records         int // records in the throughput data set
	small, large    int // the two sizes of the flat lists
	page            int // the deep page of the queries
	many            int // the large size of the queries; the small one is that of the flat lists
	manyOnPostgres  int // the same on PostgreSQL
	requests        int // requests per data set and kind of visibility
	depth           int // how far down a traversal is compared with its top

	peersOnly bool
	profile   bool
	against   string // another gatehouse binary to compare with; empty for the usual run
	quick     bool
	only      []string
}

// parts are the values of -only.
var parts = []string{"read", "list", "create", "batch", "component", "login", "jwt", "flat", "traversal", "queries", "postgres", "audit"}

func (c *config) wants(part string) bool { return len(c.only) == 0 || slices.Contains(c.only, part) }

func main() {
	log.SetFlags(log.Ltime)
	if err := pinSelf(); err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	var c config
	var only, date, out, notes string
	flag.StringVar(&c.gatehouse, "gatehouse", "bin/gatehouse", "the gatehouse binary")
	flag.StringVar(&c.bin, "bin", ".cache/bench/bin", "folder with the floor and pocketbase binaries")
	flag.StringVar(&c.work, "work", ".cache/bench/work", "folder for data and logs; emptied at start")
	flag.IntVar(&c.rounds, "rounds", 5, "rounds; medians are reported")
	flag.IntVar(&c.seconds, "seconds", 4, "seconds per measurement")
	flag.IntVar(&c.many, "many", 1_000_000, "records in the large data set of the queries")
	// With some sixty index rows each, and fsync, a million records take 20 minutes to make on PostgreSQL.
	flag.IntVar(&c.manyOnPostgres, "many-postgres", 100_000, "the same on PostgreSQL")
	flag.StringVar(&only, "only", "", "comma-separated parts: "+strings.Join(parts, ", "))
	flag.BoolVar(&c.quick, "quick", false, "a smoke test: one short round on little data")
	flag.BoolVar(&c.peersOnly, "peers", false, "only the floor (with a made-up answer) and PocketBase")
	flag.BoolVar(&c.profile, "profile", false, "after the rounds, save a CPU profile of each Gatehouse row in WORK/profiles")
	flag.StringVar(&c.against, "against", "", "compare with this other gatehouse binary, second by second, and nothing else")
	flag.StringVar(&date, "date", "", "date written into the page")
	flag.StringVar(&out, "out", "", "page to write after a complete run (docs/benchmarks.md)")
	flag.StringVar(&notes, "notes", "bench/notes.md", "text added to the page when the file exists")
	flag.Parse()

	c.records, c.small, c.large, c.requests, c.depth = 10_000, 10_000, 200_000, 400, 100_000
	c.page = 100
	if c.quick {
		c.rounds, c.seconds = 1, 1
		c.records, c.small, c.large, c.requests, c.depth = 2000, 1000, 3000, 40, 600
		c.many, c.manyOnPostgres, c.page = 3000, 3000, 10
	}
	if only != "" {
		c.only = strings.Split(only, ",")
		for _, part := range c.only {
			if !slices.Contains(parts, part) {
				return fmt.Errorf("-only %s: unknown part; there are %s", part, strings.Join(parts, ", "))
			}
		}
	}
	if err := c.prepare(); err != nil {
		return err
	}
	warnIfBusy()
	if c.against != "" {
		return compare(ctx, &c)
	}

	rep := newReport(&c, date)
	steps := []struct {
		wanted bool
		do     func(context.Context, *config, *report) error
	}{
		{c.wants("read") || c.wants("list") || c.wants("create") || c.wants("batch") || c.wants("component") || c.wants("login") || c.wants("jwt"), throughput},
		{!c.peersOnly && (c.wants("flat") || c.wants("traversal")), flatSQLite},
		{!c.peersOnly && c.wants("queries"), queriesSQLite},
		{!c.peersOnly && c.wants("postgres"), onPostgres},
		{!c.peersOnly && c.wants("audit"), auditMillion},
	}
	for _, step := range steps {
		if step.wanted {
			if err := step.do(ctx, &c, rep); err != nil {
				return err
			}
		}
	}

	rep.print(os.Stdout)
	if out == "" {
		return nil
	}
	if c.quick || c.peersOnly || only != "" {
		log.Printf("%s is left as it was: this was not a complete run", out)
		return nil
	}
	return rep.writePage(out, notes)
}

// prepare checks what is needed and empties the work folder.
func (c *config) prepare() error {
	for _, tool := range []string{"wrk", "taskset"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%s is not installed", tool)
		}
	}
	if err := c.checkAgainst(); err != nil {
		return err
	}
	for _, path := range []*string{&c.gatehouse, &c.bin, &c.work} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	if _, err := os.Stat(c.gatehouse); err != nil && !c.peersOnly {
		return fmt.Errorf("%w (make server builds it; -peers does without)", err)
	}
	if err := os.RemoveAll(c.work); err != nil {
		return err
	}
	return os.MkdirAll(c.work, 0o755)
}

// pinSelf runs this program again on core 1, once, so that what it sends and
// times never takes time from the measured server.
func pinSelf() error {
	const mark = "BENCH_PINNED"
	if os.Getenv(mark) != "" {
		return nil
	}
	if runtime.NumCPU() < 2 {
		return errors.New("two cores are needed: one for the server, one for the load")
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append([]string{"taskset", "-c", loadCore, self}, os.Args[1:]...)
	return syscall.Exec(taskset, argv, append(os.Environ(), mark+"=1"))
}

// warnIfBusy logs a warning if something else uses the machine.
func warnIfBusy() {
	if load := loadAverage(); load > 0.5 {
		log.Printf("the load average is %.1f: other work will show in the figures", load)
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
