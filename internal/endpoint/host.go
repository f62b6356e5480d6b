package endpoint

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/admission"
	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/wtf8"
)

// host gives a component or flow access to records: what its viewer may do, on
// the unit of work of its run.
type host struct {
	x       *execution
	session *records.UnitSession
	quota   *recordQuota
}

// host returns the host of a component or flow that runs as viewer. tooMuch is
// the error for an answer that is larger than the run may still receive. The
// caller must call release when the component or flow has ended.
func (x *execution) host(viewer access.Viewer, tooMuch error) (h host, release func()) {
	q := &recordQuota{charge: x.s.budget.Charge(string(x.j.config.Tenant.ID)), tooMuch: tooMuch}
	return host{x: x, session: x.unit.As(viewer).Within(q), quota: q}, q.charge.Release
}

// recordQuota bounds the records that a run receives: each answer by what the
// run may still receive, and the memory of all answers by the service's budget.
type recordQuota struct {
	charge  admission.Charge
	room    int   // of the current call
	kept    int   // bytes of earlier answers that are still held
	tooMuch error // the error for more than room
}

// Hold counts an answer that is now n bytes long. It returns tooMuch when the
// answer is larger than room, and OVERLOADED when the budget is used up.
func (q *recordQuota) Hold(n int) error {
	if n > q.room {
		return q.tooMuch
	}
	if !q.charge.Reach(int64(q.kept + n)) {
		return errRecordMemory
	}
	return nil
}

// keep counts n bytes of an answer that a flow keeps. It returns OVERLOADED when
// the budget is used up.
func (q *recordQuota) keep(n int) error {
	q.kept += n
	if !q.charge.Reach(int64(q.kept)) {
		return errRecordMemory
	}
	return nil
}

var errRecordMemory = fault.New(fault.Overloaded, "too many records are held by runs and answers right now; try again soon").After(2 * time.Second)

var (
	_ component.Host  = host{}
	_ automation.Host = host{}
)

// defaultLimit is the number of records in a list without a limit.
const defaultLimit = 50

// call is one operation on records, for components and flows alike.
type call struct {
	op            string // get, list, create, update, delete, upsert, createMany, updateMany, share, unshare
	entity, id    string
	by            string // of upsert
	fields        []records.Member
	many          []records.Item
	where         []records.Filter
	or            [][]records.Filter
	show          []string
	sort          []records.Sort
	search        string
	limit         int
	cursor        string
	withoutCursor bool // list answers hasMore instead
	with          records.With
	access        access.Level
}

// Call serves records.* of a component, as component.Host says. It returns
// VALIDATION for arguments of the wrong form, and the errors of
// records.UnitSession.
func (h host) Call(ctx context.Context, name string, args []byte, room int) ([]byte, error) {
	h.quota.charge.Release() // the sandbox has copied the last answer
	h.quota.room = room
	given, err := httpapi.ParseObject(args)
	if err != nil {
		return nil, err
	}
	c := call{op: strings.TrimPrefix(name, "records."), limit: defaultLimit}
	if c.entity, err = text(given, "entity", true); err != nil {
		return nil, err
	}
	switch c.op {
	case "get", "delete", "update", "share", "unshare":
		if c.id, err = text(given, "id", true); err != nil {
			return nil, err
		}
	case "upsert":
		if c.by, err = text(given, "by", true); err != nil {
			return nil, err
		}
	case "createMany", "updateMany":
		list, _ := given.Get("list")
		if c.many, err = c.items(list); err != nil {
			return nil, err
		}
	case "list":
		if err := c.list(given); err != nil {
			return nil, err
		}
	}
	switch c.op {
	case "create", "update", "upsert":
		c.fields, err = c.object(given, "fields", "the fields as an object")
	case "share", "unshare":
		var members []records.Member
		if members, err = c.object(given, "with", "{user} or {role}"); err == nil {
			c.with, c.access, err = records.ParseWith(members, c.op == "share")
		}
	}
	if err != nil {
		return nil, err
	}
	return h.do(ctx, c)
}

