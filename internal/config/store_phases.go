package config

import (
	"context"
	"errors"

	"gatehouse/internal/db"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
)

// maxTries bounds how often an apply plans again because the state changed after
// it was read.
const maxTries = 20

func (a *application) inline() int {
	if a.opts.Inline == 0 {
		return inline
	}
	return max(a.opts.Inline, 0)
}

// apply makes the change in one transaction. When that would take long, it is
// made ready in short ones first: until the one that makes the change, readers
// see the tenant as it was.
func (a *application) apply(ctx context.Context, h db.Handle) error {
	var prepared *records.Long
	marked := 0
	for range maxTries {
		err := tenant.Configure(ctx, h, a.by.name, a.clk, func(tx tenant.ConfigTx, log *tenant.History) error { return a.run(ctx, tx, log) })
		var long *records.Long
		var ask errUnprobed
		var unbuilt errUnbuilt
		switch {
		case err == nil || errors.Is(err, errDryRun):
			failpoint.At("apply.committed")
			return nil
		case errors.Is(err, errRaced):
			continue
		case errors.As(err, &ask):
			err = a.probe(ctx, h, ask.fields)
		case errors.As(err, &unbuilt):
			err = a.compile(ctx, unbuilt)
		case errors.As(err, &long) && a.opts.DryRun:
			a.checked = true
			err = a.m.refusedRecords(records.Check(ctx, h, long.Work, a.opts.Pace))
		case errors.As(err, &long):
			prepared = long
			err = a.prepare(ctx, h, long)
		case errors.Is(err, records.ErrMarked) && prepared != nil && marked == 0:
			marked++ // it may be no more
			err = a.prepare(ctx, h, prepared)
		case errors.Is(err, records.ErrMarked):
			marked = 0
			err = a.m.refusedRecords(records.Refusal(ctx, h))
		}
		if err != nil {
			return a.known(a.undo(ctx, h, prepared, err))
		}
	}
	return a.undo(ctx, h, prepared, fault.New(fault.Conflict, "the tenant changes too often meanwhile: apply it again"))
}

func (a *application) prepare(ctx context.Context, h db.Handle, long *records.Long) error {
	err := records.Prepare(ctx, h, a.clk, long.Work, a.opts.Pace)
	if errors.Is(err, records.ErrGone) {
		return nil // somebody else finished or undid it: plan again
	}
	return err
}

// undo undoes what was made ready for a change that is refused. After any other
// failure it stays, for whoever applies the manifest again.
func (a *application) undo(ctx context.Context, h db.Handle, prepared *records.Long, err error) error {
	var refused *fault.Error
	var problems *Problems
	if prepared == nil || !errors.As(err, &problems) && !errors.As(err, &refused) {
		return err
	}
	return errors.Join(err, records.Undo(ctx, h, a.clk, prepared.Work), records.Sweep(ctx, h))
}
