// Package openapi describes the public API of a tenant as an OpenAPI 3.1 document:
// what one user may do, with the entity types, fields, custom endpoints and errors
// that this user can meet. It is served on the admin surface alone, and printed by
// "gatehouse openapi" (contract S18).
package openapi

import (
	"cmp"
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/schema"
)

// Base is the path under which every path of a document lies.
const Base = "/public/v1"

// document is a document under construction.
type document struct {
	viewer  access.Viewer
	config  *access.Config
	tags    list
	paths   object
	schemas object
	// refusals are the statuses that operations refer to.
	refusals map[int]bool
}

// Document returns the OpenAPI document of the viewer's tenant, as one line of
// JSON. It describes only what the viewer may do: an operation that could only be
// refused is left out, and so is a field that they may not read. The same
// configuration and viewer give the same bytes. It returns an error for a stored
// automation that cannot be decoded, and for the zero Viewer.
func Document(viewer access.Viewer, defined *custom.Definitions) ([]byte, error) {
	d := &document{viewer: viewer, config: viewer.Config(), refusals: map[int]bool{}}
	if d.config == nil {
		return nil, errNobody
	}
	d.me()
	for _, e := range d.config.Schema.Entities {
		if r, err := viewer.On(e.Name); err == nil {
			d.entity(r)
		}
	}
	if r, err := viewer.OnUsers(); err == nil {
		d.users(r)
	}
	if err := d.endpoints(defined); err != nil {
		return nil, err
	}
	if d.config.Tenant.Settings.ExternalIdentity.Enabled {
		d.identity()
	}
	return appendValue(make([]byte, 0, 32<<10), d.whole()), nil
}

// whole returns the document around what was described.
func (d *document) whole() object {
	t := d.config.Tenant
	return obj(
		"openapi", "3.1.0",
		"info", obj("title", cmp.Or(t.DisplayName, string(t.ID))+" API", "version", "1", "description", d.about()),
		"servers", list{obj("url", strings.TrimSuffix(t.BaseURL, "/")+Base)},
		"tags", d.tags,
		"paths", d.paths,
		"components", obj(
			"securitySchemes", d.securitySchemes(),
			"parameters", parameters(),
			"headers", headers(),
			"responses", d.responses(),
			"schemas", slices.Concat(fixedSchemas(), d.schemas),
		),
	)
}

func (d *document) about() string {
	who := "the tenant's owner"
	if email := d.viewer.Email(); email != "" {
		who = email
	}
	text := "What " + who + " may do with this API: entity types, fields and operations that are closed to this user are left out. " +
		"Which records an operation reaches is decided by ownership, roles, shares and sharing rules when it is called."
	if !d.config.Tenant.Settings.PublicAPI.Enabled {
		text += " The API is switched off: every call is 503 API_DISABLED."
	}
	return text
}

// tag adds a group of operations.
func (d *document) tag(name, about string) {
	d.tags = append(d.tags, obj("name", name, "description", about))
}

// path adds operations under a path, by method.
func (d *document) path(path string, operations object) {
	if len(operations) > 0 {
		d.paths = d.paths.with(path, operations)
	}
}

// operation is one method of a path.
type operation struct {
	tag, id, summary, about string
	parameters              list
	security                list
	body                    object // a request body; nil for none
	status                  int
	answer                  object   // the schema of the body of the success
	ownAnswer               string   // what a tenant's own code answers in place of it; "" for nothing
	more                    object   // further answers, by status
	refused                 []string // codes of errors, besides those of every operation
	anyError                bool     // the operation may be refused with codes of its own
}

// object returns the operation as the document has it.
func (o *operation) object(d *document) object {
	out := obj("tags", list{o.tag}, "operationId", o.id, "summary", o.summary)
	if o.about != "" {
		out = out.with("description", o.about)
	}
	if len(o.parameters) > 0 {
		out = out.with("parameters", o.parameters)
	}
	if o.body != nil {
		out = out.with("requestBody", o.body)
	}
	out = out.with("responses", d.answers(o))
	return out.with("security", o.security)
}

func jsonContent(s object) object { return obj("application/json", obj("schema", s)) }

// jsonBody returns a required JSON request body.
func jsonBody(s object) object { return obj("required", true, "content", jsonContent(s)) }

func ref(kind, name string) object { return obj("$ref", "#/components/"+kind+"/"+name) }

// envelope returns the schema of a success (contract H4).
func envelope(data, meta object) object {
	if meta == nil {
		meta = obj("type", "object", "additionalProperties", false)
	}
	return obj("type", "object", "required", texts("data", "meta"), "properties", obj("data", data, "meta", meta))
}

func (d *document) me() {
	d.tag("Me", "Whose credential this is, and what it may do.")
	d.schemas = d.schemas.with("Me", obj(
		"type", "object",
		"required", texts("userId", "email", "name", "isOwner", "abilities"),
		"properties", obj(
			"userId", uuid(), "email", obj("type", "string"), "name", obj("type", "string"), "isOwner", obj("type", "boolean"),
			"abilities", obj("type", "array", "description", "CASL raw rules: createMongoAbility of @casl/ability takes them as they are.", "items", obj(
				"type", "object", "required", texts("action", "subject"),
				"properties", obj("action", obj("type", "string"), "subject", obj("type", "string"),
					"fields", obj("type", "array", "items", obj("type", "string"))),
			)),
		),
	))
	o := operation{
		tag: "Me", id: "me.get", summary: "Who am I", status: 200, security: d.credentials(),
		answer: envelope(ref("schemas", "Me"), nil), refused: []string{"VALIDATION"},
	}
	d.path("/me", obj("get", o.object(d)))
}

// credentials returns what a call in the viewer's name presents: an API key, and
// for an external user their access token.
func (d *document) credentials() list {
	if d.viewer.External() {
		return list{obj("apiKey", list{}), obj("accessToken", list{})}
	}
	return list{obj("apiKey", list{})}
}

func uuid() object { return obj("type", "string", "format", "uuid") }

// valueOf returns the schema of a field's value that is not null (contract V1).
func valueOf(f *schema.Field) object {
	switch f.Type {
	case schema.Text:
		return obj("type", "string")
	case schema.Number:
		return obj("type", "number")
	case schema.Boolean:
		return obj("type", "boolean")
	case schema.Date:
		return obj("type", "string", "format", "date")
	case schema.Datetime:
		return obj("type", "string", "format", "date-time")
	case schema.Select:
		return obj("type", "string", "enum", texts(f.Options...))
	case schema.Multiselect:
		return obj("type", "array", "uniqueItems", true, "items", obj("type", "string", "enum", texts(f.Options...)))
	case schema.Reference:
		return uuid()
	case schema.Multireference:
		return obj("type", "array", "uniqueItems", true, "maxItems", schema.MaxReferences, "items", uuid())
	case schema.JSON:
		return obj("type", list{"object", "array"})
	}
	return obj("description", "a value of type "+string(f.Type))
}

// orNull returns a schema that allows null, too.
func orNull(s object) object {
	out := make(object, 0, len(s))
	for _, m := range s {
		switch v := m.value.(type) {
		case string:
			if m.name == "type" {
				m.value = list{v, "null"}
			}
		case list:
			if m.name == "type" {
				m.value = append(slices.Clone(v), "null")
			} else if m.name == "enum" {
				m.value = append(slices.Clone(v), nil)
			}
		}
		out = append(out, m)
	}
	return out
}