// items returns the items of createMany, a list of fields, and of updateMany, a list of
// {id, fields}. It returns VALIDATION for any other value, which names the element.
func (c *call) items(list jsontext.Value) ([]records.Item, error) {
	if list.Kind() != '[' {
		return nil, fault.New(fault.Validation, "records.%s: expected a list", c.op)
	}
	var items []records.Item
	for i, v := range httpapi.Elements(list) {
		item := records.Item{Op: records.OpCreate}
		if c.op == "updateMany" {
			item.Op = records.OpUpdate
			element, err := c.element(v, i, "{id, fields}")
			if err != nil {
				return nil, err
			}
			id, _ := element.Get("id")
			fields, given := element.Get("fields")
			if id.Kind() != '"' || !given || len(element.Members) != 2 {
				return nil, fault.New(fault.Validation, "records.updateMany: [%d]: expected {id, fields}", i)
			}
			item.ID, v = withoutNUL(schema.Unquote(id)), fields
		}
		fields, err := c.element(v, i, "the fields as an object")
		if err != nil {
			return nil, err
		}
		item.Fields = membersOf(fields)
		items = append(items, item)
	}
	return items, nil
}

// element returns an element of a list, which must be an object.
func (c *call) element(v jsontext.Value, at int, expected string) (*httpapi.Object, error) {
	if v.Kind() != '{' {
		return nil, fault.New(fault.Validation, "records.%s: [%d]: expected %s", c.op, at, expected)
	}
	return httpapi.ParseObject(v)
}

// membersOf returns the members of an object as package records takes them.
func membersOf(o *httpapi.Object) []records.Member {
	members := make([]records.Member, len(o.Members))
	for i, m := range o.Members {
		members[i] = records.Member(m)
	}
	return members
}

// withoutNUL returns "", which no record has, for an id with U+0000: PostgreSQL texts
// cannot contain it.
func withoutNUL(id string) string {
	if strings.IndexByte(id, 0) >= 0 {
		return ""
	}
	return id
}

// object returns the members of an argument that is an object. It returns
// VALIDATION for any other.
func (c *call) object(given *httpapi.Object, name, expected string) ([]records.Member, error) {
	v, _ := given.Get(name)
	if v.Kind() != '{' {
		return nil, fault.New(fault.Validation, "records.%s: expected %s", c.op, expected)
	}
	o, err := httpapi.ParseObject(v)
	if err != nil {
		return nil, err
	}
	return membersOf(o), nil
}

// list parses the arguments of records.list. It returns VALIDATION for arguments
// of the wrong form.
func (c *call) list(given *httpapi.Object) (err error) {
	if v, ok := given.Get("limit"); ok && v.Kind() != 'n' {
		n, ok := wholeNumber(v)
		if !ok {
			return fault.New(fault.Validation, "records.list: limit: expected an integer from 1 to %d", records.MaxLimit)
		}
		c.limit = n
	}
	if c.cursor, err = text(given, "cursor", false); err != nil {
		return err
	}
	if c.show, err = names(given, "fields"); err != nil {
		return err
	}
	if c.search, err = text(given, "search", false); err != nil {
		return err
	}
	if v, _ := given.Get("search"); c.search == "" && v.Kind() == '"' {
		return errSearch
	}
	by, err := names(given, "sort")
	if err != nil {
		return err
	}
	var ok bool
	if c.sort, ok = records.ParseSort(by); !ok {
		return errSort
	}
	where, _ := given.Get("where")
	switch where.Kind() {
	case '{':
	case 'n', 0:
		return nil
	default:
		return fault.New(fault.Validation, "records.list: expected where as an object")
	}
	o, err := httpapi.ParseObject(where)
	if err != nil {
		return err
	}
	members := make([]records.Member, len(o.Members))
	for i, m := range o.Members {
		members[i] = records.Member{Name: m.Name, Value: m.Value}
	}
	c.where, c.or, err = whereOf(members)
	return err
}

