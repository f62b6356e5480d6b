package transfer_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/internal/gatetest"
	"gatehouse/internal/transfer"
)

// shop has records of several types, and staff with different rights.
const shop = `
tenant: acme
hosts: [acme.localhost]
public_api: {enabled: true}
entities:
  - name: contact
    fields:
      - {name: name, type: text, required: true}
      - {name: email, type: text, unique: true}
      - {name: margin, type: number, indexed: true}
permission_sets:
  - {name: work, entities: {contact: {create: true, read: true, update: true, fields: {margin: {read: false, edit: false}}}}}
  - {name: reader, entities: {contact: {read: true}}}
users:
  - {email: olivia@acme.example, name: Olivia, owner: true}
  - {email: sam@acme.example, name: Sam, permission_sets: [work]}
  - {email: rosa@acme.example, name: Rosa, permission_sets: [reader]}
`

const imports = "/admin/v1/data/contact/import"

// client sends a file by parts, as the console does.
type client struct {
	*gatetest.Actor
	part  transfer.ImportPart // what all parts have
	slice int                 // bytes of a part
	twice bool                // each part is sent again: its first answer was lost
	sent  int
	notes []string
	bad   []transfer.Failure
}

// send imports a file from where the client stands, and returns the last answer. It ends
// after `most` parts, 0 for all.
func (c *client) send(file string, most int) (out transfer.ImportedPart) {
	c.T.Helper()
	size := c.slice
	for n := 0; !out.Finished && (most == 0 || n < most); n++ {
		end := min(int(c.part.Offset)+size, len(file))
		c.part.Text, c.part.Last = file[c.part.Offset:end], end == len(file)
		body, err := json.Marshal(c.part)
		if err != nil {
			c.T.Fatal(err)
		}
		c.sent++
		a := c.Post(imports, string(body)).Want(200, "")
		if c.twice {
			again := c.Post(imports, string(body)).Want(200, "")
			var first, second transfer.ImportedPart
			a.Data(&first)
			again.Data(&second)
			if first.Offset != second.Offset || first.Counts != second.Counts || fmt.Sprint(first.Failures) != fmt.Sprint(second.Failures) || first.Finished != second.Finished {
				c.T.Fatalf("sent again, a part is answered %+v, the first time %+v", second, first)
			}
		}
		out = transfer.ImportedPart{}
		a.Data(&out)
		c.bad, c.notes = append(c.bad, out.Failures...), append(c.notes, out.Notes...)
		if out.Offset == c.part.Offset && !out.Finished {
			if size *= 2; size > 1<<24 {
				c.T.Fatalf("the import stands still: %+v", out)
			}
			n--
			continue
		}
		c.part.Input, c.part.Offset, c.part.Line, c.part.Restart, c.part.Before = out.Input, out.Offset, out.Line, false, ""
		if c.part.Format == transfer.CSV {
			c.part.Head = file[:out.Head]
		}
		size = c.slice
	}
	return out
}

func newClient(a *gatetest.Actor, slice int) *client {
	return &client{Actor: a, slice: slice, part: transfer.ImportPart{Format: transfer.CSV, Run: "run-of-the-first-client", Line: 1}}
}

// people is a CSV of n records with a byte order mark, line breaks within cells and
// characters of several bytes. Each seventh has no name.
func people(n int) string {
	var b strings.Builder
	b.WriteString("\ufeffname,email\r\n")
	for i := range n {
		name := fmt.Sprintf(`"Zoë ""%d"", ⁂`+"\n"+`of two lines"`, i)
		if i%7 == 6 {
			name = ""
		}
		fmt.Fprintf(&b, "%s,u%d@x.example\r\n", name, i)
	}
	return b.String()
}

func TestAFileIsImportedByParts(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		file := people(450)
		for _, slice := range []int{64 << 10, 1000, 333} {
			c := newClient(w.Staff("sam@acme.example"), slice)
			c.part.Run, c.part.Restart, c.part.By, c.twice = fmt.Sprintf("run-of-%010d", slice), true, "email", true
			out := c.send(file, 0)
			if all := out.Created + out.Updated + out.Unchanged; all != 450-64 || out.Failed != 64 || len(c.bad) != 64 {
				t.Fatalf("imported %+v, %d failures named; want 386 records and 64 failures", out.Counts, len(c.bad))
			}
			if slice == 64<<10 && out.Created != 386 || slice != 64<<10 && out.Unchanged != 386 {
				t.Errorf("%+v: the second import of the file is to change nothing", out.Counts)
			}
			if first := c.bad[0]; first.Line != 14 || first.Reason != "name: required" {
				t.Errorf("the first failure is %+v, want line 14, name: required", first)
			}
		}
		sam := w.Key("sam@acme.example")
		if got := len(sam.Get("/public/v1/data/contact?limit=200").Want(200, "").Records()); got != 200 {
			t.Fatalf("%d records on a page", got)
		}
		found := sam.Get("/public/v1/data/contact?filter[email]=u441@x.example").Want(200, "").Records()
		if len(found) != 1 || found[0]["name"] != "Zoë \"441\", ⁂\nof two lines" {
			t.Errorf("the record is %v", found)
		}
	})
}

