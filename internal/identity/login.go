package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

var (
	errCredentials = fault.New(fault.InvalidCredentials, "the e-mail address or the password is wrong")
	errNotActive   = fault.New(fault.AccountNotActive, "the account is not active")
)

// The values of details.reason of ACCOUNT_NOT_ACTIVE.
const (
	reasonPending     = "pending"     // not activated yet
	reasonDeactivated = "deactivated" // by an administrator
)

// notActive returns ACCOUNT_NOT_ACTIVE with the reason. Only a caller that has shown the
// right password may see it.
func notActive(acc user.Account) error {
	if acc.Pending {
		return errNotActive.With("reason", reasonPending)
	}
	return errNotActive.With("reason", reasonDeactivated)
}

// epochOf returns the epoch of the account with an e-mail address, 0 if there is none.
func (s *Service) epochOf(ctx context.Context, tenantID tenant.ID, email string) (int64, error) {
	acc, err := s.store.byEmail(ctx, tenantID, email)
	if errors.Is(err, user.ErrUnknown) {
		return 0, nil
	}
	return acc.Epoch, err
}

// login exchanges an e-mail address and a password for tokens. It returns the same
// INVALID_CREDENTIALS for staff, for an address without an account and for a wrong
// password, after the same work: two reads, and the verification of one hash, if
// necessary a dummy. It returns ACCOUNT_NOT_ACTIVE only if the password is right. The
// caller must hold a place to hash.
func (s *Service) login(ctx context.Context, cfg *access.Config, email, password string) (*tokens, error) {
	acc, err := s.store.byEmail(ctx, cfg.Tenant.ID, email)
	if err != nil && !errors.Is(err, user.ErrUnknown) {
		return nil, err
	}
	hash, known := s.hasher.Dummy(), false
	if err == nil && acc.Type == user.External && acc.PasswordHash != "" {
		hash, known = acc.PasswordHash, true
	}
	right, err := s.hasher.Verify(ctx, cfg.Tenant.ID, hash, password)
	if err != nil {
		return nil, err
	}
	if !right || !known {
		s.counts.failures.Add(1)
		return nil, errCredentials
	}
	if !acc.Active {
		s.counts.failures.Add(1)
		return nil, notActive(acc)
	}
	key, err := s.signer(ctx, cfg)
	if err != nil {
		return nil, err
	}
	refreshToken := newSecret()
	begun, ok, is, err := s.store.begin(ctx, cfg.Tenant.ID, acc, secret.Hash(refreshToken))
	if err != nil {
		return nil, err
	}
	if !ok { // the account changed while the password was checked
		s.counts.failures.Add(1)
		if is.PasswordHash == acc.PasswordHash && !is.Active {
			return nil, notActive(is)
		}
		return nil, errCredentials
	}
	s.counts.logins.Add(1)
	return issue(cfg, key, begun, refreshToken)
}
