package access

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Config is a tenant's whole configuration at one version: everything that
// decides a request except the records and shares themselves. It is immutable.
// What is derived from it (see Derived) is dropped together with it, so that a
// change of configuration empties every cache.
type Config struct {
	Tenant *tenant.Tenant
	Schema *schema.Schema
	Roles  *Roles
	Sets   map[string]*PermissionSet
	Rules  []*SharingRule
	// Build is the change of configuration that is being prepared, or nil. It
	// affects what writers write, never what readers see.
	Build *Build
	// roleNames are further names that a role has in owner_role; see Move.
	roleNames map[string][]string

	viewers Cache[Viewer]
	// people is the version of the users that viewers were made from; see follow.
	people  atomic.Int64
	derived sync.Map // by *Derived[T]: *T
}

// confirmEvery bounds how long a node uses a configuration without asking the
// database for its version. Every node sees a change within 1 s (contract H15), of
// which this leaves half for a slow database.
const confirmEvery = 500 * time.Millisecond

// Directory finds tenants by host and viewers by user, and caches them until the
// tenant's configuration changes. It is safe for concurrent use.
type Directory struct {
	store store
	// generation invalidates every answer when it is raised.
	generation atomic.Uint64

	mu     sync.RWMutex
	hosts  map[string]*entry
	byName map[tenant.ID]*Config
}

// entry is what a host resolved to, and when the database was asked. The clock is
// read before the query, so that a change committed later is seen in time.
type entry struct {
	refresh sync.Mutex // held while the database is asked
	answer  atomic.Pointer[answer]
	failed  failure // guarded by refresh
}

// failure is when the database failed to answer, and how.
type failure struct {
	at  time.Time
	err error
}

type answer struct {
	config     *Config
	kind       tenant.HostKind
	generation uint64
	asked      time.Time
}

// maxHosts bounds the cache of hosts; only hosts that exist are kept.
const maxHosts = 100_000

// ByHost returns the configuration of the tenant that a canonical host belongs
// to, and which of the tenant's lists contains the host. It returns NOT_FOUND,
// always with the same message, when there is none, and errors of the database.
func (d *Directory) ByHost(ctx context.Context, host string) (*Config, tenant.HostKind, error) {
	d.mu.RLock()
	e := d.hosts[host]
	d.mu.RUnlock()
	if e == nil {
		e = &entry{}
	}
	if a := d.fresh(e); a != nil {
		return a.config, a.kind, nil
	}
	began := time.Now()
	e.refresh.Lock()
	defer e.refresh.Unlock()
	if a := d.fresh(e); a != nil {
		return a.config, a.kind, nil
	}
	if e.failed.at.After(began) { // or those who wait for a frozen database would wait for it one after another
		return nil, 0, e.failed.err
	}
	a := &answer{generation: d.generation.Load(), asked: time.Now()}
	id, versions, kind, ok, err := d.store.byHost(ctx, host)
	if err != nil {
		if ctx.Err() == nil { // a caller who left is no fault of the database
			e.failed = failure{time.Now(), err}
		}
		return nil, 0, err
	}
	if !ok {
		d.mu.Lock()
		delete(d.hosts, host)
		d.mu.Unlock()
		return nil, 0, fault.New(fault.NotFound, "there is nothing at this host")
	}
	a.kind = kind
	if a.config, err = d.at(ctx, id, versions); err != nil {
		return nil, 0, err
	}
	e.answer.Store(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.hosts) >= maxHosts {
		clear(d.hosts)
	}
	d.hosts[host] = e
	return a.config, a.kind, nil
}

// fresh returns the entry's answer while it may be used without asking the
// database again, and nil otherwise.
func (d *Directory) fresh(e *entry) *answer {
	a := e.answer.Load()
	if a == nil || a.generation != d.generation.Load() || time.Since(a.asked) >= confirmEvery {
		return nil
	}
	return a
}

// Forget makes this node ask the database for each tenant's versions at its next
// request. It must be called after a change of configuration, or of a managed
// field of a user, that this process committed, which then takes effect here at
// once.
func (d *Directory) Forget() { d.generation.Add(1) }

