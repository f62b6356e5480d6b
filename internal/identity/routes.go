package identity

import (
	"context"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
	"gatehouse/internal/signin"
	"gatehouse/internal/user"
)

// Routes returns the routes of External Identity. Before a handler runs, the server has
// found the tenant, checked that External Identity is on and, on routes that are not
// anonymous, checked the credential and its rate limit.
func (s *Service) Routes() []httpapi.Route {
	const base = "/public/v1/auth/"
	open := func(path string, h func(context.Context, *httpapi.Call) (any, error)) httpapi.Route {
		status := http.StatusOK
		if path == "register" {
			status = http.StatusCreated
		}
		return httpapi.Route{
			Method: http.MethodPost, Pattern: base + path, Auth: httpapi.Anonymous, Limit: httpapi.PerRule,
			Audit: httpapi.AuditIdentity, BodyCap: httpapi.AuthBodyCap,
			Open: func(ctx context.Context, c *httpapi.Call) (httpapi.Reply, error) {
				data, err := h(ctx, c)
				return reply(status, data, err)
			},
		}
	}
	return []httpapi.Route{
		open("register", s.serveRegister),
		open("verify", s.serveVerify),
		open("resend-verification", s.serveResend),
		{
			Method: http.MethodPost, Pattern: base + "users/{id}/activate", Auth: httpapi.KeyOnly, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditIdentity, BodyCap: httpapi.AuthBodyCap, Handler: s.serveActivate,
		},
		{
			Method: http.MethodPost, Pattern: base + "users/{id}/activation-token", Auth: httpapi.KeyOnly, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditIdentity, BodyCap: httpapi.AuthBodyCap, Handler: s.serveActivationToken,
		},
		open("login", s.serveLogin),
		open("refresh", s.serveRefresh),
		open("logout", s.serveLogout),
		open("request-password-reset", s.serveRequestReset),
		open("password-reset", s.serveReset),
		{
			Method: http.MethodGet, Pattern: base + "me", Auth: httpapi.JWTOnly, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditIdentity, Handler: s.serveMe,
		},
		{
			Method: http.MethodPost, Pattern: base + "password", Auth: httpapi.JWTOnly, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditIdentity, BodyCap: httpapi.AuthBodyCap, Handler: s.servePassword,
		},
	}
}

// reply returns the answer for the result of a use case.
func reply(status int, data any, err error) (httpapi.Reply, error) {
	if err != nil {
		return httpapi.Reply{}, err
	}
	b, err := json.Marshal(data, json.Deterministic(true))
	return httpapi.Reply{Status: status, Data: b}, err
}

// text is a required member of a body; the strict decoder has checked its type.
type text struct{ name, value string }

// read decodes a body strictly. It returns VALIDATION that names all required members that
// are missing or empty.
func read[T any](c *httpapi.Call, required func(T) []text) (T, error) {
	var value T
	if _, err := c.JSON(); err != nil { // checks the content type, and for errors common to all bodies
		return value, err
	}
	body, err := c.Body()
	if err != nil {
		return value, err
	}
	err = c.Compute(func() error {
		value, err = httpapi.DecodeStrict[T](body)
		return err
	})
	if err != nil {
		return value, err
	}
	missing := map[string]string{}
	for _, t := range required(value) {
		if t.value == "" {
			missing[t.name] = "is required"
		}
	}
	if len(missing) > 0 {
		return value, fault.Fields("required members are missing", missing)
	}
	return value, nil
}

type tokenBody struct {
	Token string `json:"token"`
}

func (b tokenBody) required() []text { return []text{{"token", b.Token}} }

type emailBody struct {
	Email string `json:"email"`
}

func (b emailBody) required() []text { return []text{{"email", strings.TrimSpace(b.Email)}} }

type activateBody struct {
	ActivationToken string `json:"activationToken"`
}

func (b activateBody) required() []text { return []text{{"activationToken", b.ActivationToken}} }

type loginBody struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

func (b loginBody) required() []text {
	return []text{{"email", strings.TrimSpace(b.Email)}, {"password", b.Password}}
}

