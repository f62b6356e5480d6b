package background

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// reportEvery is how often a sweep that goes on failing is reported at most.
const reportEvery = 30 * time.Second

// Sweep calls pass, now and then once in every interval, until ctx ends. The
// time of a pass is part of the interval. Intervals are up to a tenth shorter,
// at random, so that nodes that were started together do not sweep together.
//
// failed is called with the error of a pass, at most every 30 s, unless ctx has
// ended: then errors are expected.
func Sweep(ctx context.Context, every time.Duration, pass func(context.Context) error, failed func(error)) {
	var reported time.Time
	for ctx.Err() == nil {
		next := time.NewTimer(every - rand.N(every/10+1)) //nolint:gosec // no secret
		err := pass(ctx)
		if err != nil && ctx.Err() == nil && (reported.IsZero() || time.Since(reported) >= reportEvery) {
			reported = time.Now()
			failed(err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
		}
	}
}

// Each calls do for each item of a list, such as all tenants. An item that fails
// does not stop the others. Each returns the first error, and says how many
// there were; when ctx ends, it stops and returns the error of ctx.
func Each[T any](ctx context.Context, list []T, do func(context.Context, T) error) error {
	var first error
	failed := 0
	for _, item := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(ctx, item); err != nil {
			if failed++; failed == 1 {
				first = err
			}
		}
	}
	if failed > 1 {
		return fmt.Errorf("%w (and %d more)", first, failed-1)
	}
	return first
}

// Steps calls step until it reports that nothing is left, and rests between two
// steps. It returns the first error of step, or the error of ctx when that ends
// during a rest.
func Steps(ctx context.Context, step func(context.Context) (more bool, err error)) error {
	for {
		begun := time.Now()
		more, err := step(ctx)
		if err != nil || !more {
			return err
		}
		if err := Rest(ctx, time.Since(begun)); err != nil {
			return err
		}
	}
}

// Rest waits for as long as a step took, at most a second, which leaves the
// database to others for half of the time. It returns the error of ctx when that
// ends first.
func Rest(ctx context.Context, took time.Duration) error {
	timer := time.NewTimer(min(took, time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
