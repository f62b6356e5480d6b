package mail

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const errReset = syscall.ECONNRESET

// parsed is a mail as a program that receives it sees it.
type parsed struct {
	header              mail.Header
	subject, text, html string
}

func parse(t *testing.T, content string) parsed {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(content))
	if err != nil {
		t.Fatalf("%v in\n%s", err, content)
	}
	p := parsed{header: m.Header}
	if p.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	keep := func(kind string, r io.Reader) {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		body := strings.ReplaceAll(string(b), "\r\n", "\n")
		switch kind {
		case "text/plain; charset=UTF-8":
			p.text = body
		case "text/html; charset=UTF-8":
			p.html = body
		default:
			t.Errorf("a part is %s", kind)
		}
	}
	if kind != "multipart/alternative" {
		keep(m.Header.Get("Content-Type"), quotedprintable.NewReader(m.Body))
		return p
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for n := 0; ; n++ {
		part, err := parts.NextPart() // decodes quoted-printable
		if err == io.EOF {
			return p
		}
		if err != nil {
			t.Fatal(err)
		}
		if kind := part.Header.Get("Content-Type"); (n == 0) != strings.HasPrefix(kind, "text/plain") {
			t.Errorf("part %d is %s: the best one comes last", n, kind)
		}
		keep(part.Header.Get("Content-Type"), part)
	}
}

