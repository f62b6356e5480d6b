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

// begin starts a chain for a user whose password was just found right, with
// the hash of its first token, unless the account has changed since it was
// read: then it is the account as it is now, and ok is false. The user's row is
// held: whatever ends their sessions comes before the new one, or sees it.
func (s store) begin(ctx context.Context, tenantID tenant.ID, seen user.Account, tokenHash secret.TokenHash) (of holder, ok bool, acc user.Account, err error) {
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
		of = holder{userID: acc.ID, chainID: begun.ChainID}
		of.now, err = session.Start(ctx, tx, begun, s.offset())
		return err
	})
	return of, ok, acc, err
}

// rotation is what became of a presented token.
type rotation struct {
	holder
	verdict verdict
}

// rotate judges the token of a hash and does what the verdict says, in one
// transaction that holds the chain. A token that does not exist costs one read
// and no write.
//
// That the chain is held makes those who present one token at once see each
// other's work: the first rotates, the others find a token rotated a moment ago.
// That its end is a mark on the chain, and not only on its tokens, makes a theft
// end a successor too that is inserted in the same moment.
func (s store) rotate(ctx context.Context, tenantID tenant.ID, hash, successorHash secret.TokenHash, p pace) (r rotation, err error) {
	h := s.d.For(tenantID)
	t, err := session.Find(ctx, h, hash)
	if err != nil || t.ID == "" {
		return rotation{}, err
	}
	err = h.Write(ctx, func(tx db.Tx) error {
		r = rotation{holder: holder{userID: t.UserID, chainID: t.ChainID}}
		is, userLost, err := s.look(ctx, tx, t)
		if err != nil {
			return err
		}
		r.verdict, r.now = judge(is, userLost), is.Now
		switch r.verdict {
		case rotate:
			if err := p.ask(t.ChainID); err != nil {
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

// look takes the token's chain and reads what decides: how the token stands, and
// whether its user is lost, gone, deactivated since, or with another password.
func (s store) look(ctx context.Context, tx db.Tx, t session.Token) (is session.State, userLost bool, err error) {
	is, err = session.Look(ctx, tx, t, s.offset())
	if err != nil {
		return is, false, err
	}
	acc, err := user.AccountByID(ctx, tx, t.UserID)
	if errors.Is(err, user.ErrUnknown) {
		return is, true, nil
	}
	return is, !acc.Active || acc.Type != user.External || acc.Epoch != is.Epoch, err
}

// logout revokes one token. When it is the newest of its chain, the chain is at
// its end. A hash that is no token's is none of its business.
func (s store) logout(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) error {
	h := s.d.For(tenantID)
	t, err := session.Find(ctx, h, hash)
	if err != nil || t.ID == "" {
		return err
	}
	return h.Write(ctx, func(tx db.Tx) error {
		is, err := session.Look(ctx, tx, t, s.offset())
		if err != nil || is.ChainEnded || is.RevokedAt != 0 {
			return err
		}
		return session.Revoke(ctx, tx, t, is, session.ByLogout)
	})
}
