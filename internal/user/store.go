package user

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/email"
	"gatehouse/internal/fault"
	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
)

// columns are what scan reads of a user.
func columns(q db.Querier) string {
	return `user_id, email, name, locale, user_type, is_owner, active, email_verified, role,
	password_hash, ` + q.Dialect().JSONText("custom_data", "0") + `, created_at, updated_at, pending, email_key`
}

func scan(r db.Row) *User {
	return &User{
		ID: ID(r.Text(0)), Email: r.Text(1), Name: r.Text(2), Locale: r.Text(3), Type: Type(r.Text(4)), Owner: r.Bool(5),
		Active: r.Bool(6), EmailVerified: r.Bool(7), Role: r.Text(8), PasswordHash: r.Text(9),
		Custom: jsontext.Value(slices.Clone(r.Bytes(10))), CreatedAt: r.Int(11), UpdatedAt: r.Int(12),
		Pending: r.Bool(13), Key: r.Text(14),
	}
}

// ByID returns a user with their permission sets; ErrUnknown when there is none.
func ByID(ctx context.Context, q db.Querier, id ID) (*User, error) {
	return one(ctx, q, `SELECT `+columns(q)+` FROM users WHERE tenant_id = $1 AND user_id = $2`, id)
}

// ByEmail returns the user with an e-mail address, in any form; ErrUnknown when there
// is none. Of two accounts with the same address (see Clashes), one is found by the
// exact form that it was created with, the other by every other form.
func ByEmail(ctx context.Context, q db.Querier, address string) (*User, error) {
	return one(ctx, q, `SELECT `+columns(q)+` FROM users
		WHERE tenant_id = $1 AND email_key IN ($2, $3) ORDER BY email_key LIMIT 1`, formerKey(address), EmailKey(address))
}

func one(ctx context.Context, q db.Querier, sql string, args ...any) (*User, error) {
	var u *User
	err := q.Query(ctx, sql, func(r db.Row) error { u = scan(r); return nil }, args...)
	if err != nil {
		return nil, err
	}
	if u == nil {
		return nil, ErrUnknown
	}
	return u, loadSets(ctx, q, u)
}

func loadSets(ctx context.Context, q db.Querier, u *User) error {
	return q.Query(ctx, `SELECT permission_set FROM user_permission_sets WHERE tenant_id = $1 AND user_id = $2
		ORDER BY permission_set`, func(r db.Row) error {
		u.Sets = append(u.Sets, r.Text(0))
		return nil
	}, u.ID)
}

// Each calls each for every user of the tenant, oldest first, without their permission
// sets, and returns its first error.
func Each(ctx context.Context, q db.Querier, each func(*User) error) error {
	return q.Query(ctx, `SELECT `+columns(q)+` FROM users WHERE tenant_id = $1 ORDER BY created_at`, func(r db.Row) error {
		return each(scan(r))
	})
}

// Assignments returns the permission sets of every user of the tenant, by user id.
func Assignments(ctx context.Context, q db.Querier) (map[ID][]string, error) {
	m := map[ID][]string{}
	err := q.Query(ctx, `SELECT user_id, permission_set FROM user_permission_sets WHERE tenant_id = $1
		ORDER BY user_id, permission_set`, func(r db.Row) error {
		m[ID(r.Text(0))] = append(m[ID(r.Text(0))], r.Text(1))
		return nil
	})
	return m, err
}

// Page calls each for at most limit users with after < created_at < before, newest
// first, without their permission sets; 0 is no bound. If only is not "", the page
// has at most that user.
func Page(ctx context.Context, q db.Querier, only ID, after, before int64, limit int, each func(*User) error) error {
	if before == 0 {
		before = math.MaxInt64
	}
	where, args := "", []any{after, before}
	if only != "" {
		where, args = " AND user_id = $4", append(args, only)
	}
	return q.Query(ctx, `SELECT `+columns(q)+` FROM users WHERE tenant_id = $1 AND created_at > $2 AND created_at < $3`+where+`
		ORDER BY created_at DESC LIMIT `+strconv.Itoa(limit),
		func(r db.Row) error { return each(scan(r)) }, args...)
}

