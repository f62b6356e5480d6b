package identity

import (
	"context"
	"errors"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// changePassword gives an account that is as it was seen another password, and
// ends the user's sessions but for the one of the chain spared, which lives on
// at the new epoch. When the account has changed, ok is false and is the account
// as it is now.
func (s store) changePassword(ctx context.Context, tenantID string, seen user.Account, spared, phc string) (ok bool, is user.Account, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		var epoch int64
		var err error
		epoch, ok, err = user.ChangePassword(ctx, tx, seen, phc, clock.Micros(s.clock.Now()))
		if err != nil {
			return err
		}
		if !ok {
			is, err = user.AccountByID(ctx, tx, seen.ID)
			if errors.Is(err, user.ErrUnknown) {
				return nil
			}
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE refresh_chains SET session_epoch = $5
			WHERE tenant_id = $1 AND chain_id = $2 AND user_id = $3 AND session_epoch = $4 AND ended_at IS NULL`,
			spared, seen.ID, seen.Epoch, epoch)
		if err != nil {
			return err
		}
		return s.endChains(ctx, tx, seen.ID, spared, endedByChange)
	})
	return ok, is, err
}
