package identity

import (
	"context"
	"errors"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// begin starts a session for a user whose password was right, with the hash of its first
// token. If the account has changed since it was seen, ok is false and acc is its current
// state. It locks the user's row, so that a transaction that ends the user's sessions
// either comes before it or sees the new one.
func (s store) begin(ctx context.Context, tenantID tenant.ID, seen user.Account, tokenHash secret.TokenHash) (g grant, ok bool, acc user.Account, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		var err error
		ok = false
		acc, err = user.LockAccount(ctx, tx, seen.ID)
		if errors.Is(err, user.ErrUnknown) {
			acc = user.Account{}
			return nil
		}
		if err != nil || !acc.Active || acc.Epoch != seen.Epoch || acc.PasswordHash != seen.PasswordHash {
			return err
		}
		ok = true
		begun := session.Begin{
			ChainID: clock.NewID(s.clock.Now()), UserID: acc.ID, Epoch: acc.Epoch, TokenID: clock.NewID(s.clock.Now()), TokenHash: tokenHash,
		}
		g = grant{userID: acc.ID, chainID: begun.ChainID}
		g.now, err = session.Start(ctx, tx, begun, s.offset())
		return err
	})
	return g, ok, acc, err
}

// rotation is the outcome of presenting a token.
type rotation struct {
	grant
	verdict verdict
}

// rotate finds a token by its hash, judges it and applies the result, in one transaction
// that locks the chain. A token that does not exist costs one read and no write. It
// returns the error of l if the limit is used up.
//
// Because of the lock, the first of several requests with one token rotates it, and the
// others find it just rotated. Because the chain is marked as ended, and not only its
// tokens, a stolen token also ends a successor that is inserted at the same time.
func (s store) rotate(ctx context.Context, tenantID tenant.ID, hash, successorHash secret.TokenHash, l sessionLimit) (r rotation, err error) {
	h := s.d.For(tenantID)
	t, err := session.Find(ctx, h, hash)
	if err != nil || t.ID == "" {
		return rotation{}, err
	}
	err = h.Write(ctx, func(tx db.Tx) error {
		r = rotation{grant: grant{userID: t.UserID, chainID: t.ChainID}}
		is, userLost, err := s.lockState(ctx, tx, t)
		if err != nil {
			return err
		}
		r.verdict, r.now = judge(is, userLost), is.Now
		switch r.verdict {
		case rotate:
			if err := l.check(t.ChainID); err != nil {
				return err
			}
			return session.Replace(ctx, tx, t, session.Successor{ID: clock.NewID(s.clock.Now()), Hash: successorHash}, is.Now)
		case endForUser:
			return session.End(ctx, tx, t.ChainID, session.ByUser, is.Now)
		case endAsTheft:
			return session.End(ctx, tx, t.ChainID, session.ByTheft, is.Now)
		}
		return nil
	})
	return r, err
}

// lockState locks the token's chain and returns the state of the token. userLost reports
// whether its user was deleted or deactivated, or has a new password.
func (s store) lockState(ctx context.Context, tx db.Tx, t session.Token) (is session.State, userLost bool, err error) {
	is, err = session.Lock(ctx, tx, t, s.offset())
	if err != nil {
		return is, false, err
	}
	acc, err := user.AccountByID(ctx, tx, t.UserID)
	if errors.Is(err, user.ErrUnknown) {
		return is, true, nil
	}
	return is, !acc.Active || acc.Type != user.External || acc.Epoch != is.Epoch, err
}

// logout revokes the token with a hash, if there is one. If it is the newest of its chain,
// the session ends.
func (s store) logout(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) error {
	h := s.d.For(tenantID)
	t, err := session.Find(ctx, h, hash)
	if err != nil || t.ID == "" {
		return err
	}
	return h.Write(ctx, func(tx db.Tx) error {
		is, err := session.Lock(ctx, tx, t, s.offset())
		if err != nil || is.ChainEnded || is.RevokedAt != 0 {
			return err
		}
		return session.Revoke(ctx, tx, t, is, session.ByLogout)
	})
}
