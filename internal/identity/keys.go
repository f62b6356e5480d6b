package identity

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/tenant"
)

// signingKey is one HS256 key of a tenant. retiredAt is in microseconds, 0 for the
// current key.
type signingKey struct {
	kid       string
	secret    []byte
	retiredAt int64
}

const (
	keyBytes = 32
	// rotationLag is how long after a rotation another node may still sign with the
	// old key, with room for clocks that differ.
	rotationLag = time.Minute
	// maxUnknown bounds the unknown key ids that are remembered.
	maxUnknown = 1000
	// unknownFor is how long the database is not asked again for an unknown key id.
	unknownFor = time.Second
)

// usable reports whether a token that the key signed may still be valid.
func (k *signingKey) usable(now time.Time) bool {
	return k.retiredAt == 0 || now.Before(clock.FromMicros(k.retiredAt).Add(accessLifetime+rotationLag))
}

// keys caches the signing keys of tenants. A tenant's keys are read again when its
// configuration has a new version, as after a rotation, and when a token names a key
// that is not among them.
type keys struct {
	mu      sync.RWMutex
	tenants map[tenant.ID]*tenantKeys
}

// tenantKeys caches the keys of one tenant. One goroutine at a time reads them from the
// database; goroutines that wait meanwhile use the result of any read that began after
// their request. So a flood of invented key ids causes one read at a time, and none for an
// id that was looked up within the last second.
type tenantKeys struct {
	set     atomic.Pointer[keySet]
	reads   atomic.Int64 // number of reads begun
	reading sync.Mutex
	unknown map[string]time.Time // guarded by reading
}

// keySet is the result of one read. It does not change.
type keySet struct {
	version int64 // of the configuration when the read began
	read    int64 // the number of the read
	current *signingKey
	byKid   map[string]*signingKey
}

// verifiedTokens caches the tokens that were valid under a configuration, by their
// SHA-256, because a client sends the same token with every request for an hour. A
// rotation of keys is a change of configuration.
var verifiedTokens access.Derived[access.Cache[verified]]

// verified is the part of a token that must be checked again after its signature and
// claims were found valid.
type verified struct {
	subject string
	expires time.Time
	key     *signingKey
}

// maxTenantKeys bounds the cache, which has entries only for tenants that exist.
const maxTenantKeys = 100_000

func (k *keys) of(tenantID tenant.ID) *tenantKeys {
	k.mu.RLock()
	t := k.tenants[tenantID]
	k.mu.RUnlock()
	if t != nil {
		return t
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t = k.tenants[tenantID]; t == nil {
		if len(k.tenants) >= maxTenantKeys {
			clear(k.tenants)
		}
		t = &tenantKeys{unknown: map[string]time.Time{}}
		k.tenants[tenantID] = t
	}
	return t
}

// readKeys returns the result of a read that began after it was called.
func (s *Service) readKeys(ctx context.Context, cfg *access.Config, t *tenantKeys) (*keySet, error) {
	seen := t.reads.Load()
	t.reading.Lock()
	defer t.reading.Unlock()
	return s.readLocked(ctx, cfg, t, seen)
}

// readLocked is readKeys for a caller that holds t.reading; seen is the number of reads
// that had begun before the caller's request.
func (s *Service) readLocked(ctx context.Context, cfg *access.Config, t *tenantKeys, seen int64) (*keySet, error) {
	if set := t.set.Load(); set != nil && set.read > seen && set.version >= cfg.Tenant.Version {
		return set, nil
	}
	set := &keySet{version: cfg.Tenant.Version, read: t.reads.Add(1), byKid: map[string]*signingKey{}}
	list, err := s.store.signingKeys(ctx, cfg.Tenant.ID)
	if err != nil {
		return nil, err
	}
	for _, key := range list {
		if key.secret, err = s.keyring.Open(keyPurpose(cfg.Tenant.ID), key.sealed); err != nil {
			return nil, err
		}
		set.byKid[key.kid] = &key.signingKey
		if key.retiredAt == 0 {
			set.current = &key.signingKey
		}
	}
	t.set.Store(set)
	return set, nil
}

// signer returns the current key, which the tenant's first login makes.
func (s *Service) signer(ctx context.Context, cfg *access.Config) (*signingKey, error) {
	t := s.keys.of(cfg.Tenant.ID)
	set := t.set.Load()
	var err error
	if set == nil || set.version < cfg.Tenant.Version || set.current == nil {
		if set, err = s.readKeys(ctx, cfg, t); err != nil {
			return nil, err
		}
	}
	if set.current == nil {
		if err := s.store.firstKey(ctx, cfg.Tenant.ID, s.newKey(cfg.Tenant.ID)); err != nil {
			return nil, err
		}
		if set, err = s.readKeys(ctx, cfg, t); err != nil {
			return nil, err
		}
	}
	if set.current == nil {
		return nil, errNoKey
	}
	return set.current, nil
}

// verifier returns the key that a token names. It returns errBadToken if the tenant has no
// usable key with that id.
func (s *Service) verifier(ctx context.Context, cfg *access.Config, kid string) (*signingKey, error) {
	t := s.keys.of(cfg.Tenant.ID)
	set := t.set.Load()
	if set == nil || set.version < cfg.Tenant.Version || set.byKid[kid] == nil {
		var err error
		if set, err = s.findKey(ctx, cfg, t, kid); err != nil {
			return nil, err
		}
	}
	if key := set.byKid[kid]; key != nil && key.usable(s.clock.Now()) {
		return key, nil
	}
	return nil, errBadToken
}

// findKey reads the keys again to find one, unless a read within unknownFor did not find
// it.
func (s *Service) findKey(ctx context.Context, cfg *access.Config, t *tenantKeys, kid string) (*keySet, error) {
	seen := t.reads.Load()
	t.reading.Lock()
	defer t.reading.Unlock()
	now := s.clock.Now()
	set := t.set.Load()
	if at, ok := t.unknown[kid]; ok && set != nil && set.version >= cfg.Tenant.Version && now.Sub(at).Abs() < unknownFor {
		return set, nil
	}
	set, err := s.readLocked(ctx, cfg, t, seen)
	if err != nil || set.byKid[kid] != nil {
		return set, err
	}
	if len(t.unknown) >= maxUnknown {
		clear(t.unknown)
	}
	t.unknown[kid] = now
	return set, nil
}

// newKey returns a new key, sealed.
func (s *Service) newKey(tenantID tenant.ID) sealedKey {
	k := sealedKey{signingKey: signingKey{kid: clock.NewID(s.clock.Now()), secret: make([]byte, keyBytes)}}
	_, _ = rand.Read(k.secret) // never fails
	k.sealed = s.keyring.Seal(keyPurpose(tenantID), k.secret)
	return k
}

// keyPurpose returns the purpose that a tenant's signing keys are sealed for. A row that is
// copied to another tenant cannot be opened.
func keyPurpose(tenantID tenant.ID) string { return "jwt key/" + string(tenantID) }

// RotateKey gives the tenant a new signing key. The old one is accepted until its tokens
// have expired. It is a change of configuration, recorded under actor's name, so that
// every node notices it. It returns NOT_FOUND if the tenant does not exist.
func (s *Service) RotateKey(ctx context.Context, actor string, tenantID tenant.ID) error {
	if err := s.store.rotateKey(ctx, actor, tenantID, s.newKey(tenantID)); err != nil {
		return err
	}
	s.dir.Forget()
	return nil
}
