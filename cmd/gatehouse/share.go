package main

import (
	"context"
	"errors"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// shareFlags are the flags of the three share commands.
type shareFlags struct {
	*flags
	tenant                     *tenant.ID
	entity, record, user, role string
}

func (e *env) shareFlags(command string, withPrincipal bool) *shareFlags {
	f := &shareFlags{flags: e.flags(command)}
	f.tenant = f.flags.tenant()
	f.StringVar(&f.entity, "entity", "", "`entity` type of the record")
	f.StringVar(&f.record, "record", "", "`id` of the record")
	if withPrincipal {
		f.StringVar(&f.user, "user", "", "e-mail `address` of the user to share with")
		f.StringVar(&f.role, "role", "", "`role` to share with")
	}
	return f
}

// sharing is an open database with a session that may share any record.
type sharing struct {
	d       *db.DB
	tenant  tenant.ID
	session *records.Session
}

// share opens what a share command works on; the caller closes s.d.
func (e *env) share(ctx context.Context, f *shareFlags) (*sharing, error) {
	d, err := e.open(ctx, f.flags)
	if err != nil {
		return nil, err
	}
	dir, config, err := e.tenant(ctx, d, *f.tenant)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	// No cursor is made here, so none needs authenticating.
	store := records.New(d, dir, clock.System(), nil)
	return &sharing{d: d, tenant: *f.tenant, session: store.As(access.System(config, "operator command share"))}, nil
}

// principal is whom the flags name, exactly one of a user and a role.
func (s *sharing) principal(ctx context.Context, f *shareFlags) (string, error) {
	if (f.user == "") == (f.role == "") {
		return "", f.wrong("give one of --user and --role")
	}
	if f.role != "" {
		return access.RolePrincipal(f.role), nil
	}
	u, err := user.ByEmail(ctx, s.d.For(s.tenant), f.user)
	if errors.Is(err, user.ErrUnknown) {
		return "", fault.New(fault.NotFound, "there is no user with the e-mail address %s", strings.TrimSpace(f.user))
	}
	if err != nil {
		return "", err
	}
	return access.UserPrincipal(u.ID), nil
}

func shareAdd(ctx context.Context, e *env, args []string) (err error) {
	f := e.shareFlags("share add", true)
	level := f.String("access", string(access.ReadOnly), "`level`: read, or edit, which is read and update")
	if err := f.Parse(args, "tenant", "entity", "record"); err != nil {
		return err
	}
	s, err := e.share(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	principal, err := s.principal(ctx, f)
	if err != nil {
		return err
	}
	err = s.session.Share(ctx, f.entity, f.record, records.Share{Principal: principal, Access: access.Level(*level)})
	if err != nil {
		return err
	}
	e.say("%s %s is shared with %s%s: %s.", f.entity, f.record, f.user, f.role, *level)
	return nil
}

func shareRemove(ctx context.Context, e *env, args []string) (err error) {
	f := e.shareFlags("share remove", true)
	if err := f.Parse(args, "tenant", "entity", "record"); err != nil {
		return err
	}
	s, err := e.share(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	principal, err := s.principal(ctx, f)
	if err != nil {
		return err
	}
	if err := s.session.Unshare(ctx, f.entity, f.record, principal); err != nil {
		return err
	}
	e.say("%s %s is no longer shared with %s%s.", f.entity, f.record, f.user, f.role)
	return nil
}

// shareLine is a share in a list; one of User and Role is set.
type shareLine struct {
	User      *string `json:"user"`
	Role      *string `json:"role"`
	Access    string  `json:"access"`
	CreatedAt *string `json:"created_at"`
}

func shareList(ctx context.Context, e *env, args []string) (err error) {
	f := e.shareFlags("share list", false)
	asJSON := f.Bool("json", false, "print one JSON object a line")
	if err := f.Parse(args, "tenant", "entity", "record"); err != nil {
		return err
	}
	s, err := e.share(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.d.Close()) }()
	shares, err := s.session.Shares(ctx, f.entity, f.record)
	if err != nil {
		return err
	}
	l := &list{header: []string{"USER", "ROLE", "ACCESS", "CREATED"}}
	for _, share := range shares {
		line := shareLine{Access: string(share.Access), CreatedAt: instant(share.CreatedAt)}
		if id, ok := strings.CutPrefix(share.Principal, access.UserPrincipal("")); ok {
			u, err := user.ByID(ctx, s.d.For(s.tenant), user.ID(id))
			switch {
			case err == nil:
				line.User = &u.Email
			case errors.Is(err, user.ErrUnknown):
				line.User = &id
			default:
				return err
			}
		} else if role, ok := strings.CutPrefix(share.Principal, access.RolePrincipal("")); ok {
			line.Role = &role
		}
		l.add(line, textOf(line.User), textOf(line.Role), line.Access, textOf(line.CreatedAt))
	}
	return l.print(e.stdout, *asJSON)
}
