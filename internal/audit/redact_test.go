package audit

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gatehouse/internal/user"
)

const canary = "CANARY7f3a"

// column encodes one event and returns its two columns, which must be JSON.
func column(t failer, ev *Event) (request, response string) {
	t.Helper()
	enc := &encoder{}
	enc.encode(ev)
	request, response = string(enc.buf[:enc.split]), string(enc.buf[enc.split:])
	for _, text := range []string{request, response} {
		if !json.Valid([]byte(text)) || strings.ContainsAny(text, "\n\r\x00") {
			t.Fatalf("not JSON on one line: %q", text)
		}
	}
	return request, response
}

func requestBody(t failer, contentType, body string) string {
	t.Helper()
	request, _ := column(t, &Event{ContentType: contentType, RequestBody: []byte(body)})
	return strings.TrimSuffix(strings.TrimPrefix(request, `{"body":`), "}")
}

const (
	jsonType = "application/json"
	formType = "application/x-www-form-urlencoded; charset=utf-8"
)

func TestBodies(t *testing.T) {
	for _, c := range []struct{ name, kind, body, want string }{
		{"nothing secret", jsonType, `{"a":1,"b":[true,null,"x"]}`, `{"a":1,"b":[true,null,"x"]}`},
		{"white space around", jsonType, " \n{\"a\" : 1}\r\n", `{"a" : 1}`},
		{"scalar", jsonType, `"x"`, `"x"`},
		{"password", jsonType, `{"email":"a@b","password":"p"}`, `{"email":"a@b","password":"[redacted]"}`},
		{"any case", jsonType, `{"NewPassWord":"p","REFRESHTOKEN":{"a":["p"]}}`, `{"NewPassWord":"[redacted]","REFRESHTOKEN":"[redacted]"}`},
		{"escapes", jsonType, `{"\u0070assword":"p"}`, `{"\u0070assword":"[redacted]"}`},
		{"long s", jsonType, `{"ſecret":"p","toKen":1}`, `{"ſecret":"[redacted]","toKen":"[redacted]"}`},
		{"deep", jsonType, `[[{"x":[{"secret":null,"y":2}]}]]`, `[[{"x":[{"secret":"[redacted]","y":2}]}]]`},
		{"not a secret name", jsonType, `{"passwords":1,"token_id":2,"my secret":3,"key":"token"}`, `{"passwords":1,"token_id":2,"my secret":3,"key":"token"}`},
		{"twice", jsonType, `{"token":"p","token":"q"}`, `{"token":"[redacted]","token":"[redacted]"}`},
		{"our token", jsonType, `{"a":"Bearer svc_api_0123456789abcdef!"}`, `{"a":"Bearer [redacted]!"}`},
		{"our token as a name", jsonType, `{"svc_whk_0123456789abcdef":1}`, `{"[redacted]":1}`},
		{"our token, escaped", jsonType, `{"a":"svc\u005fapi_0123456789abcdef"}`, `{"a":"[redacted]"}`},
		{"a prefix is no token", jsonType, `{"a":"svc_api_0123"}`, `{"a":"svc_api_0123"}`},
		{"JSON in a string", jsonType, `{"a":"{\"b\":{\"token\":\"p\"}}"}`, `{"a":"{\"b\":{\"token\":\"[redacted]\"}}"}`},
		{"no JSON", jsonType, `{"password":"p"`, `{"unparsed":true,"bytes":15}`},
		{"two values", jsonType, `{"token":1} {}`, `{"unparsed":true,"bytes":14}`},
		{"two plain values", jsonType, `{} {}`, `{"unparsed":true,"bytes":5}`},
		{"not UTF-8", jsonType, "{\"a\":\"\xff\"}", `{"unparsed":true,"bytes":9}`},
		{"text", "text/plain", `password=p`, `{"unparsed":true,"bytes":10}`},
		{"JSON under another type", "text/plain", `{"a":1}`, `{"a":1}`},
		{"form", formType, `a=1&password=p&b=x+y`, `"a=1&password=[redacted]&b=x+y"`},
		{"form, escaped name", formType, `%70assWORD=p&a=%C3%BC`, `"%70assWORD=[redacted]&a=%C3%BC"`},
		{"form, nested name", formType, `user[password]=p&user%5Btoken%5D=p`, `"user[password]=[redacted]&user%5Btoken%5D=[redacted]"`},
		{"form, our token", formType, `a=svc%5fapi_0123456789abcdef`, `"a=[redacted]"`},
		{"form with JSON inside", formType, `payload=%7B%22token%22%3A%22p%22%2C%22a%22%3A1%7D`, `"payload=%7B%22token%22%3A%22%5Bredacted%5D%22%2C%22a%22%3A1%7D"`},
		{"JSON that curl calls a form", formType, `{"password":"p"}`, `{"password":"[redacted]"}`},
		{"XML that is called a form", formType, `<password>p</password>`, `{"unparsed":true,"bytes":22}`},
		{"snake case", jsonType, `{"access_token":"p","New_Password":"p","api_key":1}`, `{"access_token":"[redacted]","New_Password":"[redacted]","api_key":1}`},
		{"form, snake case", formType, `access_token=p&API_KEY=p&apikey=p&user.password=p&key=1`, `"access_token=[redacted]&API_KEY=[redacted]&apikey=[redacted]&user.password=[redacted]&key=1"`},
		{"form that does not parse", formType, `a=%zz&password=p`, `{"unparsed":true,"bytes":16}`},
		{"multipart", "multipart/form-data; boundary=x", "--x\r\n", `{"unparsed":true,"bytes":5}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := requestBody(t, c.kind, c.body); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// JSON in strings is read to a limited depth; below it nothing that may be secret is kept.
func TestASecretInJSONInStringsIsTakenOutHoweverDeep(t *testing.T) {
	for _, inner := range []string{`{"password":"` + canary + `"}`, `{"a":"svc_api_0123456789abcdef ` + canary + `"}`, `{"a":"plain"}`} {
		body := inner
		for depth := range 7 {
			got := requestBody(t, jsonType, body)
			if strings.Contains(got, canary) && strings.Contains(inner, "password") || strings.Contains(got, "0123456789abcdef") ||
				strings.Contains(inner, "plain") && got != body {
				t.Errorf("JSON in %d strings: %s is kept as %s", depth, body, got)
			}
			quoted, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			body = `{"a":` + string(quoted) + `}`
		}
	}
}

func TestALongBodyIsRedactedBeforeItIsCut(t *testing.T) {
	filler := strings.Repeat(`"0123456789 \" é",`, 5000)
	for name, body := range map[string]string{
		"plain":                `[` + filler + `1]`,
		"secret before":        `[{"token":"` + canary + `"},` + filler + `1]`,
		"secret at the cut":    `["` + strings.Repeat("x", maxBody-20) + `",{"token":"` + canary + strings.Repeat("y", 100) + `"}]`,
		"secret of great size": `{"a":1,"password":"` + strings.Repeat(canary, 20_000) + `","b":` + `[` + filler + `1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := requestBody(t, jsonType, body)
			var mark struct {
				Truncated bool
				Bytes     int
				Start     string
			}
			if err := json.Unmarshal([]byte(got), &mark); err != nil || !mark.Truncated || mark.Bytes != len(body) {
				t.Fatalf("%v: %.100s", err, got)
			}
			if len(got) > maxBody || len(got) < maxBody/2 || strings.Contains(got, canary) || strings.Contains(got, "\ufffd") {
				t.Errorf("%d bytes, canary %v", len(got), strings.Contains(got, canary))
			}
		})
	}
	if got := requestBody(t, jsonType, `[`+filler+`}`); !strings.HasPrefix(got, `{"unparsed":true`) {
		t.Errorf("%.100s", got)
	}
	form := "a=" + strings.Repeat("b", maxBody) + "&token=" + canary
	if got := requestBody(t, formType, form); !strings.HasPrefix(got, `{"truncated":true`) || strings.Contains(got, canary) || len(got) > maxBody {
		t.Errorf("%.100s", got)
	}
}

// TestParsedBodies: of a body that is known to be JSON the same is kept.
func TestParsedBodies(t *testing.T) {
	long := strings.Repeat(`"filler",`, maxBody/4)
	for _, body := range []string{
		`{"a":1}`, ` {"a" : [1, {"token" : "` + canary + `"}]} `, `{"a":"[{\"secret\":\"` + canary + `\"}]"}`,
		`{"a":[` + long + `1],"token":"` + canary + `"}`, `{"token":"` + canary + `","a":[` + long + `1]}`,
		strings.Repeat(" \n", maxBody) + `{"password":"` + canary + `","a":[` + long + `1]}`,
		`{"a":"` + strings.Repeat("x", maxBody-20) + `","token":"` + canary + `"}`, `{"a":"` + strings.Repeat("x", maxBody-12) + `svc_api_` + strings.Repeat("0f", 32) + `"}`,
	} {
		of := func(parsed bool) string {
			request, _ := column(t, &Event{ContentType: jsonType, RequestBody: []byte(body), RequestParsed: parsed})
			return request
		}
		if of(true) != of(false) {
			t.Errorf("%.60s: %.200s, want %.200s", strings.TrimSpace(body), of(true), of(false))
		}
		if strings.Contains(of(true), canary) || strings.Contains(of(true), "0f0f0f0f") {
			t.Errorf("%.60s: %.200s", strings.TrimSpace(body), of(true))
		}
	}
}

func TestHeadersQueryAndWithheldBodies(t *testing.T) {
	ev := readOne()
	ev.Query = "limit=5&token=" + canary + "&cursor=abc"
	ev.RequestHeader.Set("Cookie", canary)
	ev.RequestHeader.Set("X-Webhook-Token", canary)
	ev.RequestHeader.Set("X-Svc_api_0123456789", canary)
	ev.RequestHeader["Origin"] = []string{"https://a", "https://b"}
	ev.RequestHeader.Set("User-Agent", "x svc_api_00112233445566 "+strings.Repeat("é", 2000))
	request, _ := column(t, ev)
	if strings.Contains(request, canary) || strings.Contains(request, "0f0f") || strings.Contains(request, "00112233") {
		t.Error(request)
	}
	var got struct {
		Query   string
		Headers map[string]string
		Names   []string `json:"header_names"`
	}
	if err := json.Unmarshal([]byte(request), &got); err != nil {
		t.Fatal(err)
	}
	if got.Query != "limit=5&token=[redacted]&cursor=abc" || got.Headers["origin"] != "https://a, https://b" || got.Headers["accept"] != "*/*" || len(got.Headers) != 3 {
		t.Errorf("%+v", got)
	}
	if want := []string{"accept-encoding", "authorization", "cookie", "x-forwarded-for", "x-[redacted]", "x-webhook-token"}; !reflect.DeepEqual(got.Names, want) {
		t.Errorf("names %v", got.Names)
	}
	for _, ev := range []*Event{
		{Class: Auth}, {Endpoint: "/auth/login"}, {Path: "/public/v1/auth/login"}, {Path: "/public/v1/auth/users/x/activate"},
	} {
		ev.RequestBody, ev.ResponseBody, ev.ContentType = []byte(`{"a":1}`), []byte(`{"b":1}`), jsonType
		if request, response := column(t, ev); request != "{}" || response != "{}" {
			t.Errorf("bodies of /auth are stored: %s %s", request, response)
		}
	}
}

// tree draws a JSON value, its text in odd spellings, and what must be left of it.
type tree struct {
	t    *rapid.T
	text strings.Builder
	n    int
}

func (g *tree) space() {
	g.text.WriteString(rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t\r\n "}).Draw(g.t, "space"))
}

// spell writes a string with some of its characters escaped.
func (g *tree) spell(s string) {
	g.text.WriteByte('"')
	for _, r := range s {
		switch {
		case r < 0x20 || r == '"' || r == '\\' || rapid.IntRange(0, 5).Draw(g.t, "escape") == 0 && r < 0x10000:
			fmt.Fprintf(&g.text, rapid.SampledFrom([]string{`\u%04x`, `\u%04X`}).Draw(g.t, "digits"), r)
		default:
			g.text.WriteRune(r)
		}
	}
	g.text.WriteByte('"')
}

// oddCase changes the case of some letters.
func oddCase(t *rapid.T, s string) string {
	b := []byte(s)
	for i, c := range b {
		if rapid.Bool().Draw(t, "upper") && 'a' <= c && c <= 'z' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

var plainText = rapid.StringMatching(`[a-zA-Zäß "\\/\x{1F600}_0-9]{0,12}`)

func (g *tree) value(depth int, hide bool) any {
	g.space()
	defer g.space()
	kind := rapid.IntRange(0, 6).Draw(g.t, "kind")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		g.text.WriteString("-12.5e1")
		return -125.0
	case 1:
		g.text.WriteString("null")
		return nil
	case 2, 3:
		s := plainText.Draw(g.t, "string")
		if hide {
			s += canary
		}
		g.spell(s)
		return s
	case 4:
		list := []any{}
		g.text.WriteByte('[')
		for i := range rapid.IntRange(0, 4).Draw(g.t, "length") {
			if i > 0 {
				g.text.WriteByte(',')
			}
			list = append(list, g.value(depth-1, hide))
		}
		g.text.WriteByte(']')
		return list
	default:
		object := map[string]any{}
		g.text.WriteByte('{')
		for i := range rapid.IntRange(0, 4).Draw(g.t, "length") {
			if i > 0 {
				g.text.WriteByte(',')
			}
			g.space()
			g.n++
			secret := rapid.IntRange(0, 3).Draw(g.t, "secret") == 0
			name := fmt.Sprint(plainText.Draw(g.t, "name"), g.n)
			if secret {
				name = oddCase(g.t, rapid.SampledFrom(secretNames).Draw(g.t, "secret name"))
			}
			g.spell(name)
			g.space()
			g.text.WriteByte(':')
			v := g.value(depth-1, hide || secret)
			if secret {
				v = redacted
			}
			object[name] = v
		}
		g.text.WriteByte('}')
		return object
	}
}

func TestNoSecretOfAJSONBodySurvivesAndAllElseDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := &tree{t: t}
		want := g.value(5, false)
		out, ok := appendJSON(nil, []byte(g.text.String()), maxBody, false)
		if !ok {
			t.Fatalf("does not parse: %s", g.text.String())
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if strings.Contains(string(out), canary) || strings.ContainsAny(string(out), "\r\n") || !reflect.DeepEqual(got, want) {
			t.Fatalf("of %s\ngot  %s\nwant %v", g.text.String(), out, want)
		}
		if same, ok := appendJSON(nil, []byte(g.text.String()), maxBody, true); !ok || string(same) != string(out) {
			t.Fatalf("of %s\nwhat is valid for certain becomes %s", g.text.String(), same)
		}
	})
}

// The scan finds every word, in any case and at any place, and nothing in texts
// without one.
func TestTheScanSeesWhatMayBeSecret(t *testing.T) {
	plain := `{"id":"0193a1b2-0000-7000-8000-000000000000","stage":"contacted","notes":"asked for the passport, took, sector, svelte, svc","c":1}`
	if suspicious([]byte(plain)) {
		t.Error("it sees what is not there")
	}
	for _, word := range []string{"token", "password", "secret", "svc_", `\u`, "ſ", "\u212a", "\n", "\r"} {
		for at := range len(plain) + 1 {
			for _, spelled := range []string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:]} {
				if spelled != word && strings.ContainsAny(word, "_\\ſ\u212a") {
					continue // in another case these would be something else
				}
				for _, text := range []string{plain[:at] + spelled + plain[at:], plain[:at] + spelled, spelled} {
					if !suspicious([]byte(text)) {
						t.Fatalf("it does not see %q in %q", spelled, text)
					}
				}
			}
		}
	}
}

