package staff

import (
	"context"
	"strconv"

	"gatehouse/internal/clock"
	"gatehouse/internal/credential"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

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
	ip, agent string
	now       int64
}

// columns are what scan reads of a session; now is the time.
func columns(now string) string {
	return `session_id, user_id, session_epoch, stage, acting_as, started_at, used_at, expires_at, ip, agent, ` + now
}

func scan(r db.Row) session {
	return session{
		id: r.Text(0), userID: user.ID(r.Text(1)), epoch: r.Int(2), stage: credential.Stage(r.Text(3)), actingAs: user.ID(r.Text(4)),
		startedAt: r.Int(5), usedAt: r.Int(6), expiresAt: r.Int(7), ip: r.Text(8), agent: r.Text(9), now: r.Int(10),
	}
}

// session returns the session with a token that has not ended; it returns UNAUTHORIZED
// if there is none.
func (s store) session(ctx context.Context, tenantID tenant.ID, hash secret.TokenHash) (found session, err error) {
	h := s.d.For(tenantID)
	err = h.Query(ctx, `SELECT `+columns(h.Dialect().Now+` + $3`)+` FROM staff_sessions WHERE tenant_id = $1 AND token_hash = $2`,
		func(r db.Row) error { found = scan(r); return nil }, hash, s.offset())
	if err != nil {
		return session{}, err
	}
	if found.id == "" || !found.alive() {
		return session{}, errUnauthorized
	}
	return found, nil
}

// alive reports whether a session had not ended when it was read.
func (row session) alive() bool {
	return row.now < row.expiresAt && row.now-row.usedAt < micros(idleLife)
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
	demanded  bool // the tenant demands a second factor
	ip, agent string
}

// stageOf returns the stage at which a session of a user begins. The caller holds the row
// of the account, so that an enrolment comes before it or ends the session.
func stageOf(ctx context.Context, tx db.Tx, of user.ID, demanded bool) (stage credential.Stage, err error) {
	stage = credential.Full
	if demanded {
		stage = credential.EnrolmentDue
	}
	err = tx.Query(ctx, `SELECT 1 FROM staff_factors WHERE tenant_id = $1 AND user_id = $2 AND sealed <> ''`, func(db.Row) error {
		stage = credential.CodeDue
		return nil
	}, of)
	return stage, err
}

// begin adds a session of an account, at the stage of stageOf, and ends the user's oldest ones beyond maxSessions.
// ok is false if the account has changed since it was seen.
func (s store) begin(ctx context.Context, tenantID tenant.ID, seen user.Account, n newSession) (row session, ok bool, err error) {
	err = s.d.For(tenantID).Write(ctx, func(tx db.Tx) (err error) {
		if ok, err = lockSame(ctx, tx, seen); err != nil || !ok {
			return err
		}
		stage, err := stageOf(ctx, tx, seen.ID, n.demanded)
		if err != nil {
			return err
		}
		row = session{id: clock.NewID(s.clock.Now()), userID: seen.ID, epoch: seen.Epoch, stage: stage}
		now := tx.Dialect().Now
		err = tx.Query(ctx, `INSERT INTO staff_sessions (tenant_id, session_id, token_hash, user_id, session_epoch, stage, acting_as,
			started_at, used_at, expires_at, ip, agent)
			VALUES ($1, $2, $3, $4, $5, $6, '', `+now+` + $7, `+now+` + $7, `+now+` + $8, $9, $10) RETURNING started_at, expires_at`,
			func(r db.Row) error {
				row.startedAt, row.usedAt, row.expiresAt = r.Int(0), r.Int(0), r.Int(1)
				return nil
			}, row.id, n.hash, seen.ID, seen.Epoch, string(stage), s.offset(), s.offset()+micros(lifeOf(stage)), n.ip, n.agent)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM staff_sessions WHERE tenant_id = $1 AND user_id = $2 AND session_id NOT IN
			(SELECT session_id FROM staff_sessions WHERE tenant_id = $1 AND user_id = $2 ORDER BY started_at DESC, session_id DESC LIMIT `+
			strconv.Itoa(maxSessions)+`)`, seen.ID)
		return err
	})
	return row, ok, err
}

// complete makes a session Full, with a new token: what the browser had before the sign-in
// was complete is worth nothing after it. It returns UNAUTHORIZED if the session has ended.
func complete(ctx context.Context, tx db.Tx, sessionID string, hash secret.TokenHash, offset int64) (row session, err error) {
	now := tx.Dialect().Now
	err = tx.Query(ctx, `UPDATE staff_sessions SET stage = 'full', token_hash = $3, started_at = `+now+` + $4, used_at = `+now+` + $4, expires_at = `+now+` + $5
		WHERE tenant_id = $1 AND session_id = $2 AND stage <> 'full' AND expires_at > `+now+` + $4 RETURNING `+columns("used_at"),
		func(r db.Row) error { row = scan(r); return nil }, sessionID, hash, offset, offset+micros(absoluteLife))
	if err == nil && row.id == "" {
		err = errUnauthorized
	}
	return row, err
}

// act makes a session act as a user, or as none.
func (s store) act(ctx context.Context, tenantID tenant.ID, sessionID string, as user.ID) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(ctx, `UPDATE staff_sessions SET acting_as = $3 WHERE tenant_id = $1 AND session_id = $2 AND stage = 'full'`, sessionID, as)
		if err == nil && n == 0 {
			err = errUnauthorized
		}
		return err
	})
}

// end deletes a session of a user, "" for any; it returns NOT_FOUND if there is none.
func (s store) end(ctx context.Context, tenantID tenant.ID, sessionID string, of user.ID) error {
	return s.d.For(tenantID).Write(ctx, func(tx db.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM staff_sessions WHERE tenant_id = $1 AND session_id = $2 AND ($3 = '' OR user_id = $3)`, sessionID, of)
		if err == nil && n == 0 {
			err = fault.New(fault.NotFound, "there is no such session")
		}
		return err
	})
}

// endOthers deletes the sessions of a user but one, "" for none.
func endOthers(ctx context.Context, tx db.Tx, of user.ID, spared string) error {
	_, err := tx.Exec(ctx, `DELETE FROM staff_sessions WHERE tenant_id = $1 AND user_id = $2 AND session_id <> $3`, of, spared)
	return err
}

// page is what selects sessions for a list.
type page struct {
	of     user.ID // "" for all staff
	before string  // the id of a session: only older ones
	limit  int
}

// list returns sessions that have not ended, newest first.
func (s store) list(ctx context.Context, tenantID tenant.ID, p page) (list []session, err error) {
	h := s.d.For(tenantID)
	now := h.Dialect().Now
	err = h.Query(ctx, `SELECT `+columns(now+` + $4`)+` FROM staff_sessions WHERE tenant_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR session_id < $3)
		AND expires_at > `+now+` + $4 AND used_at > `+now+` + $5 ORDER BY session_id DESC LIMIT `+strconv.Itoa(p.limit),
		func(r db.Row) error { list = append(list, scan(r)); return nil }, p.of, p.before, s.offset(), s.offset()-micros(idleLife))
	return list, err
}