// A part takes effect once also where clients send it at the same time.
func TestAnImportThatStandsElsewhereIsRefused(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		file := people(500)
		sam := w.Staff("sam@acme.example")
		first := newClient(sam, 8000)
		stood := first.send(file, 2)
		if stood.Finished || stood.Created == 0 {
			t.Fatalf("after two parts: %+v", stood)
		}

		second := newClient(sam, 8000)
		second.part.Run = "run-of-the-second-client"
		begin := func() transfer.ImportedPart {
			second.part.Text = file[:8000]
			body, _ := json.Marshal(second.part) //nolint:errchkjson // texts and numbers
			var refused struct {
				Error struct {
					Details struct{ Stands transfer.ImportedPart }
				}
			}
			a := sam.Post(imports, string(body)).Want(409, "CONFLICT")
			if err := json.Unmarshal(a.Body, &refused); err != nil {
				t.Fatal(err)
			}
			return refused.Error.Details.Stands
		}
		at := begin()
		if at.Offset != stood.Offset || at.Line != stood.Line || at.Counts != stood.Counts || at.Head != stood.Head || at.Input != stood.Input {
			t.Fatalf("the conflict says %+v, the import stands at %+v", at, stood)
		}
		goOn := func(text string) *gatetest.Answer {
			p := second.part
			p.Input, p.Head, p.Offset, p.Line, p.Text, p.Before = at.Input, file[:at.Head], at.Offset, at.Line, text[at.Offset:], text[at.Offset-at.Behind:at.Offset]
			body, _ := json.Marshal(p) //nolint:errchkjson // texts and numbers
			return sam.Post(imports, string(body))
		}
		second.part.By = "email"
		goOn(file).Want(409, "CONFLICT") // it was begun otherwise
		second.part.By = ""
		other := file[:at.Offset-20] + "x" + file[at.Offset-19:]
		goOn(other).Want(409, "CONFLICT") // another file with the same beginning
		goOn(file).Want(200, "")
		body, _ := json.Marshal(first.part)                   //nolint:errchkjson // texts and numbers
		sam.Post(imports, string(body)).Want(409, "CONFLICT") // the first client was overtaken
		rosa := newClient(w.Staff("olivia@acme.example"), 1<<20)
		if out := rosa.send(people(500), 0); !out.Finished { // what others import is theirs
			t.Errorf("an import of the same file by another user: %+v", out)
		}
	})
}

// Many send the same part at once: it has effect once.
func TestAPartHasEffectOnce(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		sam := w.Staff("sam@acme.example")
		for _, same := range []bool{true, false} { // one run that sends it again and again, and many runs
			name := fmt.Sprintf("same-%t", same)
			part := transfer.ImportPart{Format: transfer.NDJSON, Line: 1, Text: strings.Repeat(`{"name":"`+name+`"}`+"\n", 100), Last: true}
			answers := make([]*gatetest.Answer, 8)
			var wait sync.WaitGroup
			for i := range answers {
				part.Run = "run-of-many-" + name
				if !same {
					part.Run += fmt.Sprint(i)
				}
				body, _ := json.Marshal(part) //nolint:errchkjson // texts and numbers
				wait.Go(func() { answers[i], _ = sam.Try("POST", imports, string(body)) })
			}
			wait.Wait()
			for _, a := range answers {
				if a == nil || a.Status != 200 && a.Status != 409 {
					t.Errorf("%s: a part is answered %v", name, a)
				}
			}
			if n := strings.Count(pages(sam, "format=ndjson"), name); same && n != 100 || n%100 != 0 || n == 0 {
				t.Errorf("%s: %d records were made, want each import's 100 once", name, n)
			}
		}
	})
}

func TestADryRunByPartsKeepsNothing(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		c := newClient(w.Staff("sam@acme.example"), 4000)
		c.part.DryRun = true
		out := c.send(people(300), 0)
		if len(c.bad) != 42 || !out.Finished {
			t.Errorf("%d failures are named, want 42: %+v", len(c.bad), out)
		}
		if got := w.Key("sam@acme.example").Get("/public/v1/data/contact").Want(200, "").Records(); len(got) != 0 {
			t.Errorf("a dry run kept %d records", len(got))
		}
		c = newClient(w.Staff("sam@acme.example"), 1<<20)
		if out := c.send(people(300), 0); out.Created != 300-42 {
			t.Errorf("after a dry run: %+v", out.Counts)
		}
	})
}

