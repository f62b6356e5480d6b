package identity

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/secret"
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
	if value, err = httpapi.DecodeStrict[T](body); err != nil {
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
	perAddress := ofAddress(c, "register", limits.RegisterPerIPPerHour, time.Hour)
	perTenant := ofTenant(c, "register", limits.RegisterPerTenantPerHour, time.Hour)
	if !c.Config.Tenant.Settings.ExternalIdentity.OpenRegistration {
		showLimit(c, s.limiter.Peek(perAddress.key, perAddress.limit, perAddress.window))
		return nil, errClosed
	}
	if err := s.peek(c, perTenant); err != nil {
		return nil, err
	}
	if err := s.take(c, perAddress); err != nil {
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
	if err := s.take(c, perTenant); err != nil {
		return nil, err
	}
	return s.register(ctx, c.Config, r)
}

func (s *Service) serveVerify(ctx context.Context, c *httpapi.Call) (any, error) {
	if err := s.take(c, ofAddress(c, "verify", limitsOf(c).VerifyPerIPPerMinute, time.Minute)); err != nil {
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
	if err := s.take(c, ofAddress(c, "login", limitsOf(c).LoginPerIPPerMinute, time.Minute)); err != nil {
		return nil, err
	}
	body, err := read(c, loginBody.required)
	if err != nil {
		return nil, err
	}
	g := loginKey{email: body.Email}
	if g.epoch, err = s.epochOf(ctx, c.Config.Tenant.ID, body.Email); err != nil {
		return nil, err
	}
	leave, err := s.admitLogin(ctx, c, g)
	if err != nil {
		return nil, err
	}
	defer leave()
	return s.login(ctx, c.Config, body.Email, body.Password)
}

// admitLogin waits for a place to check a password and then charges the attempt to its
// e-mail address: attempts that wait, and may be refused with OVERLOADED, must not block
// an account. leave must be called afterwards.
func (s *Service) admitLogin(ctx context.Context, c *httpapi.Call, g loginKey) (leave func(), err error) {
	if err := s.blocked(c, g); err != nil {
		return nil, err
	}
	leave, err = s.admit(ctx, c.Config.Tenant.ID)
	if err != nil {
		return nil, err
	}
	if err := s.takeLogin(c, g); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// servePassword changes the password of the user of the access token. An attempt at the
// current password is charged to the same budgets as a login.
func (s *Service) servePassword(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.take(c.Call, ofAddress(c.Call, "login", limitsOf(c.Call).LoginPerIPPerMinute, time.Minute)); err != nil {
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
	g := loginKey{email: c.Viewer.Email()}
	if g.epoch, err = s.epochOf(ctx, c.Config.Tenant.ID, g.email); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.admitLogin(ctx, c.Call, g)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	err = s.changePassword(ctx, c.Config, grant{userID: c.Viewer.UserID(), chainID: chain}, body.CurrentPassword, body.NewPassword)
	return reply(http.StatusOK, success{true}, err)
}

// ofToken returns the budget of a refresh token.
func ofToken(c *httpapi.Call, token string) budget {
	return budgetOf(c, "refresh", string(secret.Hash(token)), limitsOf(c).RefreshPerTokenPerMinute, time.Minute)
}

// ofSession returns the budget of a session. Each rotation adds a row that is kept as long
// as the session, and makes a token with a budget of its own, so a caller that always
// presents the newest token never reaches the limit of a token.
func ofSession(c *httpapi.Call, chainID string) budget {
	return budgetOf(c, "refresh/session", chainID, limitsOf(c).RefreshPerTokenPerMinute, time.Minute)
}

func (s *Service) serveRefresh(ctx context.Context, c *httpapi.Call) (any, error) {
	body, err := read(c, refreshBody.required)
	if err != nil {
		return nil, err
	}
	if err := s.take(c, ofToken(c, body.RefreshToken)); err != nil {
		return nil, err
	}
	return s.refresh(ctx, c.Config, body.RefreshToken, sessionLimit{
		check: func(chainID string) error { return s.peek(c, ofSession(c, chainID)) },
		count: func(chainID string) { showLimit(c, s.charge(c, ofSession(c, chainID))) },
	})
}

// serveLogout answers 200 for every token. It has no limit of its own; its headers show the
// token's limit at refresh.
func (s *Service) serveLogout(ctx context.Context, c *httpapi.Call) (any, error) {
	body, err := read(c, refreshBody.required)
	if err != nil {
		return nil, err
	}
	b := ofToken(c, body.RefreshToken)
	showLimit(c, s.limiter.Peek(b.key, b.limit, b.window))
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
	err = s.take(c, ofEmail(c, use, body.Email, limits.ResetPerEmailPerHour, time.Hour),
		ofTenant(c, use, limits.ResetPerTenantPerHour, time.Hour))
	if err != nil {
		return nil, err
	}
	return success{true}, do(c.Config, body.Email)
}

func (s *Service) serveReset(ctx context.Context, c *httpapi.Call) (any, error) {
	if err := s.take(c, ofAddress(c, "password-reset", limitsOf(c).PasswordResetPerIPPerMinute, time.Minute)); err != nil {
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
