package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/user"
)

// success is the answer that tells nothing.
type success struct {
	Success bool `json:"success"`
}

// requestReset sends a reset mail, after the answer, to a user who exists, is
// external, active and verified; to nobody else, and nobody can tell.
func (s *Service) requestReset(cfg *access.Config, email string) error {
	return s.later(cfg.Tenant.ID, "password reset", func(ctx context.Context) error {
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
		if err := s.store.offer(ctx, cfg.Tenant.ID, acc, forReset, secret.Hash(token), s.mailer, m); err != nil {
			return err
		}
		s.mailer.Wake()
		return nil
	})
}

// reset spends a reset token on a new password and ends every session of the
// user. Other reset tokens of theirs are worth nothing from then on.
func (s *Service) reset(ctx context.Context, cfg *access.Config, token, password string) error {
	if err := checkNewPassword(password); err != nil {
		return err
	}
	hashed := secret.Hash(token)
	if err := s.store.holds(ctx, cfg.Tenant.ID, hashed, forReset); err != nil { // before a hash is spent on it
		return err
	}
	phc, err := s.hash(ctx, cfg.Tenant.ID, password)
	if err != nil {
		return err
	}
	if err := s.store.reset(ctx, cfg.Tenant.ID, hashed, phc); err != nil {
		return err
	}
	s.counts.resets.Add(1)
	return nil
}
