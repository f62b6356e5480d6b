package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// compare compares two builds of Gatehouse. Both run at the same time, each on data of its
// own, and are measured in turns of a second. The load of the machine changes slowly
// compared to that, so the ratio of two turns next to each other is more precise than
// two medians of a longer run.
func compare(ctx context.Context, c *config) error {
	other := *c
	other.gatehouse, other.work = c.against, filepath.Join(c.work, "against")
	if err := os.MkdirAll(other.work, 0o755); err != nil {
		return err
	}
	these, err := setUpGatehouse(ctx, c)
	if err != nil {
		return err
	}
	those, err := setUpGatehouse(ctx, &other)
	if err != nil {
		return err
	}
	for n, this := range these {
		if this.name != plainName || len(this.workloads) == 0 {
			continue
		}
		if err := compareServers(ctx, c, this, those[n]); err != nil {
			return err
		}
	}
	return nil
}

// compareServers runs every workload on both servers in turns, and prints the rates and their
// ratio.
func compareServers(ctx context.Context, c *config, this, that contestant) error {
	a, err := this.start(ctx)
	if err != nil {
		return err
	}
	defer a.stop(syscall.SIGTERM)
	b, err := that.start(ctx)
	if err != nil {
		return err
	}
	defer b.stop(syscall.SIGTERM)
	for n, q := range this.workloads {
		var ours, theirs, ratios []float64
		for pair := range 1 + c.rounds*c.seconds {
			x, y, err := inTurn(pair%2 == 1,
				func() (sample, error) { return q.load.send(ctx, c, a, 1) },
				func() (sample, error) { return that.workloads[n].load.send(ctx, c, b, 1) })
			if err != nil {
				return err
			}
			ours, theirs, ratios = append(ours, x.perSecond), append(theirs, y.perSecond), append(ratios, x.perSecond/y.perSecond)
		}
		ours, theirs, ratios = ours[1:], theirs[1:], ratios[1:] // the first pair warmed up
		low, high := quartiles(ratios)
		log.Printf("%-19s %8.0f/s  against %8.0f/s  ratio %.3f (middle half %.3f to %.3f)",
			q.row, median(ours), median(theirs), median(ratios), low, high)
	}
	return nil
}

// inTurn measures this and that, or, if turned, that and this, so that neither always runs
// after the other.
func inTurn(turned bool, this, that func() (sample, error)) (x, y sample, err error) {
	if turned {
		y, x, err = inTurn(false, that, this)
		return x, y, err
	}
	if x, err = this(); err != nil {
		return x, y, err
	}
	y, err = that()
	return x, y, err
}

func quartiles(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/4], sorted[len(sorted)-1-len(sorted)/4]
}

// checkAgainst returns an error if the build to compare with does not exist.
func (c *config) checkAgainst() error {
	if c.against == "" {
		return nil
	}
	abs, err := filepath.Abs(c.against)
	if err != nil {
		return err
	}
	if c.against = abs; c.peersOnly {
		return fmt.Errorf("-against needs Gatehouse, which -peers leaves out")
	}
	_, err = os.Stat(abs)
	return err
}
