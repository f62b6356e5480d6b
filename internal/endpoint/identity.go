package endpoint

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

// actor returns the user a job's target runs as when the target names none: the
// endpoint's run_as, else the caller, else, for a webhook, the user who defined
// the endpoint (contract X2). The errors are those of user.
func (s *Service) actor(ctx context.Context, j *job) (access.Viewer, error) {
	switch {
	case j.runAs != "":
		return s.user(ctx, j.config, j.runAs)
	case j.caller.UserID() != "":
		return j.caller, nil
	}
	return s.user(ctx, j.config, j.definedBy)
}

// under is Service.under for the execution. It returns FORBIDDEN where a user of the
// staff tries what runs with rights that they may not grant.
func (x *execution) under(ctx context.Context, c custom.Context) (access.Viewer, error) {
	if x.j.trier != nil {
		if err := mayRun(*x.j.trier, c); err != nil {
			return access.Viewer{}, err
		}
	}
	return x.s.under(ctx, x.j.config, c, x.actor(ctx))
}

// under returns the user a target with execution context c runs as. actor returns
// the user it would run as without one; its errors are returned unchanged.
func (s *Service) under(ctx context.Context, cfg *access.Config, c custom.Context, actor func() (access.Viewer, error)) (access.Viewer, error) {
	if c.Kind == custom.SpecificUser {
		return s.user(ctx, cfg, c.UserID)
	}
	viewer, err := actor()
	if err == nil && c.Kind == custom.System {
		viewer = access.SystemAs(viewer, "execution_context: system")
	}
	return viewer, err
}

// user returns the viewer of a user that a definition names. It returns
// EXECUTION_ERROR when that user is gone or deactivated.
func (s *Service) user(ctx context.Context, cfg *access.Config, id string) (access.Viewer, error) {
	viewer, err := s.dir.Viewer(ctx, cfg, user.ID(id), false)
	if fault.CodeOf(err) == fault.Unauthorized {
		return viewer, fault.New(fault.ExecutionError, "the user that this runs as is unknown or not active")
	}
	return viewer, err
}
