package staff

import (
	"context"
	"errors"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/db"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Options configure a Service. All fields but Cores must be set.
type Options struct {
	DB        *db.DB
	Directory *access.Directory
	Clock     clock.Clock
	Cores     *admission.Cores
}

// New returns a service.
func New(o Options) *Service {
	return &Service{store: store{d: o.DB, clock: o.Clock}, dir: o.Directory, clock: o.Clock, hasher: signin.NewHasher(o.Cores)}
}

// store reads and writes the database. It uses the database's time.
type store struct {
	d     *db.DB
	clock clock.Clock
}

// offset returns how far a test has moved the clock, in microseconds.
func (s store) offset() int64 { return clock.OffsetOf(s.clock).Microseconds() }

// micros returns a duration in microseconds, as statements take it.
func micros(d time.Duration) int64 { return d.Microseconds() }

// account returns a user's account, the zero Account if there is none.
func (s store) account(ctx context.Context, tenantID tenant.ID, id user.ID) (user.Account, error) {
	acc, err := user.AccountByID(ctx, s.d.For(tenantID), id)
	if errors.Is(err, user.ErrUnknown) {
		return user.Account{}, nil
	}
	return acc, err
}

// byEmail returns the account with an e-mail address, and whether there is one.
func (s store) byEmail(ctx context.Context, tenantID tenant.ID, email string) (user.Account, bool, error) {
	acc, err := user.AccountByEmail(ctx, s.d.For(tenantID), email)
	if errors.Is(err, user.ErrUnknown) {
		return user.Account{}, false, nil
	}
	return acc, err == nil, err
}

// session is a row of staff_sessions, and the time at which it was read. Times are the
// database's, in microseconds.
type session struct {
	id        string
	userID    user.ID
	epoch     int64
	stage     credential.Stage
	actingAs  user.ID
	startedAt int64
	usedAt    int64
	expiresAt int64
	now       int64
}

// session returns the session with a token that has not ended; it returns UNAUTHORIZED
// if there is none.
func (s store) session(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) (found session, err error) {
	h := s.d.For(tenantID)
	err = h.Query(ctx, `SELECT session_id, user_id, session_epoch, stage, acting_as, started_at, used_at, expires_at, `+h.Dialect().Now+` + $3
		FROM staff_sessions WHERE tenant_id = $1 AND token_hash = $2`, func(r db.Row) error {
		found = session{
			id: r.Text(0), userID: user.ID(r.Text(1)), epoch: r.Int(2), stage: credential.Stage(r.Text(3)), actingAs: user.ID(r.Text(4)),
			startedAt: r.Int(5), usedAt: r.Int(6), expiresAt: r.Int(7), now: r.Int(8),
		}
		return nil
	}, hash, s.offset())
	if err != nil {
		return session{}, err
	}
	if found.id == "" || found.now >= found.expiresAt || found.now-found.usedAt >= micros(idleLife) {
		return session{}, errUnauthorized
	}
	return found, nil
}

// touch writes that a session was used now.
func (s store) touch(ctx context.Context, tenantID tenant.ID, row session) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE staff_sessions SET used_at = $3 WHERE tenant_id = $1 AND session_id = $2 AND used_at < $3`, row.id, row.now)
		return err
	})
}

// newSession is what is stored of a session that begins.
type newSession struct {
	hash      secret.TokenHash
	stage     credential.Stage
	ip, agent string
}

// begin adds a session of an account, whose row it locks: a transaction that ends the
// user's sessions either comes before it or sees the new one. ok is false if the account
// has changed since it was seen.
func (s store) begin(ctx context.Context, tenantID tenant.ID, seen user.Account, n newSession) (row session, ok bool, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		ok = false
		acc, err := user.LockAccount(ctx, tx, seen.ID)
		if errors.Is(err, user.ErrUnknown) {
			return nil
		}
		if err != nil || acc.Type != user.Internal || !acc.Active || acc.Epoch != seen.Epoch || acc.PasswordHash != seen.PasswordHash {
			return err
		}
		ok = true
		row = session{id: clock.NewID(s.clock.Now()), userID: acc.ID, epoch: acc.Epoch, stage: n.stage}
		now := tx.Dialect().Now
		return tx.Query(ctx, `INSERT INTO staff_sessions (tenant_id, session_id, token_hash, user_id, session_epoch, stage, acting_as,
			started_at, used_at, expires_at, ip, agent)
			VALUES ($1, $2, $3, $4, $5, $6, '', `+now+` + $7, `+now+` + $7, `+now+` + $8, $9, $10) RETURNING started_at, expires_at`,
			func(r db.Row) error {
				row.startedAt, row.usedAt, row.expiresAt = r.Int(0), r.Int(0), r.Int(1)
				return nil
			}, row.id, n.hash, acc.ID, acc.Epoch, string(n.stage), s.offset(), s.offset()+micros(absoluteLife), n.ip, n.agent)
	})
	return row, ok, err
}

// end deletes a session.
func (s store) end(ctx context.Context, tenantID tenant.ID, sessionID string) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM staff_sessions WHERE tenant_id = $1 AND session_id = $2`, sessionID)
		return err
	})
}
