package audit

import (
	"context"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/tenant"
)

// AdminStore returns what the admin API needs of a database. problem is told of
// days and blocks that cannot be read.
func AdminStore(d *db.DB, problem func(t tenant.ID, day string, err error)) adminStore {
	return adminStore{d, problem}
}

// adminStore is the part of the database that the admin API needs.
type adminStore struct {
	d       *db.DB
	problem func(t tenant.ID, day string, err error)
}

// log returns the log of a tenant.
func (s adminStore) log(t tenant.ID) *Log {
	return &Log{DB: s.d, Tenant: t, Skipped: func(day string, err error) { s.problem(t, day, err) }}
}

// users returns the users that a filter names, none where it names an address that
// nobody has or had.
func (s adminStore) users(ctx context.Context, t tenant.ID, f *Filter) ([]string, error) {
	ids, err := f.users(ctx, s.d.For(t))
	if fault.CodeOf(err) == fault.NotFound {
		return []string{}, nil
	}
	return ids, err
}
