package openapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatehouse/internal/fault"
)

var errNobody = fault.New(fault.Forbidden, "nobody may do this")

// always are the codes with which any operation may be refused (contract H3).
var always = []fault.Code{
	fault.Unauthorized, fault.Forbidden, fault.IPDenied, fault.CORSDenied, fault.RateLimited,
	fault.APIDisabled, fault.Overloaded, fault.ServiceUnavailable, fault.Internal,
}

// answers returns the responses of an operation.
func (d *document) answers(o *operation) object {
	out := object{}
	if o.answer != nil {
		out = out.with(strconv.Itoa(o.status), success(o.answer))
	}
	out = append(out, o.more...)
	if o.ownAnswer != "" {
		out = out.with("2XX", obj("description", o.ownAnswer, "headers", answerHeaders(), "content", ownContent()))
	}
	statuses := map[int]bool{}
	for _, code := range always {
		statuses[fault.Status(code)] = true
	}
	for _, code := range o.refused {
		statuses[fault.Status(fault.Code(code))] = true
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		d.refusals[status] = true
		out = out.with(strconv.Itoa(status), ref("responses", refusal(status)))
	}
	if o.anyError {
		out = out.with("default", obj("description", "An error with a status and code that the endpoint chose.",
			"headers", answerHeaders(), "content", jsonContent(ref("schemas", "Error"))))
	}
	return out
}

func success(answer object) object {
	return obj("description", "The request succeeded.", "headers", answerHeaders(), "content", jsonContent(answer))
}

// ownContent describes the body of an answer that a tenant's own code makes (contract
// X12).
func ownContent() object {
	text := obj("schema", obj("type", "string"))
	return obj("application/json", obj("schema", object{}), "application/xml", text, "text/csv", text, "text/plain", text, "text/xml", text)
}

// refusal returns the name of the response for the errors of a status.
func refusal(status int) string { return "Refused" + strconv.Itoa(status) }

// responses returns a response for each status of errors that operations refer to.
func (d *document) responses() object {
	byStatus := map[int][]string{}
	for _, code := range fault.Codes() {
		byStatus[fault.Status(code)] = append(byStatus[fault.Status(code)], string(code))
	}
	out := object{}
	for _, status := range slices.Sorted(maps.Keys(d.refusals)) {
		codes := byStatus[status]
		slices.Sort(codes)
		out = out.with(refusal(status), obj(
			"description", "Refused: "+strings.Join(codes, ", ")+".",
			"headers", answerHeaders(),
			"content", jsonContent(obj("allOf", list{ref("schemas", "Error"), obj(
				"type", "object", "properties", obj("error", obj("type", "object", "properties", obj("code", obj("type", "string", "enum", texts(codes...))))),
			)})),
		))
	}
	return out
}

// headerNames are the headers of every answer that matter to a caller (contract
// H7), with what they say.
var headerNames = [][3]string{
	{"X-Request-Id", "string", "Finds the request in the tenant's logs."},
	{"X-RateLimit-Limit", "integer", "Requests a minute of the limit that applies."},
	{"X-RateLimit-Remaining", "integer", "Requests left in this window."},
	{"X-RateLimit-Reset", "integer", "Seconds until the window ends."},
	{"Retry-After", "integer", "Seconds to wait; on 429 and OVERLOADED."},
}

func headers() object {
	out := object{}
	for _, h := range headerNames {
		out = out.with(h[0], obj("description", h[2], "schema", obj("type", h[1])))
	}
	return out
}

func answerHeaders() object {
	out := object{}
	for _, h := range headerNames {
		out = out.with(h[0], ref("headers", h[0]))
	}
	return out
}

func (d *document) securitySchemes() object {
	out := obj("apiKey", obj("type", "http", "scheme", "bearer",
		"description", "An API key's token (svc_api_…). Every call runs with the permissions of the key's user."))
	if d.config.Tenant.Settings.ExternalIdentity.Enabled {
		out = out.with("accessToken", obj("type", "http", "scheme", "bearer", "bearerFormat", "JWT",
			"description", "The access token of an external user, from /auth/login. It lives an hour."))
	}
	return out.with("webhookToken", obj("type", "apiKey", "in", "header", "name", "X-Webhook-Token",
		"description", "The token of one webhook (svc_whk_…)."))
}

