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
	"gatehouse/internal/user"
)

// maxPasswordInput bounds what is read from standard input.
const maxPasswordInput = 4096

// userCreate prints the id of the new user.
func userCreate(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("user create")
	tenantID := f.tenant()
	var draft config.UserDraft
	f.StringVar(&draft.Email, "email", "", "e-mail `address`")
	f.StringVar(&draft.Name, "name", "", "`name`")
	f.StringVar(&draft.Locale, "locale", "", "`language` tag, like en or de-AT")
	kind := f.String("type", string(user.Internal), "`type`: internal or external")
	f.BoolVar(&draft.Owner, "owner", false, "the user owns the tenant and may do everything")
	f.StringVar(&draft.Role, "role", "", "`role`")
	f.StringArrayVar(&draft.Sets, "permission-set", nil, "permission `set`; may be repeated")
	hasPassword := f.Bool("password-stdin", false, "read the password from the first line of standard input (not given: the user has none)")
	if err := f.Parse(args, "tenant", "email", "name"); err != nil {
		return err
	}
	draft.Type = user.Type(*kind)
	if *hasPassword {
		if draft.Password, err = readPassword(e.stdin); err != nil {
			return err
		}
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	u, err := config.CreateUser(ctx, d.For(*tenantID), clock.System(), actor, draft)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(e.stdout, u.ID); err != nil {
		return err
	}
	if !*hasPassword {
		e.say("%s has no password: only API keys can act for this user (--password-stdin sets one).", u.Email)
	}
	return nil
}

// readPassword reads one line; its end is no part of the password.
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

func userList(ctx context.Context, e *env, args []string) (err error) {
	f := e.flags("user list")
	tenantID := f.tenant()
	email := f.String("email", "", "only the user with this e-mail `address`")
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args, "tenant"); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if _, _, err := e.tenant(ctx, d, *tenantID); err != nil {
		return err
	}
	h := d.For(*tenantID)
	sets, err := user.Assignments(ctx, h)
	if err != nil {
		return err
	}
	l := &list{header: []string{"EMAIL", "NAME", "TYPE", "OWNER", "ACTIVE", "ROLE", "PERMISSION SETS", "CREATED", "ID"}}
	err = user.Each(ctx, h, func(u *user.User) error {
		if *email == "" || user.EmailKey(u.Email) == user.EmailKey(*email) {
			l.addUser(u, sets[u.ID])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.print(e.stdout, *asJSON)
}

func (l *list) addUser(u *user.User, sets []string) {
	line := userLine{
		ID: u.ID, Email: u.Email, Name: u.Name, Locale: u.Locale, Type: string(u.Type), Owner: u.Owner, Active: u.Active,
		EmailVerified: u.EmailVerified, Sets: append([]string{}, sets...), CreatedAt: instant(u.CreatedAt),
	}
	if u.Role != "" {
		line.Role = &u.Role
	}
	l.add(line, line.Email, line.Name, line.Type, strconv.FormatBool(line.Owner), strconv.FormatBool(line.Active), u.Role,
		strings.Join(sets, ","), textOf(line.CreatedAt), string(line.ID))
}

func userDeactivate(ctx context.Context, e *env, args []string) error {
	return setActive(ctx, e, "user deactivate", args, false)
}

func userReactivate(ctx context.Context, e *env, args []string) error {
	return setActive(ctx, e, "user reactivate", args, true)
}

func setActive(ctx context.Context, e *env, command string, args []string, active bool) (err error) {
	f := e.flags(command)
	tenantID := f.tenant()
	email := f.String("email", "", "e-mail `address` of the user")
	if err := f.Parse(args, "tenant", "email"); err != nil {
		return err
	}
	d, err := e.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	u, changed, err := config.SetUserActive(ctx, d.For(*tenantID), clock.System(), actor, *email, active)
	if err != nil {
		return err
	}
	state := map[bool]string{true: "active", false: "deactivated"}[active]
	if !changed {
		state += " already"
	}
	e.say("%s is %s.", u.Email, state)
	return nil
}

// userResend sends the verification mail again to a user who waits for it.
func userResend(ctx context.Context, e *env, args []string) error {
	f := e.flags("user resend")
	tenantID := f.tenant()
	email := f.String("email", "", "e-mail `address` of the external user")
	if err := f.Parse(args, "tenant", "email"); err != nil {
		return err
	}
	return e.withIdentity(ctx, f, func(s *identity.Service) error {
		if err := s.Resend(ctx, *tenantID, *email); err != nil {
			return err
		}
		e.say("The verification mail to %s waits in the outbox; the running server sends it.", *email)
		return nil
	})
}
