package records

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
)

const (
	keepEvery = time.Minute
	// forgotten is how long a build may be idle before a server undoes it.
	// Until then it can be continued, and writers keep it up to date.
	forgotten = 10 * time.Minute
)

// RunHousekeeping undoes forgotten builds and sweeps what configurations no
// longer name, now and every minute, until ctx ends. Any number of nodes may
// run it at once. A tenant that fails does not stop the others; tell is called
// with the error.
func RunHousekeeping(ctx context.Context, d *db.DB, clk clock.Clock, tell func(error)) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		if err := housekeep(ctx, d, clk); err != nil && ctx.Err() == nil {
			tell(err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func housekeep(ctx context.Context, d *db.DB, clk clock.Clock) error {
	tenants, err := access.Unfinished(ctx, d)
	for _, t := range tenants {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err = errors.Join(err, undoForgotten(ctx, d.For(t), clk), Sweep(ctx, d.For(t)))
	}
	return err
}

func undoForgotten(ctx context.Context, h db.Handle, clk clock.Clock) error {
	c, err := access.Load(ctx, h)
	if err != nil || c.Build == nil || c.Build.Idle < forgotten {
		return err
	}
	return configure(ctx, h, clk, func(tx tenant.ConfigTx, keep func()) error {
		b, err := access.LockBuild(ctx, tx)
		if err != nil || b == nil || b.Idle < forgotten {
			return err
		}
		keep()
		return undo(ctx, tx, b)
	})
}