func TestPartsThatAreNotValid(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		sam := w.Staff("sam@acme.example")
		part := func(change func(p *transfer.ImportPart)) string {
			p := transfer.ImportPart{Format: transfer.CSV, Run: "run-of-the-first-client", Line: 1, Text: "name\nAda\n", Last: true}
			change(&p)
			body, _ := json.Marshal(p) //nolint:errchkjson // texts and numbers
			return string(body)
		}
		for name, tt := range map[string]struct {
			change func(p *transfer.ImportPart)
			words  string
		}{
			"a format":            {func(p *transfer.ImportPart) { p.Format = "xls" }, "expected csv or ndjson"},
			"no name of the run":  {func(p *transfer.ImportPart) { p.Run = "" }, "16 to 64 characters"},
			"a place before it":   {func(p *transfer.ImportPart) { p.Offset = -1 }, "expected a place"},
			"no header":           {func(p *transfer.ImportPart) { p.Offset, p.Line, p.Input = 5, 2, "x" }, "expected the header"},
			"nothing known":       {func(p *transfer.ImportPart) { p.Offset, p.Line, p.Input, p.Head = 5, 2, "x", "name\n" }, "no import of this input is known"},
			"an unknown column":   {func(p *transfer.ImportPart) { p.Text = "name,wrong\n" }, "wrong\\\": unknown field"},
			"a hidden column":     {func(p *transfer.ImportPart) { p.Text = "name,margin\n" }, "margin\\\": unknown field"},
			"no unique field":     {func(p *transfer.ImportPart) { p.By = "name" }, "expected a unique field"},
			"an open quotation":   {func(p *transfer.ImportPart) { p.Text = "name\n\"Ada\n" }, "a quotation mark begins a cell"},
			"too long for a part": {func(p *transfer.ImportPart) { p.Text = strings.Repeat("x", 3<<20) }, "at most 2 MiB"},
			"a record too long": {func(p *transfer.ImportPart) {
				p.Text, p.Last = "name\n"+strings.Repeat("x", 2<<20+100), false
			}, "longer than 2 MiB"},
			"too many cells": {func(p *transfer.ImportPart) { p.Text = strings.Repeat(",", 1<<20) + "\n" }, "more than 2000 cells"},
			"nothing at all": {func(p *transfer.ImportPart) { p.Text = "" }, "the input is empty"},
		} {
			t.Run(name, func(t *testing.T) {
				a := sam.Post(imports, part(tt.change)).Want(400, "VALIDATION")
				if !strings.Contains(string(a.Body), tt.words) {
					t.Errorf("%s: want %q", a.Body, tt.words)
				}
			})
		}
		w.Staff("olivia@acme.example").Post("/admin/v1/data/user/import", part(func(*transfer.ImportPart) {})).Want(400, "VALIDATION")
		sam.Post("/admin/v1/data/nothing/import", part(func(*transfer.ImportPart) {})).Want(404, "NOT_FOUND")
		w.Staff("rosa@acme.example").Post(imports, part(func(*transfer.ImportPart) {})).Want(403, "FORBIDDEN")
		sam.Post(imports, part(func(*transfer.ImportPart) {})).Want(200, "")
	})
}

// pages returns the text of an export by pages.
func pages(a *gatetest.Actor, query string) string {
	a.T.Helper()
	var text strings.Builder
	var columns []string
	for cursor := ""; ; {
		var page transfer.ExportedPart
		a.Get("/admin/v1/data/contact/export?"+query+cursor).Want(200, "").Data(&page)
		if columns != nil && !slices.Equal(columns, page.Columns) {
			a.T.Fatalf("columns %v, then %v", columns, page.Columns)
		}
		columns = page.Columns
		text.WriteString(page.Text)
		if page.Next == nil {
			return text.String()
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
}

func TestAnExportByPagesIsImportedAgain(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(shop)
		sam := w.Staff("sam@acme.example")
		newClient(sam, 1<<20).send(people(450), 0)
		for _, format := range []transfer.Format{transfer.CSV, transfer.NDJSON} {
			text := pages(sam, "sort=created_at&format="+string(format))
			if strings.Contains(text, "margin") {
				t.Errorf("%s: a hidden field is exported", format)
			}
			c := newClient(sam, 5000)
			c.part.Format, c.part.By = format, "email"
			if out := c.send(text, 0); out.Unchanged != 386 || out.All() != 386 {
				t.Errorf("%s: exported and imported again: %+v, want 386 unchanged", format, out.Counts)
			}
		}
		if text := pages(sam, "format=csv&fields=name&filter[email]=u3@x.example"); !strings.HasPrefix(text, "id,name\n") || strings.Count(text, "Zoë") != 1 {
			t.Errorf("a selection is exported as %q", text)
		}
		sam.Get("/admin/v1/data/contact/export?format=xls").Want(400, "VALIDATION")
		sam.Get("/admin/v1/data/contact/export?filter[nothing]=1").Want(400, "VALIDATION")
		w.Staff("olivia@acme.example").Get("/admin/v1/data/user/export").Want(400, "VALIDATION")
		w.Key("sam@acme.example").Get("/admin/v1/data/contact/export").Want(401, "UNAUTHORIZED")
	})
}
