package config

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/user"
)

// UserDraft is a user to be created. The names in the comments are those of the
// members in a VALIDATION error.
type UserDraft struct {
	Email    string    // email
	Name     string    // name
	Locale   string    // locale: may be ""
	Type     user.Type // type
	Owner    bool      // owner: of the tenant; never an external user
	Role     string    // role: "" for none
	Sets     []string  // permission_sets
	Password string    // password: "" for none, so that only API keys can act for the user
}

func (d *UserDraft) value() *Value {
	sets := slices.Compact(slices.Sorted(slices.Values(d.Sets)))
	pairs := []pair{
		{"email", str(d.Email)}, {"name", str(strings.TrimSpace(d.Name))}, {"locale", str(strings.TrimSpace(d.Locale))},
		{"type", str(string(d.Type))}, {"owner", yes(d.Owner)}, {"role", str(d.Role)}, {"permission_sets", strs(sets)},
	}
	if d.Password != "" {
		pairs = append(pairs, pair{"password", str(d.Password)})
	}
	return block(pairs...)
}

// CreateUser adds a user who is active and whose address counts as verified. It
// is an Apply of one edit, recorded for its author. It returns VALIDATION, naming every
// failing member at once; CONFLICT when the e-mail address is taken; and NOT_FOUND
// when there is no such tenant.
func CreateUser(ctx context.Context, h db.Handle, clk clock.Clock, by Author, draft UserDraft) (*user.User, error) {
	edit := Edit{Kind: kindUser, Value: draft.value(), Against: Absent}
	a, err := editUser(ctx, h, clk, by, edit)
	if err != nil {
		return nil, err
	}
	return a.after.users[user.EmailKey(draft.Email)], nil
}

// SetUserActive deactivates or activates the user with the e-mail address, and
// reports whether that changed anything. A deactivation ends the user's sessions
// for good, and the wait of a pending user (contract I15); an activation counts
// as verification of the address (contract I6). It is an Apply of one edit,
// recorded for its author. It returns NOT_FOUND when there is no such user or tenant.
func SetUserActive(ctx context.Context, h db.Handle, clk clock.Clock, by Author, address string, active bool) (u *user.User, changed bool, err error) {
	a, err := editUser(ctx, h, clk, by, Edit{Kind: kindUser, Name: address, Activate: active})
	if err != nil {
		return nil, false, err
	}
	return a.after.users[user.EmailKey(address)], len(a.changes) > 0, nil
}

// Login is an e-mail address and a password.
type Login struct{ Email, Password string }

// SetUserPassword gives the user with the e-mail address another password, which ends
// all of their sessions. It is an Apply of one edit, recorded for its author, without the
// password. It returns NOT_FOUND when there is no such user or tenant, and VALIDATION
// for a password that is not allowed.
func SetUserPassword(ctx context.Context, h db.Handle, clk clock.Clock, by Author, login Login) (*user.User, error) {
	list, err := Objects(ctx, h, kindUser)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, func(o Object) bool { return user.EmailKey(o.Name) == user.EmailKey(login.Email) })
	if at < 0 {
		return nil, fault.New(fault.NotFound, "there is no user %s", login.Email)
	}
	value := list[at].Value
	value.Members = append(value.Members, Member{Key: str("password"), Value: str(login.Password)})
	a, err := editUser(ctx, h, clk, by, Edit{Kind: kindUser, Name: list[at].Name, Value: value, Against: list[at].Version})
	if err != nil {
		return nil, err
	}
	return a.after.users[user.EmailKey(login.Email)], nil
}

func editUser(ctx context.Context, h db.Handle, clk clock.Clock, by Author, edit Edit) (*application, error) {
	m := DecodeEdits(h.Tenant(), []Edit{edit}, func(string) string { return "" })
	if m.tenant == "" { // not even a tenant's name
		return nil, fault.New(fault.NotFound, "there is no tenant %q", h.Tenant())
	}
	a, err := start(ctx, h, clk, by, m, Options{})
	if err == nil {
		err = a.apply(ctx, h)
	}
	if err != nil {
		return nil, validation(err, "the user is not valid", At("edits", 0))
	}
	return a, nil
}

// validation turns Problems into VALIDATION, with a reason for each member of the
// object at the path. A refusal of another package that is among them is returned
// in its place, and so is every other error.
func validation(err error, message, path string) error {
	var found *Problems
	if !errors.As(err, &found) {
		return err
	}
	reasons := map[string]string{}
	for _, one := range found.List {
		if one.Cause != nil {
			return one.Cause
		}
		name := strings.TrimPrefix(strings.TrimPrefix(one.Path, path), ".")
		name, _, _ = strings.Cut(name, "[")
		if _, had := reasons[name]; !had {
			reasons[name] = one.reason()
		}
	}
	return fault.Fields(message, reasons)
}
