package main

import (
	"fmt"
	"strings"
	"time"
)

// pair is a median among few and among many records.
type pair [2]time.Duration

func (p pair) ratio() float64 { return float64(p[1]) / float64(p[0]) }

// queryRow is a filtered, sorted or searched page of one viewer.
type queryRow struct {
	engine        string
	many          int // the larger number of records
	query, viewer string
	ours          pair
	theirs        pair // PocketBase's; zero on PostgreSQL, which it has not
}

// String is the row as the log has it.
func (r *queryRow) String() string {
	line := fmt.Sprintf("%-10s %-22s %-13s %s → %s ms, ratio %.2f", r.engine, r.query, r.viewer, ms(r.ours[0]), ms(r.ours[1]), r.ours.ratio())
	if r.theirs != (pair{}) {
		line += fmt.Sprintf("; PocketBase %s → %s ms, ratio %.2f", ms(r.theirs[0]), ms(r.theirs[1]), r.theirs.ratio())
	}
	return line
}

func (r *report) queryTargets() (grid [][]string) {
	for _, q := range r.queries {
		ratio := q.ours.ratio()
		grid = append(grid, []string{
			fmt.Sprintf("query, %s, %s, sees %s", q.engine, q.query, q.viewer),
			fmt.Sprintf("≤ %.2f", queryAtMost), fmt.Sprintf("%.2f", ratio), verdict(ratio <= queryAtMost, ratio/queryAtMost),
		})
	}
	return grid
}

func (r *report) queryTable(b *strings.Builder) {
	if len(r.queries) == 0 {
		return
	}
	few := thousands(r.c.small)
	fmt.Fprintf(b, "## Queries\n\nPages of 50, filtered, sorted and searched, among %s records and among many. The viewer of nearly all has those that match, a tenth or, in a search, a third; the\n"+
		"viewer of %d records asks for what all records match, hidden ones too. Medians of up to %d requests, both contestants and both sizes in turn; a contestant that has taken\n"+
		"%s for a figure is asked no more. The deep page is the %dth.\n\n", few, visible, r.c.requests, slow, r.c.page)
	grid := [][]string{{"engine", "query", "viewer sees", "many", "Gatehouse, " + few + ", ms", "many, ms", "ratio", "PocketBase, " + few + ", ms", "many, ms", "ratio"}}
	for _, q := range r.queries {
		theirs := []string{"–", "–", "–"}
		if q.theirs != (pair{}) {
			theirs = []string{ms(q.theirs[0]), ms(q.theirs[1]), fmt.Sprintf("%.2f", q.theirs.ratio())}
		}
		grid = append(grid, append([]string{
			q.engine, q.query, q.viewer, thousands(q.many), ms(q.ours[0]), ms(q.ours[1]), fmt.Sprintf("%.2f", q.ours.ratio()),
		}, theirs...))
	}
	writeGrid(b, grid)
}