var errSort = fault.New(fault.Validation, "sort: "+records.SortExpected)

var errSearch = fault.New(fault.Validation, "records.list: search: expected words")

func wholeNumber(v jsontext.Value) (int, bool) {
	if v.Kind() != '0' || len(v) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// text returns the value of a member that is a text, or "" when it is missing and
// not required. Anything else is VALIDATION.
func text(given *httpapi.Object, name string, required bool) (string, error) {
	v, _ := given.Get(name)
	switch {
	case v.Kind() == '"':
		s, err := jsontext.AppendUnquote(nil, v)
		return string(s), err
	case (v.Kind() == 0 || v.Kind() == 'n') && !required:
		return "", nil
	}
	return "", fault.New(fault.Validation, "records: %s: expected a text", name)
}

// names returns the elements of a list of texts, nil when there is none. Anything else
// is VALIDATION.
func names(given *httpapi.Object, member string) (list []string, err error) {
	v, _ := given.Get(member)
	if v.Kind() == 0 || v.Kind() == 'n' {
		return nil, nil
	}
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil || len(list) == 0 {
		return nil, fault.New(fault.Validation, "records: %s: expected a list of texts", member)
	}
	return list, nil
}

// Record serves the record nodes of a flow, as automation.Host says. It returns
// VALIDATION for a filter by an object or a list, and the errors of
// records.UnitSession.
func (h host) Record(ctx context.Context, c automation.RecordCall) (jsontext.Value, error) {
	h.quota.room = c.Room
	own := call{op: string(c.Op), entity: c.Entity, id: c.ID, by: c.By, limit: c.Limit, search: c.Search, withoutCursor: true,
		with: records.With{User: c.User, Role: c.Role}, access: access.Level(c.Access)}
	for _, m := range c.Fields {
		own.fields = append(own.fields, records.Member(m))
	}
	if err := own.whole(c.Whole); err != nil {
		return nil, err
	}
	where := make([]records.Member, len(c.Where))
	for i, m := range c.Where {
		where[i] = records.Member(m)
	}
	var err error
	if own.where, own.or, err = whereOf(where); err != nil {
		return nil, err
	}
	if c.Sort != "" {
		var ok bool
		if own.sort, ok = records.ParseSort(strings.Split(c.Sort, ",")); !ok {
			return nil, errSort
		}
	}
	answer, err := h.do(ctx, own)
	h.quota.kept += len(answer) // the flow keeps it
	return answer, err
}

// whole sets the fields of a record.create that gives them as one value: an object, or a
// list of objects for several records.
func (c *call) whole(v jsontext.Value) (err error) {
	switch v.Kind() {
	case '[':
		c.op = "createMany"
		c.many, err = c.items(v)
	case '{':
		var o *httpapi.Object
		if o, err = httpapi.ParseObject(v); err == nil {
			c.fields = membersOf(o)
		}
	}
	return err
}

// Component runs a component for a node of a flow, as the user of the
// component's context or else of the flow. It returns NOT_FOUND when there is no
// such component, VALIDATION for inputs that it does not accept, what fail()
// chose, EXECUTION_ERROR, EXECUTION_TIMEOUT and OVERLOADED.
func (h host) Component(ctx context.Context, name string, given jsontext.Value) (jsontext.Value, error) {
	c := h.x.catalog.Components[name]
	if c == nil {
		return nil, fault.New(fault.NotFound, "there is no component %q", name)
	}
	object, err := httpapi.ParseEvent(given, automation.MaxDepth)
	if err != nil {
		return nil, err
	}
	checked, err := inputs.FromJSON(c.Inputs, object.Members, true)
	if err != nil {
		return nil, err
	}
	res, err := h.x.component(ctx, name, checked.JSON())
	if err != nil {
		return nil, err
	}
	if res.Responds {
		return nil, fault.New(fault.ExecutionError, "the component %s returned respond(), which answers a call only where the component is what the endpoint runs", name)
	}
	return res.Value, h.quota.keep(len(res.Value))
}

// do performs one operation. A get of a record that is absent or hidden returns
// null. The errors are those of records.UnitSession.
func (h host) do(ctx context.Context, c call) ([]byte, error) {
	c.id = withoutNUL(c.id)
	switch c.op {
	case "get":
		if err := h.session.May(c.entity, access.Read); err != nil {
			return nil, err
		}
		rec, err := h.session.Get(ctx, c.entity, c.id)
		if fault.CodeOf(err) == fault.NotFound {
			return []byte("null"), nil
		}
		return rec, err
	case "list":
		page, err := h.session.List(ctx, c.entity, records.Query{Limit: c.limit, Cursor: c.cursor, Filter: c.where, Or: c.or, Sort: c.sort, Search: c.search, Fields: c.show, Bytes: max(h.quota.room-pageOverhead, 1)})
		if err != nil {
			return nil, err
		}
		return c.page(page), nil
	case "create":
		rec, err := h.session.Create(ctx, c.entity, c.fields)
		return rec, err
	case "update":
		rec, err := h.session.Update(ctx, c.entity, c.id, c.fields)
		return rec, err
	case "delete":
		if err := h.session.Delete(ctx, c.entity, c.id); err != nil {
			return nil, err
		}
		return append(wtf8.AppendUTF8([]byte(`{"id":`), c.id), `,"deleted":true}`...), nil
	case "upsert":
		rec, _, err := h.session.Upsert(ctx, c.entity, c.by, c.fields)
		return rec, err
	case "createMany", "updateMany":
		list, err := h.session.Many(ctx, c.entity, c.many)
		if err != nil {
			return nil, err
		}
		return listOf(list), nil
	case "share":
		share, err := h.session.ShareWith(ctx, c.entity, c.id, c.with, c.access)
		return share, err
	case "unshare":
		gone, err := h.session.UnshareWith(ctx, c.entity, c.id, c.with)
		return gone, err
	}
	return nil, fault.New(fault.ExecutionError, "there is no records.%s", c.op)
}

// listOf returns records as a JSON list.
func listOf(list []records.Record) []byte {
	out := []byte{'['}
	for i, rec := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, rec...)
	}
	return append(out, ']')
}

