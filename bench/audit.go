package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// auditRow has the times of an engine with a log of a million entries, in ms.
type auditRow struct {
	engine  string
	figures map[string]float64
}

// logEntries is how many entries the log has.
const logEntries = 1_000_000

// auditLimits are the required figures, in ms.
var auditLimits = []struct {
	figure, name string
	atMost       float64
}{
	{"user-ms", "newest 50 of a user", 50},
	{"endpoint-ms", "newest 50 of an endpoint", 50},
	{"status-ms", "newest 50 errors", 50},
	{"retention-ms", "a day dropped", 1000},
	{"stall-ms", "longest write of another day meanwhile", 250},
}

// auditMillion measures the audit log by itself. It runs the benchmark of its package on the
// measured server's core, because making a million entries by requests would take long.
func auditMillion(ctx context.Context, c *config, rep *report) error {
	cmd := exec.CommandContext(ctx, "taskset", "-c", serverCore,
		"go", "test", "./internal/audit", "-run", "^$", "-bench", "^BenchmarkMillion$", "-benchtime", "1x", "-timeout", "30m")
	cmd.Env = os.Environ()
	if c.quick {
		cmd.Env = append(cmd.Env, "GATEHOUSE_AUDIT_ENTRIES=20000")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the audit log's benchmark: %w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, found := strings.CutPrefix(line, "BenchmarkMillion/")
		if !found || len(fields) < 4 {
			continue
		}
		row := auditRow{engine: "SQLite", figures: map[string]float64{}}
		if strings.HasPrefix(name, "postgres") {
			row.engine = "PostgreSQL"
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("the audit log's benchmark said %q", line)
			}
			row.figures[fields[i+1]] = value
		}
		log.Printf("%-10s audit log: %v", row.engine, row.figures)
		rep.audit = append(rep.audit, row)
	}
	if len(rep.audit) != 2 {
		return fmt.Errorf("the audit log's benchmark said nothing of two engines: %s", out)
	}
	return nil
}

// auditTable returns the part of the report about the log by itself.
func (r *report) auditTable(b *strings.Builder) {
	if len(r.audit) == 0 {
		return
	}
	fmt.Fprintf(b, "## A large audit log\n\n%s entries of one tenant and day. The newest 50 with request and answer, medians: where 60 entries match,\n"+
		"spread over all, and where nearly all do; then the day is dropped while another one is written.\n\n", thousands(logEntries))
	names := []string{"user-ms", "endpoint-ms", "status-ms", "busy-user-ms", "area-ms", "all-ms", "retention-ms", "stall-ms"}
	grid := [][]string{append([]string{"engine"}, slices.Clone(names)...)}
	for i, name := range grid[0][1:] {
		grid[0][i+1] = strings.ReplaceAll(strings.TrimSuffix(name, "-ms"), "-", " ") + ", ms"
	}
	for _, row := range r.audit {
		cells := []string{row.engine}
		for _, name := range names {
			cells = append(cells, fmt.Sprintf("%.1f", row.figures[name]))
		}
		grid = append(grid, cells)
	}
	writeGrid(b, grid)
}

// ceiling is a figure that must stay below a limit.
type ceiling struct {
	name             string
	atMost, measured float64
	format           string
}

// What the audit log may cost in the rows that have it.
const (
	auditP99AtMost    = 1.5
	auditMemoryAtMost = 120 // MiB
)

// ceilings returns the figures of the audit log that were measured.
func (r *report) ceilings() (list []ceiling) {
	for _, row := range []string{rowRead, rowList, rowCreate} {
		with, without := r.samples[row][auditedName], r.samples[row][plainName]
		var ratios []float64
		for round := range min(len(with), len(without)) {
			ratios = append(ratios, float64(with[round].p99)/float64(without[round].p99))
		}
		if len(ratios) == 0 {
			continue
		}
		list = append(list,
			ceiling{fmt.Sprintf("%s: p99 of %s ÷ %s", row, auditedName, plainName), auditP99AtMost, median(ratios), "%.2f"},
			ceiling{fmt.Sprintf("%s: peak MiB of %s", row, auditedName), auditMemoryAtMost, r.of(row, auditedName, func(s sample) float64 { return s.memory }), "%.0f"})
	}
	for _, row := range r.audit {
		for _, l := range auditLimits {
			list = append(list, ceiling{fmt.Sprintf("audit log, %s: %s, ms", row.engine, l.name), l.atMost, row.figures[l.figure], "%.1f"})
		}
	}
	return list
}
