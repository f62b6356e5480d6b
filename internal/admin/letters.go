package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"gatehouse/internal/config"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/mail"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// mailWindow is the time in which few test mails may be sent.
const mailWindow = 10 * time.Minute

// limited returns RATE_LIMITED when something was done often enough within mailWindow.
func (s *Service) limited(c *httpapi.Authed, what string, often int) error {
	r := s.limiter.Take(string(c.Config.Tenant.ID)+"/admin/"+what, often, mailWindow)
	if r.Allowed {
		return nil
	}
	c.TellLimit(r)
	return fault.New(fault.RateLimited, "at most %d mails within %d minutes; try again later", often, int(mailWindow.Minutes())).After(mailWindow)
}

// maxWaiting bounds the waiting mails that are listed, maxWaitingCount those that are
// counted.
const (
	maxWaiting      = 100
	maxWaitingCount = 10_000
)

func (s *Service) mails(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	waiting, err := s.store.waiting(ctx, c.Config.Tenant.ID, maxWaiting)
	if err != nil {
		return httpapi.Reply{}, err
	}
	n, err := s.store.waitingCount(ctx, c.Config.Tenant.ID, maxWaitingCount+1)
	if err != nil {
		return httpapi.Reply{}, err
	}
	list := []WaitingMail{}
	for _, m := range waiting {
		list = append(list, WaitingMail{
			ID: m.ID, To: m.To, Subject: m.Subject, CreatedAt: m.CreatedAt, Tries: m.Tries, NextAt: m.NextAt, Sending: m.Sending, LastError: m.LastError,
		})
	}
	r, err := reply(c, list, nil)
	if err != nil {
		return r, err
	}
	meta, err := reply(c, WaitingMails{Count: len(list), Waiting: Bounded{Count: min(n, maxWaitingCount), More: n > maxWaitingCount}}, nil)
	r.Meta = meta.Data
	return r, err
}

// draft reads a template that is being written. An empty one is the built-in mail.
func draft(c *httpapi.Authed) (d TemplateDraft, builtIn bool, err error) {
	d, err = httpapi.Decode[TemplateDraft](c.Call)
	if err != nil {
		return d, false, err
	}
	form, known := mail.Default(d.Name)
	if !known || !slices.Contains(config.TemplateNames(), d.Name) {
		return d, false, fault.Fields("name: expected one of "+strings.Join(config.TemplateNames(), ", "),
			map[string]string{"name": "expected one of " + strings.Join(config.TemplateNames(), ", ")})
	}
	if d.Subject == "" && d.Text == "" && d.HTML == "" {
		return TemplateDraft{d.Name, form.Subject, form.Text, form.HTML}, true, nil
	}
	return d, false, nil
}

// flaws are why a draft cannot be saved.
func flaws(d TemplateDraft) []TemplateFlaw {
	list := []TemplateFlaw{}
	for _, m := range []struct{ name, text string }{{"subject", d.Subject}, {"text", d.Text}, {"html", d.HTML}} {
		one := mail.Template{}
		switch m.name {
		case "subject":
			one.Subject = m.text
		case "text":
			one.Text = m.text
		default:
			one.HTML = m.text
		}
		if strings.TrimSpace(m.text) == "" {
			list = append(list, TemplateFlaw{m.name, "expected text that is not empty"})
		} else if err := one.Check(); err != nil {
			list = append(list, TemplateFlaw{m.name, strings.TrimPrefix(err.Error(), m.name+": ")})
		}
	}
	return list
}

// someone is whom a preview is written to.
var someone = user.Account{Name: "Ada Lovelace", Email: "ada@customer.example"}

func (s *Service) preview(_ context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	d, builtIn, err := draft(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	m := s.letters.Sample(c.Config.Tenant, d.Name, tenant.EmailTemplate{Subject: d.Subject, Text: d.Text, HTML: d.HTML}, someone)
	return reply(c, TemplatePreview{
		From: m.From, To: m.To, Subject: m.Subject, Text: m.Text, HTML: m.HTML, Default: builtIn, Draft: d, Invalid: flaws(d),
	}, nil)
}

// testMail sends a draft to the user who is signed in.
func (s *Service) testMail(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	d, _, err := draft(c)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if wrong := flaws(d); len(wrong) > 0 {
		reasons := map[string]string{}
		for _, f := range wrong {
			reasons[f.Member] = f.Reason
		}
		return httpapi.Reply{}, fault.Fields("the template is not valid", reasons)
	}
	acc, err := s.store.account(ctx, c.Config.Tenant.ID, c.Session.UserID)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.limited(c, "test mail/"+string(acc.ID), 5); err != nil {
		return httpapi.Reply{}, err
	}
	m := s.letters.Sample(c.Config.Tenant, d.Name, tenant.EmailTemplate{Subject: d.Subject, Text: d.Text, HTML: d.HTML}, acc)
	m.Subject = "[Test] " + m.Subject
	return reply(c, Sent{To: acc.Email}, s.store.put(ctx, c.Config.Tenant.ID, m))
}
