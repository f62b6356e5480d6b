package endpoint

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
)

// actor is as whom a job's target runs where the target does not say: the
// endpoint's run_as, then the caller, then for a webhook whoever defined the
// endpoint (decisions 2.30).
func (s *Service) actor(ctx context.Context, j *job) (access.Viewer, error) {
	switch {
	case j.runAs != "":
		return s.user(ctx, j.config, j.runAs)
	case j.caller.UserID() != "":
		return j.caller, nil
	}
	return s.user(ctx, j.config, j.definedBy)
}

// under is as whom a target with a declared execution context runs, where it
// would else run as what actor says.
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

// user is a user that a definition names. One that is gone or deactivated can
// run nothing.
func (s *Service) user(ctx context.Context, cfg *access.Config, id string) (access.Viewer, error) {
	viewer, err := s.dir.Viewer(ctx, cfg, id, false)
	if fault.CodeOf(err) == fault.Unauthorized {
		return viewer, fault.New(fault.ExecutionError, "the user that this runs as is unknown or not active")
	}
	return viewer, err
}
