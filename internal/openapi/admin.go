package openapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// Keys knows the users of API keys.
type Keys interface {
	// UserOf returns the user whom a key acts for, NOT_FOUND when there is no such
	// key.
	UserOf(ctx context.Context, of tenant.ID, keyID string) (user.ID, error)
}

// Service serves the documents to the console.
type Service struct {
	store     store
	directory *access.Directory
	keys      Keys
	cores     *admission.Cores
}

// OpenAPIDocument is an OpenAPI 3.1 document.
type OpenAPIDocument map[string]any

// DocumentMeta says whether the public API answers at the host of the console, too.
type DocumentMeta struct {
	PublicHere bool `json:"publicHere"`
}

// AdminRoutes returns the route of the documents.
func (s *Service) AdminRoutes() []httpapi.Route {
	return []httpapi.Route{{
		Method: http.MethodGet, Pattern: "/admin/v1/openapi", Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
		Needs: httpapi.AnyStaff, Query: []string{"as"}, Gives: OpenAPIDocument{}, GivesMeta: DocumentMeta{}, Handler: s.serve,
	}}
}

// serve returns the document of the viewer, or of the user or key that the
// parameter as names (contract Y13).
func (s *Service) serve(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	viewer, err := s.subject(ctx, c.Viewer, c.Request.URL.Query().Get("as"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	defined, err := s.store.defined(ctx, viewer.Tenant())
	if err != nil {
		return httpapi.Reply{}, err
	}
	work, err := s.cores.Start(ctx, string(c.Config.Tenant.ID)) // not before: who has the connections may be waiting for a core
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer work.Stop()
	out, err := Document(viewer, defined)
	if err != nil {
		return httpapi.Reply{}, err
	}
	meta, err := json.Marshal(DocumentMeta{PublicHere: len(c.Config.Tenant.AdminHosts) == 0})
	if err != nil {
		return httpapi.Reply{}, err
	}
	return httpapi.Reply{Data: out, Meta: meta}, c.Hold(len(out))
}

// subject returns the viewer of "user:ID" or "key:ID", and the asking one for "".
// Only who may see the rights of others may name others; for anybody else they are
// answered like users and keys that do not exist.
func (s *Service) subject(ctx context.Context, asking access.Viewer, as string) (access.Viewer, error) {
	kind, id, _ := strings.Cut(as, ":")
	of := user.ID(id)
	switch {
	case as == "":
		return asking, nil
	case kind == "key" && id != "":
		var err error
		if of, err = s.keys.UserOf(ctx, asking.Tenant(), id); err != nil && fault.CodeOf(err) != fault.NotFound {
			return access.Viewer{}, err
		}
	case kind != "user" || id == "":
		return access.Viewer{}, fault.Fields("as: expected user:ID or key:ID", map[string]string{"as": "expected user:ID or key:ID"})
	}
	if of == "" || of != asking.UserID() && !asking.May(access.ManagePermissions) {
		return access.Viewer{}, errNoSubject
	}
	viewer, err := s.directory.Viewer(ctx, asking.Config(), of, true)
	if fault.CodeOf(err) == fault.Unauthorized {
		err = errNoSubject
	}
	return viewer, err
}

var errNoSubject = fault.New(fault.NotFound, "there is no such user or key")
