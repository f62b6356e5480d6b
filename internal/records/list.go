package records

import (
	"cmp"
	"context"
	"errors"
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
	// Or holds groups of filters: of at least one group, all must match. None is no
	// condition.
	Or [][]Filter
	// Search, if not "", has the words that searchable fields of the records have.
	Search string
	// Sort is the order of the list, at most two keys; none is newest first.
	Sort []Sort
	// Fields are the members that records have beside their id; none is all of them.
	Fields []string
	// Include are references whose records are included with the page (Page.Included).
	Include []string
	// Bytes ends the page earlier than PageBytes; 0 is PageBytes. The first
	// record is on the page even if it is longer; a Holder may refuse it.
	Bytes int
}

// Filter is one condition on a field, or on id, owner_id, created_at or updated_at
// (contract P7). Value is the operand in its text form; of operators that take a
// list, List has the operands. The zero Op is OpEq.
type Filter struct {
	Field string
	Op    schema.Operator
	Value string
	List  []string
}

// Sort is a key of an order: a field, or created_at or updated_at (contract P13).
type Sort struct {
	Field string
	Desc  bool
}

// ParseSort reads the keys of an order: names, with "-" before those that begin with
// the greatest. ok is false where one has no name.
func ParseSort(keys []string) (list []Sort, ok bool) {
	for _, key := range keys {
		field, desc := strings.CutPrefix(key, "-")
		if field == "" {
			return nil, false
		}
		list = append(list, Sort{field, desc})
	}
	return list, true
}

// SortExpected is what ParseSort takes, for a message.
const SortExpected = `expected names of fields, each with "-" before it to begin with the greatest`

// Page is one page of a list.
type Page struct {
	// Records is the JSON list of the page's records.
	Records []byte
	Count   int
	// Next continues the traversal; "" when it has caught up.
	Next string
	// Included is a JSON object with the list of records of each entity type that the
	// page's records refer to, nil where the query includes none. IncludedCut says that
	// some were left out, so that it is not longer than a page.
	Included    []byte
	IncludedCut bool
}

// List reads one page of the records of an entity type that the viewer may see,
// newest first where the query has no order. It returns NOT_FOUND or FORBIDDEN as May does, VALIDATION for a
// limit, cursor, filter, order, fields, inclusion or search that the contract does not allow
// (P3, P5, P7, P11, P13, P14, P15), QUERY_TOO_BROAD (P10), and OVERLOADED when too many large records are being read.
func (s *Session) List(ctx context.Context, entity string, q Query) (Page, error) {
	s = s.working(s.store.cores.Work(ctx, string(s.viewer.Tenant())))
	if entity == schema.UserEntity {
		return s.listUsers(ctx, q)
	}
	r, err := s.on(entity, access.Read)
	if err != nil {
		return Page{}, err
	}
	p, err := makePlan(r, &q)
	if err != nil {
		return Page{}, err
	}
	show := func(dst []byte, rec *row) []byte { return render(dst, r, rec) }
	if len(q.Fields) > 0 {
		sel, err := selected(r, q.Fields)
		if err != nil {
			return Page{}, err
		}
		show = func(dst []byte, rec *row) []byte { return sel.render(dst, r.Entity, rec) }
	}
	in, err := including(r, q.Include)
	if err != nil {
		return Page{}, err
	}
	made, err := s.page(ctx, entity, r, q, p, func(w window, each func(*row) error) error {
		return s.fetch(ctx, r, p.narrow(w), p.filters, each)
	}, show, in)
	if err == nil && in != nil {
		made.Included, made.IncludedCut, err = s.included(ctx, in, len(made.Records))
	}
	return made, err
}

// fetchFunc reads the rows of a window, in its order.
type fetchFunc func(w window, each func(*row) error) error

// page reads one page of a traversal (see cursor) of what a plan selects; fetch
// gives the rows of its window and filters, newest first. The scope remembers from one
// page to the next how large records are.
func (s *Session) page(ctx context.Context, entity string, r *access.EntityRights, q Query, sel *plan, fetch fetchFunc, show func([]byte, *row) []byte, in *inclusion) (Page, error) {
	limit := min(q.Limit, MaxLimit)
	if limit < 1 {
		return Page{}, fault.Fields("limit: expected an integer from 1 to 200", map[string]string{"limit": "expected an integer from 1 to 200"})
	}
	bound := cursorScope(s.viewer.Tenant(), entity, &q)
	var at cursor
	if q.Cursor != "" {
		var err error
		if at, err = decodeCursor(s.store.cursorKey, bound, q.Cursor); err != nil {
			return Page{}, err
		}
	}
	c := &cut{
		ctx: ctx, s: s, limit: limit, goesOn: q.Cursor != "", bytes: PageBytes, show: show, scope: r.Scope(access.Read),
		work: s.work,
	}
	defer c.release()
	if q.Bytes > 0 {
		c.bytes = min(q.Bytes, PageBytes)
	}
	if in != nil {
		c.took = func(rec *row) { in.take(r.Entity, rec) }
	}
	fetch, err := s.arranged(ctx, r, sel, c, fetch)
	if err == nil {
		err = c.fill(at, fetch)
	}
	if err != nil {
		return Page{}, err
	}
	p := c.page
	if sel.order != nil {
		if c.more {
			p.Next = cursor{before: c.last.createdAt, beforeID: c.last.id, keys: c.last.keys}.encode(s.store.cursorKey, bound)
		}
		return p, nil
	}
	if at.top == 0 {
		at.top = cmp.Or(c.first, c.looksFrom)
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
	err = fetch(window{after: at.top, limit: 1}, func(*row) error { more = true; return nil })
	if errors.Is(err, errLooked) { // some may match further down
		more, err = true, nil
	}
	if err == nil && more {
		p.Next = cursor{after: at.top}.encode(s.store.cursorKey, bound)
	}
	return p, err
}

// cursorScope returns what a cursor is bound to.
func cursorScope(tenant tenant.ID, entity string, q *Query) string {
	var b strings.Builder
	b.WriteString(string(tenant) + "\x00" + entity)
	b.WriteString(filterScope(q.Filter))
	if q.Search != "" {
		b.WriteString("\x00\x00search\x00" + q.Search)
	}
	for _, key := range q.Sort {
		b.WriteString("\x00\x00sort\x00" + key.Field + map[bool]string{true: " desc"}[key.Desc])
	}
	for _, group := range q.Or {
		b.WriteString("\x00\x00or" + filterScope(group))
	}
	return b.String()
}

func filterScope(list []Filter) string {
	var parts []string
	for _, f := range list {
		part := "\x00" + f.Field
		if f.Op != "" && f.Op != schema.OpEq {
			part += "\x00\x00" + string(f.Op)
		}
		parts = append(parts, part+"\x00"+strings.Join(append([]string{f.Value}, f.List...), "\x00"))
	}
	slices.Sort(parts)
	return strings.Join(parts, "")
}
