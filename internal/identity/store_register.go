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

// errStale says that the configuration is not the one that was worked with.
var errStale = errors.New("identity: the configuration has changed")

// register adds a user, with the token and the mail that the activation mode
// wants, and fills in their id and times. CONFLICT when the e-mail address is
// taken; errStale when the configuration is not cfg any more.
func (s store) register(ctx context.Context, cfg *access.Config, u *user.User, mode, token string, out Mailer) error {
	return s.d.For(cfg.Tenant.ID).WriteOrdered(ctx, func(tx db.Tx) error {
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
		u.ID, u.CreatedAt, u.UpdatedAt = clock.NewID(clock.FromMicros(tick)), tick, tick
		if err := user.Insert(ctx, tx, u); err != nil {
			return err
		}
		switch mode {
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
}

// self is the viewer's own row; UNAUTHORIZED when it is gone.
func (s store) self(ctx context.Context, viewer access.Viewer) (*user.User, error) {
	u, err := user.ByID(ctx, s.d.For(viewer.Tenant()), viewer.UserID())
	if errors.Is(err, user.ErrUnknown) {
		return nil, errUnauthorized
	}
	return u, err
}
