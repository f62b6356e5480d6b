package user

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/email"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/session"
	"gatehouse/internal/tenant"
)

// Draft is a user to be created. The names in the comments are those of the
// fields in a VALIDATION error.
type Draft struct {
	Email    string   // email
	Name     string   // name
	Locale   string   // locale: may be ""
	Type     Type     // type
	Owner    bool     // owner: of the tenant; never an external user
	Role     string   // role: "" for none
	Sets     []string // permission_sets
	Password string   // password: "" for none, so that only API keys can act for the user
}

// Names tells which roles and permission sets a tenant has. The tables are
// access's, which knows of this package; the caller brings the two together.
type Names struct{ Role, Set func(name string) bool }

// Create adds a user who is active and whose address counts as verified. It is
// a change of configuration, recorded for actor. It fails with VALIDATION,
// naming every failing field at once; CONFLICT, where the e-mail address is
// taken; NOT_FOUND, where there is no such tenant. names is asked inside the
// transaction.
func Create(ctx context.Context, h db.Handle, clk clock.Clock, actor string, draft Draft,
	names func(context.Context, db.Querier) (Names, error)) (*User, error) {
	reasons := draft.check()
	u := &User{
		Email: email.Clean(draft.Email), Name: strings.TrimSpace(draft.Name), Locale: strings.TrimSpace(draft.Locale),
		Type: draft.Type, Owner: draft.Owner, Active: true, EmailVerified: true, Role: draft.Role,
		Custom: jsontext.Value("{}"), Sets: slices.Compact(slices.Sorted(slices.Values(draft.Sets))),
	}
	if draft.Password != "" && reasons["password"] == "" {
		var err error
		if u.PasswordHash, err = secret.HashPassword(draft.Password); err != nil {
			return nil, err
		}
	}
	err := tenant.Configure(ctx, h, actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		if err := exists(ctx, tx, h.Tenant()); err != nil {
			return err
		}
		known, err := names(ctx, tx)
		if err != nil {
			return err
		}
		if all := draft.checkNames(reasons, known); len(all) > 0 {
			return fault.Fields("the user is not valid", all)
		}
		if err := Add(ctx, tx, clock.Micros(clk.Now()), u); err != nil {
			return err
		}
		log.Record("user", u.Email, nil, pastOf(u))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return u, nil
}

// Add inserts a user who has no id yet: it draws the time of creation, not before
// now, which is microseconds UTC, and the id. Its errors are Insert's.
func Add(ctx context.Context, tx tenant.ConfigTx, now int64, u *User) error {
	tick, err := tenant.Tick(ctx, tx, now)
	if err != nil {
		return err
	}
	u.ID, u.CreatedAt, u.UpdatedAt = ID(clock.NewID(clock.FromMicros(tick))), tick, tick
	return Insert(ctx, tx, u)
}

// SetActive deactivates or reactivates the user with the e-mail address and
// reports whether that changed anything. A deactivation ends the user's
// sessions for good, and the wait of a pending user (contract I15); an
// activation counts as verification of the address (contract I6). It is a
// change of configuration, recorded for actor. It returns NOT_FOUND when there
// is no such user.
func SetActive(ctx context.Context, h db.Handle, clk clock.Clock, actor, address string, active bool) (u *User, changed bool, err error) {
	err = tenant.Configure(ctx, h, actor, clk, func(tx tenant.ConfigTx, log *tenant.History) error {
		changed = false
		if err := exists(ctx, tx, h.Tenant()); err != nil {
			return err
		}
		var err error
		u, err = ByEmail(ctx, tx, address)
		if errors.Is(err, ErrUnknown) {
			return fault.New(fault.NotFound, "there is no user with the e-mail address %s", strings.TrimSpace(address))
		}
		if err != nil {
			return err
		}
		if u.Active == active && !u.Pending {
			return nil
		}
		before := pastOf(u)
		u.Active, u.EmailVerified, u.Pending = active, u.EmailVerified || active, false
		u.UpdatedAt, changed = clock.Micros(clk.Now()), true
		// Only these columns: a page of the user's own may change others meanwhile.
		epoch := int64(0)
		err = tx.Query(ctx, `UPDATE users SET active = $3, email_verified = $4, pending = 0, updated_at = $5,
			session_epoch = session_epoch + CASE WHEN $3 = 1 THEN 0 ELSE 1 END
			WHERE tenant_id = $1 AND user_id = $2 RETURNING session_epoch`, func(r db.Row) error { epoch = r.Int(0); return nil },
			u.ID, u.Active, u.EmailVerified, u.UpdatedAt)
		if err != nil {
			return err
		}
		if err := session.EndOthers(ctx, tx, u.ID, epoch, session.ByUser, u.UpdatedAt); err != nil {
			return err
		}
		log.Record("user", u.Email, before, pastOf(u))
		return nil
	})
	return u, changed, err
}

// ActiveAmong says which of the users exist and are active, by id.
func ActiveAmong(ctx context.Context, q db.Querier, ids []ID) (map[ID]bool, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	active := make(map[ID]bool, len(ids))
	for chunk := range slices.Chunk(ids, 8) {
		args := make([]any, 8) // one text for any number of them
		for i := range args {
			args[i] = chunk[min(i, len(chunk)-1)]
		}
		err := q.Query(ctx, `SELECT user_id FROM users WHERE tenant_id = $1 AND active = 1
			AND user_id IN ($2, $3, $4, $5, $6, $7, $8, $9)`, func(r db.Row) error {
			active[ID(r.Text(0))] = true
			return nil
		}, args...)
		if err != nil {
			return nil, err
		}
	}
	return active, nil
}

func exists(ctx context.Context, tx db.Tx, tenantID tenant.ID) error {
	_, ok, err := tenant.Version(ctx, tx)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "there is no tenant %q", tenantID)
	}
	return err
}

