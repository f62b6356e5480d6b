package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/identity"
	"gatehouse/internal/staff"
	"gatehouse/internal/user"
)

// maxPasswordInput bounds what is read from standard input.
const maxPasswordInput = 4096

// userCreate prints the id of the new user.
func userCreate(f *flags) action {
	f.forTenant()
	var draft config.UserDraft
	f.StringVar(&draft.Email, "email", "", "e-mail `address`")
	f.StringVar(&draft.Name, "name", "", "`name`")
	f.mustHave = append(f.mustHave, "email", "name")
	f.StringVar(&draft.Locale, "locale", "", "`language` tag, like en or de-AT")
	kind := f.String("type", string(user.Internal), "`type`: internal or external")
	f.BoolVar(&draft.Owner, "owner", false, "the user owns the tenant and may do everything")
	f.StringVar(&draft.Role, "role", "", "`role`")
	f.StringArrayVar(&draft.Sets, "permission-set", nil, "permission `set`; may be repeated")
	hasPassword := f.Bool("password-stdin", false, "read the password from the first line of standard input (not given: the user has none)")
	return func(ctx context.Context) (err error) {
		draft.Type = user.Type(*kind)
		if *hasPassword {
			if draft.Password, err = readPassword(f.stdin); err != nil {
				return err
			}
		}
		return f.onTenant(ctx, func(t *tenantDB) error {
			u, err := config.CreateUser(ctx, t.handle(), clock.System(), config.Operator(actor), draft)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(f.stdout, u.ID); err != nil {
				return err
			}
			if !*hasPassword {
				f.say("%s has no password: only API keys can act for this user (--password-stdin sets one).", u.Email)
			}
			return nil
		})
	}
}

// userPassword sets a password and ends the user's sessions.
func userPassword(f *flags) action {
	f.forTenant()
	email := f.required("email", "e-mail `address` of the user")
	stdin := f.Bool("password-stdin", false, "read the password from the first line of standard input")
	return func(ctx context.Context) error {
		if !*stdin {
			return usagef("user password needs --password-stdin: a password among the arguments could be read by others")
		}
		password, err := readPassword(f.stdin)
		if err != nil {
			return err
		}
		return f.onTenant(ctx, func(t *tenantDB) error {
			u, err := config.SetUserPassword(ctx, t.handle(), clock.System(), config.Operator(actor), config.Login{Email: *email, Password: password})
			if err != nil {
				return err
			}
			f.say("%s has the new password; their sessions have ended.", u.Email)
			return nil
		})
	}
}

// userResetFactor removes the second factor of a user who has lost it, and ends their
// sessions in the console.
func userResetFactor(f *flags) action {
	f.forTenant()
	email := f.required("email", "e-mail `address` of the user")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			u, err := t.user(ctx, *email)
			if err != nil {
				return err
			}
			had, err := staff.ResetFactor(ctx, t.handle(), u.ID)
			if err != nil {
				return err
			}
			if had {
				f.say("%s has no second factor any more; their sessions in the console have ended.", u.Email)
			} else {
				f.say("%s has no second factor.", u.Email)
			}
			return nil
		})
	}
}

// readPassword reads the first line, without its line end.
func readPassword(in io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(in, maxPasswordInput))
	if err != nil {
		return "", fmt.Errorf("--password-stdin: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", errors.New("--password-stdin: standard input has no password on its first line")
	}
	return line, nil
}

// userLine is a user in a list.
type userLine struct {
	ID            user.ID  `json:"id"`
	Email         string   `json:"email"`
	Name          string   `json:"name"`
	Locale        string   `json:"locale"`
	Type          string   `json:"userType"`
	Owner         bool     `json:"isOwner"`
	Active        bool     `json:"active"`
	EmailVerified bool     `json:"emailVerified"`
	Role          *string  `json:"role"`
	Sets          []string `json:"permission_sets"`
	CreatedAt     *string  `json:"created_at"`
}

func userList(f *flags) action {
	f.forTenant()
	email := f.String("email", "", "only the user with this e-mail `address`")
	f.listing("")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			sets, err := user.Assignments(ctx, t.handle())
			if err != nil {
				return err
			}
			l := &list{header: []string{"EMAIL", "NAME", "TYPE", "OWNER", "ACTIVE", "ROLE", "PERMISSION SETS", "CREATED", "ID"}}
			err = user.Each(ctx, t.handle(), func(u *user.User) error {
				if *email == "" || user.EmailKey(u.Email) == user.EmailKey(*email) {
					l.addUser(u, sets[u.ID])
				}
				return nil
			})
			if err != nil {
				return err
			}
			return l.print(f.stdout, f.asJSON)
		})
	}
}

func (l *list) addUser(u *user.User, sets []string) {
	line := userLine{
		ID: u.ID, Email: u.Email, Name: u.Name, Locale: u.Locale, Type: string(u.Type), Owner: u.Owner, Active: u.Active,
		EmailVerified: u.EmailVerified, Role: orNull(u.Role), Sets: append([]string{}, sets...), CreatedAt: instant(u.CreatedAt),
	}
	l.add(line, line.Email, line.Name, line.Type, strconv.FormatBool(line.Owner), strconv.FormatBool(line.Active), u.Role,
		strings.Join(sets, ","), orEmpty(line.CreatedAt), string(line.ID))
}

func userDeactivate(f *flags) action { return setActive(f, false) }

func userReactivate(f *flags) action { return setActive(f, true) }

func setActive(f *flags, active bool) action {
	f.forTenant()
	email := f.required("email", "e-mail `address` of the user")
	return func(ctx context.Context) error {
		return f.onTenant(ctx, func(t *tenantDB) error {
			u, changed, err := config.SetUserActive(ctx, t.handle(), clock.System(), config.Operator(actor), *email, active)
			if err != nil {
				return err
			}
			state := map[bool]string{true: "active", false: "deactivated"}[active]
			if !changed {
				state += " already"
			}
			f.say("%s is %s.", u.Email, state)
			return nil
		})
	}
}

// userResend resends the verification mail to a user who has not verified the
// address yet.
func userResend(f *flags) action {
	f.forTenant()
	email := f.required("email", "e-mail `address` of the external user")
	return func(ctx context.Context) error {
		return f.onIdentity(ctx, func(t *tenantDB, s *identity.Service) error {
			if err := s.Resend(ctx, t.config.Tenant.ID, *email); err != nil {
				return err
			}
			f.say("The verification mail to %s waits in the outbox; the running server sends it.", *email)
			return nil
		})
	}
}
