package access

import (
	"context"
	"encoding/json"
	"errors"

	jsonv2 "github.com/go-json-experiment/json"

	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// NewDirectory returns the directory over a database.
func NewDirectory(d *db.DB) *Directory {
	return &Directory{store: store{d}, hosts: map[string]*entry{}, byName: map[tenant.ID]*Config{}}
}

type store struct{ d *db.DB }

func (s store) byHost(ctx context.Context, host string) (tenant.ID, tenant.Versions, tenant.HostKind, bool, error) {
	return tenant.ByHost(ctx, s.d, host)
}

func (s store) versions(ctx context.Context, id tenant.ID) (tenant.Versions, bool, error) {
	return tenant.VersionsOf(ctx, s.d.For(id))
}

// load reads a configuration at one version. It reads again if the version
// changed meanwhile.
func (s store) load(ctx context.Context, id tenant.ID) (*Config, error) {
	h := s.d.For(id)
	for range 20 {
		c, err := Load(ctx, h)
		if err != nil {
			return nil, err
		}
		after, ok, err := tenant.Version(ctx, h)
		if err != nil {
			return nil, err
		}
		if ok && after == c.Tenant.Version {
			return c, nil
		}
	}
	return nil, fault.New(fault.Overloaded, "the configuration changes too fast to be read")
}

func (s store) identity(ctx context.Context, tenantID tenant.ID, userID user.ID) (Identity, bool, bool, error) {
	return identityOf(ctx, s.d.For(tenantID), userID)
}

func identityOf(ctx context.Context, q db.Querier, userID user.ID) (id Identity, active, known bool, err error) {
	u, err := user.ByID(ctx, q, userID)
	if errors.Is(err, user.ErrUnknown) {
		return Identity{}, false, false, nil
	}
	if err != nil {
		return Identity{}, false, false, err
	}
	return IdentityOf(u), u.Active, true, nil
}

// ViewerIn returns the viewer of an active user under a configuration that was read
// in the transaction that changes it, so that a right that was taken away before is
// not used. Its errors are those of Directory.Viewer.
func ViewerIn(ctx context.Context, tx tenant.ConfigTx, c *Config, userID user.ID) (Viewer, error) {
	id, active, known, err := identityOf(ctx, tx, userID)
	if err != nil {
		return Viewer{}, err
	}
	if !known || !active {
		return Viewer{}, fault.New(fault.Unauthorized, "the user is unknown or not active")
	}
	return viewerOf(c, id), nil
}

// Load reads a tenant's configuration. Outside a transaction its parts may have
// different versions; the Directory checks for that. It returns NOT_FOUND when
// there is no such tenant.
func Load(ctx context.Context, q db.Querier) (*Config, error) {
	t, err := tenant.Load(ctx, q)
	if err != nil {
		return nil, err
	}
	c := &Config{Tenant: t, Sets: map[string]*PermissionSet{}}
	if c.Schema, err = schema.Load(ctx, q); err != nil {
		return nil, err
	}
	var roles []Role
	err = q.Query(ctx, `SELECT name, parent, since FROM roles WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		roles = append(roles, Role{Name: r.Text(0), Parent: r.Text(1), Since: r.Int(2)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if c.Roles, err = NewRoles(roles); err != nil {
		return nil, err
	}
	err = q.Query(ctx, `SELECT name, definition FROM permission_sets WHERE tenant_id = $1 ORDER BY name`, func(r db.Row) error {
		p := &PermissionSet{Name: r.Text(0)}
		c.Sets[p.Name] = p
		return json.Unmarshal(r.Bytes(1), p)
	})
	if err != nil {
		return nil, err
	}
	err = q.Query(ctx, `SELECT entity, owned_by_role, conditions, share_with_role, access, match_name, share_with
		FROM sharing_rules WHERE tenant_id = $1 ORDER BY rule_id`, func(r db.Row) error {
		rule := &SharingRule{
			Entity: r.Text(0), OwnedByRole: r.Text(1), ShareWithRole: r.Text(3), Access: Level(r.Text(4)), MatchName: r.Text(5),
			ShareWith: Audience(r.Text(6)),
		}
		c.Rules = append(c.Rules, rule)
		return json.Unmarshal(r.Bytes(2), &rule.Where)
	})
	if err != nil {
		return nil, err
	}
	err = c.loadBuild(ctx, q)
	return c, err
}

// PutRole creates or changes a role. The Since of a new role is the current version
// of the configuration; r.Since is ignored.
func PutRole(ctx context.Context, tx tenant.ConfigTx, r Role) error {
	version, _, err := tenant.Version(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO roles (tenant_id, name, parent, since) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, name) DO UPDATE SET parent = excluded.parent`, r.Name, r.Parent, version)
	return err
}

// DeleteRole deletes a role. Its shares no longer reach any user, even if a
// role of the same name is created later. The sweep deletes them.
func DeleteRole(ctx context.Context, tx tenant.ConfigTx, name string) error {
	var gone []Role
	err := tx.Query(ctx, `DELETE FROM roles WHERE tenant_id = $1 AND name = $2 RETURNING since`, func(r db.Row) error {
		gone = append(gone, Role{Name: name, Since: r.Int(0)})
		return nil
	}, name)
	for _, r := range gone {
		if err == nil {
			err = Leave(ctx, tx, Leftover{Kind: LeftShares, Name: r.principal()}, 0)
		}
	}
	return err
}

// PutPermissionSet creates or changes a permission set.
func PutPermissionSet(ctx context.Context, tx tenant.ConfigTx, p *PermissionSet) error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO permission_sets (tenant_id, name, definition) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, name) DO UPDATE SET definition = excluded.definition`, p.Name, string(b))
	return err
}

// DeletePermissionSet deletes a permission set.
func DeletePermissionSet(ctx context.Context, tx tenant.ConfigTx, name string) error {
	_, err := tx.Exec(ctx, `DELETE FROM permission_sets WHERE tenant_id = $1 AND name = $2`, name)
	return err
}

// PutRule creates or changes a sharing rule. records.Transition writes the matches of
// a rule by field value, in the same transaction.
func PutRule(ctx context.Context, tx tenant.ConfigTx, r *SharingRule) error {
	// Values must be read back byte for byte, because the rule's ID is made of
	// them: encoding/json would escape <, > and &.
	b, err := jsonv2.Marshal(r.Where)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO sharing_rules
		(tenant_id, rule_id, entity, owned_by_role, conditions, share_with_role, access, share_with)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant_id, rule_id) DO UPDATE SET access = excluded.access`,
		r.ID(), r.Entity, r.OwnedByRole, string(b), r.ShareWithRole, string(r.Access), string(r.ShareWith))
	return err
}

// SetMatchName sets the name under which the matches of a rule are stored; "" is the
// rule's ID.
func SetMatchName(ctx context.Context, tx tenant.ConfigTx, id, name string) error {
	_, err := tx.Exec(ctx, `UPDATE sharing_rules SET match_name = $3 WHERE tenant_id = $1 AND rule_id = $2`, id, name)
	return err
}

// DeleteRule deletes a sharing rule.
func DeleteRule(ctx context.Context, tx tenant.ConfigTx, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM sharing_rules WHERE tenant_id = $1 AND rule_id = $2`, id)
	return err
}