type refreshBody struct {
	RefreshToken string `json:"refreshToken"`
}

func (b refreshBody) required() []text { return []text{{"refreshToken", b.RefreshToken}} }

type resetBody struct {
	Token       string `json:"token"`
	NewPassword string `json:"newPassword"`
}

func (b resetBody) required() []text {
	return []text{{"token", b.Token}, {"newPassword", b.NewPassword}}
}

type passwordBody struct {
	CurrentPassword string `json:"currentPassword"`
	NewPassword     string `json:"newPassword"`
}

func (b passwordBody) required() []text {
	return []text{{"currentPassword", b.CurrentPassword}, {"newPassword", b.NewPassword}}
}

func (s *Service) serveRegister(ctx context.Context, c *httpapi.Call) (any, error) {
	limits := limitsOf(c)
	perAddress := s.limits.OfAddress(c, "register", perHour(limits.RegisterPerIPPerHour))
	perTenant := s.limits.OfTenant(c, "register", perHour(limits.RegisterPerTenantPerHour))
	if !c.Config.Tenant.Settings.ExternalIdentity.OpenRegistration {
		s.limits.Show(c, perAddress)
		return nil, errClosed
	}
	if err := s.limits.Peek(c, perTenant); err != nil {
		return nil, err
	}
	if err := s.limits.Take(c, perAddress); err != nil {
		return nil, err
	}
	body, err := c.JSON()
	if err != nil {
		return nil, err
	}
	r, err := readRegistration(body, c.Config.Schema.User)
	if err != nil {
		return nil, err
	}
	if err := s.limits.Take(c, perTenant); err != nil {
		return nil, err
	}
	return s.register(ctx, c.Config, r)
}

func (s *Service) serveVerify(ctx context.Context, c *httpapi.Call) (any, error) {
	if err := s.limits.Take(c, s.limits.OfAddress(c, "verify", perMinute(limitsOf(c).VerifyPerIPPerMinute))); err != nil {
		return nil, err
	}
	body, err := read(c, tokenBody.required)
	if err != nil {
		return nil, err
	}
	return s.verify(ctx, c.Config, body.Token)
}

func (s *Service) serveActivate(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if !c.Viewer.May(access.ManageExternalUsers) {
		return httpapi.Reply{}, fault.New(fault.Forbidden, "activating external users needs the permission %s", access.ManageExternalUsers)
	}
	body, err := read(c.Call, activateBody.required)
	if err != nil {
		return httpapi.Reply{}, err
	}
	data, err := s.activate(ctx, c.Config, user.ID(c.Params.Get("id")), body.ActivationToken)
	return reply(http.StatusOK, data, err)
}

// serveActivationToken takes no body: the path names the user.
func (s *Service) serveActivationToken(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if !c.Viewer.May(access.ManageExternalUsers) {
		return httpapi.Reply{}, fault.New(fault.Forbidden, "activating external users needs the permission %s", access.ManageExternalUsers)
	}
	data, err := s.newActivation(ctx, c.Config, user.ID(c.Params.Get("id")))
	return reply(http.StatusOK, data, err)
}

func (s *Service) serveLogin(ctx context.Context, c *httpapi.Call) (any, error) {
	if err := s.limits.Take(c, s.limits.OfAddress(c, "login", perMinute(limitsOf(c).LoginPerIPPerMinute))); err != nil {
		return nil, err
	}
	body, err := read(c, loginBody.required)
	if err != nil {
		return nil, err
	}
	g := signin.Guess{Email: body.Email}
	if g.Epoch, err = s.epochOf(ctx, c.Config.Tenant.ID, body.Email); err != nil {
		return nil, err
	}
	leave, err := s.limits.Admit(ctx, c, s.hasher, g)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.login(ctx, c.Config, body.Email, body.Password)
}

