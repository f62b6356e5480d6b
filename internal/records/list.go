package records

import (
	"context"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// MaxLimit is the largest page; a larger limit is served as this one (contract
// P3).
const MaxLimit = 200

// PageBytes is the size at which a page ends early (contract P4): it has no
// more rendered records than that, but at least one.
const PageBytes = 2 << 20

// Query selects one page of a list.
type Query struct {
	Limit  int    // 1 to MaxLimit; larger is served as MaxLimit
	Cursor string // "" for the first page
	Filter []Filter
	// Bytes ends the page earlier than PageBytes; 0 is PageBytes. The first
	// record is on the page even if it is longer; a Holder may refuse it.
	Bytes int
}

// Filter is one equality on a unique or indexed field; Value is its text form.
type Filter struct{ Field, Value string }

// Page is one page of a list.
type Page struct {
	// Records is the JSON list of the page's records.
	Records []byte
	Count   int
	// Next continues the traversal; "" when it has caught up.
	Next string
}

// filter is a checked Filter: the field and the key of the value.
type filter struct {
	field, key string
	unique     bool // at most one record has the value
}

// List reads one page of the records of an entity type that the viewer may see,
// newest first. It returns NOT_FOUND or FORBIDDEN as May does, VALIDATION for a
// limit, cursor or filter that the contract does not allow (P3, P5, P7), and
// OVERLOADED when too many large records are being read.
func (s *Session) List(ctx context.Context, entity string, q Query) (Page, error) {
	if entity == schema.UserEntity {
		return s.listUsers(ctx, q)
	}
	r, err := s.on(entity, access.Read)
	if err != nil {
		return Page{}, err
	}
	filters, err := checkFilters(r, q.Filter)
	if err != nil {
		return Page{}, err
	}
	return s.page(ctx, entity, r.Scope(access.Read), q, func(w window, each func(*row) error) error {
		return s.fetch(ctx, r, w, filters, each)
	}, func(dst []byte, rec *row) []byte { return render(dst, r, rec) })
}

// fetchFunc reads the rows of a window, newest first.
type fetchFunc func(w window, each func(*row) error) error

// page reads one page of a traversal (see cursor). scope remembers from one
// page to the next how large records are.
func (s *Session) page(ctx context.Context, entity string, scope *access.Scope, q Query, fetch fetchFunc, show func([]byte, *row) []byte) (Page, error) {
	limit := min(q.Limit, MaxLimit)
	if limit < 1 {
		return Page{}, fault.Fields("limit: expected an integer from 1 to 200", map[string]string{"limit": "expected an integer from 1 to 200"})
	}
	bound := cursorScope(s.viewer.Tenant(), entity, q.Filter)
	var at cursor
	if q.Cursor != "" {
		var err error
		if at, err = decodeCursor(s.store.cursorKey, bound, q.Cursor); err != nil {
			return Page{}, err
		}
	}
	c := &cut{
		ctx: ctx, s: s, limit: limit, bytes: PageBytes, show: show, scope: scope,
		cores: s.store.cores,
	}
	if q.Bytes > 0 {
		c.bytes = min(q.Bytes, PageBytes)
	}
	if err := c.fill(at, fetch); err != nil {
		return Page{}, err
	}
	p := c.page
	if at.top == 0 {
		at.top = c.first
	}
	if c.more {
		at.before, at.beforeID = c.last.createdAt, c.last.id
		p.Next = at.encode(s.store.cursorKey, bound)
		return p, nil
	}
	// The round is complete. A traversal of one page saw everything at one
	// instant; a longer one continues with what was inserted since it began.
	if q.Cursor == "" || at.top == 0 {
		return p, nil
	}
	more := false
	err := fetch(window{after: at.top, limit: 1}, func(*row) error { more = true; return nil })
	if err == nil && more {
		p.Next = cursor{after: at.top}.encode(s.store.cursorKey, bound)
	}
	return p, err
}

// cursorScope returns what a cursor is bound to.
func cursorScope(tenant tenant.ID, entity string, filters []Filter) string {
	var b strings.Builder
	b.WriteString(string(tenant) + "\x00" + entity)
	for _, f := range slices.SortedFunc(slices.Values(filters), func(a, b Filter) int { return strings.Compare(a.Field, b.Field) }) {
		b.WriteString("\x00" + f.Field + "\x00" + f.Value)
	}
	return b.String()
}

// checkFilters checks the filters. It puts first the one that drives the list:
// one on a unique field if there is one, else the first by name.
func checkFilters(r *access.EntityRights, list []Filter) ([]filter, error) {
	var checked []filter
	bad := map[string]string{}
	for _, f := range list {
		field := r.Entity.Field(f.Field)
		if field == nil || !r.ReadField[field.Index] {
			bad[f.Field] = "unknown field"
			continue
		}
		if !field.Filterable() {
			bad[f.Field] = "cannot be filtered by: it is neither indexed nor unique"
			continue
		}
		v, reason := field.ParseText(f.Value)
		if reason != "" {
			bad[f.Field] = reason
			continue
		}
		key, _ := field.Key(v)
		checked = append(checked, filter{field.StoredAs(), key, field.Unique})
	}
	if len(bad) > 0 {
		return nil, fault.Fields("the filter names a field it cannot use", bad)
	}
	slices.SortFunc(checked, func(a, b filter) int {
		if a.unique != b.unique {
			if a.unique {
				return -1
			}
			return 1
		}
		return strings.Compare(a.field, b.field)
	})
	return checked, nil
}
