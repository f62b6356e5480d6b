package mail

import (
	_ "embed"
	"strings"
)

// The mails of External Identity (contract M1).
const (
	Verification  = "external-user-email-verification"
	PasswordReset = "external-user-password-reset"
	Welcome       = "external-user-welcome"
)

// Default returns the built-in template of a mail, for tenants that have none of
// their own; ok is false if no mail has this name.
func Default(name string) (t Template, ok bool) {
	d, ok := defaults[name]
	if !ok {
		return Template{}, false
	}
	return d.template(), true
}

// wording is the text in which the built-in mails differ.
type wording struct {
	subject string
	preview string // the text that a mail program's list shows after the subject
	heading string
	intro   string
	button  string
	link    string // the variable with the URL of the button
	closing string
}

var defaults = map[string]wording{
	Verification: {
		subject: "Confirm your email address for {{tenant_name}}",
		preview: "One click and your account is ready.",
		heading: "Confirm your email address",
		intro:   "Thank you for signing up with {{tenant_name}}. Please confirm that this is your email address; after that you can sign in.",
		button:  "Confirm email address",
		link:    "{{verify_url}}",
		closing: "The link is valid for 24 hours. If you did not sign up, ignore this email and nothing will happen.",
	},
	PasswordReset: {
		subject: "Reset your password for {{tenant_name}}",
		preview: "Choose a new password. The link works for one hour.",
		heading: "Reset your password",
		intro:   "Somebody, most likely you, asked for a new password for your account with {{tenant_name}}. You can choose one here:",
		button:  "Choose a new password",
		link:    "{{reset_url}}",
		closing: "The link works once and for one hour. If you did not ask for it, ignore this email: your password stays as it is.",
	},
	Welcome: {
		subject: "Welcome to {{tenant_name}}",
		preview: "Your account is ready.",
		heading: "Welcome to {{tenant_name}}",
		intro:   "Your email address is confirmed and your account is ready. You can sign in now.",
		button:  "Go to {{tenant_name}}",
		link:    "{{app_url}}",
		closing: "Good to have you with us.",
	},
}

//go:embed default.html
var defaultHTML string

const defaultText = `Hello {{name}},

[intro]

[link]

[closing]

--
{{tenant_name}}
This email was sent automatically because this address was used with {{tenant_name}}.
`

// template inserts the wording into the layout. The layout's placeholders are in
// brackets; those in braces are variables, which Render replaces.
func (w wording) template() Template {
	fill := strings.NewReplacer("[subject]", w.subject, "[preview]", w.preview, "[heading]", w.heading,
		"[intro]", w.intro, "[button]", w.button, "[link]", w.link, "[closing]", w.closing)
	return Template{Subject: w.subject, Text: fill.Replace(defaultText), HTML: fill.Replace(defaultHTML)}
}
