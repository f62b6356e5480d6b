package staff

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// factor is the second factor of a user. The keys are sealed; "" is none.
type factor struct {
	sealed   string
	pending  string
	lastStep int64
	codes    int   // recovery codes that are left
	now      int64 // the database's time, in microseconds
}

// factor returns the second factor of a user; one that they do not have is empty.
func (s store) factor(ctx context.Context, tenantID tenant.ID, of user.ID) (f factor, err error) {
	h := s.d.For(tenantID)
	err = h.Query(ctx, `SELECT sealed, pending, last_step, `+h.Dialect().Now+` + $3 FROM staff_factors WHERE tenant_id = $1 AND user_id = $2`, func(r db.Row) error {
		f = factor{sealed: r.Text(0), pending: r.Text(1), lastStep: r.Int(2), now: r.Int(3)}
		return nil
	}, of, s.offset())
	if err != nil || f.sealed == "" {
		return f, err
	}
	err = h.Query(ctx, `SELECT count(*) FROM staff_recovery_codes WHERE tenant_id = $1 AND user_id = $2`, func(r db.Row) error {
		f.codes = int(r.Int(0))
		return nil
	}, of)
	return f, err
}

// propose stores a key that waits to be confirmed; the one in use stays until then.
func (s store) propose(ctx context.Context, tenantID tenant.ID, of user.ID, sealed string) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO staff_factors (tenant_id, user_id, sealed, pending, last_step) VALUES ($1, $2, '', $3, 0)
			ON CONFLICT (tenant_id, user_id) DO UPDATE SET pending = excluded.pending`, of, sealed)
		return err
	})
}

// use accepts a code of a time step, unless one of this step or a later one was accepted
// before. Of several requests with one code, one succeeds.
func (s store) use(ctx context.Context, tx db.Tx, of user.ID, seen factor, step int64) (ok bool, err error) {
	n, err := tx.Exec(ctx, `UPDATE staff_factors SET last_step = $3 WHERE tenant_id = $1 AND user_id = $2 AND sealed = $4 AND last_step < $3`,
		of, step, seen.sealed)
	return n > 0, err
}

// recover uses up a recovery code.
func (s store) recover(ctx context.Context, tx db.Tx, of user.ID, code secret.TokenHash) (ok bool, err error) {
	n, err := tx.Exec(ctx, `DELETE FROM staff_recovery_codes WHERE tenant_id = $1 AND user_id = $2 AND code_hash = $3`, of, code)
	return n > 0, err
}

// proof is what a user shows of their second factor: the time step of a right code, or a
// recovery code.
type proof struct {
	step int64
	code secret.TokenHash // "" unless it is a recovery code
}

// spend uses up a proof; ok is false if it was used before.
func (s store) spend(ctx context.Context, tx db.Tx, of user.ID, seen factor, p proof) (ok bool, err error) {
	if p.code != "" {
		return s.recover(ctx, tx, of, p.code)
	}
	return s.use(ctx, tx, of, seen, p.step)
}

// pass uses up a proof and completes a session, with a new token. ok is false if the proof
// was used before, or the account has changed since it was seen.
func (s store) pass(ctx context.Context, tenantID tenant.ID, seen user.Account, f factor, p proof, next nextSession) (row session, ok bool, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
		if ok, err = lockSame(ctx, tx, seen); err != nil || !ok {
			return err
		}
		if ok, err = s.spend(ctx, tx, seen.ID, f, p); err != nil || !ok {
			return err
		}
		row, err = complete(ctx, tx, next.id, next.hash, s.offset())
		return err
	})
	return row, ok, err
}

// nextSession is a session and the hash of its new token.
type nextSession struct {
	id   string
	hash secret.TokenHash
}

// confirm makes the key that waits the one in use, replaces the recovery codes and ends the
// user's other sessions. A session that waits for the enrolment is completed, with its new
// token. ok is false if another key waits by now, or the account has changed.
func (s store) confirm(ctx context.Context, tenantID tenant.ID, seen user.Account, f factor, step int64, codes []secret.TokenHash, next nextSession) (row session, ok bool, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
		row = session{}
		if ok, err = lockSame(ctx, tx, seen); err != nil || !ok {
			return err
		}
		n, err := tx.Exec(ctx, `UPDATE staff_factors SET sealed = pending, pending = '', last_step = $4
			WHERE tenant_id = $1 AND user_id = $2 AND pending = $3 AND pending <> ''`, seen.ID, f.pending, step)
		if ok = n > 0; err != nil || !ok {
			return err
		}
		if err := replaceCodes(ctx, tx, seen.ID, codes); err != nil {
			return err
		}
		if err := endOthers(ctx, tx, seen.ID, next.id); err != nil || next.hash == "" {
			return err
		}
		row, err = complete(ctx, tx, next.id, next.hash, s.offset())
		return err
	})
	return row, ok, err
}

func replaceCodes(ctx context.Context, tx db.Tx, of user.ID, codes []secret.TokenHash) error {
	if _, err := tx.Exec(ctx, `DELETE FROM staff_recovery_codes WHERE tenant_id = $1 AND user_id = $2`, of); err != nil {
		return err
	}
	for _, code := range codes {
		if _, err := tx.Exec(ctx, `INSERT INTO staff_recovery_codes (tenant_id, user_id, code_hash) VALUES ($1, $2, $3)`, of, code); err != nil {
			return err
		}
	}
	return nil
}

// dropFactor deletes a user's second factor and recovery codes.
func (s store) dropFactor(ctx context.Context, tenantID tenant.ID, of user.ID) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		_, err := drop(ctx, tx, of)
		return err
	})
}

// drop deletes a user's second factor and recovery codes; had is false if there was none.
func drop(ctx context.Context, tx db.Tx, of user.ID) (had bool, err error) {
	if err := replaceCodes(ctx, tx, of, nil); err != nil {
		return false, err
	}
	n, err := tx.Exec(ctx, `DELETE FROM staff_factors WHERE tenant_id = $1 AND user_id = $2`, of)
	return n > 0, err
}

// ResetFactor deletes a user's second factor and recovery codes and ends their sessions,
// for an operator. had is false if there was none.
func ResetFactor(ctx context.Context, h db.Handle, of user.ID) (had bool, err error) {
	err = h.Write(ctx, func(tx db.Tx) (err error) {
		if had, err = drop(ctx, tx, of); err != nil || !had {
			return err
		}
		return endOthers(ctx, tx, of, "")
	})
	return had, err
}

// CheckFactors returns an error if a key of the tenant's second factors does not open with
// a keyring.
func CheckFactors(ctx context.Context, h db.Handle, ring *secret.Keyring) error {
	return h.Query(ctx, `SELECT user_id, sealed, pending FROM staff_factors WHERE tenant_id = $1`, func(r db.Row) error {
		of := user.ID(r.Text(0))
		for _, sealed := range []string{r.Text(1), r.Text(2)} {
			if sealed == "" {
				continue
			}
			if _, err := ring.Open(purposeOf(h.Tenant(), of), sealed); err != nil {
				return err
			}
		}
		return nil
	})
}
