package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

var errCurrentPassword = fault.New(fault.InvalidCredentials, "the current password is wrong")

// checkNewPassword returns VALIDATION for a password that is not allowed.
func checkNewPassword(password string) error {
	if err := secret.CheckPassword(password); err != nil {
		return fault.Fields("the new password is not valid", map[string]string{"newPassword": err.Error()})
	}
	return nil
}

// changePassword sets the password of a user who knows the current one, and ends all of
// the user's sessions except the one of the request. Reset tokens become invalid. It returns
// INVALID_CREDENTIALS for a wrong password, after the same work as login: one read, and
// the verification of one hash, if necessary a dummy. It returns ACCOUNT_NOT_ACTIVE if
// the password is right and the account is not active, and UNAUTHORIZED if the user no
// longer exists. The caller must hold a place to hash.
func (s *Service) changePassword(ctx context.Context, cfg *access.Config, g grant, current, password string) error {
	acc, err := s.store.byID(ctx, cfg.Tenant.ID, g.userID)
	if errors.Is(err, user.ErrUnknown) {
		return errUnauthorized
	}
	if err != nil {
		return err
	}
	hash := acc.PasswordHash
	if hash == "" {
		hash = s.hasher.Dummy()
	}
	right, err := s.hasher.Verify(ctx, cfg.Tenant.ID, hash, current)
	if err != nil {
		return err
	}
	if !right || acc.PasswordHash == "" || acc.Type != user.External {
		s.counts.failures.Add(1)
		return errCurrentPassword
	}
	if !acc.Active {
		s.counts.failures.Add(1)
		return notActive(acc)
	}
	phc, err := s.hasher.HashAdmitted(ctx, cfg.Tenant.ID, password)
	if err != nil {
		return err
	}
	ok, is, err := s.store.changePassword(ctx, cfg.Tenant.ID, acc, g.chainID, phc)
	switch {
	case err != nil:
		return err
	case ok:
		s.counts.changes.Add(1)
		return nil
	case is.PasswordHash == acc.PasswordHash && !is.Active: // the account changed while the password was checked
		return notActive(is)
	}
	return errCurrentPassword
}
