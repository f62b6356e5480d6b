package user

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/session"
)

// Account is what External Identity asks of a user: it is one read of one row,
// so that it costs the same whoever the user is, and where there is none.
type Account struct {
	ID           ID
	Email        string
	Name         string
	Type         Type
	Active       bool
	Verified     bool
	Pending      bool
	PasswordHash string // "" for none
	// Epoch grows with everything that ends all sessions of the user.
	Epoch int64
}

const accountColumns = `user_id, email, name, user_type, active, email_verified, pending, password_hash, session_epoch`

// AccountByEmail finds an account by any form of the e-mail address, as ByEmail
// does; ErrUnknown when there is none.
func AccountByEmail(ctx context.Context, q db.Querier, address string) (Account, error) {
	return account(ctx, q, `SELECT `+accountColumns+` FROM users
		WHERE tenant_id = $1 AND email_key IN ($2, $3) ORDER BY email_key LIMIT 1`, formerKey(address), EmailKey(address))
}

// AccountByID finds an account; ErrUnknown when there is none.
func AccountByID(ctx context.Context, q db.Querier, id ID) (Account, error) {
	return account(ctx, q, `SELECT `+accountColumns+` FROM users WHERE tenant_id = $1 AND user_id = $2`, id)
}

// LockAccount is AccountByID, holding the user's row until tx ends.
func LockAccount(ctx context.Context, tx db.Tx, id ID) (Account, error) {
	return account(ctx, tx, `SELECT `+accountColumns+` FROM users WHERE tenant_id = $1 AND user_id = $2`+tx.Dialect().ForUpdate, id)
}

func account(ctx context.Context, q db.Querier, sql string, args ...any) (Account, error) {
	var a Account
	err := q.Query(ctx, sql, func(r db.Row) error {
		a = Account{
			ID: ID(r.Text(0)), Email: r.Text(1), Name: r.Text(2), Type: Type(r.Text(3)), Active: r.Bool(4), Verified: r.Bool(5),
			Pending: r.Bool(6), PasswordHash: r.Text(7), Epoch: r.Int(8),
		}
		return nil
	}, args...)
	if err == nil && a.ID == "" {
		err = ErrUnknown
	}
	return a, err
}

// Activate makes an external user who waits for it active and verified; ok is
// false when they do not wait. The caller holds tenant.Fence: a change of
// configuration that read the user before must not undo it.
func Activate(ctx context.Context, tx db.Tx, id ID, now int64) (ok bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE users SET active = 1, email_verified = 1, pending = 0, updated_at = $3
		WHERE tenant_id = $1 AND user_id = $2 AND user_type = 'external' AND pending = 1`, id, now)
	return n > 0, err
}

// ChangePassword gives a user who is active another password and ends
// their sessions for good, but for the one of the chain spared; ok is false when
// they are not as they were seen. The caller holds tenant.Fence, as for Activate.
func ChangePassword(ctx context.Context, tx db.Tx, seen Account, spared, hash string, now int64) (ok bool, err error) {
	var epoch int64
	err = tx.Query(ctx, `UPDATE users SET password_hash = $5, session_epoch = session_epoch + 1, updated_at = $6
		WHERE tenant_id = $1 AND user_id = $2 AND session_epoch = $3 AND password_hash = $4 AND user_type = $7
		AND active = 1 RETURNING session_epoch`, func(r db.Row) error {
		epoch, ok = r.Int(0), true
		return nil
	}, seen.ID, seen.Epoch, seen.PasswordHash, hash, now, string(seen.Type))
	if err != nil || !ok {
		return false, err
	}
	if err := session.TakeOver(ctx, tx, spared, seen.ID, seen.Epoch, epoch); err != nil {
		return false, err
	}
	return true, session.EndOthers(ctx, tx, seen.ID, epoch, session.ByChange, now)
}

// ResetPassword gives a user who is active, verified and of the type another
// password and ends their sessions for good; ok is false when they are not, or
// when their epoch is another. The caller holds tenant.Fence, as for Activate.
func ResetPassword(ctx context.Context, tx db.Tx, id ID, of Type, epoch int64, hash string, now int64) (ok bool, err error) {
	err = tx.Query(ctx, `UPDATE users SET password_hash = $4, session_epoch = session_epoch + 1, updated_at = $5
		WHERE tenant_id = $1 AND user_id = $2 AND session_epoch = $3 AND user_type = $6
		AND active = 1 AND email_verified = 1 RETURNING session_epoch`, func(r db.Row) error {
		epoch, ok = r.Int(0), true
		return nil
	}, id, epoch, hash, now, string(of))
	if err != nil || !ok {
		return false, err
	}
	return true, session.EndOthers(ctx, tx, id, epoch, session.ByReset, now)
}
