package records

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/background"
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
// longer name, at once and then every minute, until ctx ends. Of the
// nodes that run it, one does so. An error of one tenant does not stop the others;
// tell is called with it.
func RunHousekeeping(ctx context.Context, d *db.DB, clk clock.Clock, tell func(error)) {
	d.Housekeep(ctx, "builds", keepEvery, func(ctx context.Context) error { return housekeep(ctx, d, clk) }, tell)
}

func housekeep(ctx context.Context, d *db.DB, clk clock.Clock) error {
	tenants, err := access.Unfinished(ctx, d)
	if err != nil {
		return err
	}
	return background.Each(ctx, tenants, func(ctx context.Context, t tenant.ID) error {
		return errors.Join(undoForgotten(ctx, d.For(t), clk), Sweep(ctx, d.For(t)))
	})
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
