// Package admin serves the configuration of a tenant to its staff: objects with their
// versions, plans and changes, the manifest, the change history, users, entity types
// with their counts, waiting mails and e-mail templates (docs/admin-api.md).
//
// What a configuration is, and who may change what, is in package config (contract D13).
// A change is planned and made there; this package decodes requests, bounds what they
// take, goes on with a change that takes long, and says how far it has come.
package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/clock"
	"gatehouse/internal/config"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/ratelimit"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Manifests is the text form of configurations.
type Manifests interface {
	// Read reads a manifest; getenv returns the values of its variables. The error is a
	// *config.Problems with lines when it is no document of values.
	Read(src []byte, getenv func(string) string) (Manifest, error)
	Render(root *config.Value) ([]byte, error)
}

// Manifest is one that was read.
type Manifest interface {
	Spec() *config.Spec
	// Line returns the line of a path, 0 for none.
	Line(path string) int
	// Located returns an error whose *config.Problems have lines of the manifest.
	Located(err error) error
}

// Letters are the mails of External Identity.
type Letters interface {
	// Resend sends the verification mail again; see identity.Service.Resend.
	Resend(ctx context.Context, tenantID tenant.ID, email string) error
	// Sample returns a mail of a template with invented values, as it would be sent to a
	// user.
	Sample(t *tenant.Tenant, name string, form tenant.EmailTemplate, to user.Account) mail.Message
}

// Service serves all tenants' staff. It may be used by several goroutines at once.
type Service struct {
	store     store
	directory *access.Directory
	clock     clock.Clock
	manifests Manifests
	letters   Letters
	limiter   *ratelimit.Limiter
	cores     *admission.Cores
	cursors   httpapi.Cursors
	emit      func(event string, fields map[string]any)
	options   config.Options // of every plan and change

	planning  *admission.Gate
	searching *admission.Gate
	promoting *admission.Gate // a place for each change that goes on beside requests
	base      context.Context
	stop      context.CancelFunc
	works     sync.WaitGroup
	patience  time.Duration
}

// planners bounds the plans and changes that are worked out: one at a time, in turns by
// tenant, because each takes a core for its whole time and, on SQLite, the only writer.
var planners = admission.Limits{Running: 1, PerKey: 1, Waiting: 64, WaitingPerKey: 4, MaxWait: 15 * time.Second}

// searches bounds the readings of the history and the searches for users: of one tenant one
// at a time, so that most of the cores stay for short requests.
var searches = admission.Limits{Running: 4, PerKey: 1, Waiting: 64, WaitingPerKey: 8, MaxWait: 5 * time.Second}

// works bounds the changes that go on beside requests. Nobody waits for a place.
var works = admission.Limits{Running: 16, PerKey: 4, Waiting: 1, WaitingPerKey: 1, MaxWait: time.Millisecond}

// patience is how long a request waits for its change before it is told of the work.
const patience = 2 * time.Second

// newCursors makes the cursors of the lists; the files of the storage know no HTTP.
func newCursors(key []byte) httpapi.Cursors { return httpapi.NewCursors(key) }

// Close ends the changes that go on beside requests. What they prepared stays, for whoever
// sends them again.
func (s *Service) Close(ctx context.Context) error {
	s.stop()
	done := make(chan struct{})
	go func() { s.works.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Bounds of bodies: those of changes may have a manifest of 2 MiB as a JSON text.
const (
	changeBodyCap   = 5 << 20
	templateBodyCap = 1 << 20
	maxManifest     = 2 << 20
	// treeFactor is how many times its length the tree of a change takes, about. A change of
	// changeBodyCap has room in its tenant's share.
	treeFactor = 5
)

// anyAdmin is for whoever may change something of the configuration.
var anyAdmin = httpapi.Needs(config.AdminPermissions)

// AdminRoutes returns the routes of the configuration.
func (s *Service) AdminRoutes() []httpapi.Route {
	route := func(method, pattern string, needs httpapi.Needs, r httpapi.Route) httpapi.Route {
		r.Method, r.Pattern, r.Needs = method, "/admin/v1/"+pattern, needs
		r.Auth, r.Limit = httpapi.Staff, httpapi.PerCredential
		if r.Audit == 0 {
			r.Audit = httpapi.AuditAdmin
		}
		return r
	}
	people := httpapi.Needs{access.ManageUsers, access.ManageExternalUsers}
	letters := httpapi.Needs{access.TenantSettings, access.ManageUsers}
	get, post := http.MethodGet, http.MethodPost
	return []httpapi.Route{
		route(get, "config/kinds", anyAdmin, httpapi.Route{Gives: []ConfigKind{}, Handler: s.kinds}),
		route(get, "config/manifest", anyAdmin, httpapi.Route{Gives: ManifestText{}, Handler: s.manifest}),
		route(get, "config/work", anyAdmin, httpapi.Route{Gives: ConfigWork{}, Handler: s.work}),
		route(post, "config/plan", append(anyAdmin, access.ManageExternalUsers), httpapi.Route{
			BodyCap: changeBodyCap, Audit: httpapi.AuditSignIn, Takes: ConfigChange{}, Gives: ConfigPlan{}, Handler: s.plan,
		}),
		route(post, "config/apply", append(anyAdmin, access.ManageExternalUsers), httpapi.Route{
			BodyCap: changeBodyCap, Audit: httpapi.AuditSignIn, Takes: ConfigChange{}, Gives: ConfigApplied{}, Handler: s.apply,
		}),
		route(get, "config/{kind}", anyAdmin, httpapi.Route{Gives: []ConfigObject{}, Query: []string{"search", "cursor", "limit"}, Handler: s.objects}),
		route(get, "config/{kind}/{name}", anyAdmin, httpapi.Route{Gives: ConfigObject{}, Handler: s.object}),
		route(get, "history", anyAdmin, httpapi.Route{Gives: []HistoryEntry{}, Query: []string{"kind", "name", "who", "cursor", "limit"}, Handler: s.history}),
		route(get, "entities", anyAdmin, httpapi.Route{Gives: []EntityLine{}, Handler: s.entities}),
		route(get, "users", people, httpapi.Route{Gives: []UserLine{}, Query: []string{"search", "type", "active", "cursor", "limit"}, Handler: s.users}),
		route(post, "users/{id}/resend", people, httpapi.Route{Gives: Sent{}, Handler: s.resend}),
		route(get, "mails", letters, httpapi.Route{Gives: []WaitingMail{}, GivesMeta: WaitingMails{}, Handler: s.mails}),
		route(post, "templates/preview", letters, httpapi.Route{BodyCap: templateBodyCap, Takes: TemplateDraft{}, Gives: TemplatePreview{}, Handler: s.preview}),
		route(post, "templates/test", httpapi.Needs{access.TenantSettings}, httpapi.Route{
			BodyCap: templateBodyCap, Takes: TemplateDraft{}, Gives: Sent{}, Handler: s.testMail,
		}),
	}
}

// author is who makes the changes of a request.
func author(c *httpapi.Authed) config.Author {
	by := config.By(c.Viewer, c.Session.Actor())
	if c.Session.Acting() {
		by = by.And(c.Session.Real)
	}
	return by
}

// full reports whether a viewer holds every permission that the whole configuration needs.
func full(w access.Viewer) error {
	for _, permission := range config.AdminPermissions {
		if !w.May(permission) {
			return fault.New(fault.Forbidden, "the manifest is the whole configuration: it needs every one of its permissions, and you lack %s", permission).
				With("needs", config.AdminPermissions)
		}
	}
	return nil
}
