package identity

import (
	"context"
	"errors"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// Why a chain ended.
const (
	endedByLogout = "logout"
	endedByTheft  = "reuse"
	endedByUser   = string(user.EndedByUser)
)

// begin starts a chain for a user whose password was just found right, with
// the hash of its first token, unless the account has changed since it was
// read: then it is the account as it is now, and ok is false. The user's row is
// held: whatever ends their sessions comes before the new one, or sees it.
func (s store) begin(ctx context.Context, tenantID string, seen user.Account, tokenHash secret.TokenHash) (of session, ok bool, acc user.Account, err error) {
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
		of = session{userID: acc.ID, chainID: clock.NewID(s.clock.Now())}
		err = tx.Query(ctx, `INSERT INTO refresh_chains (tenant_id, chain_id, user_id, session_epoch, started_at, expires_at, ended_at, end_reason)
			VALUES ($1, $2, $3, $4, `+tx.Dialect().Now+` + $5, `+tx.Dialect().Now+` + $6, NULL, '') RETURNING started_at`,
			func(r db.Row) error { of.now = r.Int(0); return nil },
			of.chainID, acc.ID, acc.Epoch, s.offset(), s.offset()+micros(refreshLifetime))
		if err != nil {
			return err
		}
		return s.insertToken(ctx, tx, of.chainID, acc.ID, nil, tokenHash, of.now)
	})
	return of, ok, acc, err
}

// insertToken adds a token to a chain whose row the caller holds; parent is nil
// for the first.
func (s store) insertToken(ctx context.Context, tx db.Tx, chain, userID string, parent any, hash secret.TokenHash, now int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO refresh_tokens (tenant_id, token_id, parent_token_id, chain_id, user_id, token_hash,
		issued_at, expires_at, rotated_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, NULL)`,
		clock.NewID(s.clock.Now()), parent, chain, userID, hash, now, now+micros(refreshLifetime))
	return err
}

// rotation is what became of a presented token.
type rotation struct {
	session
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
func (s store) rotate(ctx context.Context, tenantID string, hash, successorHash secret.TokenHash) (r rotation, err error) {
	h := s.d.For(tenantID)
	t, err := findToken(ctx, h, hash)
	if err != nil || t.id == "" {
		return rotation{}, err
	}
	err = h.Write(ctx, func(tx db.Tx) error {
		r = rotation{session: session{userID: t.userID, chainID: t.chainID}}
		m, err := s.look(ctx, tx, t)
		if err != nil {
			return err
		}
		r.verdict, r.now = m.judge(), m.now
		switch r.verdict {
		case rotate:
			return s.replace(ctx, tx, t, successorHash, m.now)
		case endForUser:
			return endChain(ctx, tx, t.chainID, endedByUser, m.now)
		case endAsTheft:
			return endChain(ctx, tx, t.chainID, endedByTheft, m.now)
		}
		return nil
	})
	return r, err
}

// tokenRef is what never changes of a token.
type tokenRef struct{ id, chainID, userID string }

// findToken finds a token by its hash; its id is "" when there is none.
func findToken(ctx context.Context, q db.Querier, hash secret.TokenHash) (t tokenRef, err error) {
	err = q.Query(ctx, `SELECT token_id, chain_id, user_id FROM refresh_tokens WHERE tenant_id = $1 AND token_hash = $2`,
		func(r db.Row) error {
			t = tokenRef{r.Text(0), r.Text(1), r.Text(2)}
			return nil
		}, hash)
	return t, err
}

// look takes the token's chain and reads what decides. The time is read after
// the chain was waited for.
func (s store) look(ctx context.Context, tx db.Tx, t tokenRef) (m moment, err error) {
	m.chainEnded = true // of a chain that was swept meanwhile
	var epoch int64
	err = tx.Query(ctx, `SELECT session_epoch, ended_at FROM refresh_chains WHERE tenant_id = $1 AND chain_id = $2`+tx.Dialect().ForUpdate,
		func(r db.Row) error {
			epoch, m.chainEnded = r.Int(0), !r.Null(1)
			return nil
		}, t.chainID)
	if err != nil {
		return m, err
	}
	err = tx.Query(ctx, `SELECT `+tx.Dialect().Now+` + $3, expires_at, rotated_at, revoked_at FROM refresh_tokens
		WHERE tenant_id = $1 AND token_id = $2`, func(r db.Row) error {
		m.now, m.expiresAt = r.Int(0), r.Int(1)
		m.rotatedAt, m.revokedAt = instant(r, 2), instant(r, 3)
		return nil
	}, t.id, s.offset())
	if err != nil {
		return m, err
	}
	if m.rotatedAt != 0 {
		err = tx.Query(ctx, `SELECT revoked_at FROM refresh_tokens WHERE tenant_id = $1 AND parent_token_id = $2`, func(r db.Row) error {
			m.successorRevoked = !r.Null(0)
			return nil
		}, t.id)
		if err != nil {
			return m, err
		}
	}
	acc, err := user.AccountByID(ctx, tx, t.userID)
	if errors.Is(err, user.ErrUnknown) {
		m.userLost = true
		return m, nil
	}
	m.userLost = !acc.Active || acc.Type != user.External || acc.Epoch != epoch
	return m, err
}

// instant is a column's time, 0 where there is none.
func instant(r db.Row, col int) int64 {
	if r.Null(col) {
		return 0
	}
	return r.Int(col)
}

// replace puts a successor in a token's place: one compare-and-set.
func (s store) replace(ctx context.Context, tx db.Tx, t tokenRef, successorHash secret.TokenHash, now int64) error {
	n, err := tx.Exec(ctx, `UPDATE refresh_tokens SET rotated_at = $3
		WHERE tenant_id = $1 AND token_id = $2 AND rotated_at IS NULL AND revoked_at IS NULL`, t.id, now)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("identity: a refresh token changed under the lock of its chain")
	}
	if err := s.insertToken(ctx, tx, t.chainID, t.userID, t.id, successorHash, now); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh_chains SET expires_at = $3 WHERE tenant_id = $1 AND chain_id = $2`,
		t.chainID, now+micros(refreshLifetime))
	return err
}

// endChain ends a chain that the caller holds and revokes every token of it.
func endChain(ctx context.Context, tx db.Tx, chainID, reason string, now int64) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_chains SET ended_at = $3, end_reason = $4
		WHERE tenant_id = $1 AND chain_id = $2 AND ended_at IS NULL`, chainID, now, reason)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $3 WHERE tenant_id = $1 AND chain_id = $2 AND revoked_at IS NULL`,
		chainID, now)
	return err
}

// logout revokes one token. When it is the newest of its chain, the chain is at
// its end. A hash that is no token's is none of its business.
func (s store) logout(ctx context.Context, tenantID string, hash secret.TokenHash) error {
	h := s.d.For(tenantID)
	t, err := findToken(ctx, h, hash)
	if err != nil || t.id == "" {
		return err
	}
	return h.Write(ctx, func(tx db.Tx) error {
		m, err := s.look(ctx, tx, t)
		if err != nil || m.chainEnded || m.revokedAt != 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $3 WHERE tenant_id = $1 AND token_id = $2`, t.id, m.now)
		if err != nil || m.rotatedAt != 0 {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE refresh_chains SET ended_at = $3, end_reason = $4 WHERE tenant_id = $1 AND chain_id = $2`,
			t.chainID, m.now, endedByLogout)
		return err
	})
}
