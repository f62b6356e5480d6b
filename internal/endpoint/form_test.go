package endpoint_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"strings"
	"testing"
	"time"

	"gatehouse/internal/gatetest"
)

const boundary = "a-boundary-of-a-browser"

// part is one part of a multipart form, as it is sent.
func part(header, text string) string {
	return "--" + boundary + "\r\n" + header + "\r\n\r\n" + text + "\r\n"
}

func value(name, text string) string {
	return part(`Content-Disposition: form-data; name="`+name+`"`, text)
}

func parts(list ...string) string { return strings.Join(list, "") + "--" + boundary + "--\r\n" }

func asMultipart(a *gatetest.Actor) *gatetest.Actor {
	return a.With("Content-Type", "multipart/form-data; boundary="+boundary)
}

// TestMultipartForms are read like other forms, in token mode only.
func TestMultipartForms(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints(append(three("a", "automation: place_flow"), "{slug: act, target: {component: act}, auth: token}")...))
		hook, plain := asMultipart(w.Webhook("token-a")), w.Webhook("act")
		act := asMultipart(plain)
		a := hook.Post(custom+"token-a", parts(value("number", "Größe 1"), value("score", "2.5"), value("yes", "on"), value("tags", "a"), value("tags", "b"), value("other", "x"))).Want(200, "")
		echo := a.Record()["echo"].(map[string]any)
		if fmt.Sprint(echo) != "map[number:Größe 1 score:2.5 tags:[a b] yes:true]" {
			t.Errorf("%v", echo)
		}
		// As a browser sends it, with an empty choice of a file, and as Go does.
		a = hook.Post(custom+"token-a", parts(value("number", "2"), value("score", ""), value("yes", "0"),
			part("Content-Disposition: form-data; name=\"photo\"; filename=\"\"\r\nContent-Type: application/octet-stream", ""))).Want(200, "")
		if echo := a.Record()["echo"].(map[string]any); fmt.Sprint(echo) != "map[number:2 score:<nil> tags:<nil> yes:false]" {
			t.Errorf("%v", echo)
		}
		var made bytes.Buffer
		form := multipart.NewWriter(&made)
		for _, field := range [][2]string{{"do", "event"}, {"z", `a "quoted"` + "\r\ntext"}, {"größe", ""}} {
			if err := form.WriteField(field[0], field[1]); err != nil {
				t.Fatal(err)
			}
		}
		if err := form.Close(); err != nil {
			t.Fatal(err)
		}
		b := plain.With("Content-Type", form.FormDataContentType()).Post(custom+"act", made.String()).Want(200, "")
		if got := fmt.Sprint(b.Record()["inputs"]); got != "map[do:event größe: z:a \"quoted\"\r\ntext]" {
			t.Errorf("%q", got)
		}
		act.Post(custom+"act", parts(part("Content-Disposition: form-data; name=\"do\"\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Transfer-Encoding: 8bit", "null"))).Want(200, "")
		act.Post(custom+"act", "a preamble\r\n"+parts(value("do", "null"))+"an epilogue").Want(200, "")
		asMultipart(w.Key("sam@acme.example")).Post(custom+"key-a", parts(value("number", "3"))).Want(415, "UNSUPPORTED_MEDIA_TYPE")
	})
}

