package staff

import (
	"context"

	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// SignedIn returns UNAUTHORIZED if the session of a request has ended since. It is
// for answers that take long; it does not count as a use of the session.
func (s *Service) SignedIn(ctx context.Context, c *httpapi.Authed) error {
	row, err := s.store.session(ctx, c.Config.Tenant.ID, secret.Hash(cookie(c.Call)))
	if err != nil {
		return err
	}
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, row.userID)
	if err != nil {
		return err
	}
	if acc.Type != user.Internal || !acc.Active || acc.Epoch != row.epoch {
		return errUnauthorized
	}
	return nil
}
