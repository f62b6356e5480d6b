package records_test

import (
	"slices"
	"testing"

	"gatehouse/internal/records"
)

// TestAPageReadsTheRowsItNeeds checks that small records are read in one
// statement, and that of large ones few more are read than the page can hold.
func TestAPageReadsTheRowsItNeeds(t *testing.T) {
	of := func(n, size int) []int { return slices.Repeat([]int{size}, n) }
	for name, c := range map[string]struct {
		sizes         []int
		limit, times  int
		count         int
		statements    []int
		mostRows      int
		mostStatement int
	}{
		"none":                   {sizes: nil, limit: 50, times: 2, count: 0, statements: []int{0}},
		"all of few":             {sizes: of(30, 300), limit: 50, times: 2, count: 30, statements: []int{30}},
		"a page of many":         {sizes: of(300, 300), limit: 50, times: 2, count: 50, statements: []int{51}},
		"exactly a page":         {sizes: of(50, 300), limit: 50, times: 2, count: 50, statements: []int{50}},
		"a full page, not large": {sizes: of(300, 9_000), limit: 200, times: 2, count: 200, statements: []int{201}},
		"large, the first time":  {sizes: of(200, 1_000_000), limit: 200, times: 1, count: 2, statements: []int{3}},
		"large, from then on":    {sizes: of(200, 1_000_000), limit: 200, times: 2, count: 2, statements: []int{3}},
		"one is too large":       {sizes: of(5, 3_000_000), limit: 200, times: 3, count: 1, statements: []int{2}},
		"large before small":     {sizes: append(of(3, 500_000), of(197, 500)...), limit: 200, times: 3, count: 200, mostRows: 201, mostStatement: 201},
		"few of large":           {sizes: of(2, 500_000), limit: 200, times: 3, count: 2, statements: []int{2}},
		"as many as asked for":   {sizes: of(9, 200_000), limit: 9, times: 3, count: 9, mostRows: 9, mostStatement: 9},
	} {
		count, statements, err := records.FillPage(c.limit, records.PageBytes, c.times, c.sizes)
		if err != nil || count != c.count {
			t.Errorf("%s: %d records, %v", name, count, err)
		}
		total := 0
		for _, n := range statements {
			total += n
		}
		if c.statements != nil && !slices.Equal(statements, c.statements) || c.statements == nil && (total > c.mostRows || slices.Max(statements) > c.mostStatement) {
			t.Errorf("%s: statements read %v rows", name, statements)
		}
	}
}

// TestALargeEntityIsAskedForInSmallPieces checks how many rows a statement asks
// for when records are large.
func TestALargeEntityIsAskedForInSmallPieces(t *testing.T) {
	for _, c := range []struct {
		size       int64
		rest, left int
		want       int
	}{
		{0, 201, records.PageBytes, 201}, {10_000, 201, records.PageBytes, 201}, {11_000, 201, records.PageBytes, 192},
		{20_000, 201, records.PageBytes, 128}, {23_000, 201, records.PageBytes, 96}, {100_000, 201, records.PageBytes, 24}, {1_000_000, 201, records.PageBytes, 3},
		{3_000_000, 201, records.PageBytes, 2}, {1_000_000, 201, 100, 2}, {1_000_000, 1, 100, 1}, {1_000_000, 2, -5, 2}, {1_000_000, 51, 8 << 20, 12},
	} {
		if got := records.Chunk(c.size, c.rest, c.left); got != c.want {
			t.Errorf("%d more of %d bytes into %d: %d are asked for, expected %d", c.rest, c.size, c.left, got, c.want)
		}
	}
}