// Clashing returns the tenants for which Clashes returns something.
func Clashing(ctx context.Context, d *db.DB) ([]tenant.ID, error) {
	return tenant.Having(ctx, d, `SELECT 1 FROM users WHERE tenant_id = $1 AND email_key >= ' ' AND email_key < '!'`)
}

// Clashes returns, by canonical address, the users whose address is also another
// account's: two forms of one address that were registered before addresses had a
// canonical form. Both accounts stay as they are.
func Clashes(ctx context.Context, q db.Querier) (map[string][]ID, error) {
	list := map[string][]ID{}
	err := q.Query(ctx, `SELECT user_id, email FROM users WHERE tenant_id = $1 AND email_key >= ' ' AND email_key < '!' ORDER BY user_id`,
		func(r db.Row) error {
			key := EmailKey(r.Text(1))
			list[key] = append(list[key], ID(r.Text(0)))
			return nil
		})
	return list, err
}

// Insert adds a user. It returns CONFLICT when another user, internal or external,
// has the e-mail address.
func Insert(ctx context.Context, tx tenant.ConfigTx, u *User) error { return insert(ctx, tx, u) }

// insert is the statement of Insert and Register.
func insert(ctx context.Context, tx db.Tx, u *User) error {
	custom := u.Custom
	if len(custom) == 0 {
		custom = jsontext.Value("{}")
	}
	_, err := tx.Exec(ctx, `INSERT INTO users (tenant_id, user_id, email, email_key, name, locale, user_type, is_owner,
		active, email_verified, role, password_hash, custom_data, created_at, updated_at, pending)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13`+tx.Dialect().JSON+`, $14, $15, $16)`,
		u.ID, email.Clean(u.Email), EmailKey(u.Email), u.Name, u.Locale, string(u.Type), u.Owner,
		u.Active, u.EmailVerified, u.Role, u.PasswordHash, string(custom), u.CreatedAt, u.UpdatedAt, u.Pending)
	if errors.Is(err, db.ErrUnique) { // the id and created_at come from tenant.Tick, which gives none twice
		return fault.New(fault.Conflict, "a user with the e-mail address %s exists already", u.Email)
	}
	if err != nil {
		return err
	}
	return addSets(ctx, tx, u.ID, u.Sets)
}

// Update makes the user's row and permission sets equal to u; the id and
// created_at stay. A deactivation or new password ends the user's sessions for
// good; an activation ends the wait for one, whatever u.Pending is.
func Update(ctx context.Context, tx tenant.ConfigTx, u *User) error {
	epoch := int64(0)
	err := tx.Query(ctx, `UPDATE users SET email = $3,
		email_key = CASE WHEN email_key < '!' AND email = $3 THEN email_key ELSE $4 END, name = $5, locale = $6, user_type = $7,
		is_owner = $8, active = $9, email_verified = $10, role = $11, password_hash = $12,
		custom_data = $13`+tx.Dialect().JSON+`, updated_at = $14,
		pending = CASE WHEN $9 = 1 THEN 0 ELSE $15 END,
		session_epoch = session_epoch + CASE WHEN active > $9 OR $9 = 0 AND pending > $15 OR password_hash <> $12 THEN 1 ELSE 0 END
		WHERE tenant_id = $1 AND user_id = $2 RETURNING session_epoch`, func(r db.Row) error { epoch = r.Int(0); return nil },
		u.ID, email.Clean(u.Email), EmailKey(u.Email), u.Name, u.Locale, string(u.Type), u.Owner, u.Active,
		u.EmailVerified, u.Role, u.PasswordHash, string(u.Custom), u.UpdatedAt, u.Pending)
	if errors.Is(err, db.ErrUnique) {
		return fault.New(fault.Conflict, "a user with the e-mail address %s exists already", u.Email)
	}
	if err != nil {
		return err
	}
	if err := session.EndOthers(ctx, tx, u.ID, epoch, session.ByUser, u.UpdatedAt); err != nil {
		return err
	}
	return putSets(ctx, tx, u.ID, u.Sets)
}

// UpdateProfile writes what a user may change: name, locale and custom fields.
func UpdateProfile(ctx context.Context, tx db.Tx, u *User) error {
	_, err := tx.Exec(ctx, `UPDATE users SET name = $3, locale = $4, custom_data = $5`+tx.Dialect().JSON+`, updated_at = $6
		WHERE tenant_id = $1 AND user_id = $2`, u.ID, u.Name, u.Locale, string(u.Custom), u.UpdatedAt)
	return err
}

