package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// success is the answer of routes that reveal nothing.
type success struct {
	Success bool `json:"success"`
}

// requestReset sends a reset mail, after the answer, to a user who exists and is external,
// active and verified. Otherwise it sends nothing, and the answer is the same. It returns
// OVERLOADED if too many mails wait to be written.
func (s *Service) requestReset(cfg *access.Config, email string) error {
	return s.enqueue(cfg.Tenant.ID, "password reset", func(ctx context.Context) error {
		acc, err := s.store.byEmail(ctx, cfg.Tenant.ID, email)
		if errors.Is(err, user.ErrUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
		if acc.Type != user.External || !acc.Active || !acc.Verified {
			return nil
		}
		token := newSecret()
		m := compose(cfg.Tenant, mail.PasswordReset, acc, resetPage, token)
		if err := s.store.mailToken(ctx, cfg.Tenant.ID, acc, forReset, secret.Hash(token), s.mailer, m); err != nil {
			return err
		}
		s.mailer.Wake()
		return nil
	})
}

// reset uses up a reset token to set a password, and ends all of the user's sessions. The
// user's other reset tokens become invalid. It returns VALIDATION for a password that is
// not allowed, TOKEN_INVALID or TOKEN_EXPIRED for the token, and OVERLOADED if no place to
// hash becomes free in time.
func (s *Service) reset(ctx context.Context, cfg *access.Config, token, password string) error {
	if err := checkNewPassword(password); err != nil {
		return err
	}
	hashed := secret.Hash(token)
	if err := s.store.checkToken(ctx, cfg.Tenant.ID, hashed, forReset); err != nil { // before the password is hashed
		return err
	}
	phc, err := s.hasher.Hash(ctx, cfg.Tenant.ID, password)
	if err != nil {
		return err
	}
	if err := s.store.reset(ctx, cfg.Tenant.ID, hashed, phc); err != nil {
		return err
	}
	s.counts.resets.Add(1)
	return nil
}