// servePassword changes the password of the user of the access token. An attempt at the
// current password is charged to the same budgets as a login.
func (s *Service) servePassword(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.limits.Take(c.Call, s.limits.OfAddress(c.Call, "login", perMinute(limitsOf(c.Call).LoginPerIPPerMinute))); err != nil {
		return httpapi.Reply{}, err
	}
	body, err := read(c.Call, passwordBody.required)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := checkNewPassword(body.NewPassword); err != nil {
		return httpapi.Reply{}, err
	}
	chain, err := s.chainOf(ctx, c.Config, httpapi.Bearer(c.Request.Header))
	if err != nil {
		return httpapi.Reply{}, err
	}
	g := signin.Guess{Email: c.Viewer.Email()}
	if g.Epoch, err = s.epochOf(ctx, c.Config.Tenant.ID, g.Email); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.limits.Admit(ctx, c.Call, s.hasher, g)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	err = s.changePassword(ctx, c.Config, grant{userID: c.Viewer.UserID(), chainID: chain}, body.CurrentPassword, body.NewPassword)
	return reply(http.StatusOK, success{true}, err)
}

// ofToken returns the budget of a refresh token.
func (s *Service) ofToken(c *httpapi.Call, token string) signin.Budget {
	return s.limits.Of(c, "refresh", string(secret.Hash(token)), perMinute(limitsOf(c).RefreshPerTokenPerMinute))
}

// ofSession returns the budget of a session. Each rotation adds a row that is kept as long
// as the session, and makes a token with a budget of its own, so a caller that always
// presents the newest token never reaches the limit of a token.
func (s *Service) ofSession(c *httpapi.Call, chainID string) signin.Budget {
	return s.limits.Of(c, "refresh/session", chainID, perMinute(limitsOf(c).RefreshPerTokenPerMinute))
}

func (s *Service) serveRefresh(ctx context.Context, c *httpapi.Call) (any, error) {
	body, err := read(c, refreshBody.required)
	if err != nil {
		return nil, err
	}
	if err := s.limits.Take(c, s.ofToken(c, body.RefreshToken)); err != nil {
		return nil, err
	}
	return s.refresh(ctx, c.Config, body.RefreshToken, sessionLimit{
		check: func(chainID string) error { return s.limits.Peek(c, s.ofSession(c, chainID)) },
		count: func(chainID string) { s.limits.Charge(c, s.ofSession(c, chainID)) },
	})
}

// serveLogout answers 200 for every token. It has no limit of its own; its headers show the
// token's limit at refresh.
func (s *Service) serveLogout(ctx context.Context, c *httpapi.Call) (any, error) {
	body, err := read(c, refreshBody.required)
	if err != nil {
		return nil, err
	}
	s.limits.Show(c, s.ofToken(c, body.RefreshToken))
	return success{true}, s.logout(ctx, c.Config, body.RefreshToken)
}

func (s *Service) serveResend(_ context.Context, c *httpapi.Call) (any, error) {
	return s.requestMail(c, "resend", s.resend)
}

func (s *Service) serveRequestReset(_ context.Context, c *httpapi.Call) (any, error) {
	return s.requestMail(c, "reset", s.requestReset)
}

// requestMail answers 200 whether or not a mail is sent. do must only enqueue work that
// runs after the answer.
func (s *Service) requestMail(c *httpapi.Call, use string, do func(cfg *access.Config, email string) error) (any, error) {
	body, err := read(c, emailBody.required)
	if err != nil {
		return nil, err
	}
	limits := limitsOf(c)
	err = s.limits.Take(c, s.limits.OfEmail(c, use, body.Email, perHour(limits.ResetPerEmailPerHour)),
		s.limits.OfTenant(c, use, perHour(limits.ResetPerTenantPerHour)))
	if err != nil {
		return nil, err
	}
	return success{true}, do(c.Config, body.Email)
}

func (s *Service) serveReset(ctx context.Context, c *httpapi.Call) (any, error) {
	if err := s.limits.Take(c, s.limits.OfAddress(c, "password-reset", perMinute(limitsOf(c).PasswordResetPerIPPerMinute))); err != nil {
		return nil, err
	}
	body, err := read(c, resetBody.required)
	if err != nil {
		return nil, err
	}
	return success{true}, s.reset(ctx, c.Config, body.Token, body.NewPassword)
}

func (s *Service) serveMe(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	data, err := s.me(ctx, c.Viewer)
	return reply(http.StatusOK, data, err)
}