// canary7 could be the digits of a token.
const canary7 = "7f3a7f3a7f3a7f3a"

// spellPercent writes a form's text with some of its bytes escaped.
func spellPercent(t *rapid.T, s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if rapid.IntRange(0, 3).Draw(t, "escape") == 0 || c >= 0x7f || c <= ' ' || strings.IndexByte("&=+%;\"<>{}[]:\\", c) >= 0 {
			fmt.Fprintf(&b, rapid.SampledFrom([]string{"%%%02x", "%%%02X"}).Draw(t, "digits"), c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func TestNoSecretOfAFormOrQuerySurvivesAndAllElseDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := url.Values{}
		var pairs []string
		for range rapid.IntRange(1, 6).Draw(t, "pairs") {
			name := rapid.StringMatching(`[a-zäß_/0-9]{1,8}`).Draw(t, "name") + "_"
			value := plainText.Draw(t, "value")
			kept := value
			if rapid.Bool().Draw(t, "secret") {
				name = oddCase(t, rapid.SampledFrom(secretNames).Draw(t, "secret name"))
				value, kept = value+canary, redacted
			}
			want.Add(name, kept)
			pairs = append(pairs, spellPercent(t, name)+"="+spellPercent(t, value))
		}
		form := strings.Join(pairs, "&")
		request, _ := column(t, &Event{Query: form, ContentType: formType, RequestBody: []byte(form)})
		var got struct{ Query, Body string }
		if err := json.Unmarshal([]byte(request), &got); err != nil {
			t.Fatalf("%v: %s", err, request)
		}
		for _, text := range []string{got.Query, got.Body} {
			back, err := url.ParseQuery(text)
			if err != nil || strings.Contains(request, canary) || !reflect.DeepEqual(back, want) {
				t.Fatalf("of %s\ngot  %s %v\nwant %v", form, text, err, want)
			}
		}
	})
}

