package endpoint

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/failpoint"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/user"
)

// execution is one try of a job: a unit of work and what runs on it.
type execution struct {
	s       *Service
	j       *job
	catalog *catalog
	unit    *records.Unit
	// contended are the records that the previous try depended on, when this is
	// the last try. It locks them until it ends.
	contended []string
	// until is when the target's time ends, the commit included.
	until time.Time

	actorKnown bool
	actorIs    access.Viewer
	actorErr   error

	console []component.Line
	cpu     time.Duration
	used    Used
	userID  user.ID  // the user that the job's target runs as
	failure *failure // the last failure of a component
}

// try runs the job once and commits it. touched are the records that it read by
// id or changed.
func (x *execution) try(ctx context.Context) (out *Outcome, touched []string) {
	begun := time.Now()
	out = &Outcome{}
	release, err := x.prepare(ctx)
	if err == nil {
		defer release()
		x.unit = x.s.records.Begin(x.j.config)
		defer x.unit.Close()
		failpoint.At("run.begun")
		err = x.run(ctx, out)
		failpoint.At("run.ended")
		out.Console, out.CPU, out.UserID, out.Used = x.console, x.cpu, x.userID, x.usage()
		touched = x.touched()
	}
	if ended := ctx.Err(); ended != nil && err != nil && fault.CodeOf(err) == "" {
		err = timeoutFault(ended)
	}
	if err == nil && x.j.holder != nil { // before the commit: afterwards it would be too late
		err = x.j.holder.Hold(len(out.Data))
	}
	if err == nil && !x.j.dry {
		err = x.commit(ctx, touched)
	}
	if err != nil {
		out.Err, out.Data, out.Meta, out.response = err, nil, nil, nil // nothing was committed
	}
	out.Wall = time.Since(begun)
	return out, touched
}

// prepare loads the catalog and locks the contended records. It waits for them
// at most as long as the target may take.
func (x *execution) prepare(ctx context.Context) (release func(), err error) {
	if x.catalog, err = x.s.catalog(ctx, x.j.config); err != nil {
		return nil, err
	}
	if x.j.draft != nil {
		x.catalog = x.j.draft.over(x.catalog)
	}
	ctx, cancel := context.WithTimeout(ctx, x.limit())
	defer cancel()
	release, err = x.s.locks.acquire(ctx, x.contended, true)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return release, err
}

// limit returns how long the job's target may take.
func (x *execution) limit() time.Duration {
	if c := x.catalog.Components[x.j.target.Name]; c != nil && x.j.target.Kind == custom.ToComponent {
		return c.Timeout()
	}
	return component.DefaultTimeout
}

// touched returns the lock names of the records that the unit depends on.
func (x *execution) touched() []string {
	names := x.unit.Touched()
	for i, name := range names {
		names[i] = string(x.j.config.Tenant.ID) + "/" + name
	}
	return names
}

// commit commits the run's changes. It takes shared locks on the records that
// it depends on, unless the try has locked contended records exclusively: a try
// that holds locks does not wait for more.
func (x *execution) commit(ctx context.Context, touched []string) error {
	if !x.unit.Changed() && x.j.event == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, x.until)
	defer cancel()
	if len(x.contended) == 0 {
		release, err := x.s.locks.acquire(ctx, touched, false)
		if errors.Is(err, context.DeadlineExceeded) {
			return errTime
		}
		if err != nil {
			return err
		}
		defer release()
	}
	return x.s.store.commit(ctx, x.unit, x.j, clock.Micros(x.s.clock.Now()))
}

// actor returns the user a target runs as when it names none. It is determined
// once.
func (x *execution) actor(ctx context.Context) func() (access.Viewer, error) {
	return func() (access.Viewer, error) {
		if !x.actorKnown {
			x.actorIs, x.actorErr = x.s.actor(ctx, x.j)
			x.actorKnown = true
		}
		return x.actorIs, x.actorErr
	}
}

// as records which user the job's target runs as. It ignores the users of
// components that a flow calls.
func (x *execution) as(viewer access.Viewer) {
	if x.userID == "" {
		x.userID = viewer.UserID()
	}
}
