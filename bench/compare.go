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

// compare measures two builds of Gatehouse against each other: both run at the
// same time, each on data of its own, and are asked in turn for a second. What
// else the machine does changes slowly compared to that, so the ratio of
// neighbours says more than two medians of a longer run.
func compare(ctx context.Context, c *config) error {
	other := *c
	other.gatehouse, other.work = c.against, filepath.Join(c.work, "against")
	if err := os.MkdirAll(other.work, 0o755); err != nil {
		return err
	}
	these, err := gatehouseLineUp(ctx, c)
	if err != nil {
		return err
	}
	those, err := gatehouseLineUp(ctx, &other)
	if err != nil {
		return err
	}
	for n, this := range these {
		if this.name != plainName || len(this.asked) == 0 {
			continue
		}
		if err := duel(ctx, c, this, those[n]); err != nil {
			return err
		}
	}
	return nil
}

// duel asks this build and that one everything, and prints how they compare.
func duel(ctx context.Context, c *config, this, that contestant) error {
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
	for n, q := range this.asked {
		var ours, theirs, ratios []float64
		for pair := range 1 + c.rounds*c.seconds {
			x, y, err := inTurn(pair%2 == 1,
				func() (sample, error) { return q.load.send(ctx, c, a, 1) },
				func() (sample, error) { return that.asked[n].load.send(ctx, c, b, 1) })
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

// inTurn measures this and that, that first when turned, so that neither always
// has the other's leavings.
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

// checkAgainst refuses a build that is not there.
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
