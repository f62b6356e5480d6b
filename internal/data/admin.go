package data

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// The console's records (contract Y8, Y9). Reading, creating, deleting and
// sharing are the handlers of the public API, under the rights of the staff user.

// adminBase is what the paths of the console's routes begin with.
const adminBase = "/admin/v1/"

// DataRecord is a record as the public API gives it: id, owner_id, created_at, updated_at
// and the declared fields that the viewer may read.
type DataRecord map[string]any

// DataRecordMeta says what is needed to change a record.
type DataRecordMeta struct {
	Version int64         `json:"version"` // what a change of the record names
	May     DataRecordMay `json:"may"`
}

// DataRecordMay is what the viewer may do with a record; who may delete it may share it.
type DataRecordMay struct {
	Update bool `json:"update"`
	Delete bool `json:"delete"`
}

// RecordShare is a share of a record (contract A16).
type RecordShare struct {
	User      *string      `json:"user"`
	Role      *string      `json:"role"`
	Access    access.Level `json:"access"`
	CreatedAt string       `json:"created_at"`
}

// ShareWith names whom a record is shared with: exactly one of user (an id or an
// e-mail address) and role.
type ShareWith struct {
	User   string       `json:"user,omitempty"`
	Role   string       `json:"role,omitempty"`
	Access access.Level `json:"access"`
}

// ShareOf names whose share is taken back.
type ShareOf struct {
	User string `json:"user,omitempty"`
	Role string `json:"role,omitempty"`
}

// Unshared is the answer for a share that was taken back.
type Unshared struct {
	User    *string `json:"user"`
	Role    *string `json:"role"`
	Deleted bool    `json:"deleted"`
}

// DeletedRecord is the answer for a deleted record.
type DeletedRecord struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// AdminRoutes returns the routes of the console's records.
func (s *Service) AdminRoutes() []httpapi.Route {
	const list, one = adminBase + "data/{entity}", adminBase + "data/{entity}/{id}"
	const shares = one + "/shares"
	route := func(method, pattern string, gives any, h func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) httpapi.Route {
		return httpapi.Route{
			Method: method, Pattern: pattern, Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
			Needs: httpapi.AnyStaff, Gives: gives, Handler: h,
		}
	}
	takes := func(r httpapi.Route, body any) httpapi.Route {
		r.Takes, r.BodyCap = body, httpapi.DataBodyCap
		return r
	}
	query := func(r httpapi.Route, names ...string) httpapi.Route {
		r.Query = names
		return r
	}
	look := route(http.MethodGet, one, DataRecord{}, s.look)
	look.GivesMeta = DataRecordMeta{}
	change := query(takes(route(http.MethodPatch, one, DataRecord{}, s.change), DataRecord{}), "version")
	change.GivesMeta = DataRecordMeta{}
	entities := route(http.MethodGet, adminBase+"data", []DataEntity{}, s.entities)
	entities.GivesMeta = DataEntitiesMeta{}
	routes := []httpapi.Route{
		entities,
		query(route(http.MethodGet, adminBase+"labels", []DataLabel{}, s.labels), "entity", "ids", "search"),
		query(route(http.MethodGet, adminBase+"count", ReachCount{}, s.count), "entity", "search", "filter[*]"),
		query(route(http.MethodGet, list, []DataRecord{}, s.list), "limit", "cursor", "sort", "search", "filter[*]"),
		takes(route(http.MethodPost, list, DataRecord{}, s.create), DataRecord{}),
		look,
		change,
		route(http.MethodDelete, one, DeletedRecord{}, s.delete),
		route(http.MethodGet, shares, []RecordShare{}, s.shares),
		takes(route(http.MethodPost, shares, RecordShare{}, notActing(s.share)), ShareWith{}),
		takes(route(http.MethodDelete, shares, Unshared{}, s.unshare), ShareOf{}),
	}
	return append(routes, s.whyRoutes()...)
}

// look is get with the version of the record, and what the viewer may do with it.
func (s *Service) look(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	look, err := s.records.As(c.Viewer).Within(c).Look(ctx, c.Params.Get("entity"), c.Params.Get("id"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	return lookReply(look)
}

func lookReply(look *records.Look) (httpapi.Reply, error) {
	meta, err := json.Marshal(DataRecordMeta{Version: look.Version, May: DataRecordMay{Update: look.Update, Delete: look.Delete}})
	return httpapi.Reply{Data: look.Record, Meta: meta}, err
}

// change is update of the version that the caller names. It returns CONFLICT, with
// the stored record, when that is no longer the stored one.
func (s *Service) change(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	entity, id := c.Params.Get("entity"), c.Params.Get("id")
	session := func() *records.Session { return s.records.As(c.Viewer).Within(c) }
	if err := session().May(entity, access.Update); err != nil {
		return httpapi.Reply{}, err
	}
	version, err := strconv.ParseInt(c.Request.URL.Query().Get("version"), 10, 64)
	if err != nil || version < 1 {
		return httpapi.Reply{}, fault.Fields("version: expected the version of the record that was edited",
			map[string]string{"version": "expected the version of the record that was edited, from meta.version"})
	}
	body, err := c.JSON()
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := whileActing(c, entity, body); err != nil {
		return httpapi.Reply{}, err
	}
	rec, err := session().Expecting(version).Update(ctx, entity, id, membersOf(body))
	if err != nil {
		return httpapi.Reply{}, err
	}
	look, err := session().Look(ctx, entity, id)
	if code := fault.CodeOf(err); code == fault.NotFound || code == fault.Forbidden {
		return httpapi.Reply{Data: rec, Meta: []byte(`{"version":0,"may":{"update":false,"delete":false}}`)}, nil // the change closed it to the viewer
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	return lookReply(look)
}

// whileActing returns FORBIDDEN for a change that gives somebody what outlives the acting:
// accounts with their managed fields, and the ownership of records (contract Y15).
func whileActing(c *httpapi.Authed, entity string, body *httpapi.Object) error {
	if !c.Session.Acting() {
		return nil
	}
	if entity == schema.UserEntity {
		return fault.New(fault.Forbidden, "users are not changed while you act as another user")
	}
	if slices.ContainsFunc(body.Members, func(m httpapi.Member) bool { return m.Name == "owner_id" }) {
		const reason = "records are not given to others while you act as another user"
		return fault.New(fault.Forbidden, "%s", reason).With("fields", map[string]string{"owner_id": reason})
	}
	return nil
}

// notActing refuses while the user acts as another one: a share would leave somebody with
// a record that they could not give them (contract Y15).
func notActing(h func(context.Context, *httpapi.Authed) (httpapi.Reply, error)) func(context.Context, *httpapi.Authed) (httpapi.Reply, error) {
	return func(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
		if c.Session.Acting() {
			return httpapi.Reply{}, fault.New(fault.Forbidden, "records are not shared while you act as another user")
		}
		return h(ctx, c)
	}
}