// TestWrongMultipartForms are refused, and nothing runs: files by the name of their field.
func TestWrongMultipartForms(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: act, target: {component: act}, auth: token, max_body_bytes: 10485760}"))
		act := w.Webhook("act")
		good := value("do", "null")
		for name, c := range map[string]struct{ kind, body, want string }{
			"a file":                      {"", parts(good, part("Content-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png", "x")), "photo"},
			"a file with an empty name":   {"", parts(good, part(`Content-Disposition: form-data; name="photo"; filename=""`, "x")), "photo"},
			"a file without content":      {"", parts(good, part(`Content-Disposition: form-data; name="photo"; filename="a.txt"`, "")), "photo"},
			"a file in extended notation": {"", parts(good, part(`Content-Disposition: form-data; name="photo"; filename*=utf-8''%61.txt`, "x")), "photo"},
			"a file in wrong notation":    {"", parts(good, part(`Content-Disposition: form-data; name="photo"; filename*=bogus`, "x")), "photo"},
			"two types":                   {"", parts(part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain\r\nContent-Type: text/plain; charset=utf-16", "x")), "plain text in UTF-8"},
			"longer as JSON":              {"", parts(good, value("a", strings.Repeat("\x01", 2_000_000))), "10 MiB as JSON"},
			"longer as JSON, encoded":     {"application/x-www-form-urlencoded", "do=null&a=" + strings.Repeat("%01", 2_000_000), "10 MiB as JSON"},
			"many fields":                 {"application/x-www-form-urlencoded", "do=null" + strings.Repeat("&a", 10_000), "at most 10000 fields"},
			"no boundary":                 {"multipart/form-data", parts(good), "boundary"},
			"an empty boundary":           {`multipart/form-data; boundary=""`, parts(good), "boundary"},
			"a long boundary":             {"multipart/form-data; boundary=" + strings.Repeat("x", 71), parts(good), "boundary"},
			"another boundary":            {"multipart/form-data; boundary=other", parts(good), "between its boundaries"},
			"no end":                      {"", good, "between its boundaries"},
			"cut in a header":             {"", "--" + boundary + "\r\nContent-Disp", "between its boundaries"},
			"nothing":                     {"", "", "between its boundaries"},
			"no disposition":              {"", parts(part("X-A: b", "x")), "Content-Disposition"},
			"two dispositions":            {"", parts(part("Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"", "x")), "one Content-Disposition"},
			"no name":                     {"", parts(part("Content-Disposition: form-data", "x")), "name="},
			"another disposition":         {"", parts(part(`Content-Disposition: attachment; name="a"`, "x")), "form-data; name="},
			"an encoding":                 {"", parts(part("Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64", "eA==")), "plain text in UTF-8"},
			"another charset":             {"", parts(part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: text/plain; charset=latin1", "x")), "plain text in UTF-8"},
			"parts in a part":             {"", parts(part("Content-Disposition: form-data; name=\"a\"\r\nContent-Type: multipart/mixed; boundary=b", "x")), "plain text in UTF-8"},
			"not UTF-8":                   {"", parts(good, value("a", "\xff")), "UTF-8"},
			"U+0000":                      {"", parts(good, value("a", "\x00")), "U+0000"},
			"many headers":                {"", parts(good, part(`Content-Disposition: form-data; name="a"`+strings.Repeat("\r\nX-A: b", 8), "x")), "at most 8 headers of 4096 bytes"},
			"a long header":               {"", parts(good, part(`Content-Disposition: form-data; name="a"`+"\r\nX-A: "+strings.Repeat("b", 5000), "x")), "at most 8 headers"},
			"a header of megabytes":       {"", parts(good, part(`Content-Disposition: form-data; name="a"`+strings.Repeat("\r\nX-A: b", 1<<20), "x")), ""},
			"many parts":                  {"", parts(good, strings.Repeat(value("a", ""), 1000)), "at most 1000 parts"},
			"a bomb of parts":             {"", parts(good, strings.Repeat(part("", ""), 200_000)), "Content-Disposition"},
		} {
			if c.kind == "" {
				c.kind = "multipart/form-data; boundary=" + boundary
			}
			begun := time.Now()
			a := act.With("Content-Type", c.kind).Post(custom+"act", c.body).Want(400, "VALIDATION")
			if !strings.Contains(strings.ReplaceAll(string(a.Body), `\"`, `"`), c.want) {
				t.Errorf("%s: %s", name, a.Body)
			}
			if took := time.Since(begun); took > 10*time.Second { // some milliseconds on a machine that does nothing else
				t.Errorf("%s took %s", name, took)
			}
			if c.want == "photo" && fmt.Sprint(a.Fields()) != "[photo]" {
				t.Errorf("%s: %s", name, a.Body)
			}
		}
		act.With("Content-Type", "multipart/form-data; boundary="+boundary).With("Content-Encoding", "gzip").Post(custom+"act", parts(good)).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		act.With("Content-Type", "application/x-www-form-urlencoded").With("Content-Encoding", "gzip").Post(custom+"act", "do=null").Want(415, "UNSUPPORTED_MEDIA_TYPE")
		act.With("Content-Type", "multipart/mixed; boundary="+boundary).Post(custom+"act", parts(good)).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		if n := kept(t, w); n != "0 records, 0 events, 0 keys" {
			t.Error(n)
		}
		asMultipart(act).Post(custom+"act", parts(good, strings.Repeat(value("a", ""), 999))).Want(200, "")
	})
}

// TestSecretsInMultipartForms do not reach the audit log.
func TestSecretsInMultipartForms(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: act, target: {component: act}, auth: token}"))
		a := asMultipart(w.Webhook("act")).Post(custom+"act", parts(value("do", "null"), value("password", "hunter2hunter2"))).Want(200, "")
		id := header(t, a, "X-Request-Id")
		log := w.AuditLog("acme")
		if log[id] == nil {
			t.Fatal("the call is not in the audit log")
		}
		if text := fmt.Sprintf("%+v", *log[id]); strings.Contains(text, "hunter2") {
			t.Error(text)
		}
	})
}

// TestOtherJSON: application/NAME+json is JSON, with a key and with a token; elsewhere it is not.
func TestOtherJSON(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(orders + endpoints("{slug: key, target: {component: act}}", "{slug: token, target: {component: act}, auth: token}"))
		for slug, a := range map[string]*gatetest.Actor{"key": w.Key("sam@acme.example"), "token": w.Webhook("token")} {
			for kind, want := range map[string]int{
				"application/cloudevents+json": 200, "application/vnd.api+json; charset=UTF-8": 200, "Application/Scim+JSON": 200, "application/ld+json; profile=x": 200,
				"application/+json": 415, "text/x+json": 415, "application/json+x": 415, "application/xml": 415, "application/vnd.api+json; charset=latin1": 415,
				"application/vnd+json/x": 415, "text/plain": 415,
			} {
				if answer := a.With("Content-Type", kind).Post(custom+slug, ok); answer.Status != want {
					t.Errorf("%s, %s: %d %s", slug, kind, answer.Status, answer.Body)
				}
			}
			a.With("Content-Type", "application/cloudevents+json").Post(custom+slug, `[{}]`).Want(400, "VALIDATION")
			a.With("Content-Type", "application/cloudevents+json").Post(custom+slug, `{"do": "null", "do": "null"}`).Want(400, "VALIDATION")
		}
		w.Key("sam@acme.example").With("Content-Type", "application/vnd.api+json").Post("/public/v1/data/counter", `{"n": 1}`).Want(415, "UNSUPPORTED_MEDIA_TYPE")
	})
}