// Registration is what end-users say about themselves when they register.
type Registration struct {
	Email, Name, Locale string
	PasswordHash        string         // PHC text
	Custom              jsontext.Value // the JSON object of custom fields
}

// Register adds a registered user at tick, an instant of tenant.Tick. What the user
// may do comes from the settings alone: the user is external, owns nothing, has no
// role, gets the default permission set, and is active only where the activation
// mode asks for no proof. The caller holds tenant.Fence, and settings are those of
// the version it returned. Register returns CONFLICT as Insert does.
func Register(ctx context.Context, tx db.Tx, settings *tenant.ExternalIdentity, r Registration, tick int64) (*User, error) {
	active := settings.ActivationMode == tenant.ActivateAtOnce
	u := &User{
		ID: ID(clock.NewID(clock.FromMicros(tick))), Email: r.Email, Name: r.Name, Locale: r.Locale, Type: External,
		Active: active, EmailVerified: active, Pending: !active, PasswordHash: r.PasswordHash, Custom: r.Custom,
		CreatedAt: tick, UpdatedAt: tick,
	}
	if set := settings.DefaultPermissionSet; set != "" {
		u.Sets = []string{set}
	}
	return u, insert(ctx, tx, u)
}

// Lock returns a user without their permission sets and locks the row until tx ends;
// ErrUnknown when there is none.
func Lock(ctx context.Context, tx db.Tx, id ID) (*User, error) {
	var u *User
	err := tx.Query(ctx, `SELECT `+columns(tx)+` FROM users WHERE tenant_id = $1 AND user_id = $2`+tx.Dialect().ForUpdate,
		func(r db.Row) error { u = scan(r); return nil }, id)
	if err == nil && u == nil {
		err = ErrUnknown
	}
	return u, err
}

// KindOf returns the type and the role of a user; ErrUnknown when there is no such
// user. In a transaction that holds tenant.Fence neither can change.
func KindOf(ctx context.Context, q db.Querier, id ID) (kind Type, role string, err error) {
	found := false
	err = q.Query(ctx, `SELECT user_type, role FROM users WHERE tenant_id = $1 AND user_id = $2`, func(r db.Row) error {
		kind, role, found = Type(r.Text(0)), r.Text(1), true
		return nil
	}, id)
	if err == nil && !found {
		err = ErrUnknown
	}
	return kind, role, err
}

// RoleOf is KindOf for the role.
func RoleOf(ctx context.Context, q db.Querier, id ID) (role string, err error) {
	_, role, err = KindOf(ctx, q, id)
	return role, err
}

// Delete deletes a user and their assignments. Their records stay, owned by an id of
// nobody; the caller must deal with them.
func Delete(ctx context.Context, tx tenant.ConfigTx, id ID) error {
	if _, err := tx.Exec(ctx, `DELETE FROM user_permission_sets WHERE tenant_id = $1 AND user_id = $2`, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM users WHERE tenant_id = $1 AND user_id = $2`, id)
	return err
}

func putSets(ctx context.Context, tx tenant.ConfigTx, id ID, sets []string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM user_permission_sets WHERE tenant_id = $1 AND user_id = $2`, id); err != nil {
		return err
	}
	return addSets(ctx, tx, id, sets)
}

func addSets(ctx context.Context, tx db.Tx, id ID, sets []string) error {
	for _, s := range sets {
		if _, err := tx.Exec(ctx, `INSERT INTO user_permission_sets (tenant_id, user_id, permission_set)
			VALUES ($1, $2, $3)`, id, s); err != nil {
			return err
		}
	}
	return nil
}

// Holding counts the users who have a value for a custom field, and all users. member
// is the field's MemberName.
func Holding(ctx context.Context, q db.Querier, member string) (holding, all int64, err error) {
	err = q.Query(ctx, `SELECT count(custom_data -> CAST($2 AS TEXT)), count(*) FROM users WHERE tenant_id = $1`,
		func(r db.Row) error { holding, all = r.Int(0), r.Int(1); return nil }, member)
	return holding, all, err
}
