package data

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Explained says what a user may do with a record, and why (contract A18, Y10).
type Explained struct {
	User     ExplainedUser    `json:"user"`
	Owner    *string          `json:"owner"` // the id of the record's owner; null for a user
	Verbs    []ExplainedVerb  `json:"verbs"`
	Ways     []ExplainedWay   `json:"ways"`
	Fields   []ExplainedField `json:"fields"`
	Openings []Opening        `json:"openings"` // what would open it for the verb that was asked about
}

// ExplainedUser is the user whom an explanation is about.
type ExplainedUser struct {
	ID     user.ID  `json:"id"`
	Email  string   `json:"email"`
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Role   *string  `json:"role"`
	Active bool     `json:"active"`
	Owner  bool     `json:"owner"` // owns the tenant
	Sets   []string `json:"sets"`
}

// ExplainedVerb explains one verb. In the lists of permission sets null stands for
// the ownership of the tenant.
type ExplainedVerb struct {
	Verb    string    `json:"verb"`
	Allowed bool      `json:"allowed"`
	Code    *string   `json:"code"` // of the error that a request gets
	Status  int       `json:"status"`
	Sets    []*string `json:"sets"`
	Reached bool      `json:"reached"` // the verb reaches the record
}

// ExplainedWay explains one cause: for which verbs it opens the record and by what,
// or else why it does not.
type ExplainedWay struct {
	Cause   access.Cause      `json:"cause"`
	Opens   []string          `json:"opens"`
	Reasons []ExplainedReason `json:"reasons"`
	More    int               `json:"more"` // reasons that are left out
	Closed  *string           `json:"closed"`
	Near    bool              `json:"near"` // it is the closest to opening the record
}

// ExplainedReason is one cause that opens the record.
type ExplainedReason struct {
	Text  string   `json:"text"`
	Opens []string `json:"opens"`
	Role  *string  `json:"role"`
	Set   *string  `json:"set"`
}

// ExplainedField names the permission sets that let a field be read, and edited.
type ExplainedField struct {
	Name string    `json:"name"`
	Read []*string `json:"read"`
	Edit []*string `json:"edit"`
}

// Opening is a change that would open the record.
type Opening struct {
	Kind        records.OpeningKind `json:"kind"`
	Text        string              `json:"text"`
	Set         *string             `json:"set"`
	Role        *string             `json:"role"`
	OwnedByRole *string             `json:"ownedByRole"`
	Access      *string             `json:"access"`
	May         bool                `json:"may"` // the asking user may make the change
	Reach       Reach               `json:"reach"`
}

// ReachCount is a number of things, counted up to 10,000: more means that there may be
// more.
type ReachCount struct {
	Count int  `json:"count"`
	More  bool `json:"more"`
}

// Reach is what a change opens: records, of those that the asking user may read, and
// users.
type Reach struct {
	Records ReachCount `json:"records"`
	Users   ReachCount `json:"users"`
}

// Seer is a user who sees a record, and by what.
type Seer struct {
	ID    user.ID  `json:"id"`
	Email string   `json:"email"`
	Name  string   `json:"name"`
	Type  string   `json:"type"`
	Verbs []string `json:"verbs"`
	Text  string   `json:"text"`
	More  int      `json:"more"` // further reasons
}

// SeersMeta is the meta of a list of users who see a record. Only some users are
// looked at for one page, which may have none of them.
type SeersMeta struct {
	Count      int     `json:"count"`
	Looked     int     `json:"looked"`
	HasMore    bool    `json:"hasMore"`
	NextCursor *string `json:"nextCursor"`
}

// mayAsk is who may ask about the rights of others.
var mayAsk = httpapi.Needs{access.ManageUsers, access.ManagePermissions}

func (s *Service) whyRoutes() []httpapi.Route {
	get := func(pattern string, gives any, needs httpapi.Needs, h func(context.Context, *httpapi.Authed) (httpapi.Reply, error), query ...string) httpapi.Route {
		return httpapi.Route{
			Method: http.MethodGet, Pattern: adminBase + pattern, Auth: httpapi.Staff, Limit: httpapi.PerCredential, Audit: httpapi.AuditAdmin,
			Needs: needs, Query: query, Gives: gives, Handler: h,
		}
	}
	seers := get("data/{entity}/{id}/viewers", []Seer{}, mayAsk, s.seers, "type", "cursor")
	seers.GivesMeta = SeersMeta{}
	return []httpapi.Route{
		seers,
		get("why", Explained{}, mayAsk, s.why, "user", "entity", "id", "verb", "field"),
		get("reach", Reach{}, httpapi.Needs{access.ManagePermissions}, s.reach, "entity", "owned_by_role", "where[*]", "share_with_role", "share_with"),
	}
}

// why explains what a user may do with a record that the asking user may read.
func (s *Service) why(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q := c.Request.URL.Query()
	missing := map[string]string{}
	for _, name := range []string{"user", "entity", "id"} {
		if q.Get(name) == "" {
			missing[name] = "is required"
		}
	}
	verb, ok := verbs[q.Get("verb")]
	if !ok {
		missing["verb"] = "expected read, update or delete"
	}
	if len(missing) > 0 {
		return httpapi.Reply{}, fault.Fields("some parameters are not valid", missing)
	}
	of, u, err := s.records.As(c.Viewer).Subject(ctx, user.ID(q.Get("user")))
	if err != nil {
		return httpapi.Reply{}, err
	}
	x, err := s.records.As(c.Viewer).Within(c).Explain(ctx, of, q.Get("entity"), q.Get("id"), verb)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if field := q.Get("field"); field != "" {
		x.Fields = slices.DeleteFunc(x.Fields, func(f records.FieldWhy) bool { return f.Name != field })
		if len(x.Fields) == 0 {
			return httpapi.Reply{}, fault.Fields("field: unknown field", map[string]string{"field": "unknown field"})
		}
	}
	return jsonReply(c, explained(u, x), nil)
}

