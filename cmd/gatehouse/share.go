package main

import (
	"context"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/records"
)

// sharing is an open tenant with a session that may share any record.
type sharing struct {
	*tenantDB
	session *records.Session
}

// onShares calls do with the tenant of --tenant.
func (f *flags) onShares(ctx context.Context, do func(*sharing) error) error {
	return f.onTenant(ctx, func(t *tenantDB) error {
		store := records.New(t.DB, t.directory, clock.System(), nil) // no key, because it makes no cursors
		return do(&sharing{t, store.As(access.System(t.config, "operator command share"))})
	})
}

// recordFlags name the record that a share command is about.
type recordFlags struct{ entity, id *string }

func (f *flags) forRecord() recordFlags {
	f.forTenant()
	return recordFlags{f.required("entity", "`entity` type of the record"), f.required("record", "`id` of the record")}
}

// principalFlags name the user or the role that a record is shared with.
type principalFlags struct{ user, role *string }

func (f *flags) forPrincipal() principalFlags {
	return principalFlags{f.String("user", "", "e-mail `address` of the user to share with"), f.String("role", "", "`role` to share with")}
}

// principal returns the principal that the flags name, which must be one of a user
// and a role.
func (s *sharing) principal(ctx context.Context, f *flags, p principalFlags) (access.Principal, error) {
	if (*p.user == "") == (*p.role == "") {
		return "", f.wrong("give one of --user and --role")
	}
	if *p.role != "" {
		return access.RolePrincipal(*p.role), nil
	}
	u, err := s.user(ctx, *p.user)
	if err != nil {
		return "", err
	}
	return access.UserPrincipal(u.ID), nil
}

func shareAdd(f *flags) action {
	record, with := f.forRecord(), f.forPrincipal()
	level := f.String("access", string(access.ReadOnly), "`level`: read, or edit, which is read and update")
	return func(ctx context.Context) error {
		return f.onShares(ctx, func(s *sharing) error {
			principal, err := s.principal(ctx, f, with)
			if err != nil {
				return err
			}
			err = s.session.Share(ctx, *record.entity, *record.id, records.Share{Principal: principal, Access: access.Level(*level)})
			if err != nil {
				return err
			}
			f.say("%s %s is shared with %s%s: %s.", *record.entity, *record.id, *with.user, *with.role, *level)
			return nil
		})
	}
}

func shareRemove(f *flags) action {
	record, with := f.forRecord(), f.forPrincipal()
	return func(ctx context.Context) error {
		return f.onShares(ctx, func(s *sharing) error {
			principal, err := s.principal(ctx, f, with)
			if err != nil {
				return err
			}
			if err := s.session.Unshare(ctx, *record.entity, *record.id, principal); err != nil {
				return err
			}
			f.say("%s %s is no longer shared with %s%s.", *record.entity, *record.id, *with.user, *with.role)
			return nil
		})
	}
}

// shareLine is a share in a list; one of User and Role is set.
type shareLine struct {
	User      *string `json:"user"`
	Role      *string `json:"role"`
	Access    string  `json:"access"`
	CreatedAt *string `json:"created_at"`
}

func shareList(f *flags) action {
	record := f.forRecord()
	f.listing("")
	return func(ctx context.Context) error {
		return f.onShares(ctx, func(s *sharing) error {
			shares, err := s.session.Shares(ctx, *record.entity, *record.id)
			if err != nil {
				return err
			}
			emailOf := s.emails(ctx)
			l := &list{header: []string{"USER", "ROLE", "ACCESS", "CREATED"}}
			for _, share := range shares {
				line := shareLine{Access: string(share.Access), CreatedAt: instant(share.CreatedAt)}
				if id, ok := share.Principal.User(); ok {
					email, err := emailOf(id)
					if err != nil {
						return err
					}
					line.User = &email
				} else if role, ok := share.Principal.Role(); ok {
					line.Role = &role
				}
				l.add(line, orEmpty(line.User), orEmpty(line.Role), line.Access, orEmpty(line.CreatedAt))
			}
			return l.print(f.stdout, f.asJSON)
		})
	}
}
