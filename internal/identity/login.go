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

// What details.reason of ACCOUNT_NOT_ACTIVE says.
const (
	reasonPending     = "pending"     // the account waits to be activated
	reasonDeactivated = "deactivated" // an administrator decides
)

// notActive is ACCOUNT_NOT_ACTIVE with the reason. It is for who has shown the
// right password.
func notActive(acc user.Account) error {
	if acc.Pending {
		return errNotActive.With("reason", reasonPending)
	}
	return errNotActive.With("reason", reasonDeactivated)
}

// epochOf is the epoch of the account with an e-mail address, 0 where there is none.
func (s *Service) epochOf(ctx context.Context, tenantID tenant.ID, email string) (int64, error) {
	acc, err := s.store.byEmail(ctx, tenantID, email)
	if errors.Is(err, user.ErrUnknown) {
		return 0, nil
	}
	return acc.Epoch, err
}

// login exchanges an e-mail address and a password for tokens. Staff, addresses
// without an account and wrong passwords get the same INVALID_CREDENTIALS after
// the same work: two reads, and one verification of a hash, be it a dummy. Only
// who knows the password of an account that is not active learns that. The caller
// has been admitted.
func (s *Service) login(ctx context.Context, cfg *access.Config, email, password string) (*tokens, error) {
	acc, err := s.store.byEmail(ctx, cfg.Tenant.ID, email)
	if err != nil && !errors.Is(err, user.ErrUnknown) {
		return nil, err
	}
	hash, known := s.passwords.dummy(), false
	if err == nil && acc.Type == user.External && acc.PasswordHash != "" {
		hash, known = acc.PasswordHash, true
	}
	right, err := s.right(ctx, cfg.Tenant.ID, hash, password)
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
	if !ok { // it changed while the password was checked
		s.counts.failures.Add(1)
		if is.PasswordHash == acc.PasswordHash && !is.Active {
			return nil, notActive(is)
		}
		return nil, errCredentials
	}
	s.counts.logins.Add(1)
	return issue(cfg, key, begun, refreshToken)
}
