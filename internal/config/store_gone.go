package config

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"gatehouse/internal/db"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// goneField is a field that the manifest leaves out of an object that it names.
type goneField struct {
	entity         string // "" for users
	name           string
	stored, member string // what its values stand under
}

// goneFields lists the fields that the plan removes from entity types that stay.
func (p *plan) goneFields() (list []goneField) {
	left := func(entity, stored string, before, after []*schema.Field) {
		for _, f := range before {
			if !slices.ContainsFunc(after, func(is *schema.Field) bool { return is.Member != "" && is.MemberName() == f.MemberName() }) {
				list = append(list, goneField{entity, f.Name, stored, f.MemberName()})
			}
		}
	}
	for _, e := range p.m.entities {
		if was := p.was(e.Name); was != nil {
			left(e.Name, was.StoredAs(), was.Fields, p.after.entities[e.Name].Fields)
		}
	}
	if p.m.has("user_fields") {
		left("", "", p.before.userFields, p.after.userFields)
	}
	return list
}

// expiring lists the entity types whose records the plan keeps for less time.
func (p *plan) expiring() (list []*schema.Entity) {
	for _, e := range p.m.entities {
		if was, is := p.was(e.Name), p.after.entities[e.Name]; was != nil && is != nil && deletesMore(was, is) {
			list = append(list, &schema.Entity{Name: e.Name, Stored: was.StoredAs(), KeepDays: is.KeepDays})
		}
	}
	return list
}

// warnOfOld says how many records are older than they are kept from now on, to whom may
// know.
func (a *application) warnOfOld(ctx context.Context, h db.Handle, r *Result) error {
	for _, e := range a.expiring {
		n, err := records.Old(ctx, h, e, a.clk.Now(), maxCounted+1)
		switch {
		case err != nil:
			return err
		case n == 0:
			continue
		}
		count := "some"
		switch {
		case n > maxCounted:
			count = fmt.Sprintf("more than %d", maxCounted)
		case a.tellsField(e.Name):
			count = strconv.FormatInt(n, 10)
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("entity %s: keep %dd: %s records are older, and are deleted within minutes, with what is below them", e.Name, e.KeepDays, count))
	}
	return nil
}

// goneOfUsers says what users that the manifest names lose, as it does not say it
// of them.
func (p *plan) goneOfUsers() (list []string) {
	for _, decl := range p.m.users {
		was, is := p.before.users[decl.Key], p.after.users[decl.Key]
		if was == nil || is == nil {
			continue
		}
		if was.Role != "" && is.Role == "" {
			list = append(list, fmt.Sprintf("user %s: role %s", is.Email, printable(was.Role)))
		}
		for _, set := range was.Sets {
			if !slices.Contains(is.Sets, set) {
				list = append(list, fmt.Sprintf("user %s: permission set %s", is.Email, printable(set)))
			}
		}
		if was.Owner && !is.Owner {
			list = append(list, fmt.Sprintf("user %s: being the tenant's owner", is.Email))
		}
	}
	return list
}

// counted is the field with how many hold a value. What they hold is counted after
// the change, as it stays where it is, and outside of any transaction.
func (f goneField) counted(ctx context.Context, h db.Handle) (GoneField, error) {
	is, err := GoneField{Entity: f.entity, Field: f.name}, error(nil)
	if f.entity == "" {
		is.Holding, is.Of, err = user.Holding(ctx, h, f.member)
	} else {
		is.Holding, is.Of, err = records.Holding(ctx, h, f.stored, f.member)
	}
	return is, err
}
