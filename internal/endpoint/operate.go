package endpoint

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
)

// Exec runs a target as a user and keeps nothing: it commits no changes and does
// not record the run. body is the JSON object of the inputs. Failures of the
// target are in the Outcome. Exec returns NOT_FOUND when there is no such target,
// and VALIDATION when body is not an object or not what the target declares.
func (s *Service) Exec(ctx context.Context, cfg *access.Config, as access.Viewer, target custom.Target, body []byte) (*Outcome, error) {
	catalog, err := s.catalog(ctx, cfg)
	if err != nil {
		return nil, err
	}
	decls, keep, err := catalog.declared(target)
	if err != nil {
		return nil, err
	}
	object, err := httpapi.ParseObject(body)
	if err != nil {
		return nil, err
	}
	given, err := inputs.FromJSON(decls, object.Members, keep)
	if err != nil {
		return nil, err
	}
	return s.execute(ctx, &job{config: cfg, caller: as, target: target, inputs: given, requestID: "exec", dry: true}), nil
}

// Retry runs a failed delivery again, as if its provider had sent it again.
// already reports whether the delivery has been processed since; then out is nil.
// It returns CONFLICT when the run was not a failed delivery, NOT_FOUND when there
// is no such run or its endpoint is gone, and secret.ErrOpen when the delivery was
// stored under another master key. Failures of the target are in the Outcome.
func (s *Service) Retry(ctx context.Context, cfg *access.Config, runID string) (out *Outcome, already bool, err error) {
	run, d, err := s.failedDelivery(ctx, cfg.Tenant.ID, runID)
	if err != nil {
		return nil, false, err
	}
	catalog, err := s.catalog(ctx, cfg)
	if err != nil {
		return nil, false, err
	}
	e := catalog.Endpoints[run.Slug]
	if e == nil {
		return nil, false, errUnknown
	}
	if already, err = s.store.committed(ctx, cfg.Tenant.ID, d.Event.ID); err != nil || already {
		return nil, already, err
	}
	if d.Event.KeyHash != "" {
		first, err := s.store.seen(ctx, cfg.Tenant.ID, run.Slug, d.Event.KeyHash)
		if err != nil || first != "" {
			return nil, first != "", err
		}
	}
	out = s.execute(ctx, &job{
		config: cfg, runAs: e.RunAs, definedBy: e.DefinedBy, slug: e.Slug, auth: run.Auth, target: e.Target, inputs: d.Inputs, event: &d.Event,
		requestID: run.RequestID,
	})
	if errors.Is(out.Err, errSeen) {
		return nil, true, nil
	}
	return out, false, nil
}
