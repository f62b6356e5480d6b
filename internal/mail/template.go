package mail

import (
	"errors"
	"fmt"
	"html"
	"strings"
)

// Template is the text of a mail with {{variables}}: name, verify_url,
// reset_url, app_url and tenant_name. Text or HTML may be empty.
type Template struct{ Subject, Text, HTML string }

// Values are the values of the variables. Users choose Name and TenantName, which
// are put on one line; the service makes the URLs.
type Values struct{ Name, VerifyURL, ResetURL, AppURL, TenantName string }

// variables lists the variables, for error texts.
const variables = "{{name}}, {{verify_url}}, {{reset_url}}, {{app_url}}, {{tenant_name}}"

func (v Values) lookUp(variable string) (value string, known bool) {
	switch variable {
	case "name":
		return oneLine(v.Name, maxName), true
	case "verify_url":
		return oneLine(v.VerifyURL, maxURL), true
	case "reset_url":
		return oneLine(v.ResetURL, maxURL), true
	case "app_url":
		return oneLine(v.AppURL, maxURL), true
	case "tenant_name":
		return oneLine(v.TenantName, maxName), true
	}
	return "", false
}

const maxURL = 4096

// Render returns the template with its variables replaced, in one pass: braces inside a value have no meaning.
// In HTML, values are escaped for text and quoted attributes. The subject is one
// line without control characters. An unknown variable is left unchanged; Check
// reports it.
func (t Template) Render(v Values) Template {
	escaped := func(variable string) (string, bool) {
		value, known := v.lookUp(variable)
		return html.EscapeString(value), known
	}
	return Template{Subject: oneLine(fill(t.Subject, v.lookUp), maxSubject), Text: fill(t.Text, v.lookUp), HTML: fill(t.HTML, escaped)}
}

// fill returns s with each {{variable}} replaced that lookUp knows.
func fill(s string, lookUp func(variable string) (string, bool)) string {
	var b strings.Builder
	for {
		at, found := cutVariable(s)
		if !found {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(at.before)
		if value, known := lookUp(at.variable); known {
			b.WriteString(value)
			s = at.after
		} else {
			b.WriteString("{{")
			s = s[len(at.before)+2:]
		}
	}
}

// cut is a text around its first variable.
type cut struct{ before, variable, after string }

// cutVariable finds the first {{…}} and ignores spaces within the braces. found is
// false if there is no {{, or no }} after it.
func cutVariable(s string) (at cut, found bool) {
	before, rest, opened := strings.Cut(s, "{{")
	variable, after, closed := strings.Cut(rest, "}}")
	return cut{before, strings.TrimSpace(variable), after}, opened && closed
}

// Check returns an error for the template's author if the subject is not one line
// without control characters, a variable is unknown or not closed, one stands
// in an HTML tag outside a quoted attribute, or a link with a token stands where it would
// go elsewhere (contract M2).
func (t Template) Check() error {
	if strings.ContainsFunc(t.Subject, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		return errors.New("subject: expected one line without control characters")
	}
	for _, part := range []struct{ name, text string }{{"subject", t.Subject}, {"text", t.Text}, {"html", t.HTML}} {
		if err := checkVariables(part.text); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	if variable := unquoted(t.HTML); variable != "" {
		return fmt.Errorf("html: {{%s}} is part of a tag: expected it between tags or within a quoted attribute", variable)
	}
	return t.checkLinks()
}

func checkVariables(s string) error {
	for {
		at, found := cutVariable(s)
		if !found {
			if strings.Contains(s, "{{") {
				return errors.New("found {{ that nothing closes, expected one of " + variables)
			}
			return nil
		}
		if _, known := (Values{}).lookUp(at.variable); !known {
			return fmt.Errorf("found {{%s}}, expected one of %s", oneLine(at.variable, 40), variables)
		}
		s = at.after
	}
}

// unquoted returns the first variable that stands in a tag without quotes, where
// escaping would not keep the value from ending the attribute, or "".
func unquoted(s string) string {
	inTag, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case !inTag && strings.HasPrefix(s[i:], "<!--"):
			end := strings.Index(s[i+4:], "-->")
			if end < 0 {
				return ""
			}
			i += 4 + end + 2
		case !inTag:
			inTag = c == '<' && i+1 < len(s) && (isLetter(s[i+1]) || s[i+1] == '/' || s[i+1] == '!' || s[i+1] == '{')
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			inTag = false
		case strings.HasPrefix(s[i:], "{{"):
			at, _ := cutVariable(s[i:])
			return at.variable
		}
	}
	return ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
