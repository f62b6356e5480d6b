package automation

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/inputs"
)

// The record nodes differ in the members that they take.
var (
	recordCreate  = nodeType{"record.create", []string{"entity", "fields"}, true, declareRecord(Create)}
	recordGet     = nodeType{"record.get", []string{"entity", "record_id"}, true, declareRecord(Get)}
	recordList    = nodeType{"record.list", []string{"entity", "where", "sort", "search", "limit"}, true, declareRecord(List)}
	recordUpsert  = nodeType{"record.upsert", []string{"entity", "by", "fields"}, true, declareRecord(Upsert)}
	recordUpdate  = nodeType{"record.update", []string{"entity", "record_id", "fields"}, true, declareRecord(Update)}
	recordDelete  = nodeType{"record.delete", []string{"entity", "record_id"}, true, declareRecord(Delete)}
	recordShare   = nodeType{"record.share", []string{"entity", "record_id", "user", "role", "access"}, true, declareRecord(Share)}
	recordUnshare = nodeType{"record.unshare", []string{"entity", "record_id", "user", "role"}, true, declareRecord(Unshare)}
)

func declareRecord(op Op) func() declaration {
	return func() declaration { return &recordDecl{op: op} }
}

type recordDecl struct {
	op     Op
	entity string
	fields *object // of create, update and upsert
	whole  any     // the fields of create as a list of objects, or as a text with a template
	by     string  // of upsert
	where  *object // of list
	sort   string  // of list
	search string  // of list
	limit  int
	with   sharing // of share and unshare
}

func (d *recordDecl) decode(m members, _ *node, _ int) {
	d.entity = m.text("entity", true)
	switch d.op {
	case Create:
		d.decodeFields(m)
	case Update:
		d.fields = m.object("fields", "an object of fields", true)
	case Upsert:
		d.by = m.text("by", true)
		d.fields = m.object("fields", "an object of fields", true)
	case List:
		d.where = m.object("where", "an object of fields and values", false)
		d.sort = m.text("sort", false)
		d.search = m.text("search", false)
		d.limit = min(m.whole("limit", 1, 1_000_000, defaultListLimit), maxListLimit)
	case Share, Unshare:
		d.with.decode(m, d.op == Share)
	}
}

// decodeFields decodes the fields of create: an object, a list of objects, or a text with
// a template whose value is one of these.
func (d *recordDecl) decodeFields(m members) {
	const expected = "an object of fields, or a list of such objects"
	v, path, ok := m.get("fields", expected, false)
	switch v := v.(type) {
	case []any:
		for i := range v {
			if _, ok := v[i].(*object); !ok {
				m.wrong(item(path, i), "an object of fields", v[i])
			}
		}
		d.whole = v
	case string:
		if !strings.Contains(v, "{{") {
			m.wrong(path, expected, v)
		}
		d.whole = v
	default:
		if ok {
			d.fields = m.object("fields", expected, false)
		}
	}
}

func (d *recordDecl) compile(c *compiler, n *node) executor {
	known := d.entity != "" && c.knows(d.entity)
	if d.entity != "" && !known {
		c.problems.add(member(n.path, "entity"), "there is no entity type %s", show(d.entity))
	}
	made := &recordNode{op: d.op, entity: d.entity, by: d.by, limit: d.limit}
	made.with = d.with.compile(c, n)
	if n.record != nil {
		made.id = c.template(n.record, member(n.path, "record_id"))
	}
	check := recordCheck{c, d.entity, known, d.op == Create}
	if d.fields != nil {
		made.fields = check.fields(d.fields, member(n.path, "fields"))
	}
	if d.op == Upsert && d.by != "" {
		if known && c.names.Unique != nil && !c.names.Unique(d.entity, d.by) {
			c.problems.add(member(n.path, "by"), "%s has no unique field %s", d.entity, show(d.by))
		}
		if d.fields.get(d.by) == nil {
			c.problems.add(member(n.path, "fields"), "expected a value of %s, by which the record is found", show(d.by))
		}
	}
	switch whole := d.whole.(type) {
	case string:
		made.whole = c.template(whole, member(n.path, "fields"))
	case []any:
		list := make(listOf, 0, len(whole))
		for i := range whole {
			if o, ok := whole[i].(*object); ok {
				list = append(list, check.fields(o, item(member(n.path, "fields"), i)))
			}
		}
		made.whole = list
	case nil:
		if d.op == Create && d.fields == nil {
			check.complete(&object{}, n.path)
		}
	}
	if d.sort != "" {
		made.sort = c.template(d.sort, member(n.path, "sort"))
		check.order(d.sort, member(n.path, "sort"))
	}
	if d.search != "" {
		made.search = c.template(d.search, member(n.path, "search"))
		check.search(d.search, member(n.path, "search"))
	}
	if d.where != nil {
		made.fields = check.where(d.where, member(n.path, "where"))
	}
	return made
}