func TestAMailHasWhatAMailNeeds(t *testing.T) {
	m := hello
	m.ID, m.Date = "0190-abc", time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	l, err := compose(m)
	if err != nil {
		t.Fatal(err)
	}
	p := parse(t, string(l.content))
	for name, want := range map[string]string{
		"From": `"Acme" <no-reply@acme.example>`, "To": "<eva@customer.example>", "Date": "Sat, 21 Nov 2026 09:30:00 +0000",
		"Message-Id": "<0190-abc@acme.example>", "Mime-Version": "1.0", "Auto-Submitted": "auto-generated",
	} {
		if got := p.header[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(p.header) != 8 {
		t.Errorf("headers: %v", p.header)
	}
	if p.subject != "Grüße" || p.text != hello.Text || p.html != hello.HTML {
		t.Errorf("%+v", p)
	}
	for line := range strings.SplitSeq(string(l.content), "\r\n") {
		if len(line) > 78 || strings.ContainsAny(line, "\r\n") || !isASCII(line) {
			t.Errorf("line %q", line)
		}
	}
	m.ID, m.Date, m.HTML = "", time.Time{}, ""
	l, err = compose(m)
	if err != nil {
		t.Fatal(err)
	}
	p = parse(t, string(l.content))
	if date, err := p.header.Date(); err != nil || time.Since(date) > time.Minute || p.text != hello.Text {
		t.Errorf("%v, %v, %+v", date, err, p)
	}
	if id := p.header.Get("Message-Id"); !regexp.MustCompile(`^<[a-z0-9]{26}@acme\.example>$`).MatchString(id) {
		t.Error(id)
	}
}

func TestWhatPeopleCallThemselvesInjectsNothing(t *testing.T) {
	hostile := []string{
		"Eve\r\nBcc: victim@x.example", "Eve\nBcc: victim@x.example\n\nbody", "Eve\r\n\r\n<h1>", "Eve\x00\x1b[31m", `"Eve" <a@x.example>, b`,
		"a@x.example, b@x.example", "Eve <victim@x.example>", "=?utf-8?q?Eve=0D=0ABcc:_victim@x.example?=", "=\u202e?utf-8?q?Eve=0D=0ABcc:_x?=", "Eve\u2028Bcc: x\u2029", "\u202eevE",
		strings.Repeat(" ", 500) + "Eve", strings.Repeat("Ä\r\n", 500), strings.Repeat("x", 5000), "Eve\\", `Eve\"`, "\xff\xfe", "",
		"Eve\r\n Bcc: victim@x.example", "(comment", "Eve;", ":,;<>@[]\\\"()",
	}
	for _, name := range hostile {
		m := hello
		m.From = Address(name, "no-reply@acme.example")
		m.Subject = "Welcome, " + name
		l, err := compose(m)
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		p := parse(t, string(l.content))
		from, err := p.header.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Address != "no-reply@acme.example" || l.from != "no-reply@acme.example" {
			t.Errorf("%q: from %v, %v", name, from, err)
		}
		if to, err := p.header.AddressList("To"); err != nil || len(to) != 1 || to[0].Address != "eva@customer.example" {
			t.Errorf("%q: to %v, %v", name, to, err)
		}
		if len(p.header) != 8 || p.text != hello.Text || len(from) == 1 && oneLine(from[0].Name, maxName) != from[0].Name || oneLine(p.subject, maxSubject) != p.subject {
			t.Errorf("%q: %+v", name, p)
		}
		head, _, _ := strings.Cut(string(l.content), "\r\n\r\n")
		for line := range strings.SplitSeq(head, "\r\n") {
			if len(line) > 300 || strings.TrimSpace(line) == "" || strings.ContainsAny(line, "\r\n") {
				t.Errorf("%q: header line %q", name, line)
			}
		}

		m.From = name + " <no-reply@acme.example>" // not through Address: refused or harmless
		if l, err := compose(m); err == nil {
			if p := parse(t, string(l.content)); len(p.header) != 8 || l.to != "eva@customer.example" {
				t.Errorf("%q: %+v", name, p)
			}
		}
	}
}

func TestToIsOnePlainAddress(t *testing.T) {
	for _, to := range []string{
		"", "eva", "a@x.example, b@x.example", "a@x.example,b@x.example", "a@x.example;b@x.example", "Eva <a@x.example>", "<a@x.example>", "a@x.example>",
		"a@x.example\r\nBcc: b@x.example", "a@x.example\r\nRCPT TO:<b@x.example>", "a@x.example\n", " a@x.example", "a@x.example (Eva)", `"a,b"@x.example`,
		`"a b"@x.example`, "a@x.example\x00", "a@b@x.example", "group: a@x.example;", "a@", "@x.example", "a @x.example", strings.Repeat("a", 250) + "@x.example",
		"a@x.example\u202e", "a\u2028@x.example", "a@x.example SIZE=1", "-oQ/tmp @x.example",
	} {
		m := hello
		m.To = to
		_, err := compose(m)
		var permanent *Permanent
		if !errors.As(err, &permanent) || err.Error() != "message: To is not one plain address" {
			t.Errorf("%q: %v", to, err)
		}
	}
	for _, to := range []string{"a@x.example", "o'neil+tag@x.example", "a.b@[192.0.2.1]", "zoë@müller.example"} {
		m := hello
		m.To = to
		if l, err := compose(m); err != nil || l.to != to {
			t.Errorf("%q: %v", to, err)
		}
	}
}

func TestAMessageThatCannotBeSentIsRefusedForGood(t *testing.T) {
	for want, change := range map[string]func(m *Message){
		"message: From is not an address":                         func(m *Message) { m.From = "Acme <no-reply@acme.example>, Eve <eve@x.example>" },
		"message: it has no content":                              func(m *Message) { m.Text, m.HTML = "", "" },
		"message: ID must consist of letters, digits and hyphens": func(m *Message) { m.ID = "a>\r\nBcc: x" },
	} {
		m := hello
		change(&m)
		_, err := compose(m)
		var permanent *Permanent
		if !errors.As(err, &permanent) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := hello
	m.From = "no-reply@müller.example"
	if l, err := compose(m); err != nil || !strings.HasSuffix(parse(t, string(l.content)).header.Get("Message-Id"), "@mail.invalid>") {
		t.Error(err)
	}
}

func TestFilesAreWholeMailsThatOnlyTheirOwnerReads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "outbox")
	sender := Files(dir)
	m := hello
	m.Date = time.Date(2026, 11, 21, 9, 30, 0, 123456000, time.UTC)
	for range 3 {
		if err := sender.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
	for _, e := range entries {
		if !regexp.MustCompile(`^20261121T093000\.123456Z-[a-z0-9]{12}\.eml$`).MatchString(e.Name()) {
			t.Error(e.Name())
		}
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("file: %v, %v", info.Mode(), err)
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if p := parse(t, string(b)); p.text != hello.Text || p.html != hello.HTML || p.header.Get("To") != "<eva@customer.example>" {
			t.Errorf("%+v", p)
		}
	}
}

func TestAFileThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Files(file).Send(t.Context(), hello)
	var permanent *Permanent
	if err == nil || err.Error() != "file: not a directory" || errors.As(err, &permanent) {
		t.Error(err)
	}
}