// parameters returns the parameters that several operations share.
func parameters() object {
	return obj(
		"id", obj("name", "id", "in", "path", "required", true, "schema", uuid()),
		"limit", obj("name", "limit", "in", "query", "description", "The largest number of records on the page.",
			"schema", obj("type", "integer", "minimum", 1, "maximum", 200, "default", 50)),
		"sort", obj("name", "sort", "in", "query", "description", "One or two fields, or created_at or updated_at, with a comma between them, each with - before it to begin with the greatest.",
			"schema", obj("type", "string")),
		"search", obj("name", "search", "in", "query", "description", "Up to 8 words, each of which is in one of the fields that are searched; one with * behind it is the beginning of a word.",
			"schema", obj("type", "string", "minLength", 1, "maxLength", 200)),
		"fields", obj("name", "fields", "in", "query", "description", "Names with commas between them: records then have these members and id alone, and lack others that their schema requires.", "schema", obj("type", "string")),
		"include", obj("name", "include", "in", "query", "description", "References with commas between them: meta.included has the records that the page refers to by them.",
			"schema", obj("type", "string")),
		"count", obj("name", "count", "in", "query", "description", "Whether meta has total.", "schema", obj("type", "boolean")),
		"ifMatch", obj("name", "If-Match", "in", "header", "description", "The ETag of the record as it was read: what was changed since then is not overwritten.", "schema", obj("type", "string")),
		"ifNoneMatch", obj("name", "If-None-Match", "in", "header", "description", "The ETag of the record as it was read: the answer is 304 if it is still the same.", "schema", obj("type", "string")),
		"idempotencyKey", obj("name", "Idempotency-Key", "in", "header",
			"description", "A name for this request. The same request with it within 24 hours does nothing, answers with the same ids, and has the header Idempotent-Replay: true.",
			"schema", obj("type", "string", "minLength", 1, "maxLength", 255)),
		"cursor", obj("name", "cursor", "in", "query", "description", "The nextCursor of the page before, unchanged, with the same filter.",
			"schema", obj("type", "string")),
	)
}

// fixedSchemas are the schemas of every document. Their names begin with a capital
// letter, and so never collide with an entity type's.
func fixedSchemas() object {
	return obj(
		"Error", obj("type", "object", "required", texts("error"), "properties", obj("error", ref("schemas", "Problem"))),
		"Problem", obj("type", "object", "required", texts("code", "message", "details"), "properties", obj(
			"code", obj("type", "string", "description", "For programs."),
			"message", obj("type", "string", "description", "For people; it may change."),
			"details", obj("type", "object", "properties", obj(
				"fields", obj("type", "object", "description", "A reason for each failing field.", "additionalProperties", obj("type", "string")),
				"items", obj("type", "array", "description", "Of a batch, each failing item.", "items", described(obj("index", obj("type", "integer"), "error", obj("type", "object")))),
			)),
		)),
		"PageMeta", obj("type", "object", "required", texts("count", "hasMore", "nextCursor"), "properties", obj(
			"count", obj("type", "integer", "description", "Records on this page."),
			"hasMore", obj("type", "boolean"),
			"nextCursor", obj("type", list{"string", "null"}),
			"included", obj("type", "object", "description", "With include: the records that those on the page refer to and the caller may see, each once, by entity type.",
				"additionalProperties", obj("type", "array", "items", obj("type", "object"))),
			"includedCut", obj("type", "boolean", "const", true, "description", "Some records are not included, as they would be more than 2 MiB."),
			"total", obj("description", "With count=true: how many records the filters select; above 10,000, or where too many had to be looked at, at least how many.",
				"anyOf", list{obj("type", "integer"), obj("type", "object", "required", texts("atLeast"), "properties", obj("atLeast", obj("type", "integer")))}),
		)),
		"Created", obj("type", "object", "required", texts("id"), "properties", obj("id", uuid())),
		"Deleted", obj("type", "object", "required", texts("id", "deleted"), "properties", obj("id", uuid(), "deleted", obj("type", "boolean", "const", true))),
		"Share", obj("type", "object", "required", texts("user", "role", "access", "created_at"), "properties", obj(
			"user", orNull(uuid()), "role", obj("type", list{"string", "null"}),
			"access", level(), "created_at", obj("type", "string", "format", "date-time"),
		)),
		"ShareWith", obj("type", "object", "required", texts("access"), "additionalProperties", false, "description", "Exactly one of user and role.",
			"properties", obj("user", principalText(), "role", obj("type", "string"), "access", level())),
		"ShareOf", obj("type", "object", "additionalProperties", false, "description", "Exactly one of user and role.",
			"properties", obj("user", principalText(), "role", obj("type", "string"))),
		"Unshared", obj("type", "object", "required", texts("user", "role", "deleted"), "properties", obj(
			"user", orNull(uuid()), "role", obj("type", list{"string", "null"}), "deleted", obj("type", "boolean", "const", true),
		)),
		"Receipt", obj("type", "object", "required", texts("received", "event_id"), "properties", obj("received", obj("type", "boolean", "const", true),
			"ignored", obj("type", "boolean", "const", true, "description", "There where the endpoint did nothing with the delivery."), "event_id", uuid())),
		"Duplicate", obj("type", "object", "required", texts("duplicate"), "properties", obj("duplicate", obj("type", "boolean", "const", true))),
	)
}

func level() object { return obj("type", "string", "enum", texts("read", "edit")) }

func principalText() object {
	return obj("type", "string", "description", "A user's id or e-mail address.")
}
