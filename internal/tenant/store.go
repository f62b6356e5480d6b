package tenant

import (
	"context"
	"encoding/json"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
)

// ID is a tenant's id: [a-z][a-z0-9-]*, as in the manifest's key `tenant`.
type ID = db.TenantID

// Load reads the tenant that h is bound to; NOT_FOUND when there is none.
func Load(ctx context.Context, q db.Querier) (*Tenant, error) {
	var t *Tenant
	err := q.Query(ctx, `SELECT tenant_id, display_name, base_url, settings, version
		FROM tenants WHERE tenant_id = $1`, func(r db.Row) error {
		t = &Tenant{ID: ID(r.Text(0)), DisplayName: r.Text(1), BaseURL: r.Text(2), Version: r.Int(4), Settings: DefaultSettings()}
		return json.Unmarshal(r.Bytes(3), &t.Settings)
	})
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, fault.New(fault.NotFound, "there is no such tenant")
	}
	err = q.Query(ctx, `SELECT host, admin FROM tenant_hosts WHERE tenant_id = $1 ORDER BY host`, func(r db.Row) error {
		if r.Bool(1) {
			t.AdminHosts = append(t.AdminHosts, r.Text(0))
		} else {
			t.Hosts = append(t.Hosts, r.Text(0))
		}
		return nil
	})
	return t, err
}

// Version reads the version of the tenant's configuration; ok is false when
// there is no such tenant.
func Version(ctx context.Context, q db.Querier) (version int64, ok bool, err error) {
	err = q.Query(ctx, `SELECT version FROM tenants WHERE tenant_id = $1`, func(r db.Row) error {
		version, ok = r.Int(0), true
		return nil
	})
	return version, ok, err
}

// Versions tell what a node may keep of a tenant. Config is the version of its
// configuration, and People is raised by every change of a managed field of a
// user (RaisePeople).
type Versions struct{ Config, People int64 }

// VersionsOf reads the versions of a tenant; ok is false when there is none.
func VersionsOf(ctx context.Context, q db.Querier) (v Versions, ok bool, err error) {
	err = q.Query(ctx, `SELECT t.version, COALESCE(p.version, 0) FROM tenants t
		LEFT JOIN tenant_people p ON p.tenant_id = $1 WHERE t.tenant_id = $1`, func(r db.Row) error {
		v, ok = Versions{r.Int(0), r.Int(1)}, true
		return nil
	})
	return v, ok, err
}

// RaisePeople makes every node read the users of the tenant again. It does not
// hold the configuration, which writers of records would wait for.
func RaisePeople(ctx context.Context, tx db.Tx) error {
	_, err := tx.Exec(ctx, `INSERT INTO tenant_people (tenant_id, version) VALUES ($1, 1)
		ON CONFLICT (tenant_id) DO UPDATE SET version = tenant_people.version + 1`)
	return err
}

// Fence holds the tenant's configuration still until tx ends and returns its
// version. Whoever writes what depends on configuration (a record's index
// rows, rule matches, owner's role) calls it first in the transaction and
// starts again when the version is not the one it worked with.
func Fence(ctx context.Context, tx db.Tx) (version int64, err error) {
	if version, ok := tx.Kept(fenceKey{}).(int64); ok {
		return version, nil
	}
	err = tx.Query(ctx, `SELECT version FROM tenants WHERE tenant_id = $1`+tx.Dialect().ForShare, func(r db.Row) error {
		version = r.Int(0)
		return nil
	})
	if err == nil {
		tx.Keep(fenceKey{}, version, nil)
	}
	return version, err
}

// What the ordered writes of one transaction keep: the version of the configuration, and the last instant drawn.
type (
	fenceKey struct{}
	tickKey  struct{}
)

