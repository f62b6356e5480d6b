package staff

import (
	"context"
	"net/url"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/email"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Forgot is the body of a request for a reset mail.
type Forgot struct {
	Email string `json:"email"`
}

// Reset is the body that sets a password with the token of a reset mail.
type Reset struct {
	Token       string `json:"token"`
	NewPassword string `json:"newPassword"`
}

// NewPassword is the body that changes one's own password.
type NewPassword struct {
	CurrentPassword string `json:"currentPassword"`
	NewPassword     string `json:"newPassword"`
}

// serveForgot answers 200 whether or not a mail is sent; what tells them apart runs after
// the answer.
func (s *Service) serveForgot(_ context.Context, c *httpapi.Call) (httpapi.Reply, error) {
	body, err := httpapi.Decode[Forgot](c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"email": body.Email}); err != nil {
		return httpapi.Reply{}, err
	}
	limits := &c.Config.Tenant.Settings.ExternalIdentity.Limits
	err = s.limits.Take(c, s.limits.OfEmail(c, "reset", body.Email, signin.Rate{Limit: limits.ResetPerEmailPerHour, Window: time.Hour}),
		s.limits.OfTenant(c, "reset", signin.Rate{Limit: limits.ResetPerTenantPerHour, Window: time.Hour}))
	if err != nil {
		return httpapi.Reply{}, err
	}
	return reply(Done{true}, s.requestReset(c.Config, body.Email))
}

// requestReset sends a reset mail, after the answer, to a user who exists and is internal
// and active. Otherwise it sends nothing, and the answer is the same. It returns OVERLOADED
// if too many mails wait to be written.
func (s *Service) requestReset(cfg *access.Config, address string) error {
	tenantID := cfg.Tenant.ID
	return s.mails.Do(tenantID, func(ctx context.Context) error {
		acc, err := s.store.byEmail(ctx, tenantID, address)
		if err != nil || acc.Type != user.Internal || !acc.Active {
			return err
		}
		token := newToken()
		if err := s.store.mailReset(ctx, tenantID, acc, secret.Hash(token), s.mailer, resetMail(cfg.Tenant, acc, token)); err != nil {
			return err
		}
		s.mailer.Wake()
		return nil
	}, func(err error) {
		s.emit("staff.mail_failed", map[string]any{"tenant": tenantID, "what": "password reset", "error": err.Error()})
	})
}

// resetPage is the page of the console that takes the token.
const resetPage = "/admin/reset-password"

// resetMail returns the mail with a link. Its address comes from the configuration, never
// from a request.
func resetMail(t *tenant.Tenant, to user.Account, token string) mail.Message {
	form, _ := mail.Default(mail.PasswordReset)
	values := mail.Values{
		Name: to.Name, AppURL: ConsoleURL(t), TenantName: t.DisplayName,
		ResetURL: strings.TrimSuffix(ConsoleURL(t), "/admin") + resetPage + "?token=" + url.QueryEscape(token),
	}
	m := mail.Message{From: signin.Sender(t), To: email.Mailbox(to.Email)}
	form = form.Render(values)
	m.Subject, m.Text, m.HTML = form.Subject, form.Text, form.HTML
	return m
}

// ConsoleURL returns the address of the tenant's console: /admin at the base URL, or at the
// first admin host, with the base URL's scheme and port.
func ConsoleURL(t *tenant.Tenant) string {
	u, err := url.Parse(t.BaseURL)
	if err != nil {
		return t.BaseURL + "/admin"
	}
	if len(t.AdminHosts) > 0 {
		port := u.Port()
		if u.Host = t.AdminHosts[0]; port != "" {
			u.Host += ":" + port
		}
	}
	return u.Scheme + "://" + u.Host + "/admin"
}

func checkNewPassword(password string) error {
	if err := secret.CheckPassword(password); err != nil {
		return fault.Fields("the new password is not valid", map[string]string{"newPassword": err.Error()})
	}
	return nil
}

func (s *Service) serveReset(ctx context.Context, c *httpapi.Call) (httpapi.Reply, error) {
	limit := c.Config.Tenant.Settings.ExternalIdentity.Limits.PasswordResetPerIPPerMinute
	if err := s.limits.Take(c, s.limits.OfAddress(c, "password-reset", signin.Rate{Limit: limit, Window: time.Minute})); err != nil {
		return httpapi.Reply{}, err
	}
	body, err := httpapi.Decode[Reset](c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"token": body.Token, "newPassword": body.NewPassword}); err != nil {
		return httpapi.Reply{}, err
	}
	of, err := s.reset(ctx, c.Config.Tenant.ID, body)
	c.Identify(of)
	return reply(Done{true}, err)
}

// reset uses up a token to set the password of a user, whom it returns, and ends all of
// their sessions.
func (s *Service) reset(ctx context.Context, tenantID tenant.ID, body Reset) (of user.ID, err error) {
	if err := checkNewPassword(body.NewPassword); err != nil {
		return "", err
	}
	hash := secret.Hash(body.Token)
	if err := s.store.checkReset(ctx, tenantID, hash); err != nil { // before the password is hashed
		return "", err
	}
	phc, err := s.hasher.Hash(ctx, tenantID, body.NewPassword)
	if err != nil {
		return "", err
	}
	return s.store.reset(ctx, tenantID, hash, phc)
}

var errCurrentPassword = fault.New(fault.InvalidCredentials, "the current password is wrong")

// confirmed returns the account of a session's user after it has checked their current
// password, charged to the same budgets as a sign-in. It returns INVALID_CREDENTIALS for a
// wrong one. leave must be called if err is nil; until then the caller holds a place to
// hash.
func (s *Service) confirmed(ctx context.Context, c *httpapi.Authed, password string) (acc user.Account, leave func(), err error) {
	if err := s.takeAddress(c.Call); err != nil {
		return acc, nil, err
	}
	acc, err = s.store.account(ctx, c.Config.Tenant.ID, c.Session.UserID)
	if err != nil {
		return acc, nil, err
	}
	leave, err = s.limits.Admit(ctx, c.Call, s.hasher, signin.Guess{Email: acc.Email, Epoch: acc.Epoch})
	if err != nil {
		return acc, nil, err
	}
	right, err := s.hasher.Verify(ctx, c.Config.Tenant.ID, acc.PasswordHash, password)
	if err == nil && !right {
		err = errCurrentPassword
	}
	if err != nil {
		leave()
	}
	return acc, leave, err
}

// takeAddress charges an attempt at a password or code to its address.
func (s *Service) takeAddress(c *httpapi.Call) error {
	limit := c.Config.Tenant.Settings.ExternalIdentity.Limits.LoginPerIPPerMinute
	return s.limits.Take(c, s.limits.OfAddress(c, "login", signin.Rate{Limit: limit, Window: time.Minute}))
}

func (s *Service) servePassword(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	body, err := httpapi.Decode[NewPassword](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"currentPassword": body.CurrentPassword, "newPassword": body.NewPassword}); err != nil {
		return httpapi.Reply{}, err
	}
	if err := checkNewPassword(body.NewPassword); err != nil {
		return httpapi.Reply{}, err
	}
	acc, leave, err := s.confirmed(ctx, c, body.CurrentPassword)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	phc, err := s.hasher.HashAdmitted(ctx, c.Config.Tenant.ID, body.NewPassword)
	if err != nil {
		return httpapi.Reply{}, err
	}
	ok, err := s.store.changePassword(ctx, c.Config.Tenant.ID, acc, c.Session.ID, phc)
	if err == nil && !ok { // the account changed while the password was checked
		err = errCurrentPassword
	}
	return reply(Done{true}, err)
}
