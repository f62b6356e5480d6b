package data

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// DataLabel is a record by what people call it.
type DataLabel struct {
	ID    string `json:"id"`
	Label string `json:"label"` // the id where no field names the record
}

// The bounds of labels and of a search for them.
const (
	maxLabels   = 100
	maxFound    = 20
	maxSearched = 2000 // of the newest records
	searchTime  = time.Second
)

// labels gives the labels of records by id, leaving out those that the viewer may not
// see, or of the newest records whose label contains a text.
func (s *Service) labels(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	q := c.Request.URL.Query()
	entity, ids, text := q.Get("entity"), q.Get("ids"), q.Get("search")
	if err := s.records.As(c.Viewer).May(entity, access.Read); err != nil {
		return httpapi.Reply{}, err
	}
	names := labelFields(c.Viewer, entity)
	var list []DataLabel
	var err error
	switch wanted := strings.Split(ids, ","); {
	case ids != "" && (text != "" || len(wanted) > maxLabels):
		err = fault.Fields("ids: expected at most 100 ids, and no search with them", map[string]string{"ids": "expected at most 100 ids, and no search with them"})
	case ids != "":
		list, err = s.labelsOf(ctx, c, entity, names, wanted)
	default:
		list, err = s.findLabels(ctx, c, entity, names, text)
	}
	if err != nil {
		return httpapi.Reply{}, err
	}
	return jsonReply(c, list, httpapi.ListMeta{Count: len(list)})
}

// labelFields returns the fields that name a record for the viewer: name, else
// first_name and last_name, else title, label or subject, else its first text.
func labelFields(v access.Viewer, entity string) []string {
	if entity == schema.UserEntity {
		return []string{"name", "email"}
	}
	r, err := v.On(entity)
	if err != nil {
		return nil
	}
	var texts []string
	for _, f := range r.Entity.Fields {
		if f.Type == schema.Text && r.ReadField[f.Index] {
			texts = append(texts, f.Name)
		}
	}
	for _, known := range [][]string{{"name"}, {"first_name", "last_name"}, {"title"}, {"label"}, {"subject"}} {
		has := slices.DeleteFunc(known, func(name string) bool { return !slices.Contains(texts, name) })
		if len(has) > 0 {
			return has
		}
	}
	return texts[:min(1, len(texts))]
}

// labelOf returns the label of a record.
func labelOf(entity string, names []string, rec json.RawMessage) (DataLabel, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(rec, &all); err != nil {
		return DataLabel{}, err
	}
	text := func(name string) string {
		var t string
		if json.Unmarshal(all[name], &t) != nil {
			return "" // null, or not readable
		}
		return t
	}
	label := DataLabel{ID: text("id")}
	for _, name := range names {
		part := text(name)
		if part == "" {
			continue
		}
		if label.Label = strings.TrimSpace(label.Label + " " + part); entity == schema.UserEntity {
			break // the address only where there is no name
		}
	}
	if label.Label == "" {
		label.Label = label.ID
	}
	return label, nil
}

func (s *Service) labelsOf(ctx context.Context, c *httpapi.Authed, entity string, names, ids []string) ([]DataLabel, error) {
	list := []DataLabel{}
	for _, id := range ids {
		rec, err := s.records.As(c.Viewer).Within(c).Get(ctx, entity, id)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		label, err := labelOf(entity, names, json.RawMessage(rec))
		if err != nil {
			return nil, err
		}
		list = append(list, label)
	}
	return list, nil
}

// findLabels looks through the newest records for labels that contain a text, without
// regard to case.
func (s *Service) findLabels(ctx context.Context, c *httpapi.Authed, entity string, names []string, text string) ([]DataLabel, error) {
	list, needle, begun := []DataLabel{}, strings.ToLower(text), time.Now()
	q := records.Query{Limit: records.MaxLimit}
	for looked := 0; looked < maxSearched && time.Since(begun) < searchTime; {
		page, err := s.records.As(c.Viewer).Within(c).List(ctx, entity, q)
		if err != nil {
			return nil, err
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(page.Records, &rows); err != nil {
			return nil, err
		}
		for _, row := range rows {
			label, err := labelOf(entity, names, row)
			if err != nil {
				return nil, err
			}
			if strings.Contains(strings.ToLower(label.Label), needle) || label.ID == text {
				list = append(list, label)
			}
			if len(list) == maxFound {
				return list, nil
			}
		}
		if looked += page.Count; page.Next == "" {
			break
		}
		q.Cursor = page.Next
	}
	return list, nil
}
