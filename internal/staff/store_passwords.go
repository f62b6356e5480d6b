package staff

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// resetLife is how long the link of a reset mail works.
const resetLife = time.Hour

var (
	errTokenInvalid = fault.New(fault.TokenInvalid, "the link is not valid: it was used already, or is incomplete")
	errTokenExpired = fault.New(fault.TokenExpired, "the link has expired: ask for another one")
)

// mailReset stores the hash of a reset token and queues the mail with the token.
func (s store) mailReset(ctx context.Context, tenantID tenant.ID, acc user.Account, hash secret.TokenHash, out Mailer, m mail.Message) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO staff_resets (tenant_id, token_hash, user_id, session_epoch, expires_at, used_at)
			VALUES ($1, $2, $3, $4, `+tx.Dialect().Now+` + $5, NULL)`, hash, acc.ID, acc.Epoch, s.offset()+micros(resetLife))
		if err != nil {
			return err
		}
		m.Until = s.clock.Now().Add(resetLife)
		return out.Put(ctx, tx, m)
	})
}

// checkReset returns nil if a token could be used now, else TOKEN_INVALID or TOKEN_EXPIRED.
func (s store) checkReset(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) error {
	h := s.d.For(tenantID)
	return s.judgeReset(ctx, h, hash)
}

func (s store) judgeReset(ctx context.Context, q db.Querier, hash secret.TokenHash) error {
	verdict := error(errTokenInvalid)
	err := q.Query(ctx, `SELECT expires_at, used_at, `+q.Dialect().Now+` + $3 FROM staff_resets WHERE tenant_id = $1 AND token_hash = $2`, func(r db.Row) error {
		switch {
		case !r.Null(1):
		case r.Int(2) >= r.Int(0):
			verdict = errTokenExpired
		default:
			verdict = nil
		}
		return nil
	}, hash, s.offset())
	if err != nil {
		return err
	}
	return verdict
}

// reset uses up a token by one compare-and-set, stores a password hash and ends the sessions
// of the user, whom it returns. If several requests present one token at once, one succeeds. It returns
// TOKEN_INVALID or TOKEN_EXPIRED.
func (s store) reset(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash, phc string) (of user.ID, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		now := tx.Dialect().Now
		of = ""
		var epoch int64
		err := tx.Query(ctx, `UPDATE staff_resets SET used_at = `+now+` + $3
			WHERE tenant_id = $1 AND token_hash = $2 AND used_at IS NULL AND expires_at > `+now+` + $3 RETURNING user_id, session_epoch`, func(r db.Row) error {
			of, epoch = user.ID(r.Text(0)), r.Int(1)
			return nil
		}, hash, s.offset())
		if err != nil {
			return err
		}
		if of == "" {
			if err := s.judgeReset(ctx, tx, hash); err != nil {
				return err
			}
			return errTokenInvalid
		}
		ok, err := user.ResetPassword(ctx, tx, of, user.Internal, epoch, phc, clock.Micros(s.clock.Now()))
		if err != nil {
			return err
		}
		if !ok {
			return errTokenInvalid
		}
		return endOthers(ctx, tx, of, "")
	})
	if err != nil {
		return "", err
	}
	return of, nil
}

// changePassword sets the password of an account, unless the account has changed since it
// was seen; then ok is false. It ends the user's sessions but the one spared, which moves
// to the new epoch.
func (s store) changePassword(ctx context.Context, tenantID tenant.ID, seen user.Account, spared, phc string) (ok bool, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		ok, err = user.ChangePassword(ctx, tx, seen, "", phc, clock.Micros(s.clock.Now()))
		if err != nil || !ok {
			return err
		}
		acc, err := user.AccountByID(ctx, tx, seen.ID)
		if err != nil {
			return err
		}
		if err := endOthers(ctx, tx, seen.ID, spared); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE staff_sessions SET session_epoch = $3 WHERE tenant_id = $1 AND session_id = $2`, spared, acc.Epoch)
		return err
	})
	return ok, err
}