// shape is what the node's result is, as Host.Record says.
func (d *recordDecl) shape(c *compiler) *shape {
	switch d.op {
	case List:
		return objectWith("the result of record.list", []string{"records", "hasMore"}, listOfItems(c.recordShape(d.entity)), one)
	case Delete:
		return objectWith("the result of record.delete", []string{"id", "deleted"}, one, one)
	case Share:
		return objectWith("a share", []string{"user", "role", "access", "created_at"}, one, one, one, one)
	case Unshare:
		return objectWith("the result of record.unshare", []string{"user", "role", "deleted"}, one, one, one)
	}
	switch d.whole.(type) {
	case []any:
		return listOfItems(c.recordShape(d.entity))
	case string: // a record or a list of records
		return nil
	}
	return c.recordShape(d.entity)
}

// recordNode runs the record nodes. For a list, fields is where.
type recordNode struct {
	op     Op
	entity string
	id     template
	by     string
	fields objectOf
	whole  template
	sort   template
	search template
	limit  int
	with   sharedWith
}

func (n *recordNode) execute(r *run) (any, error) {
	call := RecordCall{Op: n.op, Entity: n.entity, By: n.by, Limit: n.limit, Room: r.room}
	if n.id != nil {
		v, err := n.id.value(r)
		if err != nil {
			return nil, err
		}
		if v == nil && n.op == Get { // a reference that is not set has no record
			return nil, nil
		}
		id, ok := v.(string)
		if !ok || id == "" {
			return nil, mistakef("expected the id of a record, found %s", describe(v))
		}
		call.ID = id
	}
	if err := n.with.evaluate(r, &call); err != nil {
		return nil, err
	}
	members, null, err := r.members(n.fields)
	if err != nil {
		return nil, err
	}
	if n.op == List {
		call.Where = members
		for _, m := range members {
			if m.Value.Kind() == '[' {
				return nil, mistakef("where %s: expected text, a number, true or false, or an object of operators, found a list", m.Name)
			}
		}
		if null { // no record's field equals null
			return &object{members: []entry{{"records", []any{}}, {"hasMore", false}}}, nil
		}
	} else {
		call.Fields = members
	}
	if call.Sort, err = optionalText(r, n.sort, "sort"); err != nil {
		return nil, err
	}
	if call.Search, err = optionalText(r, n.search, "search"); err != nil {
		return nil, err
	}
	if n.op == List && call.Search == "" && n.search != nil {
		return nil, mistakef("search: expected words, found none")
	}
	if n.whole != nil {
		if call.Whole, err = n.whole.json(r, nil); err != nil {
			return nil, err
		}
		if kind := call.Whole.Kind(); kind != '[' && kind != '{' {
			return nil, mistakef("fields: expected an object or a list of objects, found %s", kindOfJSON(kind))
		}
	}
	answer, err := r.callHost(func() (jsontext.Value, error) { return r.host.Record(r.ctx, call) })
	if err != nil {
		return nil, err
	}
	if r.room -= len(answer); r.room < 0 {
		return nil, ErrRecords
	}
	return fromJSON(answer)
}

// optionalText returns the value of a template, "" where there is none or it is null.
func optionalText(r *run, of template, name string) (string, error) {
	if of == nil {
		return "", nil
	}
	v, err := of.value(r)
	if err != nil || v == nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", mistakef("%s: expected text, found %s", name, kindOf(v))
	}
	return text, nil
}

// kindOfJSON names what is no object and no list.
func kindOfJSON(kind jsontext.Kind) string {
	switch kind {
	case '"':
		return "text"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return "true or false"
}

func describe(v any) string {
	if v == "" {
		return "an empty text"
	}
	return kindOf(v)
}

// members writes the values of an object into one buffer. null reports whether one of
// them is null.
func (r *run) members(given []namedTemplate) (made []inputs.Member, null bool, err error) {
	if len(given) == 0 {
		return nil, false, nil
	}
	buffer := make([]byte, 0, 32*len(given))
	made = make([]inputs.Member, len(given))
	for i := range given {
		start := len(buffer)
		if buffer, err = given[i].json(r, buffer); err != nil {
			return nil, false, err
		}
		// The value stays valid when buffer grows and is moved.
		made[i] = inputs.Member{Name: given[i].name, Value: buffer[start:len(buffer):len(buffer)]}
		null = null || buffer[start] == 'n'
	}
	return made, null, nil
}
