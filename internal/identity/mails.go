package identity

import (
	"net/url"
	"strings"

	"gatehouse/internal/email"
	"gatehouse/internal/mail"
	"gatehouse/internal/signin"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// compose returns a mail made from the tenant's template of that name, or else from the
// default one. path is the page of the tenant's app that accepts the token, "" for none.
// All addresses in the mail come from the configuration, never from a request.
func compose(t *tenant.Tenant, template string, to user.Account, path, token string) mail.Message {
	form, _ := mail.Default(template)
	if own, ok := t.Settings.EmailTemplates[template]; ok {
		form = mail.Template{Subject: own.Subject, Text: own.Text, HTML: own.HTML}
	}
	app := strings.TrimRight(t.AppURL(), "/")
	values := mail.Values{Name: to.Name, AppURL: app, TenantName: t.DisplayName}
	link := app + path + "?token=" + url.QueryEscape(token)
	switch template {
	case mail.Verification:
		values.VerifyURL = link
	case mail.PasswordReset:
		values.ResetURL = link
	}
	filled := form.Render(values)
	return mail.Message{From: signin.Sender(t), To: email.Mailbox(to.Email), Subject: filled.Subject, Text: filled.Text, HTML: filled.HTML}
}

// The pages that a tenant's app must have (contract M3).
const (
	verifyPage = "/verify"
	resetPage  = "/reset-password"
)

// Sample returns the mail that a template of the tenant makes, with links that lead
// nowhere, as it would be sent to a user.
func (s *Service) Sample(t *tenant.Tenant, name string, form tenant.EmailTemplate, to user.Account) mail.Message {
	with := *t
	with.Settings.EmailTemplates = map[string]tenant.EmailTemplate{name: form}
	page := map[string]string{mail.Verification: verifyPage, mail.PasswordReset: resetPage}[name]
	return compose(&with, name, to, page, "sample")
}
