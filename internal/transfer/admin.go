package transfer

import (
	"context"
	"encoding/json"
	"net/http"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
)

// partBodyCap is the largest body of a part: its text as JSON.
const partBodyCap = 5 << 20

// AdminRoutes returns the routes of exports and imports.
func (s *Service) AdminRoutes() []httpapi.Route {
	route := func(method, pattern string, r httpapi.Route) httpapi.Route {
		r.Method, r.Pattern, r.Needs = method, "/admin/v1/data/{entity}/"+pattern, httpapi.AnyStaff
		r.Auth, r.Limit, r.Audit = httpapi.Staff, httpapi.PerCredential, httpapi.AuditAdmin
		return r
	}
	return []httpapi.Route{
		route(http.MethodGet, "export", httpapi.Route{
			Query: []string{"format", "spreadsheet", "cursor", "sort", "search", "fields", "filter[*]"}, Gives: ExportedPart{}, Handler: s.export,
		}),
		route(http.MethodPost, "import", httpapi.Route{BodyCap: partBodyCap, Takes: ImportPart{}, Gives: ImportedPart{}, Handler: s.importPart}),
	}
}

// export answers with a page.
func (s *Service) export(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	entity := c.Params.Get("entity")
	if err := s.o.Records.As(c.Viewer).May(entity, access.Read); err != nil {
		return httpapi.Reply{}, err
	}
	u := *c.Request.URL
	values := u.Query()
	format, ok := ParseFormat(values.Get("format"), "")
	guarded := values.Get("spreadsheet")
	if !ok || guarded != "" && guarded != "true" && guarded != "false" {
		return httpapi.Reply{}, fault.Fields("some query parameters are not valid",
			map[string]string{"format": "expected csv or ndjson", "spreadsheet": "expected true or false"})
	}
	values.Del("format")
	values.Del("spreadsheet")
	u.RawQuery = values.Encode()
	q, err := s.o.Query(&u)
	if err != nil {
		return httpapi.Reply{}, err
	}
	ex := &Export{
		Records: s.o.Records, Directory: s.o.Directory, Viewer: c.Viewer, Entity: entity, Format: format, Query: q, Spreadsheet: guarded == "true", Holder: c,
	}
	return reply(c, func() (any, error) { return ex.Page(ctx, q.Cursor) })
}

// importPart imports a part. While the user acts as another one nothing is imported: a
// record may name its owner (contract Y15).
func (s *Service) importPart(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	entity := c.Params.Get("entity")
	if err := s.o.Records.As(c.Viewer).MayWrite(entity); err != nil {
		return httpapi.Reply{}, err
	}
	if c.Session.Acting() {
		return httpapi.Reply{}, fault.New(fault.Forbidden, "records are not imported while you act as another user")
	}
	part, err := httpapi.Decode[ImportPart](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	// The text, its cells and the records that are made of them.
	if err := c.Keep(4 * len(part.Text)); err != nil {
		return httpapi.Reply{}, err
	}
	im := &Import{DB: s.o.DB, Records: s.o.Records, Directory: s.o.Directory, Clock: s.o.Clock, Viewer: c.Viewer, Entity: entity}
	return reply(c, func() (any, error) { return im.Part(ctx, &part) })
}

// reply returns what a use case returns, as an answer that the call holds.
func reply(c *httpapi.Authed, do func() (any, error)) (httpapi.Reply, error) {
	out, err := do()
	if err != nil {
		return httpapi.Reply{}, err
	}
	data, err := json.Marshal(out)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return httpapi.Reply{Data: data}, c.Hold(2 * len(data))
}
