package identity

import (
	"context"
	"time"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// purpose is what a one-time token can be used for.
type purpose string

const (
	forVerify   purpose = "verify"
	forActivate purpose = "activate"
	forReset    purpose = "reset"
)

var lifetimes = map[purpose]time.Duration{forVerify: 24 * time.Hour, forActivate: 24 * time.Hour, forReset: time.Hour}

func (s store) byEmail(ctx context.Context, tenantID tenant.ID, email string) (user.Account, error) {
	return user.AccountByEmail(ctx, s.d.For(tenantID), email)
}

func (s store) byID(ctx context.Context, tenantID tenant.ID, id user.ID) (user.Account, error) {
	return user.AccountByID(ctx, s.d.For(tenantID), id)
}

// mailToken stores the hash of a one-time token and queues the mail with the token.
func (s store) mailToken(ctx context.Context, tenantID tenant.ID, acc user.Account, p purpose, hash secret.TokenHash, out Mailer, m mail.Message) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if err := s.putToken(ctx, tx, acc.ID, acc.Epoch, p, hash); err != nil {
			return err
		}
		m.Until = s.expiry(p)
		return out.Put(ctx, tx, m)
	})
}

// putActivation stores the hash of an activation token.
func (s store) putActivation(ctx context.Context, tenantID tenant.ID, acc user.Account, hash secret.TokenHash) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		return s.putToken(ctx, tx, acc.ID, acc.Epoch, forActivate, hash)
	})
}

// expiry returns when a token made now expires. The mail with the token expires then, too.
func (s store) expiry(p purpose) time.Time { return s.clock.Now().Add(lifetimes[p]) }

func (s store) putToken(ctx context.Context, tx db.Tx, userID user.ID, epoch int64, p purpose, hash secret.TokenHash) error {
	now := tx.Dialect().Now
	_, err := tx.Exec(ctx, `INSERT INTO one_time_tokens (tenant_id, token_hash, purpose, user_id, session_epoch, created_at, expires_at, used_at)
		VALUES ($1, $2, $3, $4, $5, `+now+` + $6, `+now+` + $7, NULL)`,
		hash, string(p), userID, epoch, s.offset(), s.offset()+micros(lifetimes[p]))
	return err
}

// checkToken returns nil if a token could be used for p now, or else TOKEN_INVALID or
// TOKEN_EXPIRED.
func (s store) checkToken(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash, p purpose) error {
	h := s.d.For(tenantID)
	return s.judgeToken(ctx, h, h.Dialect(), hash, p)
}

// judgeToken returns nil for a token that is valid for a purpose, TOKEN_EXPIRED for one
// that has expired, and TOKEN_INVALID for one that is unknown, used or for another
// purpose. An expired activation token that is presented for verification is
// TOKEN_EXPIRED (contract I9).
func (s store) judgeToken(ctx context.Context, q db.Querier, dialect db.Dialect, hash secret.TokenHash, p purpose) error {
	verdict := error(errTokenInvalid)
	err := q.Query(ctx, `SELECT purpose, expires_at, used_at, `+dialect.Now+` + $3 FROM one_time_tokens
		WHERE tenant_id = $1 AND token_hash = $2`, func(r db.Row) error {
		is := purpose(r.Text(0))
		old := r.Int(3) >= r.Int(1)
		switch {
		case !r.Null(2):
		case old && (is == p || p == forVerify && is == forActivate):
			verdict = errTokenExpired
		case is == p:
			verdict = nil
		}
		return nil
	}, hash, s.offset())
	if err != nil {
		return err
	}
	return verdict
}

// spend uses up a token by one compare-and-set, and returns its user and epoch. owner is
// the user that the token must belong to, "" for any. If several requests present one token
// at once, one succeeds. It returns TOKEN_INVALID and TOKEN_EXPIRED as judgeToken does.
func (s store) spend(ctx context.Context, tx db.Tx, hash secret.TokenHash, p purpose, owner user.ID) (userID user.ID, epoch int64, err error) {
	now := tx.Dialect().Now
	err = tx.Query(ctx, `UPDATE one_time_tokens SET used_at = `+now+` + $5
		WHERE tenant_id = $1 AND token_hash = $2 AND purpose = $3 AND ($4 = '' OR user_id = $4)
		AND used_at IS NULL AND expires_at > `+now+` + $5 RETURNING user_id, session_epoch`, func(r db.Row) error {
		userID, epoch = user.ID(r.Text(0)), r.Int(1)
		return nil
	}, hash, string(p), owner, s.offset())
	if err != nil || userID != "" {
		return userID, epoch, err
	}
	err = s.judgeToken(ctx, tx, tx.Dialect(), hash, p)
	if err == nil { // valid, but another user's
		err = errTokenInvalid
	}
	return "", 0, err
}

// activate uses up a token, makes its user active and queues the welcome mail. It returns
// TOKEN_INVALID if the user is not pending.
func (s store) activate(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash, p purpose, owner user.ID, w welcome) (userID user.ID, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		var err error
		if userID, _, err = s.spend(ctx, tx, hash, p, owner); err != nil {
			return err
		}
		ok, err := user.Activate(ctx, tx, userID, clock.Micros(s.clock.Now()))
		if err != nil {
			return err
		}
		if !ok {
			return errTokenInvalid
		}
		if w.compose == nil {
			return nil
		}
		acc, err := user.AccountByID(ctx, tx, userID)
		if err != nil {
			return err
		}
		return w.out.Put(ctx, tx, w.compose(acc))
	})
	return userID, err
}

// welcome is the mail to a user who was activated; compose is nil for none.
type welcome struct {
	out     Mailer
	compose func(user.Account) mail.Message
}

// reset uses up a reset token, stores a password hash and ends the user's sessions. It
// returns TOKEN_INVALID or TOKEN_EXPIRED.
func (s store) reset(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash, phc string) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if _, err := tenant.Fence(ctx, tx); err != nil {
			return err
		}
		id, epoch, err := s.spend(ctx, tx, hash, forReset, "")
		if err != nil {
			return err
		}
		now := clock.Micros(s.clock.Now())
		ok, err := user.ResetPassword(ctx, tx, id, user.External, epoch, phc, now)
		if err != nil {
			return err
		}
		if !ok {
			return errTokenInvalid
		}
		return nil
	})
}
