package staff

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"gatehouse/internal/access"
	"gatehouse/internal/credential"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/signin"
	"gatehouse/internal/user"
)

// base is what the paths of the routes begin with.
const base = "/admin/v1/"

// Routes returns the routes of the sign-in and of one's own account. Before a handler runs,
// the surface has checked that the request comes from a page of this host.
func (s *Service) Routes() []httpapi.Route {
	return []httpapi.Route{
		open("session", SignIn{}, Session{}, s.serveSignIn),
		open("password/forgot", Forgot{}, Done{}, s.serveForgot),
		open("password/reset", Reset{}, Done{}, s.serveReset),

		staff("GET session", httpapi.BeforeFactor, nil, Session{}, s.serveSession),
		staff("DELETE session", httpapi.BeforeFactor, nil, Done{}, s.serveSignOut),
		staff("POST session/code", httpapi.BeforeFactor, Code{}, Session{}, s.serveCode),
		staff("POST session/acting", httpapi.Needs{access.LoginAs}, Acting{}, Session{}, s.serveAct),
		staff("DELETE session/acting", httpapi.AnyStaff, nil, Session{}, s.serveStopActing),

		staff("GET account", httpapi.AnyStaff, nil, Account{}, own(s.serveAccount)),
		staff("POST account/password", httpapi.AnyStaff, NewPassword{}, Done{}, own(s.servePassword)),
		staff("POST account/factor", httpapi.BeforeFactor, Password{}, Enrolment{}, own(s.serveEnrol)),
		staff("POST account/factor/confirm", httpapi.BeforeFactor, Code{}, Recovery{}, own(s.serveConfirm)),
		staff("DELETE account/factor", httpapi.AnyStaff, Password{}, Done{}, own(s.serveDropFactor)),
		staff("GET account/sessions", httpapi.AnyStaff, nil, []SessionInfo{}, own(s.serveOwnSessions)),
		staff("DELETE account/sessions/{id}", httpapi.AnyStaff, nil, Deleted{}, own(s.serveEndOwn)),

		paged(staff("GET sessions", httpapi.Needs{access.ManageUsers}, nil, []SessionInfo{}, own(s.serveSessions))),
		staff("DELETE sessions/{id}", httpapi.Needs{access.ManageUsers}, nil, Deleted{}, own(s.serveEndAny)),
	}
}

// open returns a POST route that takes no session.
func open(path string, takes, gives any, h func(context.Context, *httpapi.Call) (httpapi.Reply, error)) httpapi.Route {
	return httpapi.Route{
		Method: http.MethodPost, Pattern: base + path, Auth: httpapi.Anonymous, Limit: httpapi.PerRule,
		Audit: httpapi.AuditSignIn, BodyCap: httpapi.AuthBodyCap, Takes: takes, Gives: gives, Open: h,
	}
}

// staff returns a route of a session. at is the method and the path.
func staff(at string, needs httpapi.Needs, takes, gives any, h func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) httpapi.Route {
	method, path, _ := strings.Cut(at, " ")
	r := httpapi.Route{
		Method: method, Pattern: base + path, Auth: httpapi.Staff, Limit: httpapi.PerCredential,
		Audit: httpapi.AuditSignIn, Needs: needs, Takes: takes, Gives: gives, Handler: h,
	}
	if takes != nil {
		r.BodyCap = httpapi.AuthBodyCap
	}
	return r
}

func paged(r httpapi.Route) httpapi.Route {
	r.Query = []string{"limit", "cursor"}
	return r
}

// SignIn is the body of a sign-in.
type SignIn struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// Session says who is signed in, and what they may do.
type Session struct {
	ID         string           `json:"id"`
	Stage      credential.Stage `json:"stage"`
	User       Person           `json:"user"`     // who signed in
	ActingAs   *Person          `json:"actingAs"` // null unless they act as another user
	Owner      bool             `json:"owner"`    // the acting user owns the tenant
	System     []string         `json:"system"`   // the acting user's system permissions
	Tenant     TenantInfo       `json:"tenant"`
	SignedInAt time.Time        `json:"signedInAt"`
	ExpiresAt  time.Time        `json:"expiresAt"`
}

