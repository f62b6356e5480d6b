package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report collects the figures and prints how they compare.
type report struct {
	c          *config
	date       string
	samples    map[string]map[string][]sample // row → contestant → one per round
	flat       []flatRow
	traversals []traversalRow
	audit      []auditRow
	queries    []queryRow
}

// flatRow is a viewer's list among few and among many records.
type flatRow struct {
	engine, way  string
	small, large time.Duration
}

func (r flatRow) ratio() float64 { return float64(r.large) / float64(r.small) }

// traversalRow is a page at the top and one far down.
type traversalRow struct {
	engine      string
	first, deep time.Duration
}

func (r traversalRow) ratio() float64 { return float64(r.deep) / float64(r.first) }

// target is a required figure: the ratio of a contestant to another one in the same row, or
// to itself in another row.
type target struct {
	row, who, against string // against a contestant or a row
	atLeast           float64
}

var targets = []target{
	{rowRead, plainName, floorName, 0.5},
	{rowRead, plainName, pocketName, 8},
	{rowRead, auditedName, floorName, 0.25},
	{rowList, plainName, floorName, 0.25},
	{rowList, plainName, pocketName, 8},
	{rowCreate, plainName, pocketName, 4},
	{rowRead, auditedName, plainName, 0.75},
	{rowList, auditedName, plainName, 0.75},
	{rowCreate, auditedName, plainName, 0.75},
	{rowComponent, plainName, pocketName, 2},
	{rowAutomation, plainName, rowSteps, 1},
	{rowJWTList, plainName, rowKeyList, 0.9},
}

// rows of the throughput table, in its order.
var rows = []string{rowRead, rowList, rowCreate, rowBatch, rowComponent, rowOrder, rowSteps, rowAutomation, rowLogin, rowJWTList, rowKeyList}

// measured returns the target's figure, 0 if it was not measured: the median of the ratios of
// all rounds, because the machine's speed changes little within a round.
func (r *report) measured(t target) float64 {
	ours, theirs := r.samples[t.row][t.who], r.samples[t.row][t.against]
	if slices.Contains(rows, t.against) {
		theirs = r.samples[t.against][t.who]
	}
	var ratios []float64
	for round := range min(len(ours), len(theirs)) {
		ratios = append(ratios, ours[round].perSecond/theirs[round].perSecond)
	}
	return median(ratios)
}

// The required figures of the flat lists and of the traversal. A page is "no dearer" if the
// difference is within that of two runs of the same page.
const (
	flatAtMost      = 1.5
	traversalAtMost = 1.1
)

func newReport(c *config, date string) *report {
	return &report{c: c, date: date, samples: make(map[string]map[string][]sample)}
}

func (r *report) add(row, who string, s sample) {
	if r.samples[row] == nil {
		r.samples[row] = make(map[string][]sample)
	}
	r.samples[row][who] = append(r.samples[row][who], s)
}

// of returns the median of one field over the rounds; 0 when it was not measured.
func (r *report) of(row, who string, field func(sample) float64) float64 {
	var values []float64
	for _, s := range r.samples[row][who] {
		values = append(values, field(s))
	}
	return median(values)
}

func perSecond(s sample) float64 { return s.perSecond }

// print writes the report as Markdown, which reads well on a terminal too.
func (r *report) print(w io.Writer) {
	_, _ = fmt.Fprint(w, "\n", r.tables())
}