// check is everything about the draft that can be said without the database.
func (d Draft) check() map[string]string {
	reasons := map[string]string{}
	if err := CheckEmail(d.Email); err != nil {
		reasons["email"] = err.Error()
	}
	if err := CheckName(strings.TrimSpace(d.Name)); err != nil {
		reasons["name"] = err.Error()
	}
	if err := CheckLocale(strings.TrimSpace(d.Locale)); err != nil {
		reasons["locale"] = err.Error()
	}
	switch {
	case d.Type != Internal && d.Type != External:
		reasons["type"] = "expected internal or external"
	case d.Type == External && d.Owner:
		reasons["owner"] = "an external user cannot own the tenant"
	}
	if d.Password != "" {
		if err := secret.CheckPassword(d.Password); err != nil {
			reasons["password"] = err.Error()
		}
	}
	return reasons
}

// checkNames adds what only the database knows to the reasons, which it leaves
// as they are: the transaction may run again.
func (d Draft) checkNames(reasons map[string]string, known Names) map[string]string {
	all := map[string]string{}
	for field, reason := range reasons {
		all[field] = reason
	}
	if d.Role != "" && !known.Role(d.Role) {
		all["role"] = fmt.Sprintf("there is no role %q", d.Role)
	}
	for _, set := range d.Sets {
		if !known.Set(set) {
			all["permission_sets"] = fmt.Sprintf("there is no permission set %q", set)
			break
		}
	}
	return all
}

// past is a user as the change history keeps it: no password.
type past struct {
	ID     ID     `json:"id"`
	Email  string `json:"email"`
	Name   string `json:"name"`
	Locale string `json:"locale"`
	Type   Type   `json:"type"`
	Owner  bool   `json:"owner"`
	Active bool   `json:"active"`
	// Pending is told only where it is so.
	Pending bool     `json:"pending,omitempty"`
	Role    string   `json:"role"`
	Sets    []string `json:"permission_sets"`
}

func pastOf(u *User) *past {
	return &past{
		ID: u.ID, Email: u.Email, Name: u.Name, Locale: u.Locale, Type: u.Type, Owner: u.Owner, Active: u.Active,
		Pending: u.Pending, Role: u.Role, Sets: slices.Concat([]string{}, u.Sets),
	}
}