// Current returns a tenant's configuration as it is in the database now. It returns
// NOT_FOUND when there is no such tenant, OVERLOADED when the configuration changes
// too fast to be read, and errors of the database.
func (d *Directory) Current(ctx context.Context, tenantID tenant.ID) (*Config, error) {
	versions, ok, err := d.store.versions(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no tenant %q", tenantID)
	}
	return d.at(ctx, tenantID, versions)
}

// at returns the configuration at versions that were just read, or later ones.
func (d *Directory) at(ctx context.Context, id tenant.ID, versions tenant.Versions) (*Config, error) {
	d.mu.RLock()
	c := d.byName[id]
	d.mu.RUnlock()
	if c != nil && c.Tenant.Version == versions.Config {
		return c.follow(versions.People), nil
	}
	c, err := d.store.load(ctx, id)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if had := d.byName[id]; had != nil && had.Tenant.Version >= c.Tenant.Version && had.Tenant.Version >= versions.Config {
		return had.follow(versions.People), nil
	}
	d.byName[id] = c
	return c.follow(versions.People), nil
}

// follow drops the viewers that were made from users before a version of them,
// and returns c.
func (c *Config) follow(people int64) *Config {
	for had := c.people.Load(); had < people; had = c.people.Load() {
		if c.people.CompareAndSwap(had, people) {
			c.viewers.clear()
		}
	}
	return c
}

// Viewer returns the viewer of a user of the tenant. It returns UNAUTHORIZED when
// there is no such user, or the user is deactivated and evenInactive is not set (an
// external JWT outlives its user's deactivation, contract T3), and errors of the
// database.
func (d *Directory) Viewer(ctx context.Context, c *Config, userID user.ID, evenInactive bool) (Viewer, error) {
	// The version is part of the key: a user who is being read while it is raised
	// is not found under the new one.
	people := c.people.Load()
	key := strconv.FormatInt(people, 10) + ":" + string(userID)
	if evenInactive {
		key = "!" + key
	}
	if v, ok := c.viewers.Get(key); ok {
		return v, nil
	}
	id, active, ok, err := d.store.identity(ctx, c.Tenant.ID, userID)
	if err != nil {
		return Viewer{}, err
	}
	if !ok || !active && !evenInactive {
		return Viewer{}, fault.New(fault.Unauthorized, "the user is unknown or not active")
	}
	v := viewerOf(c, id)
	v.v.evenInactive, v.v.people = evenInactive, people
	c.viewers.Put(key, v)
	return v, nil
}

// Current reports whether no managed field of a user, as far as this node knows, has
// changed since the directory made the viewer. A viewer that is kept beyond a request
// must be asked for again when it is not current.
func (w Viewer) Current() bool { return w.v != nil && w.v.people == w.v.config.people.Load() }

// Renew returns the viewer with the current configuration, for a write whose
// viewer is outdated. Its errors are those of Current and Viewer.
func (d *Directory) Renew(ctx context.Context, w Viewer) (Viewer, error) {
	c, err := d.Current(ctx, w.Tenant())
	if err != nil {
		return Viewer{}, err
	}
	if w.v.userID == "" {
		return System(c, "renewed"), nil
	}
	fresh, err := d.Viewer(ctx, c, w.v.userID, w.v.evenInactive)
	if err == nil && w.v.elevated {
		fresh = SystemAs(fresh, "renewed")
	}
	return fresh, err
}

// System returns a viewer that may do everything with the tenant's records and
// acts for no user. It is for the operator's commands. reason says why it is
// needed. It must not be empty, and only documents the call in the source.
func System(c *Config, reason string) Viewer {
	if reason == "" {
		panic("access.System needs a reason")
	}
	return viewerOf(c, Identity{Owner: true})
}

// SystemAs returns a viewer like System's that acts for w's user: that user
// owns what it creates. It is for components and automations that declare
// execution_context: system. It panics for the zero Viewer, and without a
// reason.
func SystemAs(w Viewer, reason string) Viewer {
	if reason == "" || w.v == nil {
		panic("access.SystemAs needs a user and a reason")
	}
	c, key := w.v.config, "system:"+string(w.v.userID)
	if v, ok := c.viewers.Get(key); ok {
		return v
	}
	v := viewerOf(c, Identity{UserID: w.v.userID, Email: w.v.email, Owner: true, Role: w.v.role})
	v.v.elevated = true
	c.viewers.Put(key, v)
	return v
}