// ByHost returns the tenant that a canonical host belongs to, its versions, and
// which of its lists has the host; ok is false for an unknown host. It returns
// errors of the database only.
func ByHost(ctx context.Context, d *db.DB, host string) (id ID, v Versions, kind HostKind, ok bool, err error) {
	// Two statements: the second one asks the one server that has the tenant, where there are several.
	err = d.Unscoped("the host is what the tenant is found by").Query(ctx, `SELECT tenant_id, admin FROM tenant_hosts WHERE host = $1`, func(r db.Row) error {
		id, kind = ID(r.Text(0)), PublicHost
		if r.Bool(1) {
			kind = AdminHost
		}
		return nil
	}, host)
	if err != nil || id == "" {
		return "", v, kind, false, err
	}
	v, ok, err = VersionsOf(ctx, d.For(id))
	return id, v, kind, ok, err
}

// List names every tenant, in order.
func List(ctx context.Context, d *db.DB) ([]ID, error) {
	var ids []ID
	err := d.Unscoped("an operator lists the tenants").Query(ctx, `SELECT tenant_id FROM tenants ORDER BY tenant_id`, func(r db.Row) error {
		ids = append(ids, ID(r.Text(0)))
		return nil
	})
	return ids, err
}

// Put makes the tenant's row and hosts equal to t. A host that another tenant
// has is a CONFLICT that names it. The versions of a new tenant begin at the
// database's time: servers keep what they know of a tenant by its name and version,
// and must not take it for that of a deleted tenant which had the name.
func Put(ctx context.Context, tx ConfigTx, t *Tenant, now int64) error {
	settings, err := json.Marshal(t.Settings)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO tenants (tenant_id, display_name, base_url, settings, version, created_at, updated_at)
		VALUES ($1, $2, $3, $4, `+tx.Dialect().Now+`, $5, $5)
		ON CONFLICT (tenant_id) DO UPDATE SET display_name = excluded.display_name, base_url = excluded.base_url,
		settings = excluded.settings, updated_at = excluded.updated_at`,
		t.DisplayName, t.BaseURL, string(settings), now)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM tenant_hosts WHERE tenant_id = $1`); err != nil {
		return err
	}
	for i, list := range [][]string{t.Hosts, t.AdminHosts} {
		for _, h := range list {
			n, err := tx.Exec(ctx, `INSERT INTO tenant_hosts (tenant_id, host, admin) VALUES ($1, $2, $3)
				ON CONFLICT (host) DO NOTHING`, h, i)
			if err != nil {
				return err
			}
			if n == 0 {
				return fault.New(fault.Conflict, "host %s already belongs to a tenant", h)
			}
		}
	}
	return nil
}

// Tick draws the tenant's next instant: now, or one microsecond after the last
// one drawn, whichever is later. Inside db.Handle.WriteOrdered, instants become
// visible in their order (contract R15). The unit is microseconds UTC.
func Tick(ctx context.Context, tx db.Tx, now int64) (tick int64, err error) {
	return Ticks(ctx, tx, now, 1)
}

// Ticks draws n instants, one microsecond apart, and returns the first.
func Ticks(ctx context.Context, tx db.Tx, now int64, n int) (first int64, err error) {
	if last, ok := tx.Kept(tickKey{}).(*int64); ok {
		first = max(*last+1, now)
		*last = first + int64(n-1)
		return first, nil
	}
	err = tx.Query(ctx, `INSERT INTO tenant_clocks (tenant_id, last) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET last = `+tx.Dialect().Greatest("tenant_clocks.last + $3", "excluded.last")+`
		RETURNING last`, func(r db.Row) error {
		first = r.Int(0) - int64(n-1)
		return nil
	}, now+int64(n-1), n)
	if err != nil {
		return 0, err
	}
	last := first + int64(n-1)
	stored := last
	tx.Keep(tickKey{}, &last, func(ctx context.Context, tx db.Tx) error {
		if last == stored {
			return nil
		}
		return tx.Later(ctx, `UPDATE tenant_clocks SET last = $2 WHERE tenant_id = $1`, last)
	})
	return first, nil
}
