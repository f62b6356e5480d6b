package openapi

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// entity describes the operations on the records of an entity type.
func (d *document) entity(r *access.EntityRights) {
	e := r.Entity
	collection, one := object{}, object{}
	reads, name := r.May(access.Read), e.Name
	if reads {
		d.schemas = d.schemas.with(name, recordSchema(r))
		collection = collection.with("get", d.listing(r).object(d))
		one = one.with("get", d.reading(name, name).object(d))
	}
	if r.May(access.Create) && !closed(r) {
		d.schemas = d.schemas.with(name+".create", d.body(r, true))
		o := operation{
			tag: name, id: name + ".create", summary: "Create a record of " + name, parameters: list{ref("parameters", "idempotencyKey")}, security: d.credentials(), status: 201,
			body: jsonBody(ref("schemas", name+".create")), answer: envelope(shown(r, name), nil),
			refused: []string{"VALIDATION", "CONFLICT", "IDEMPOTENCY_KEY_REUSED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
		}
		collection = collection.with("post", o.object(d))
	}
	if r.May(access.Update) {
		d.schemas = d.schemas.with(name+".update", d.body(r, false))
		one = one.with("patch", d.changing(r, name).object(d))
	}
	if r.May(access.Delete) {
		o := operation{
			tag: name, id: name + ".delete", summary: "Delete a record of " + name, parameters: list{ref("parameters", "id"), ref("parameters", "ifMatch")}, security: d.credentials(),
			status: 200, answer: envelope(ref("schemas", "Deleted"), nil), refused: []string{"VALIDATION", "NOT_FOUND", "PRECONDITION_FAILED"},
		}
		one = one.with("delete", o.object(d))
	}
	if len(collection) == 0 && len(one) == 0 {
		return
	}
	d.tag(name, cmp.Or(e.Label, name)+": records of the entity type "+name+".")
	d.path("/data/"+name, collection)
	d.batch(r)
	d.path("/data/"+name+"/{id}", one)
	if reads {
		d.shares(name)
	}
}

// batch describes the batch of an entity type, with the operations that the viewer may
// do (contract R17). Their schemas must have been added.
func (d *document) batch(r *access.EntityRights) {
	name := r.Entity.Name
	op := func(op string, rest ...any) object {
		return described(append(obj("op", obj("type", "string", "const", op)), obj(rest...)...)).with("additionalProperties", false)
	}
	var ops list
	users := name == schema.UserEntity
	if r.May(access.Create) && !closed(r) && !users {
		ops = append(ops, op("create", "fields", ref("schemas", name+".create")))
	}
	if r.May(access.Update) {
		ops = append(ops, op("update", "id", uuid(), "fields", ref("schemas", name+".update")))
		var by []string
		for _, f := range r.Entity.Fields {
			if f.Unique && r.ReadField[f.Index] && r.EditField[f.Index] {
				by = append(by, f.Name)
			}
		}
		if len(by) > 0 && r.May(access.Read) && !users {
			ops = append(ops, op("upsert", "by", obj("type", "string", "enum", texts(by...)), "fields", ref("schemas", name+".update")))
		}
	}
	if r.May(access.Delete) && !users {
		ops = append(ops, op("delete", "id", uuid()))
	}
	if len(ops) == 0 {
		return
	}
	body := obj("type", "object", "required", texts("items"), "additionalProperties", false, "properties", obj(
		"items", obj("type", "array", "minItems", 1, "maxItems", records.MaxBatch, "items", obj("anyOf", ops)),
		"atomic", obj("type", "boolean", "default", true, "description", "Whether all items take effect or none; with false those that do not fail do."),
	))
	data := list{ref("schemas", "Created")}
	if r.May(access.Read) {
		data = list{ref("schemas", name)}
	}
	if r.May(access.Delete) && !users {
		data = append(data, ref("schemas", "Deleted"))
	}
	item := obj("type", "object", "required", texts("index", "op", "status"), "properties", obj(
		"index", obj("type", "integer"), "op", obj("type", list{"string", "null"}), "status", obj("type", "integer", "description", "That of the single call."),
		"data", obj("anyOf", data), "error", ref("schemas", "Problem"),
	))
	o := operation{
		tag: name, id: name + ".batch", summary: "Write several records of " + name, parameters: list{ref("parameters", "idempotencyKey")}, security: d.credentials(), status: 200,
		about: "Up to 200 items, in their order and in one transaction. Where one fails nothing is done, and details.items names each that does, unless atomic is false. It counts as one request for each ten items.",
		body:  jsonBody(body), answer: envelope(obj("type", "array", "items", item), described(obj("succeeded", obj("type", "integer"), "failed", obj("type", "integer")))),
		refused: []string{"VALIDATION", "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_KEY_REUSED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
	}
	d.path("/data/"+name+"/batch", obj("post", o.object(d)))
}

// closed reports whether a required field is closed to the viewer, so that every
// create is refused (contract R13).
func closed(r *access.EntityRights) bool {
	return slices.ContainsFunc(r.Entity.Fields, func(f *schema.Field) bool { return f.Required && !r.EditField[f.Index] })
}

// shown returns the schema of a record that the viewer wrote (contract R12).
func shown(r *access.EntityRights, name string) object {
	if r.May(access.Read) {
		return ref("schemas", name)
	}
	return ref("schemas", "Created")
}

func (d *document) listing(r *access.EntityRights) *operation {
	name := r.Entity.Name
	params := list{ref("parameters", "limit"), ref("parameters", "cursor")}
	about, refused := "Newest first. Pass meta.nextCursor back as cursor until hasMore is false.", []string{"VALIDATION"}
	switch {
	case name != schema.UserEntity:
		about = "Newest first, or as sort says. Pass meta.nextCursor back as cursor until hasMore is false."
		params = append(params, ref("parameters", "sort"), ref("parameters", "fields"), ref("parameters", "include"), ref("parameters", "count"))
		if slices.ContainsFunc(r.Entity.Fields, func(f *schema.Field) bool { return f.Searchable && r.ReadField[f.Index] }) {
			params = append(params, ref("parameters", "search"))
		}
		for _, f := range r.Entity.Fields {
			if f.Filterable() && r.ReadField[f.Index] {
				params = append(params, filters(f)...)
			}
		}
		params = append(params, filters(&schema.Field{Name: "created_at", Type: schema.Datetime})...)
		about += " Fields that are not indexed, and id, owner_id and updated_at, have filters of the same form."
		refused = append(refused, "QUERY_TOO_BROAD")
	case r.Column("email").Read:
		params = append(params, filter("email", obj("type", "string")))
	}
	return &operation{
		tag: name, id: name + ".list", summary: "List records of " + name, parameters: params, security: d.credentials(), status: 200,
		about:  about,
		answer: envelope(obj("type", "array", "items", ref("schemas", name)), ref("schemas", "PageMeta")), refused: refused,
	}
}

func filter(field string, value object) object {
	return obj("name", "filter["+field+"]", "in", "query", "description", "Only records whose "+field+" has this value.", "schema", value)
}

// filters describes the parameters by which a field is filtered, one for each operator.
func filters(f *schema.Field) (params list) {
	params = append(params, filter(f.Name, valueOf(f)))
	for _, op := range f.Operators() {
		value, about := valueOf(f), ""
		switch op {
		case schema.OpEq:
			continue
		case schema.OpNe:
			about = "Only records whose " + f.Name + " has another value, or none."
		case schema.OpIn, schema.OpNin:
			value, about = obj("type", "string"), "Only records whose "+f.Name+" is one of these values, with commas between them."
			if op == schema.OpNin {
				about = "Only records whose " + f.Name + " is none of these values, with commas between them."
			}
		case schema.OpIsNull:
			value, about = obj("type", "boolean"), "Only records whose "+f.Name+" is not set, or is set."
		case schema.OpPrefix, schema.OpContains:
			value, about = obj("type", "string"), "Only records whose "+f.Name+map[schema.Operator]string{schema.OpPrefix: " begins with", schema.OpContains: " contains"}[op]+" this."
		case schema.OpLt, schema.OpLte, schema.OpGt, schema.OpGte:
			about = "Only records whose " + f.Name + " is " + comparisons[op] + " this."
		}
		params = append(params, obj("name", "filter["+f.Name+"]["+string(op)+"]", "in", "query", "description", about, "schema", value))
	}
	return params
}

var comparisons = map[schema.Operator]string{
	schema.OpLt: "less than", schema.OpLte: "at most", schema.OpGt: "greater than", schema.OpGte: "at least",
}

func (d *document) reading(name, schemaName string) *operation {
	return &operation{
		tag: name, id: name + ".get", summary: "Read a record of " + name, parameters: list{ref("parameters", "id"), ref("parameters", "ifNoneMatch")}, security: d.credentials(),
		status: 200, answer: envelope(ref("schemas", schemaName), nil), refused: []string{"VALIDATION", "NOT_FOUND"},
		more: obj("304", obj("description", "The record is still the one that If-None-Match names.")),
	}
}

func (d *document) changing(r *access.EntityRights, name string) *operation {
	return &operation{
		tag: name, id: name + ".update", summary: "Change a record of " + name, parameters: list{ref("parameters", "id"), ref("parameters", "ifMatch")}, security: d.credentials(),
		about: "Fields that the body does not name keep their values; null clears one.",
		body:  jsonBody(ref("schemas", name+".update")), status: 200, answer: envelope(shown(r, name), nil),
		refused: []string{"VALIDATION", "NOT_FOUND", "CONFLICT", "PRECONDITION_FAILED", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
	}
}

// recordSchema describes a record as the viewer reads it (contract R2): every
// readable field is present, null when unset.
func recordSchema(r *access.EntityRights) object {
	properties := obj("id", uuid(), "owner_id", uuid().with("description", "The id of the user who owns the record."),
		"created_at", obj("type", "string", "format", "date-time"), "updated_at", obj("type", "string", "format", "date-time"))
	return described(append(properties, fields(r)...))
}

func described(properties object) object {
	names := make([]string, len(properties))
	for i, m := range properties {
		names[i] = m.name
	}
	return obj("type", "object", "required", texts(names...), "properties", properties)
}

// fields describes the declared fields that the viewer may read.
func fields(r *access.EntityRights) (out object) {
	for _, f := range r.Entity.Fields {
		if !r.ReadField[f.Index] {
			continue
		}
		s := orNull(valueOf(f))
		if about := about(f); about != "" {
			s = s.with("description", about)
		}
		if !r.EditField[f.Index] {
			s = s.with("readOnly", true)
		}
		out = out.with(f.Name, s)
	}
	return out
}

// about says what a field's schema cannot.
func about(f *schema.Field) string {
	var notes []string
	switch {
	case f.Target == schema.UserEntity:
		notes = append(notes, "id of a user")
	case f.Type == schema.Multireference:
		notes = append(notes, "ids of records of "+f.Target)
	case f.Target != "":
		notes = append(notes, "id of a record of "+f.Target)
	}
	if f.Required {
		notes = append(notes, "required")
	}
	if f.Unique {
		notes = append(notes, "unique")
	}
	if f.Filterable() {
		notes = append(notes, "can be filtered by")
	}
	if f.Searchable {
		notes = append(notes, "is searched for words")
	}
	return strings.Join(notes, "; ")
}

// body describes the body of a create or an update: the fields that the viewer may
// edit.
func (d *document) body(r *access.EntityRights, create bool) object {
	properties, required := object{}, []string{}
	if r.MayName() && r.Entity.Name != schema.UserEntity {
		properties = properties.with("owner_id", uuid().with("description", "The user who owns the record; the caller when absent from a new one."))
	}
	for _, f := range r.Entity.Fields {
		if !r.ReadField[f.Index] || !r.EditField[f.Index] {
			continue
		}
		s := valueOf(f)
		if !f.Required {
			s = orNull(s)
		} else if create {
			required = append(required, f.Name)
		}
		if about := about(f); about != "" {
			s = s.with("description", about)
		}
		properties = properties.with(f.Name, s)
	}
	out := obj("type", "object", "additionalProperties", false, "properties", properties)
	if len(required) > 0 {
		out = out.with("required", texts(required...))
	}
	return out
}

// shares describes the shares of records (contract A16).
func (d *document) shares(name string) {
	params := list{ref("parameters", "id")}
	note := "Who may delete a record may share it."
	read := operation{
		tag: name, id: name + ".shares.list", summary: "List the shares of a record of " + name, parameters: params, security: d.credentials(), status: 200,
		answer: envelope(obj("type", "array", "items", ref("schemas", "Share")), nil), refused: []string{"VALIDATION", "NOT_FOUND"},
	}
	share := operation{
		tag: name, id: name + ".shares.create", summary: "Share a record of " + name, about: note + " 200 is a share that was there and now has this access.",
		parameters: params, security: d.credentials(), body: jsonBody(ref("schemas", "ShareWith")),
		status: 201, answer: envelope(ref("schemas", "Share"), nil), more: obj("200", success(envelope(ref("schemas", "Share"), nil))),
		refused: []string{"VALIDATION", "NOT_FOUND", "CONFLICT", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
	}
	unshare := operation{
		tag: name, id: name + ".shares.delete", summary: "Take back a share of a record of " + name, about: note,
		parameters: params, security: d.credentials(), body: jsonBody(ref("schemas", "ShareOf")),
		status: 200, answer: envelope(ref("schemas", "Unshared"), nil),
		refused: []string{"VALIDATION", "NOT_FOUND", "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"},
	}
	d.path("/data/"+name+"/{id}/shares", obj("get", read.object(d), "post", share.object(d), "delete", unshare.object(d)))
}

// users describes the built-in entity type user (contract U3 to U6).
func (d *document) users(r *access.EntityRights) {
	const name = schema.UserEntity
	one := object{}
	if r.May(access.Read) {
		properties := obj("id", uuid())
		for _, column := range access.UserColumns {
			if r.Column(column).Read {
				properties = properties.with(column, columnSchema(column))
			}
		}
		properties = properties.with("created_at", obj("type", "string", "format", "date-time")).with("updated_at", obj("type", "string", "format", "date-time"))
		d.schemas = d.schemas.with(name, described(append(properties, fields(r)...)))
		d.path("/data/"+name, obj("get", d.listing(r).object(d)))
		one = one.with("get", d.reading(name, name).object(d))
	}
	if r.May(access.Update) {
		body := object{}
		if r.Column("name").Edit {
			body = body.with("name", obj("type", "string", "minLength", 1, "maxLength", 200))
		}
		if r.Column("locale").Edit {
			body = body.with("locale", obj("type", list{"string", "null"}, "maxLength", 35))
		}
		for _, m := range d.body(r, false) {
			if m.name != "properties" {
				continue
			}
			for _, p := range m.value.(object) {
				if p.name != "owner_id" {
					body = append(body, p)
				}
			}
		}
		d.schemas = d.schemas.with(name+".update", obj("type", "object", "additionalProperties", false, "properties", body))
		one = one.with("patch", d.changing(r, name).object(d))
		d.batch(r)
	}
	if len(one) > 0 {
		d.tag(name, "The tenant's users. They are not created or deleted here.")
	}
	d.path("/data/"+name+"/{id}", one)
}

func columnSchema(column string) object {
	switch column {
	case "userType":
		return obj("type", "string", "enum", texts("internal", "external"), "readOnly", true)
	case "isOwner", "active":
		return obj("type", "boolean", "readOnly", true)
	case "email":
		return obj("type", "string", "readOnly", true, "description", "can be filtered by")
	}
	return obj("type", "string")
}
