package session

import (
	"context"
	"errors"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
)

// Start adds a session with its first token, and returns the time it began. offset, here
// and below, is how far a test has moved the clock, in microseconds.
func Start(ctx context.Context, tx db.Tx, b Begin, offset int64) (now int64, err error) {
	err = tx.Query(ctx, `INSERT INTO refresh_chains (tenant_id, chain_id, user_id, session_epoch, started_at, expires_at, ended_at, end_reason)
		VALUES ($1, $2, $3, $4, `+tx.Dialect().Now+` + $5, `+tx.Dialect().Now+` + $6, NULL, '') RETURNING started_at`,
		func(r db.Row) error { now = r.Int(0); return nil },
		b.ChainID, b.UserID, b.Epoch, offset, offset+micros(lifetime))
	if err != nil {
		return 0, err
	}
	return now, insert(ctx, tx, Token{b.TokenID, b.ChainID, b.UserID}, nil, b.TokenHash, now)
}

// insert adds a token to a chain, which the caller has locked. parent is nil for the
// first token.
func insert(ctx context.Context, tx db.Tx, t Token, parent any, hash secret.TokenHash, now int64) error {
	_, err := tx.Exec(ctx, `INSERT INTO refresh_tokens (tenant_id, token_id, parent_token_id, chain_id, user_id, token_hash,
		issued_at, expires_at, rotated_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, NULL)`,
		t.ID, parent, t.ChainID, t.UserID, hash, now, now+micros(lifetime))
	return err
}

// Find returns the token with a hash, or the zero Token.
func Find(ctx context.Context, q db.Querier, hash secret.TokenHash) (t Token, err error) {
	err = q.Query(ctx, `SELECT token_id, chain_id, user_id FROM refresh_tokens WHERE tenant_id = $1 AND token_hash = $2`,
		func(r db.Row) error {
			t = Token{r.Text(0), r.Text(1), UserID(r.Text(2))}
			return nil
		}, hash)
	return t, err
}

// Lock locks the token's chain and returns the state of both. It reads the time once it
// has the lock. A chain that was deleted meanwhile counts as ended.
func Lock(ctx context.Context, tx db.Tx, t Token, offset int64) (s State, err error) {
	s.ChainEnded = true // unless the chain is found
	err = tx.Query(ctx, `SELECT session_epoch, ended_at FROM refresh_chains WHERE tenant_id = $1 AND chain_id = $2`+tx.Dialect().ForUpdate,
		func(r db.Row) error {
			s.Epoch, s.ChainEnded = r.Int(0), !r.Null(1)
			return nil
		}, t.ChainID)
	if err != nil {
		return s, err
	}
	err = tx.Query(ctx, `SELECT `+tx.Dialect().Now+` + $3, expires_at, rotated_at, revoked_at FROM refresh_tokens
		WHERE tenant_id = $1 AND token_id = $2`, func(r db.Row) error {
		s.Now, s.ExpiresAt = r.Int(0), r.Int(1)
		s.RotatedAt, s.RevokedAt = instant(r, 2), instant(r, 3)
		return nil
	}, t.ID, offset)
	if err != nil || s.RotatedAt == 0 {
		return s, err
	}
	err = tx.Query(ctx, `SELECT revoked_at FROM refresh_tokens WHERE tenant_id = $1 AND parent_token_id = $2`, func(r db.Row) error {
		s.SuccessorRevoked = !r.Null(0)
		return nil
	}, t.ID)
	return s, err
}

// instant returns the time in a column, 0 for NULL.
func instant(r db.Row, col int) int64 {
	if r.Null(col) {
		return 0
	}
	return r.Int(col)
}

