package openapi

import (
	"gatehouse/internal/access"
	"gatehouse/internal/tenant"
)

// exchange is one operation of External Identity (contract I3).
type exchange struct {
	path, summary string
	body, answer  object // the members; a nil body is none
	optional      int    // how many members at the end of the body are optional
	status        int    // 0 is 200
	refused       []string
	with          string // a security scheme; "" for none
}

// identity describes External Identity: what anybody may call, what an external
// user may, and what a user with can_manage_external_users may.
func (d *document) identity() {
	d.tag("External Identity", "Registration, login and passwords of the end-users of the tenant's own app.")
	text, password := obj("type", "string"), obj("type", "string", "minLength", 8, "maxLength", 128)
	ok := obj("success", obj("type", "boolean", "const", true))
	active := obj("userId", uuid(), "status", obj("type", "string", "const", "active"))
	tokens := obj("accessToken", text, "refreshToken", text, "expiresIn", obj("type", "integer", "description", "Seconds."))
	token := obj("token", text)
	settings := &d.config.Tenant.Settings.ExternalIdentity
	calls := []exchange{
		{path: "verify", summary: "Verify an e-mail address", body: token, answer: active, refused: []string{"TOKEN_INVALID", "TOKEN_EXPIRED"}},
		{path: "resend-verification", summary: "Send the verification mail again", body: obj("email", text), answer: ok},
		{path: "login", summary: "Log in", body: obj("email", text, "password", text), answer: tokens, refused: []string{"INVALID_CREDENTIALS", "ACCOUNT_NOT_ACTIVE"}},
		{path: "refresh", summary: "Exchange a refresh token for the next tokens", body: obj("refreshToken", text), answer: tokens},
		{path: "logout", summary: "Log out", body: obj("refreshToken", text), answer: ok},
		{path: "request-password-reset", summary: "Ask for a mail to reset the password", body: obj("email", text), answer: ok},
		{
			path: "password-reset", summary: "Reset a password", body: obj("token", text, "newPassword", password), answer: ok,
			refused: []string{"TOKEN_INVALID", "TOKEN_EXPIRED"},
		},
	}
	if settings.OpenRegistration {
		calls = append([]exchange{d.registration(settings)}, calls...)
	}
	if d.viewer.May(access.ManageExternalUsers) {
		calls = append(calls,
			exchange{
				path: "users/{id}/activate", summary: "Activate a user", body: obj("activationToken", text), answer: active, with: "apiKey",
				refused: []string{"TOKEN_INVALID", "TOKEN_EXPIRED"},
			},
			exchange{
				path: "users/{id}/activation-token", summary: "Make a new activation token", answer: obj("activationToken", text), with: "apiKey",
				refused: []string{"NOT_FOUND", "CONFLICT"},
			})
	}
	if d.viewer.External() || d.viewer.TenantOwner() {
		calls = append(calls, exchange{
			path: "password", summary: "Change one's own password", body: obj("currentPassword", text, "newPassword", password), answer: ok, with: "accessToken",
			refused: []string{"INVALID_CREDENTIALS"},
		})
	}
	for i := range calls {
		d.path("/auth/"+calls[i].path, obj("post", calls[i].operation().object(d)))
	}
	if d.viewer.External() || d.viewer.TenantOwner() {
		d.self()
	}
}

// registration describes register; the custom fields of users are stored as text
// and not checked (contract I4).
func (d *document) registration(settings *tenant.ExternalIdentity) exchange {
	body := obj("email", obj("type", "string"), "password", obj("type", "string", "minLength", 8, "maxLength", 128), "name", obj("type", "string"),
		"locale", obj("type", "string"))
	optional := 1
	for _, f := range d.config.Schema.User.Fields {
		if f.Managed {
			continue // not for who registers (contract U9)
		}
		body = body.with(f.Name, obj("description", "Stored as text."))
		optional++
	}
	answer := obj("userId", uuid(), "activationMode", obj("type", "string", "const", settings.ActivationMode))
	if settings.ActivationMode == "app_managed" {
		answer = answer.with("activationToken", obj("type", "string"))
	}
	return exchange{path: "register", summary: "Register", body: body, optional: optional, answer: answer, status: 201, refused: []string{"EMAIL_TAKEN"}}
}

func (x *exchange) operation() *operation {
	o := &operation{
		tag: "External Identity", id: "Auth." + x.path, summary: x.summary, security: list{}, status: 200,
		answer: envelope(described(x.answer), nil), refused: append([]string{"VALIDATION", "TOO_MANY_REQUESTS"}, x.refused...),
	}
	if x.status != 0 {
		o.status = x.status
	}
	if x.with != "" {
		o.security = list{obj(x.with, list{})}
	}
	if x.with == "apiKey" {
		o.parameters = list{ref("parameters", "id")}
	}
	if x.body != nil {
		body := described(x.body[:len(x.body)-x.optional])
		body[2].value = x.body
		if x.path != "register" { // which ignores other members
			body = body.with("additionalProperties", false)
		}
		o.body = jsonBody(body)
		o.refused = append(o.refused, "PAYLOAD_TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE")
	}
	return o
}

// self describes GET /auth/me (contract I14).
func (d *document) self() {
	custom := object{}
	if r, err := d.viewer.OnUsers(); err == nil {
		for _, f := range r.Entity.Fields {
			custom = custom.with(f.Name, orNull(valueOf(f)))
		}
	}
	text := obj("type", "string")
	o := operation{
		tag: "External Identity", id: "Auth.me", summary: "The user of the access token", security: list{obj("accessToken", list{})}, status: 200,
		answer: envelope(described(obj("userId", uuid(), "email", text, "name", text, "locale", text, "emailVerified", obj("type", "boolean"),
			"customFields", obj("type", "object", "properties", custom), "createdAt", obj("type", "string", "format", "date-time"))), nil),
	}
	d.path("/auth/me", obj("get", o.object(d)))
}
