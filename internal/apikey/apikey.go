// Package apikey issues API keys and resolves their tokens.
//
// A key acts for one user of the tenant, its owner, and may do what that user
// may do, no more. Its token is shown once, when it is created; only the
// SHA-256 is stored. A key that is unknown, deleted or expired, or whose user
// is deactivated, gets the same bytes (contract K4, E2).
//
// What a token resolved to is kept with the tenant's configuration
// (access.Config.Keys), which ends with the version it was loaded at. Creating
// and deleting a key raises that version, as does every change to a user, so a
// change takes effect at once on the node that made it and within a second on
// every other.
//
// A user of either type may own a key: a portal's backend may want one for each
// customer. One that acts for an external user is held to the same as that
// user's access token (contract K7): External Identity must be on, a custom
// endpoint must have external_users, and there is no system permission and no
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

// Bounds of what a key may say.
const (
	DefaultRateLimit = 1000
	MaxRateLimit     = 1_000_000_000
	MaxName          = 100 // characters
	maxEntries       = 1000
)

// Key is an API key without its token. It is shared by the requests that
// present it and never changes. Times are microseconds UTC, 0 for none.
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

// AllowsOrigin reports whether a browser's page at origin, in any form, may use
// the key.
func (k *Key) AllowsOrigin(origin string) bool {
	if slices.Contains(k.Origins, origin) {
		return true
	}
	canonical, ok := httpapi.CanonicalOrigin(origin)
	return ok && slices.Contains(k.Origins, canonical)
}

// expired reports whether the key is no longer valid at an instant.
func (k *Key) expired(now int64) bool { return k.ExpiresAt != 0 && now >= k.ExpiresAt }

// Service issues, lists, deletes and resolves keys. It may be used by several
// goroutines at once. Whoever called Touch calls Close in the end.
type Service struct {
	store store
	clock clock.Clock
	dir   *access.Directory

	mu       sync.Mutex
	uses     map[string]*use // by tenant and key, so that use outlives a version of the configuration
	queue    []*use          // used since they were written
	flushing *flusher        // nil before the first Touch
	closed   bool
}

// MayCreateFor reports by its error whether viewer may create a key for a user:
// the tenant owner for everybody, an internal user for themselves (contract K8,
// A13). It returns FORBIDDEN otherwise.
func MayCreateFor(viewer access.Viewer, userID user.ID) error {
	if viewer.TenantOwner() || userID != "" && viewer.UserID() == userID && !viewer.External() {
		return nil
	}
	return fault.New(fault.Forbidden, "only the tenant's owner may create an API key for another user")
}
