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

// signingKey is one HS256 key of a tenant. retiredAt is in microseconds, 0
// while it signs.
type signingKey struct {
	kid       string
	secret    []byte
	retiredAt int64
}

const (
	keyBytes = 32
	// stillSigned is how long after a rotation a node that has not heard of it
	// may sign with the old key, with room for clocks that differ.
	stillSigned = time.Minute
	// maxRefuted bounds how many unknown key ids are remembered.
	maxRefuted = 1000
	// refutedFor is how long an unknown key id is not asked for again.
	refutedFor = time.Second
)

// usable reports whether tokens of the key may still be valid.
func (k *signingKey) usable(now time.Time) bool {
	return k.retiredAt == 0 || now.Before(clock.FromMicros(k.retiredAt).Add(accessLifetime+stillSigned))
}

// keys holds the signing keys of the tenants that this node has met. A tenant's
// are read again when its configuration has a new version, as it has after a
// rotation, and when a token names a key that is not among them.
type keys struct {
	mu      sync.RWMutex
	tenants map[tenant.ID]*tenantKeys
}

// tenantKeys are one tenant's. One goroutine reads them from the database at a
// time; those who wait meanwhile take what a read found that began after they
// asked. So a flood of made-up key ids is one read at a time, and none that is
// asked for twice within a second.
type tenantKeys struct {
	set     atomic.Pointer[keySet]
	reads   atomic.Int64 // that began
	reading sync.Mutex
	refuted map[string]time.Time // guarded by reading
}

// keySet is what one read found; but for verified it does not change.
type keySet struct {
	version int64 // of the configuration that was known when it began
	read    int64 // which one it was
	current *signingKey
	byKid   map[string]*signingKey
	// verified are the tokens that held under this version, by their SHA-256:
	// a token comes with every request of an hour.
	verified access.Cache[verified]
}

// verified is what is left to ask of a token whose signature and claims held.
type verified struct {
	subject string
	expires time.Time
	key     *signingKey
}

// maxTenantKeys bounds the cache; it holds tenants that exist.
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
		t = &tenantKeys{refuted: map[string]time.Time{}}
		k.tenants[tenantID] = t
	}
	return t
}

// readKeys is the set of a read that began after it was called.
func (s *Service) readKeys(ctx context.Context, cfg *access.Config, t *tenantKeys) (*keySet, error) {
	seen := t.reads.Load()
	t.reading.Lock()
	defer t.reading.Unlock()
	return s.readLocked(ctx, cfg, t, seen)
}

// readLocked is readKeys for who holds t.reading; seen is how many reads had
// begun when they asked.
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

// signer is the key that signs now; the tenant's first login makes it.
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

// verifier is the key that a token names; errBadToken when the tenant has none
// of that id whose tokens may still be valid.
func (s *Service) verifier(ctx context.Context, cfg *access.Config, kid string) (*signingKey, error) {
	t := s.keys.of(cfg.Tenant.ID)
	set := t.set.Load()
	if set == nil || set.version < cfg.Tenant.Version || set.byKid[kid] == nil {
		var err error
		if set, err = s.look(ctx, cfg, t, kid); err != nil {
			return nil, err
		}
	}
	if key := set.byKid[kid]; key != nil && key.usable(s.clock.Now()) {
		return key, nil
	}
	return nil, errBadToken
}

// look reads the keys for the sake of one, unless it was asked for in vain a
// moment ago.
func (s *Service) look(ctx context.Context, cfg *access.Config, t *tenantKeys, kid string) (*keySet, error) {
	seen := t.reads.Load()
	t.reading.Lock()
	defer t.reading.Unlock()
	now := s.clock.Now()
	set := t.set.Load()
	if at, ok := t.refuted[kid]; ok && set != nil && set.version >= cfg.Tenant.Version && now.Sub(at).Abs() < refutedFor {
		return set, nil
	}
	set, err := s.readLocked(ctx, cfg, t, seen)
	if err != nil || set.byKid[kid] != nil {
		return set, err
	}
	if len(t.refuted) >= maxRefuted {
		clear(t.refuted)
	}
	t.refuted[kid] = now
	return set, nil
}

// newKey is a fresh key, sealed.
func (s *Service) newKey(tenantID tenant.ID) sealedKey {
	k := sealedKey{signingKey: signingKey{kid: clock.NewID(s.clock.Now()), secret: make([]byte, keyBytes)}}
	_, _ = rand.Read(k.secret) // never fails
	k.sealed = s.keyring.Seal(keyPurpose(tenantID), k.secret)
	return k
}

// keyPurpose is what a tenant's signing keys are sealed for: a row that was
// copied to another tenant does not open.
func keyPurpose(tenantID tenant.ID) string { return "jwt key/" + string(tenantID) }

// RotateKey gives the tenant a new signing key. The old one is accepted until
// its tokens have expired. It is a change of configuration, recorded for actor,
// by which every node learns of it. NOT_FOUND when there is no such tenant.
func (s *Service) RotateKey(ctx context.Context, actor string, tenantID tenant.ID) error {
	if err := s.store.rotateKey(ctx, actor, tenantID, s.newKey(tenantID)); err != nil {
		return err
	}
	s.dir.Forget()
	return nil
}