// failer is what a testing.T and a rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func FuzzBody(f *testing.F) {
	for _, s := range []string{
		`{"password":"x"}`, `{"a":[1,{"\u0074oken":{}}]}`, `a=1&token=2`, `{"a":"svc_api_0011223344"}`, "\xff", `[`, `{"a":"{\"secret\":1}"}`, "{\"a\":\n1}",
	} {
		f.Add(s, jsonType, s)
		f.Add(s, formType, s)
	}
	f.Fuzz(func(t *testing.T, body, kind, query string) {
		ev := &Event{
			Query: query, Path: query, RequestBody: []byte(body), ContentType: kind, ResponseBody: []byte(body), ResponseContentType: kind,
			RequestHeader: http.Header{"User-Agent": {query}, kind: {body}}, UserID: user.ID(query), Endpoint: query, Method: kind, RequestID: body,
		}
		request, response := column(t, ev)
		if json.Valid([]byte(body)) && utf8.ValidString(body) {
			ev.Rendered, ev.ResponseContentType = true, jsonType
			before := response
			if _, response = column(t, ev); kind == jsonType && response != before {
				t.Fatalf("rendered %q, else %q", response, before)
			}
		}
		for _, text := range []string{request, response} {
			var v any
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				t.Fatal(err)
			}
			leaks(t, v)
		}
	})
}

// leaks fails for a secret name whose value is kept, anywhere in v.
func leaks(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if isSecretName(name) && value != redacted {
				t.Fatalf("%q keeps %v", name, value)
			}
			leaks(t, value)
		}
	case []any:
		for _, value := range v {
			leaks(t, value)
		}
	case string:
		if nextToken(v, 0) >= 0 {
			t.Fatalf("a token in %q", v)
		}
	}
}
