package data

import (
	"context"
	"net/url"

	"gatehouse/internal/access"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/schema"
)

// DataEntity is an entity type as the viewer may use it.
type DataEntity struct {
	Name    string        `json:"name"`
	Label   string        `json:"label"`
	Sharing string        `json:"sharing"`
	May     DataEntityMay `json:"may"`
	Fields  []DataField   `json:"fields"` // those that the viewer may read
}

// DataEntityMay is what the viewer may do with records of an entity type, as far as
// permission sets decide that.
type DataEntityMay struct {
	Create   bool `json:"create"`
	Read     bool `json:"read"`
	Update   bool `json:"update"`
	Delete   bool `json:"delete"`
	SetOwner bool `json:"setOwner"` // name another owner
}

// DataField is a field as the viewer may use it.
type DataField struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Unique   bool     `json:"unique"`
	Filter   bool     `json:"filter"` // lists may be filtered by it alone
	Sort     bool     `json:"sort"`   // lists may be sorted by it
	Search   bool     `json:"search"` // lists are searched for its words
	Options  []string `json:"options"`
	Entity   *string  `json:"entity"` // that a reference points at
	Edit     bool     `json:"edit"`
	// Operators are those that filters by the field may have.
	Operators []schema.Operator `json:"operators"`
}

// DataEntitiesMeta has the roles that records may be shared with, and whether the
// public API answers at the host of the console, too.
type DataEntitiesMeta struct {
	Count      int      `json:"count"`
	Roles      []string `json:"roles"`
	PublicHere bool     `json:"publicHere"`
}

// entities lists the entity types that the viewer may read or create.
func (s *Service) entities(_ context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	list := []DataEntity{}
	for _, e := range c.Config.Schema.Entities {
		r, err := c.Viewer.On(e.Name)
		if err != nil {
			return httpapi.Reply{}, err
		}
		if !r.May(access.Read) && !r.May(access.Create) {
			continue
		}
		one := DataEntity{Name: e.Name, Label: e.Label, Sharing: string(e.Sharing), Fields: []DataField{}, May: DataEntityMay{
			r.May(access.Create), r.May(access.Read), r.May(access.Update), r.May(access.Delete), c.Viewer.AllEntityAccess(),
		}}
		for _, f := range e.Fields {
			if r.ReadField[f.Index] {
				one.Fields = append(one.Fields, DataField{
					f.Name, string(f.Type), f.Required, f.Unique, f.Filterable(), f.Sortable(), f.Searchable, append([]string{}, f.Options...), orNull(f.Target), r.EditField[f.Index], f.Operators(),
				})
			}
		}
		list = append(list, one)
	}
	roles := []string{}
	for _, role := range c.Config.Roles.List {
		if c.Viewer.MayNameRole(role.Name) {
			roles = append(roles, role.Name)
		}
	}
	return jsonReply(c, list, DataEntitiesMeta{len(list), roles, len(c.Config.Tenant.AdminHosts) == 0})
}

// count counts the records of an entity type that the viewer may see, of those that
// filters and a search select.
func (s *Service) count(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	given := c.Request.URL.Query()
	filters := url.Values{}
	for name, list := range given {
		if _, ok := parseFilterName(name); ok || name == "search" {
			filters[name] = list
		}
	}
	q, err := parseQuery(&url.URL{RawQuery: filters.Encode()})
	if err != nil {
		return httpapi.Reply{}, err
	}
	n, err := s.records.As(c.Viewer).Count(ctx, given.Get("entity"), q.Query)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return jsonReply(c, ReachCount{n.N, n.More}, nil)
}
