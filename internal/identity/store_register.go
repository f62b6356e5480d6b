package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/db"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// errStale means that the configuration has changed since it was read.
var errStale = errors.New("identity: the configuration has changed")

// register adds a user, with the token and the mail that the activation mode needs, and
// returns the user's id. It returns CONFLICT if the e-mail address is taken, and errStale
// if cfg is not the current configuration.
func (s store) register(ctx context.Context, cfg *access.Config, r user.Registration, token string, out Mailer) (id user.ID, err error) {
	settings := &cfg.Tenant.Settings.ExternalIdentity
	err = s.d.For(cfg.Tenant.ID).WriteOrdered(ctx, func(tx db.Tx) error {
		version, err := tenant.Fence(ctx, tx)
		if err != nil {
			return err
		}
		if version != cfg.Tenant.Version {
			return errStale
		}
		tick, err := tenant.Tick(ctx, tx, clock.Micros(s.clock.Now()))
		if err != nil {
			return err
		}
		u, err := user.Register(ctx, tx, settings, r, tick)
		if err != nil {
			return err
		}
		id = u.ID
		switch settings.ActivationMode {
		case byEmail:
			if err := s.putToken(ctx, tx, u.ID, 0, forVerify, secret.Hash(token)); err != nil {
				return err
			}
			to := user.Account{Email: u.Email, Name: u.Name}
			m := compose(cfg.Tenant, mail.Verification, to, verifyPage, token)
			m.Until = s.expiry(forVerify)
			return out.Put(ctx, tx, m)
		case byApp:
			return s.putToken(ctx, tx, u.ID, 0, forActivate, secret.Hash(token))
		}
		return nil
	})
	return id, err
}

// self returns the viewer's own row, or UNAUTHORIZED if it no longer exists.
func (s store) self(ctx context.Context, viewer access.Viewer) (*user.User, error) {
	u, err := user.ByID(ctx, s.d.For(viewer.Tenant()), viewer.UserID())
	if errors.Is(err, user.ErrUnknown) {
		return nil, errUnauthorized
	}
	return u, err
}