var verbs = map[string]access.Verb{"": access.Read, "read": access.Read, "update": access.Update, "delete": access.Delete}

// jsonReply returns a value as the data of an answer, which it charges to the
// request.
func jsonReply(c *httpapi.Authed, data, meta any) (httpapi.Reply, error) {
	var r httpapi.Reply
	var err error
	if r.Data, err = json.Marshal(data); err != nil {
		return r, err
	}
	if meta != nil {
		if r.Meta, err = json.Marshal(meta); err != nil {
			return r, err
		}
	}
	return r, c.Hold(len(r.Data))
}

func explained(u *user.User, x *records.Explanation) *Explained {
	e := &Explained{
		User: ExplainedUser{u.ID, u.Email, u.Name, string(u.Type), orNull(u.Role), u.Active, u.Owner, append([]string{}, u.Sets...)}, Owner: orNull(string(x.Owner)),
		Verbs: []ExplainedVerb{}, Ways: []ExplainedWay{}, Fields: []ExplainedField{}, Openings: []Opening{},
	}
	for _, v := range x.Verbs {
		status := http.StatusOK
		if v.Code != "" {
			status = fault.Status(v.Code)
		}
		e.Verbs = append(e.Verbs, ExplainedVerb{v.Verb.String(), v.Code == "", orNull(string(v.Code)), status, orNulls(v.Sets), v.Reached})
	}
	for _, at := range x.Ways {
		way := ExplainedWay{Cause: at.Cause, Opens: words(at.Verbs), Reasons: []ExplainedReason{}, More: at.More}
		for _, r := range at.Reasons {
			way.Reasons = append(way.Reasons, ExplainedReason{r.Text, words(r.Verbs), orNull(r.Role), orNull(r.Set)})
		}
		if i := slices.IndexFunc(x.Closed, func(c records.Closed) bool { return c.Cause == at.Cause }); i >= 0 {
			way.Closed, way.Near = &x.Closed[i].Text, x.Closed[i].Near
		}
		e.Ways = append(e.Ways, way)
	}
	for _, f := range x.Fields {
		e.Fields = append(e.Fields, ExplainedField{f.Name, orNulls(f.Read), orNulls(f.Edit)})
	}
	for _, o := range x.Openings {
		e.Openings = append(e.Openings, Opening{o.Kind, o.Text, orNull(o.Set), orNull(o.Role), orNull(o.OwnedByRole), orNull(string(o.Access)), o.May, reachOf(o.Reach)})
	}
	return e
}

func reachOf(r records.Reach) Reach {
	return Reach{ReachCount{r.Records.N, r.Records.More}, ReachCount{r.Users.N, r.Users.More}}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orNulls returns null for the ownership of the tenant.
func orNulls(sets []string) []*string {
	list := []*string{}
	for _, set := range sets {
		list = append(list, orNull(set))
	}
	return list
}

func words(verbs []access.Verb) []string {
	list := []string{}
	for _, v := range verbs {
		list = append(list, v.String())
	}
	return list
}

// seers lists the users who see a record that the asking user may read.
func (s *Service) seers(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q := c.Request.URL.Query()
	of := user.Internal
	switch q.Get("type") {
	case "", string(user.Internal):
	case string(user.External):
		of = user.External
	default:
		return httpapi.Reply{}, fault.Fields("type: expected internal or external", map[string]string{"type": "expected internal or external"})
	}
	page, err := s.records.As(c.Viewer).Within(c).Seers(ctx, records.Ref{Entity: c.Params.Get("entity"), ID: c.Params.Get("id")}, of, q.Get("cursor"))
	if err != nil {
		return httpapi.Reply{}, err
	}
	list := []Seer{}
	for _, at := range page.List {
		list = append(list, Seer{at.User.ID, at.User.Email, at.User.Name, string(at.User.Type), words(at.Verbs), at.Text, at.More})
	}
	return jsonReply(c, list, SeersMeta{len(list), page.Looked, page.Next != "", orNull(page.Next)})
}

// reach counts what a sharing rule would open.
func (s *Service) reach(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q := c.Request.URL.Query()
	rule := &access.SharingRule{
		Entity: q.Get("entity"), OwnedByRole: q.Get("owned_by_role"), ShareWithRole: q.Get("share_with_role"), ShareWith: access.Audience(q.Get("share_with")),
		Access: access.ReadOnly,
	}
	for name := range q {
		if field, ok := strings.CutPrefix(name, "where["); ok {
			rule.Where = append(rule.Where, access.Condition{Field: strings.TrimSuffix(field, "]"), Value: jsontext.Value(q.Get(name))})
		}
	}
	slices.SortFunc(rule.Where, func(a, b access.Condition) int { return strings.Compare(a.Field, b.Field) })
	if rule.Entity == schema.UserEntity {
		return httpapi.Reply{}, fault.Fields("entity: users are not shared", map[string]string{"entity": "users are not shared"})
	}
	reach, err := s.records.As(c.Viewer).Within(c).Reach(ctx, rule)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return jsonReply(c, reachOf(reach), nil)
}