// Person is a user as others may see them.
type Person struct {
	ID    user.ID `json:"id"`
	Email string  `json:"email"`
	Name  string  `json:"name"`
}

// TenantInfo is what the pages show of the tenant.
type TenantInfo struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	BaseURL     string `json:"baseUrl"`
}

// Done is the answer of routes that have nothing to tell.
type Done struct {
	Success bool `json:"success"`
}

// reply returns the answer for the result of a use case.
func reply(data any, err error) (httpapi.Reply, error) {
	if err != nil {
		return httpapi.Reply{}, err
	}
	b, err := json.Marshal(data, json.Deterministic(true))
	return httpapi.Reply{Data: b}, err
}

// required returns VALIDATION that names the members, by name and value, that are empty.
func required(members map[string]string) error {
	missing := map[string]string{}
	for name, value := range members {
		if strings.TrimSpace(value) == "" {
			missing[name] = "is required"
		}
	}
	if len(missing) > 0 {
		return fault.Fields("required members are missing", missing)
	}
	return nil
}

func (s *Service) serveSignIn(ctx context.Context, c *httpapi.Call) (httpapi.Reply, error) {
	if err := s.takeAddress(c); err != nil {
		return httpapi.Reply{}, err
	}
	body, err := httpapi.Decode[SignIn](c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"email": body.Email, "password": body.Password}); err != nil {
		return httpapi.Reply{}, err
	}
	acc, err := s.store.byEmail(ctx, c.Config.Tenant.ID, body.Email)
	if err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.limits.Admit(ctx, c, s.hasher, signin.Guess{Email: body.Email, Epoch: acc.Epoch})
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	b, err := s.signIn(ctx, c, body)
	if err != nil {
		return httpapi.Reply{}, err
	}
	c.Identify(b.session.UserID)
	data, err := s.describe(ctx, c.Config, b.session, b.viewer)
	answer, err := reply(data, err)
	answer.Header = setCookie(c, b.token)
	return answer, err
}

func (s *Service) serveSession(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return reply(s.describe(ctx, c.Config, c.Session, c.Viewer))
}

func (s *Service) serveSignOut(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.store.end(ctx, c.Config.Tenant.ID, c.Session.ID, c.Session.UserID); err != nil && fault.CodeOf(err) != fault.NotFound {
		return httpapi.Reply{}, err
	}
	answer, err := reply(Done{Success: true}, nil)
	answer.Header = dropCookie()
	return answer, err
}

// describe returns what the pages know of a session.
func (s *Service) describe(ctx context.Context, cfg *access.Config, session *httpapi.StaffSession, w access.Viewer) (*Session, error) {
	acc, err := s.store.account(ctx, cfg.Tenant.ID, session.UserID)
	if err != nil {
		return nil, err
	}
	d := &Session{
		ID: session.ID, Stage: session.Stage, User: Person{acc.ID, acc.Email, acc.Name},
		Tenant: TenantInfo{ID: string(cfg.Tenant.ID), DisplayName: cfg.Tenant.DisplayName, BaseURL: cfg.Tenant.BaseURL},
		Owner:  w.TenantOwner(), System: []string{}, SignedInAt: session.SignedInAt, ExpiresAt: session.ExpiresAt,
	}
	if session.Acting() {
		other, err := s.store.account(ctx, cfg.Tenant.ID, w.UserID())
		if err != nil {
			return nil, err
		}
		d.ActingAs = &Person{other.ID, other.Email, other.Name}
	}
	for _, permission := range access.SystemPermissions {
		if w.May(permission) {
			d.System = append(d.System, permission)
		}
	}
	return d, nil
}
