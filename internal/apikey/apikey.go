// Package apikey issues API keys and resolves their tokens.
//
// A key acts for one user of the tenant, its owner, and may do exactly what that
// user may do. Its token is shown once, when it is created; only its SHA-256 is
// stored. The answer is the same for a key that is unknown, deleted or expired,
// and for one whose user is deactivated (contract K4, E2).
//
// What a token resolved to is cached with the tenant's configuration, whose
// version is raised when a key is created or deleted and when a user is changed.
// So a change takes effect at once on the node that made it, and within a second
// on the others.
//
// Internal and external users may own keys: the backend of a portal may need one
// for each customer. A key that acts for an external user has the bounds of that
// user's access token (contract K7): External Identity must be on, a custom
// endpoint must have external_users, and the user has no system permission and no
// all_entity_access, only their own records and what is shared with them.
package apikey

import (
	"slices"
	"sync"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/user"
)

// Bounds of a key's attributes.
const (
	DefaultRateLimit = 1000 // requests a minute
	MaxRateLimit     = 1_000_000_000
	MaxName          = 100  // characters
	maxEntries       = 1000 // of each list
)

// Key is an API key without its token. It is shared by requests and must not be
// changed. Times are microseconds UTC, 0 for none.
type Key struct {
	ID                 string
	UserID             user.ID // the user it acts for
	Name               string
	Prefix             string // the token's first 12 characters
	RateLimitPerMinute int
	Origins            []string // canonical; empty: server-to-server only
	Allowlist          httpapi.Allowlist
	ExpiresAt          int64
	LastUsedAt         int64
	CreatedAt          int64

	use *use
}

// AllowsOrigin reports whether the key lists an origin, which may have any form
// that a browser sends.
func (k *Key) AllowsOrigin(origin string) bool {
	if slices.Contains(k.Origins, origin) {
		return true
	}
	canonical, ok := httpapi.CanonicalOrigin(origin)
	return ok && slices.Contains(k.Origins, canonical)
}

// expired reports whether the key has expired at an instant.
func (k *Key) expired(now int64) bool { return k.ExpiresAt != 0 && now >= k.ExpiresAt }

// Service issues, lists, deletes and resolves keys. It is safe for concurrent use.
// A process that calls Touch must call RunLastUse, and Close at the end.
type Service struct {
	store store
	clock clock.Clock
	dir   *access.Directory

	mu    sync.Mutex
	uses  map[string]*use // by tenant and key; they outlive versions of the configuration
	queue []*use          // of keys that were used since their last write
}

// MayCreateFor returns nil if viewer may create a key for a user, and FORBIDDEN
// otherwise: the tenant owner may create one for every user, an internal user for
// themselves (contract K8, A13).
func MayCreateFor(viewer access.Viewer, userID user.ID) error {
	if viewer.TenantOwner() || userID != "" && viewer.UserID() == userID && !viewer.External() {
		return nil
	}
	return fault.New(fault.Forbidden, "only the tenant's owner may create an API key for another user")
}