// writePage writes docs/benchmarks.md.
func (r *report) writePage(path, notes string) error {
	text := fmt.Sprintf(pageHead, r.date, hardware(), runtime.Version(), r.c.rounds, r.c.seconds, r.c.records) + r.tables() + pageTail
	extra, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(extra) > 0 {
		text += "\n" + string(extra)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (r *report) tables() string {
	var b strings.Builder
	r.throughputTable(&b)
	r.targetTable(&b)
	r.flatTable(&b)
	r.queryTable(&b)
	r.traversalTable(&b)
	r.auditTable(&b)
	return b.String()
}

func (r *report) throughputTable(b *strings.Builder) {
	if len(r.samples) == 0 {
		return
	}
	b.WriteString("## Throughput\n\n")
	grid := [][]string{{"row", "contestant", "requests/s", "of the floor", "× PocketBase", "p50 ms", "p99 ms", "core used", "peak MiB"}}
	for _, row := range rows {
		for _, who := range []string{floorName, plainName, auditedName, pocketName, pgPlainName} {
			rate := r.of(row, who, perSecond)
			if rate == 0 {
				continue
			}
			grid = append(grid, []string{
				row, who, fmt.Sprintf("%.0f", rate), r.against(row, rate, floorName, "%.3f"), r.against(row, rate, pocketName, "%.1f"),
				fmt.Sprintf("%.2f", r.of(row, who, func(s sample) float64 { return s.p50.Seconds() * 1000 })),
				fmt.Sprintf("%.2f", r.of(row, who, func(s sample) float64 { return s.p99.Seconds() * 1000 })),
				fmt.Sprintf("%.0f %%", r.of(row, who, func(s sample) float64 { return s.cpu * 100 })),
				fmt.Sprintf("%.0f", r.of(row, who, func(s sample) float64 { return s.memory })),
			})
		}
	}
	writeGrid(b, grid)
}

// against returns a rate divided by another contestant's in the same row.
func (r *report) against(row string, rate float64, other, format string) string {
	base := r.of(row, other, perSecond)
	if base == 0 {
		return "–"
	}
	return fmt.Sprintf(format, rate/base)
}

func (r *report) targetTable(b *strings.Builder) {
	grid := [][]string{{"figure", "target", "measured", ""}}
	for _, t := range targets {
		ratio := r.measured(t)
		if ratio == 0 {
			continue
		}
		grid = append(grid, []string{
			fmt.Sprintf("%s: %s ÷ %s", t.row, t.who, t.against),
			fmt.Sprintf("≥ %.2f", t.atLeast), fmt.Sprintf("%.2f", ratio), verdict(ratio >= t.atLeast, t.atLeast/ratio),
		})
	}
	if rate := batchItems * r.of(rowBatch, plainName, perSecond); rate > 0 {
		grid = append(grid, []string{
			rowBatch + ": records/s of " + plainName, "≥ " + thousands(batchAtLeast), thousands(int(rate)), verdict(rate >= batchAtLeast, batchAtLeast/rate),
		})
	}
	for _, f := range r.flat {
		grid = append(grid, []string{
			fmt.Sprintf("flat list, %s, %s", f.engine, f.way),
			fmt.Sprintf("≤ %.2f", flatAtMost), fmt.Sprintf("%.2f", f.ratio()), verdict(f.ratio() <= flatAtMost, f.ratio()/flatAtMost),
		})
	}
	grid = append(grid, r.queryTargets()...)
	for _, t := range r.traversals {
		grid = append(grid, []string{
			fmt.Sprintf("page at record %s ÷ first pages, %s", thousands(r.c.depth), t.engine),
			fmt.Sprintf("≤ %.2f", traversalAtMost), fmt.Sprintf("%.2f", t.ratio()), verdict(t.ratio() <= traversalAtMost, t.ratio()/traversalAtMost),
		})
	}
	for _, l := range r.ceilings() {
		grid = append(grid, []string{
			l.name, "≤ " + fmt.Sprintf(l.format, l.atMost), fmt.Sprintf(l.format, l.measured), verdict(l.measured <= l.atMost, l.measured/l.atMost),
		})
	}
	if len(grid) == 1 {
		return
	}
	b.WriteString("## Targets\n\nA measured ratio here is the median of the rounds' own ratios; \"Throughput\" divides medians of all rounds, so the two may differ.\n\n")
	writeGrid(b, grid)
}

// verdict reports whether a target was met, and if not by which factor it was missed.
func verdict(met bool, factor float64) string {
	if met {
		return "met"
	}
	return fmt.Sprintf("**missed** by a factor of %.2f", factor)
}

func (r *report) flatTable(b *strings.Builder) {
	if len(r.flat) == 0 {
		return
	}
	fmt.Fprintf(b, "## Flat lists\n\nA viewer may see %d records among N; those of a filtered list match its filter, all of them. Medians of %d requests per data set, sent one after the other,\nthe two data sets in turn.\n\n", visible, r.c.requests)
	grid := [][]string{{"engine", "visible by", fmt.Sprintf("N = %s, ms", thousands(r.c.small)), fmt.Sprintf("N = %s, ms", thousands(r.c.large)), "ratio"}}
	for _, f := range r.flat {
		grid = append(grid, []string{f.engine, f.way, ms(f.small), ms(f.large), fmt.Sprintf("%.2f", f.ratio())})
	}
	writeGrid(b, grid)
}

func (r *report) traversalTable(b *strings.Builder) {
	if len(r.traversals) == 0 {
		return
	}
	fmt.Fprintf(b, "## Deep pages\n\nPages of 200 of a viewer who owns nearly all of %s records: the first %d that have a cursor, and %d around record\n%s of the traversal, in turn.\n\n",
		thousands(r.c.large), pagesCompared, pagesCompared, thousands(r.c.depth))
	grid := [][]string{{"engine", "first pages, ms", "deep pages, ms", "ratio"}}
	for _, t := range r.traversals {
		grid = append(grid, []string{t.engine, ms(t.first), ms(t.deep), fmt.Sprintf("%.2f", t.ratio())})
	}
	writeGrid(b, grid)
}

// writeGrid writes a Markdown table with aligned columns; the first row is its head.
func writeGrid(b *strings.Builder, grid [][]string) {
	widths := make([]int, len(grid[0]))
	for _, row := range grid {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for n, row := range grid {
		for i, cell := range row {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[i]-len([]rune(cell))) + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				b.WriteString("|" + strings.Repeat("-", width+2))
			}
			b.WriteString("|\n")
		}
	}
	b.WriteString("\n")
}

// median returns the middle value, the upper one of two; 0 for none.
func median[T cmp.Ordered](values []T) T {
	var zero T
	if len(values) == 0 {
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()*1000) }

// thousands writes 200000 as 200,000.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// fileName makes a name safe for a file.
func fileName(s string) string {
	return strings.NewReplacer(" ", "-", ",", "", "÷", "").Replace(strings.ToLower(s))
}

// hardware returns one line on the machine.
func hardware() string {
	model, cores := "unknown processor", 0 // runtime.NumCPU counts only the cores this program is pinned to
	raw, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			model = strings.TrimSpace(value)
		}
	}
	memory := ""
	raw, _ = os.ReadFile("/proc/meminfo")
	var kib int
	if _, err := fmt.Sscanf(string(raw), "MemTotal: %d kB", &kib); err == nil {
		memory = fmt.Sprintf(", %d GiB memory", (kib+512*1024)/(1024*1024))
	}
	return fmt.Sprintf("%s, %d cores%s, %s/%s", model, cores, memory, runtime.GOOS, runtime.GOARCH)
}

