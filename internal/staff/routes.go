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
	"gatehouse/internal/user"
)

// base is what the paths of the routes begin with.
const base = "/admin/v1/"

// Routes returns the routes of the sign-in. Before a handler runs, the surface has checked
// that the request comes from a page of this host.
func (s *Service) Routes() []httpapi.Route {
	return []httpapi.Route{
		{
			Method: http.MethodPost, Pattern: base + "session", Auth: httpapi.Anonymous, Limit: httpapi.PerRule,
			Audit: httpapi.AuditSignIn, BodyCap: httpapi.AuthBodyCap, Takes: SignIn{}, Gives: Session{}, Open: s.serveSignIn,
		},
		{
			Method: http.MethodGet, Pattern: base + "session", Auth: httpapi.Staff, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditSignIn, Needs: httpapi.BeforeFactor, Gives: Session{}, Handler: s.serveSession,
		},
		{
			Method: http.MethodDelete, Pattern: base + "session", Auth: httpapi.Staff, Limit: httpapi.PerCredential,
			Audit: httpapi.AuditSignIn, Needs: httpapi.BeforeFactor, Gives: Done{}, Handler: s.serveSignOut,
		},
	}
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
	body, err := httpapi.Decode[SignIn](c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := required(map[string]string{"email": body.Email, "password": body.Password}); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.hasher.Admit(ctx, c.Config.Tenant.ID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	b, err := s.signIn(ctx, c, body.Email, body.Password)
	if err != nil {
		return httpapi.Reply{}, err
	}
	data, err := s.describe(ctx, c.Config, b.session, b.viewer)
	answer, err := reply(data, err)
	answer.Header = setCookie(c, b.token)
	return answer, err
}

func (s *Service) serveSession(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	return reply(s.describe(ctx, c.Config, c.Session, c.Viewer))
}

func (s *Service) serveSignOut(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	if err := s.signOut(ctx, c.Config.Tenant.ID, c.Session.ID); err != nil {
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
	for _, permission := range access.SystemPermissions {
		if w.May(permission) {
			d.System = append(d.System, permission)
		}
	}
	return d, nil
}
