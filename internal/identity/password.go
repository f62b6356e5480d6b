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

// checkNewPassword is VALIDATION for a password that nobody may choose.
func checkNewPassword(password string) error {
	if err := secret.CheckPassword(password); err != nil {
		return fault.Fields("the new password is not valid", map[string]string{"newPassword": err.Error()})
	}
	return nil
}

// changePassword gives a user who shows their current password another one, and
// ends every session of theirs but the one they are in. Other ways to a new
// password, reset mails that wait, end with it. The caller has been admitted. A
// wrong password is INVALID_CREDENTIALS after the same work as at login: one
// read, and one verification of a hash, be it a dummy.
func (s *Service) changePassword(ctx context.Context, cfg *access.Config, of holder, current, password string) error {
	acc, err := s.store.byID(ctx, cfg.Tenant.ID, of.userID)
	if errors.Is(err, user.ErrUnknown) {
		return errUnauthorized
	}
	if err != nil {
		return err
	}
	hash := acc.PasswordHash
	if hash == "" {
		hash = s.passwords.dummy()
	}
	right, err := s.right(ctx, cfg.Tenant.ID, hash, current)
	if err != nil {
		return err
	}
	if !right || acc.PasswordHash == "" {
		s.counts.failures.Add(1)
		return errCurrentPassword
	}
	if !acc.Active {
		s.counts.failures.Add(1)
		return notActive(acc)
	}
	phc, err := s.hashAdmitted(ctx, cfg.Tenant.ID, password)
	if err != nil {
		return err
	}
	ok, is, err := s.store.changePassword(ctx, cfg.Tenant.ID, acc, of.chainID, phc)
	switch {
	case err != nil:
		return err
	case ok:
		s.counts.changes.Add(1)
		return nil
	case is.PasswordHash == acc.PasswordHash && !is.Active: // it changed while the password was checked
		return notActive(is)
	}
	return errCurrentPassword
}