// Replace marks a token as rotated and adds its successor to the chain. It returns an
// error if the token was rotated or revoked before, which Lock would have shown.
func Replace(ctx context.Context, tx db.Tx, t Token, by Successor, now int64) error {
	n, err := tx.Exec(ctx, `UPDATE refresh_tokens SET rotated_at = $3
		WHERE tenant_id = $1 AND token_id = $2 AND rotated_at IS NULL AND revoked_at IS NULL`, t.ID, now)
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("session: a refresh token changed under the lock of its chain")
	}
	if err := insert(ctx, tx, Token{by.ID, t.ChainID, t.UserID}, t.ID, by.Hash, now); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh_chains SET expires_at = $3 WHERE tenant_id = $1 AND chain_id = $2`,
		t.ChainID, now+micros(lifetime))
	return err
}

// End ends a session and revokes all its tokens.
func End(ctx context.Context, tx db.Tx, chainID string, why Reason, now int64) error {
	if err := endChain(ctx, tx, chainID, why, now); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $3 WHERE tenant_id = $1 AND chain_id = $2 AND revoked_at IS NULL`,
		chainID, now)
	return err
}

func endChain(ctx context.Context, tx db.Tx, chainID string, why Reason, now int64) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_chains SET ended_at = $3, end_reason = $4
		WHERE tenant_id = $1 AND chain_id = $2 AND ended_at IS NULL`, chainID, now, string(why))
	return err
}

// Revoke revokes one token. If it is the newest of its session, the session ends.
func Revoke(ctx context.Context, tx db.Tx, t Token, s State, why Reason) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $3 WHERE tenant_id = $1 AND token_id = $2`, t.ID, s.Now)
	if err != nil || s.RotatedAt != 0 {
		return err
	}
	return endChain(ctx, tx, t.ChainID, why, s.Now)
}

// TakeOver moves a user's session, unless it has ended, from one epoch to another.
func TakeOver(ctx context.Context, tx db.Tx, chainID string, userID UserID, from, to int64) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_chains SET session_epoch = $5
		WHERE tenant_id = $1 AND chain_id = $2 AND user_id = $3 AND session_epoch = $4 AND ended_at IS NULL`,
		chainID, userID, from, to)
	return err
}

// EndOthers marks every session of a user that is not at the user's epoch as ended, and
// its tokens as revoked. It must be called after the epoch was raised. The epoch alone
// already makes the tokens invalid; the marks show it. A login locks the user's row, so
// EndOthers sees its session.
func EndOthers(ctx context.Context, tx db.Tx, userID UserID, epoch int64, why Reason, now int64) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_chains SET ended_at = $4, end_reason = $5
		WHERE tenant_id = $1 AND user_id = $2 AND session_epoch <> $3 AND ended_at IS NULL`, userID, epoch, now, string(why))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $4 WHERE tenant_id = $1 AND revoked_at IS NULL
		AND chain_id IN (SELECT chain_id FROM refresh_chains WHERE tenant_id = $1 AND user_id = $2 AND session_epoch <> $3)`,
		userID, epoch, now)
	return err
}

// oldChains selects up to 500 sessions whose newest token expired before $2.
const oldChains = `SELECT chain_id FROM refresh_chains WHERE tenant_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT 500`

// Old are the sessions whose newest token expired before an instant of the database's clock,
// in microseconds, and their tokens. A token is kept as long as its session, because an old
// token that is presented again ends the session.
func Old(before int64) tenant.Old {
	return tenant.Old{
		Some: `SELECT 1 FROM refresh_chains WHERE tenant_id = $1 AND expires_at < $2`,
		Delete: []string{
			`DELETE FROM refresh_tokens WHERE tenant_id = $1 AND token_id IN (SELECT token_id FROM refresh_tokens
				WHERE tenant_id = $1 AND chain_id IN (` + oldChains + `) LIMIT 500)`,
			`DELETE FROM refresh_chains WHERE tenant_id = $1 AND chain_id IN (` + oldChains + `)
				AND chain_id NOT IN (SELECT chain_id FROM refresh_tokens WHERE tenant_id = $1 AND chain_id IN (` + oldChains + `))`,
		},
		Args: []any{before},
	}
}
