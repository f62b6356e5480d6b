package identity

import (
	"context"
	"errors"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// changePassword sets the password of an account unless the account has changed since seen
// was read. It ends the user's sessions except the one of the chain spared, which moves to
// the new epoch. If the account has changed, ok is false and is holds its current state.
func (s store) changePassword(ctx context.Context, tenantID tenant.ID, seen user.Account, spared, phc string) (ok bool, is user.Account, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		var err error
		ok, err = user.ChangePassword(ctx, tx, seen, spared, phc, clock.Micros(s.clock.Now()))
		if err != nil || ok {
			return err
		}
		is, err = user.AccountByID(ctx, tx, seen.ID)
		if errors.Is(err, user.ErrUnknown) {
			return nil
		}
		return err
	})
	return ok, is, err
}