const pageHead = `# Benchmarks

Written by ` + "`make bench`" + ` on %s; do not edit by hand (words about it go into bench/notes.md).

## Set-up

- Machine: %s. Built with %s.
- Every measured server runs alone, on loopback, pinned to core 0 with GOMAXPROCS=1; the load comes from core 1:
  ` + "`wrk -t1 -c32`" + `, %d rounds of %d s each, contestant after contestant, after a warm-up of 1 s. Medians of
  the rounds; a target's figure is the median of the rounds' own ratios.
- %d records of nine fields, made from the same generator for all; reads go round a thousand of them. The reader owns
  the records and has nothing else: Gatehouse checks an API key, its limits and the permissions of its user on every request.
- **Floor**: a bare net/http handler that answers the bytes and headers captured from Gatehouse.
- **Gatehouse**: SQLite, WAL, synchronous=FULL; the request log goes to a file in every row. "Audit persisted" is
  the manifest's ` + "`log_standard_requests: true`" + `.
- **PocketBase** v0.39.8, the released module with its defaults (synchronous=NORMAL, its own request log on): a
  collection with the same fields, rules that let only the owner list, view and create, and an index on (owner, created,
  id) that serves the list; the list is asked for without the total (skipTotal=1).
- **Custom endpoints** (rows "component" and "automation"): Gatehouse checks an API key, its limits, the inputs and the
  permissions, runs each call in a clean sandbox and keeps a row of it among its runs; successful requests are not
  audited (` + "`log_requests: false`" + `). PocketBase answers from JavaScript routes (its jsvm plugin, with the released program's
  pool of 15), with no key, limit or sandbox. "Component" greets and adds two numbers; "order component" checks and adds
  up an order of twelve lines, 1.5 KB, with the same JavaScript, and saves it as one record. The last two rows do the same
  work, composing a text and creating a contact, as a component and as a flow of three nodes.
- **Batch of 200** creates 200 such records with one request, all or nothing (4 clients): Gatehouse's ` + "`POST /data/contact/batch`" + `,
  PocketBase's ` + "`/api/batch`" + `, which is off by default and allows 50 unless its setting is raised.
- **Queries**: records with two fields more. Gatehouse has four indexed fields and the notes searchable; PocketBase an index on
  (owner, field, created, id) for each of the four and ANALYZE, and is filled by SQL. Its search and its prefix are ` + "`~`" + `, which is LIKE and has no
  index; its deep page is asked for by number, which is OFFSET, where Gatehouse has a cursor.
- **Login** (4 clients): the right password of one user, each time. Gatehouse checks argon2id at OWASP's strength (19 MiB, two
  passes), keeps the new refresh token's hash and signs an access token; PocketBase checks bcrypt as it comes and signs a
  token. "JWT" and "its key" are one list of 50 for one end-user, who shows an access token or an API key.
- PostgreSQL: a private cluster with default settings (fsync on), not pinned; its rows are for information, and the
  core used there is Gatehouse's share only.

`

const pageTail = `## Repeat it

` + "`make bench`" + ` installs wrk and PostgreSQL if they are missing, builds the contestants and writes this page. For a look at
one part: ` + "`make bench BENCH_FLAGS='-only read,list -rounds 1'`" + `; ` + "`-quick`" + ` is a smoke test, ` + "`-profile`" + ` saves CPU profiles,
` + "`-peers`" + ` leaves Gatehouse out, ` + "`-against other/gatehouse`" + ` compares two builds in turns of a second.
`