// pageOverhead is more than a list's answer has besides its records.
const pageOverhead = 512

// page returns a list's answer: {records, nextCursor}, or {records, hasMore}.
// It builds it around the records in place.
func (c *call) page(p records.Page) []byte {
	const before = `{"records":`
	out := append(slices.Grow(p.Records, len(before)+len(p.Next)+64), before...)
	copy(out[len(before):], p.Records)
	copy(out, before)
	if c.withoutCursor {
		return append(strconv.AppendBool(append(out, `,"hasMore":`...), p.Next != ""), '}')
	}
	out = append(out, `,"nextCursor":`...)
	if p.Next == "" {
		return append(out, "null}"...)
	}
	return append(wtf8.AppendUTF8(out, p.Next), '}')
}

// context returns a component's ctx (contract J3).
func (x *execution) context(viewer access.Viewer) []byte {
	text := append(make([]byte, 0, 256), `{"user":{"id":`...)
	text = wtf8.AppendUTF8(text, string(viewer.UserID()))
	text = wtf8.AppendUTF8(append(text, `,"email":`...), viewer.Email())
	text = wtf8.AppendUTF8(append(text, `},"tenant":`...), string(x.j.config.Tenant.ID))
	text = wtf8.AppendUTF8(append(text, `,"requestId":`...), x.j.requestID)
	text = append(text, `,"event":`...)
	if e := x.j.event; e == nil {
		text = append(text, "null"...)
	} else {
		text = wtf8.AppendQuote(append(text, `{"id":`...), e.shownID())
		text = wtf8.AppendQuote(append(text, `,"kind":`...), e.Kind)
		text = append(text, '}')
	}
	return append(text, '}')
}
