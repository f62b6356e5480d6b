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

// purpose is what a one-time token is good for.
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

// offer stores a one-time token, by its hash, and queues the mail that brings it.
func (s store) offer(ctx context.Context, tenantID tenant.ID, acc user.Account, p purpose, hash secret.TokenHash, out Mailer, m mail.Message) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		if err := s.putToken(ctx, tx, acc.ID, acc.Epoch, p, hash); err != nil {
			return err
		}
		m.Until = s.expiry(p)
		return out.Put(ctx, tx, m)
	})
}

// putActivation stores an activation token, by its hash.
func (s store) putActivation(ctx context.Context, tenantID tenant.ID, acc user.Account, hash secret.TokenHash) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		return s.putToken(ctx, tx, acc.ID, acc.Epoch, forActivate, hash)
	})
}

// expiry is when a token that is made now ends, and the mail that brings it is
// worth nothing any more.
func (s store) expiry(p purpose) time.Time { return s.clock.Now().Add(lifetimes[p]) }

func (s store) putToken(ctx context.Context, tx db.Tx, userID user.ID, epoch int64, p purpose, hash secret.TokenHash) error {
	now := tx.Dialect().Now
	_, err := tx.Exec(ctx, `INSERT INTO one_time_tokens (tenant_id, token_hash, purpose, user_id, session_epoch, created_at, expires_at, used_at)
		VALUES ($1, $2, $3, $4, $5, `+now+` + $6, `+now+` + $7, NULL)`,
		hash, string(p), userID, epoch, s.offset(), s.offset()+micros(lifetimes[p]))
	return err
}

// holds is nil for a token that could be spent on p now; else it says why not.
func (s store) holds(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash, p purpose) error {
	h := s.d.For(tenantID)
	return s.why(ctx, h, h.Dialect(), hash, p)
}

// why judges a token that is presented for a purpose: TOKEN_EXPIRED for an old
// one, TOKEN_INVALID for one that is unknown, spent or for another purpose, nil
// for one that holds. Verify is asked with activation tokens, too, and tells an
// old one from one that it does not take (contract I9).
func (s store) why(ctx context.Context, q db.Querier, dialect db.Dialect, hash secret.TokenHash, p purpose) error {
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

// spend uses a token up by one compare-and-set and says whose it was, at which
// epoch. owner is the user it must belong to, "" for whoever. Of many who
// present one token at once, one gets it.
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
	err = s.why(ctx, tx, tx.Dialect(), hash, p)
	if err == nil { // it holds, but for somebody else
		err = errTokenInvalid
	}
	return "", 0, err
}

// activate spends a token and makes its user active; TOKEN_INVALID when they do
// not wait for it. The welcome mail is queued with it.
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

// welcome is the mail that greets who was activated; compose is nil for none.
type welcome struct {
	out     Mailer
	compose func(user.Account) mail.Message
}

// reset spends a reset token on a password hash and ends the user's sessions.
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
		ok, err := user.ResetPassword(ctx, tx, id, epoch, phc, now)
		if err != nil {
			return err
		}
		if !ok {
			return errTokenInvalid
		}
		return nil
	})
}
