package records

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/db"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// How many records are read by one statement for a page that they are included with.
// The first are fewer: they tell how large the records are.
const (
	includedFirst  = 2
	includedAtOnce = 16
)

// inclusion collects what the records of a page refer to (contract P14).
type inclusion struct {
	fields []*schema.Field
	values []jsontext.Value
	ids    map[string][]string // by entity type, in the order of the page
	seen   map[named]bool
}

// including checks the fields whose records are to be included. It returns nil for
// none, and VALIDATION for a name that is no reference that the viewer may read, or is
// given twice.
func including(r *access.EntityRights, names []string) (*inclusion, error) {
	if len(names) == 0 {
		return nil, nil
	}
	in := &inclusion{ids: map[string][]string{}, seen: map[named]bool{}, values: make([]jsontext.Value, len(r.Entity.Fields))}
	bad := map[string]string{}
	for _, name := range names {
		f := r.Entity.Field(name)
		switch {
		case f == nil || !r.ReadField[f.Index]:
			bad[name] = "unknown field"
		case f.Type != schema.Reference:
			bad[name] = "is no reference"
		case slices.Contains(in.fields, f):
			bad[name] = "is named twice"
		}
		in.fields = append(in.fields, f)
	}
	if len(bad) > 0 {
		return nil, fault.Fields("include names what cannot be included", bad)
	}
	return in, nil
}

// take notes what a row refers to.
func (in *inclusion) take(e *schema.Entity, rec *row) {
	split(e, rec.data, in.values)
	for _, f := range in.fields {
		at := named{f.Target, refersTo(in.values[f.Index])}
		if at.id == "" || in.seen[at] {
			continue
		}
		in.seen[at] = true
		in.ids[at.entity] = append(in.ids[at.entity], at.id)
	}
}

// included returns the records that were noted and that the viewer may see, as an object
// with a list for each entity type. It ends with the first record that would make it
// longer than PageBytes; cut says that it did. page is the size of the page.
func (s *Session) included(ctx context.Context, in *inclusion, page int) (out []byte, cut bool, err error) {
	out = append(out, '{')
	var types []string
	for _, f := range in.fields {
		if !slices.Contains(types, f.Target) {
			types = append(types, f.Target)
		}
	}
	for i, entity := range types {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), entity...), `":[`...)
		first := len(out)
		for rest, n := in.ids[entity], includedFirst; len(rest) > 0 && !cut; n = includedAtOnce {
			part := rest[:min(n, len(rest))]
			rest = rest[len(part):]
			found, err := s.several(ctx, entity, part)
			if err != nil {
				return nil, false, err
			}
			for _, id := range part {
				rec := found[id]
				if rec == nil {
					continue
				}
				if cut = len(out)+len(rec) > PageBytes; cut {
					break
				}
				if len(out) > first {
					out = append(out, ',')
				}
				out = append(out, rec...)
			}
			if err := s.hold(page + len(out)); err != nil {
				return nil, false, err
			}
		}
		out = append(out, ']')
	}
	return append(out, '}'), cut, nil
}

// several returns the records with some ids, at most includedAtOnce, as far as the viewer
// may see them, by id.
func (s *Session) several(ctx context.Context, entity string, ids []string) (map[string]Record, error) {
	found := map[string]Record{}
	r, err := s.on(entity, access.Read)
	if entity == schema.UserEntity || err == nil && r.Scope(access.Read).RowSize.Load() > 0 { // large ones are admitted one by one
		for _, id := range ids {
			rec, err := s.Get(ctx, entity, id)
			if err != nil && !denied(err) {
				return nil, err
			}
			found[id] = rec
		}
		return found, nil
	}
	if err != nil {
		if denied(err) {
			err = nil
		}
		return found, err
	}
	all := slices.Clone(ids)
	for len(all) < includedAtOnce { // so that one statement is prepared for any number
		all = append(all, ids[0])
	}
	st := newStatement(`SELECT `+rowColumns(s.h)+` FROM records r WHERE r.tenant_id = $1 AND r.entity = $2 AND r.record_id IN `, r.Entity.StoredAs())
	st.list(all)
	st.WriteString(" AND ")
	st.reached(r.Scope(access.Read))
	var rec row
	size := 0
	err = s.h.Query(ctx, st.String(), func(dbRow db.Row) error {
		scanRow(dbRow, &rec)
		found[rec.id] = render(nil, r, &rec)
		size += len(rec.data)
		return nil
	}, st.args...)
	if len(found) > 0 {
		note(&r.Scope(access.Read).RowSize, size/len(found), PageBytes/MaxLimit)
	}
	return found, err
}

// denied reports whether an error says that the viewer may not see something, or that
// there is nothing.
func denied(err error) bool {
	code := fault.CodeOf(err)
	return code == fault.NotFound || code == fault.Forbidden
}
