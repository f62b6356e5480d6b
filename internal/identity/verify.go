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

// verify activates the user who received a verification mail, and sends the welcome mail
// if the tenant's settings require it. It returns TOKEN_INVALID for an activation token,
// or TOKEN_EXPIRED if that has expired.
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

// activate activates a user with the token that the registration returned. The route must
// check that the caller may do so. It returns TOKEN_INVALID, without using the token up,
// if the token belongs to another user.
func (s *Service) activate(ctx context.Context, cfg *access.Config, userID user.ID, token string) (*activated, error) {
	id, err := s.store.activate(ctx, cfg.Tenant.ID, secret.Hash(token), forActivate, userID, welcome{})
	if err != nil {
		return nil, err
	}
	return &activated{UserID: id, Status: "active"}, nil
}

// activationToken is the answer to a request for another activation token.
type activationToken struct {
	ActivationToken string `json:"activationToken"`
}

// newActivation makes another activation token for a pending user, in mode app_managed.
// The user's other tokens stay valid. It returns NOT_FOUND if there is no external user
// with the id, and CONFLICT in another mode or if the user is not pending.
func (s *Service) newActivation(ctx context.Context, cfg *access.Config, userID user.ID) (*activationToken, error) {
	if mode := cfg.Tenant.Settings.ExternalIdentity.ActivationMode; mode != byApp {
		return nil, fault.New(fault.Conflict, "activation tokens are for the activation mode app_managed; this tenant's is %s", mode)
	}
	acc, err := s.store.byID(ctx, cfg.Tenant.ID, userID)
	switch {
	case errors.Is(err, user.ErrUnknown), err == nil && acc.Type != user.External:
		return nil, fault.New(fault.NotFound, "there is no external user with this id")
	case err != nil:
		return nil, err
	}
	if err := checkPending(acc); err != nil {
		return nil, err
	}
	token := newSecret()
	if err := s.store.putActivation(ctx, cfg.Tenant.ID, acc, secret.Hash(token)); err != nil {
		return nil, err
	}
	return &activationToken{token}, nil
}

// checkPending returns CONFLICT for a user who is active or was deactivated.
func checkPending(acc user.Account) error {
	switch {
	case acc.Active:
		return fault.New(fault.Conflict, "the user %s is active already", acc.Email)
	case !acc.Pending:
		return fault.New(fault.Conflict, "the user %s was deactivated; reactivate them instead", acc.Email)
	}
	return nil
}

// resend sends the verification mail again, after the answer, to a pending external user,
// in mode svc_email. Otherwise it sends nothing, and the answer is the same. It returns
// OVERLOADED if too many mails wait to be written.
func (s *Service) resend(cfg *access.Config, email string) error {
	return s.enqueue(cfg.Tenant.ID, "verification", func(ctx context.Context) error {
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
	err := s.store.mailToken(ctx, t.ID, acc, forVerify, secret.Hash(token), s.mailer, compose(t, mail.Verification, acc, verifyPage, token))
	if err == nil {
		s.mailer.Wake()
	}
	return err
}

// Resend sends the verification mail again to a pending user; an operator's command calls
// it. It returns NOT_FOUND if there is no such tenant or no external user with the e-mail
// address, and CONFLICT if the user is active or was deactivated, or in mode app_managed,
// where the app activates users.
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
	if err := checkPending(acc); err != nil {
		return err
	}
	if cfg.Tenant.Settings.ExternalIdentity.ActivationMode == byApp {
		return fault.New(fault.Conflict, "no mail activates in the activation mode app_managed: your app gets another token with "+
			"POST /public/v1/auth/users/%s/activation-token, or gatehouse user reactivate activates", acc.ID)
	}
	return s.sendVerification(ctx, cfg.Tenant, acc)
}
