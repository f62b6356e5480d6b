package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
)

// templateNames are the mails whose texts can be replaced, and templateVariables
// the variables that those may contain (contract M1, M2).
var (
	templateNames     = []string{"external-user-email-verification", "external-user-password-reset", "external-user-welcome"}
	templateVariables = []string{"{{name}}", "{{verify_url}}", "{{reset_url}}", "{{app_url}}", "{{tenant_name}}"}
)

// TemplateNames lists the mails whose texts can be replaced.
func TemplateNames() []string { return slices.Clone(templateNames) }

var variable = regexp.MustCompile(`\{\{[^{}]*\}\}`)

var templateTable = table[tenant.EmailTemplate]{
	templateText("subject", func(t *tenant.EmailTemplate) *string { return &t.Subject }).needed("one line"),
	templateText("text", func(t *tenant.EmailTemplate) *string { return &t.Text }).needed("the plain text"),
	templateText("html", func(t *tenant.EmailTemplate) *string { return &t.HTML }).needed("the HTML"),
}

func templateText(key string, at func(*tenant.EmailTemplate) *string) attr[tenant.EmailTemplate] {
	return attr[tenant.EmailTemplate]{
		key: key, kind: TextMember,
		read: func(d *decoder, t *tenant.EmailTemplate, v *Value) { d.template(at(t))(v) },
		tell: func(t *tenant.EmailTemplate, _ func(string) string) *Value { return long(*at(t)) },
	}
}

func (d *decoder) templates(m *Spec, key string, n *Value) {
	m.templates = map[string]tenant.EmailTemplate{}
	var members []member
	for _, name := range templateNames {
		members = append(members, member{name, func(v *Value) {
			var t tenant.EmailTemplate
			given := templateTable.read(d, v, "an e-mail template", &t)
			for _, part := range []string{"subject", "text", "html"} {
				if v.Kind == Mapping && given[part] == nil {
					d.fail(v, "%s needs subject, text and html: %s is missing", name, part)
				}
			}
			if strings.ContainsAny(t.Subject, "\r\n\u0085\u2028\u2029") {
				d.fail(v.Member("subject"), "%s: expected a subject on one line", name)
			}
			m.mark(v, key, name)
			for part, at := range given {
				m.mark(at, key, name, part)
			}
			m.templates[name] = t
		}})
	}
	d.object(n, key, members...)
}

// template reads one text of a template.
func (d *decoder) template(p *string) func(*Value) {
	return func(n *Value) {
		s, ok := d.verbatim(n)
		if ok && strings.TrimSpace(s) == "" {
			d.bad(n, "expected text that is not empty")
		}
		for _, at := range variable.FindAllStringIndex(s, -1) {
			if one := s[at[0]:at[1]]; !slices.Contains(templateVariables, one) {
				d.Note(Problem{Place: n.Place, Line: lineOf(s, at[0]), Text: fmt.Sprintf("%s: there is no variable %s: expected %s",
					d.key, printable(one), orList(templateVariables))})
			}
		}
		*p = s
	}
}

func mergeTemplates(p *plan) {
	if !p.m.has("email_templates") {
		return
	}
	merged := maps.Clone(p.m.templates)
	if p.before.tenant != nil {
		for name, t := range p.before.tenant.Settings.EmailTemplates {
			if _, named := merged[name]; !named && !p.drops("email_templates", name) {
				merged[name] = t
			}
		}
	}
	p.after.tenant.Settings.EmailTemplates = merged
}

// checkTemplates refuses new texts that would not make a mail, or would carry the token of a
// link elsewhere (contract M2). Stored ones stay, so that an export applies.
func checkTemplates(p *plan) {
	for _, name := range sortedKeys(p.m.templates) {
		is := p.m.templates[name]
		if p.before.tenant != nil && p.before.tenant.Settings.EmailTemplates[name] == is {
			continue
		}
		for _, part := range []struct {
			name string
			of   mail.Template
		}{{"subject", mail.Template{Subject: is.Subject}}, {"text", mail.Template{Text: is.Text}}, {"html", mail.Template{HTML: is.HTML}}} {
			at := p.m.place("email_templates", name, part.name)
			if err := part.of.Check(); err != nil && !p.has(at.Path) {
				p.member(at, name, "%s", err)
			}
		}
	}
}

func exportTemplates(s *state) []pair { return []pair{{"email_templates", templatesOf(s.tenant)}} }

func templatesOf(t *tenant.Tenant) *Value {
	var list []pair
	for _, name := range sortedKeys(t.Settings.EmailTemplates) {
		one := t.Settings.EmailTemplates[name]
		list = append(list, pair{name, block(templateTable.export(&one, asIs)...)})
	}
	return block(list...)
}
