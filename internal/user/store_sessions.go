package user

import (
	"context"

	"gatehouse/internal/db"
)

// SessionsEnd is why sessions of a user ended, as refresh_chains.end_reason has it.
type SessionsEnd string

// The reasons that lie with the user's account.
const (
	EndedByReset  SessionsEnd = "reset"
	EndedByChange SessionsEnd = "password" // changed by the user in another session
	EndedByUser   SessionsEnd = "user"     // deactivated, gone, or with a password given by an operator
)

// endSessions marks every session of a user that is not at the user's epoch as
// ended, and its tokens as revoked. Whatever raises the epoch calls it after
// that: the epoch alone makes them worth nothing, the marks make them look it. A
// login that commits meanwhile holds the user's row, so that its session is seen.
func endSessions(ctx context.Context, tx db.Tx, userID string, why SessionsEnd, now int64) error {
	_, err := tx.Exec(ctx, `UPDATE refresh_chains SET ended_at = $3, end_reason = $4 WHERE tenant_id = $1 AND user_id = $2 AND ended_at IS NULL
		AND session_epoch <> coalesce((SELECT session_epoch FROM users WHERE tenant_id = $1 AND user_id = $2), -1)`, userID, now, string(why))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE refresh_tokens SET revoked_at = $3 WHERE tenant_id = $1 AND revoked_at IS NULL
		AND chain_id IN (SELECT chain_id FROM refresh_chains WHERE tenant_id = $1 AND user_id = $2
		AND session_epoch <> coalesce((SELECT session_epoch FROM users WHERE tenant_id = $1 AND user_id = $2), -1))`, userID, now)
	return err
}
