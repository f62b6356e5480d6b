package identity

import (
	"context"
	"errors"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

var (
	errTokenInvalid = fault.New(fault.TokenInvalid, "the token is unknown, was used already or is for something else")
	errTokenExpired = fault.New(fault.TokenExpired, "the token is too old; ask for a new one")
)

// activated is the answer to verify and activate.
type activated struct {
	UserID user.ID `json:"userId"`
	Status string  `json:"status"`
}

// verify activates the user whom a verification mail was sent to, and sends
// the welcome mail where the tenant wants one. An activation token does nothing
// here, but an old one is told to be old.
func (s *Service) verify(ctx context.Context, cfg *access.Config, token string) (*activated, error) {
	var w welcome
	if cfg.Tenant.Settings.ExternalIdentity.WelcomeEmail {
		w = welcome{s.mailer, func(acc user.Account) mail.Message { return compose(cfg.Tenant, mail.Welcome, acc, "", "") }}
	}
	id, err := s.store.activate(ctx, cfg.Tenant.ID, secret.Hash(token), forVerify, "", w)
	if err != nil {
		return nil, err
	}
	if w.compose != nil {
		s.mailer.Wake()
	}
	return &activated{UserID: id, Status: "active"}, nil
}

// activate activates the user of an id with the token that their registration
// answered. Whether the caller may is for the route to ask. A token of somebody
// else is not spent by it.
func (s *Service) activate(ctx context.Context, cfg *access.Config, userID user.ID, token string) (*activated, error) {
	id, err := s.store.activate(ctx, cfg.Tenant.ID, secret.Hash(token), forActivate, userID, welcome{})
	if err != nil {
		return nil, err
	}
	return &activated{UserID: id, Status: "active"}, nil
}

// offered is the answer to who asks for another activation token.
type offered struct {
	ActivationToken string `json:"activationToken"`
}

// newActivation makes another activation token for a user who waits, in mode
// app_managed; those they have hold until they end. NOT_FOUND when there is no
// external user of that id; CONFLICT in another mode, or when they do not wait.
func (s *Service) newActivation(ctx context.Context, cfg *access.Config, userID user.ID) (*offered, error) {
	if mode := cfg.Tenant.Settings.ExternalIdentity.ActivationMode; mode != byApp {
		return nil, fault.New(fault.Conflict, "activation tokens are for the activation mode app_managed; this tenant's is %s", mode)
	}
	acc, err := s.store.byID(ctx, cfg.Tenant.ID, userID)
	switch {
	case errors.Is(err, user.ErrUnknown), err == nil && acc.Type != user.External:
		return nil, fault.New(fault.NotFound, "there is no external user of this id")
	case err != nil:
		return nil, err
	}
	if err := waits(acc); err != nil {
		return nil, err
	}
	token := newSecret()
	if err := s.store.putActivation(ctx, cfg.Tenant.ID, acc, secret.Hash(token)); err != nil {
		return nil, err
	}
	return &offered{token}, nil
}

// waits is CONFLICT for a user who waits for no activation, being active or
// deactivated.
func waits(acc user.Account) error {
	switch {
	case acc.Active:
		return fault.New(fault.Conflict, "the user %s is active already", acc.Email)
	case !acc.Pending:
		return fault.New(fault.Conflict, "the user %s was deactivated; reactivate them instead", acc.Email)
	}
	return nil
}

// resend sends the verification mail again, after the answer, to a user who
// waits for it: the same conditions and silence as for a password reset. Only
// in mode svc_email, for elsewhere it is not a mail that activates.
func (s *Service) resend(cfg *access.Config, email string) error {
	return s.later(cfg.Tenant.ID, "verification", func(ctx context.Context) error {
		acc, err := s.store.byEmail(ctx, cfg.Tenant.ID, email)
		if errors.Is(err, user.ErrUnknown) {
			return nil
		}
		if err != nil {
			return err
		}
		if acc.Type != user.External || !acc.Pending || cfg.Tenant.Settings.ExternalIdentity.ActivationMode != byEmail {
			return nil
		}
		return s.sendVerification(ctx, cfg.Tenant, acc)
	})
}

func (s *Service) sendVerification(ctx context.Context, t *tenant.Tenant, acc user.Account) error {
	token := newSecret()
	err := s.store.offer(ctx, t.ID, acc, forVerify, secret.Hash(token), s.mailer, compose(t, mail.Verification, acc, verifyPage, token))
	if err == nil {
		s.mailer.Wake()
	}
	return err
}

// Resend sends the verification mail again to a user who is not active yet, at
// an operator's word. NOT_FOUND when there is no external user with the e-mail
// address; CONFLICT when they wait for no activation, being active or
// deactivated, and in mode app_managed, where it is the app that activates.
func (s *Service) Resend(ctx context.Context, tenantID tenant.ID, email string) error {
	cfg, err := s.dir.Current(ctx, tenantID)
	if err != nil {
		return err
	}
	acc, err := s.store.byEmail(ctx, tenantID, email)
	switch {
	case errors.Is(err, user.ErrUnknown), err == nil && acc.Type != user.External:
		return fault.New(fault.NotFound, "there is no external user with the e-mail address %s", email)
	case err != nil:
		return err
	}
	if err := waits(acc); err != nil {
		return err
	}
	if cfg.Tenant.Settings.ExternalIdentity.ActivationMode == byApp {
		return fault.New(fault.Conflict, "no mail activates in the activation mode app_managed: your app gets another token with "+
			"POST /public/v1/auth/users/%s/activation-token, or gatehouse user reactivate activates", acc.ID)
	}
	return s.sendVerification(ctx, cfg.Tenant, acc)
}
