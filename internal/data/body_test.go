package data_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gatehouse/internal/gatetest"
)

// nested is a JSON value of n nested lists.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// TestMalformedBodies: each mistake has an error message with a word that names it.
func TestMalformedBodies(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example").With("Content-Type", "application/json")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		for _, x := range [][2]string{
			{"", "empty"},
			{" \t\r\n", "empty"},
			{"\ufeff" + `{"first_name":"Ada"}`, "byte order mark"},
			{"null", "object"},
			{"true", "object"},
			{"17", "object"},
			{`"text"`, "object"},
			{`[]`, "object"},
			{`[{"first_name":"Ada"}]`, "object"},
			{`first_name=Ada`, "object"},
			{`<contact/>`, "object"},
			{`{`, "too early"},
			{`{"first_name":"Ada"`, "too early"},
			{`{"first_name":"Ad`, "too early"},
			{`{"first_name"}`, "offset"},
			{`{"first_name":}`, "offset"},
			{`{"first_name":"Ada",}`, "offset"},
			{`{first_name:"Ada"}`, "offset"},
			{`{'first_name':'Ada'}`, "offset"},
			{`{"first_name":"Ada"/* why */}`, "offset"},
			{`{"first_name":undefined}`, "offset"},
			{`{"score":NaN}`, "offset"},
			{`{"score":Infinity}`, "offset"},
			{`{"score":01}`, "offset"},
			{`{"score":+1}`, "offset"},
			{`{"score":.5}`, "offset"},
			{`{"score":1.}`, "offset"},
			{`{"score":0x10}`, "offset"},
			{`{"first_name":"A` + "\n" + `da"}`, "offset"},
			{`{"first_name":"\x41da"}`, "offset"},
			{`{"first_name":"Ada"}{}`, "more data"},
			{`{"first_name":"Ada"} x`, "more data"},
			{`{"first_name":"Ada"}` + "\x00", "more data"},
			{`{"first_name":"A` + "\xff" + `"}`, "utf-8"},
			{`{"first_name":"A` + "\xc0\xaf" + `"}`, "utf-8"},
			{`{"first_name":"A` + "\xed\xa0\x80" + `"}`, "utf-8"}, // a surrogate in UTF-8's clothes
			{`{"` + "\xff" + `":1}`, "utf-8"},
			{`{"first_name":"\ud800"}`, "surrogate"},
			{`{"first_name":"\udc00\ud800"}`, "surrogate"},
			{`{"first_name":"\ud800\u0041"}`, "surrogate"},
			{`{"\udfff":1}`, "surrogate"},
			{`{"extra":{"a":"\ud800"}}`, "surrogate"},
			{`{"first_name":"A\u0000da"}`, "u+0000"},
			{`{"first_name\u0000":"Ada"}`, "u+0000"},
			{`{"extra":{"a\u0000":[1]}}`, "u+0000"},
			{`{"extra":["a",{"b":"\u0000"}]}`, "u+0000"},
			{`{"score":1e400}`, "range"},
			{`{"score":-1e400}`, "range"},
			{`{"extra":[1e309]}`, "range"},
			{`{"score":` + strings.Repeat("9", 400) + `}`, "range"},
			{`{"extra":` + nested(64) + `}`, "nested"}, // with the body itself, 65
			{`{"extra":` + nested(5000) + `}`, "nested"},
			{`{"extra":` + strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64) + `}`, "nested"},
			{`{"extra":` + strings.Repeat("[", 100000), "nested"},
			{`{"first_name":"Ada","first_name":"Ada"}`, "twice"},
			{`{"first_name":"Ada","first\u005fname":"Eve"}`, "twice"},
			{`{"\u0066irst_name":"Ada","first_name":"Eve"}`, "twice"},
			{`{"first_name":"Ada","first_name":null}`, "twice"},
			{`{"extra":{"a":1,"a":1}}`, "twice"},
			{`{"extra":{"a":1,"\u0061":2}}`, "twice"},
			{`{"extra":[{},{"b":{"a":1,"b":2,"a":3}}]}`, "twice"},
			{`{"x":{"a":1,"a":2}}`, "twice"}, // in an unknown field, too
		} {
			invalid(t, "POST "+x[0][:min(60, len(x[0]))], sam.Post(contact, x[0]), x[1])
			invalid(t, "PATCH "+x[0][:min(60, len(x[0]))], sam.Patch(one, x[0]), x[1])
		}
		if n := sam.Get(contact).Meta().Count; n != 1 {
			t.Errorf("%d records", n)
		}
	})
}

// TestBodiesWithinLimits tries the other side of each of those limits.
func TestBodiesWithinLimits(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		for field, values := range map[string][]string{
			"first_name": {`"\u00e9"`, `"\ud83d\ude00"`, `"a\u0001\"\\\/\b\f\n\r\tz"`, `"\u2028"`, `"\ufeff"`, `"` + strings.Repeat("x", 100000) + `"`, `"null"`, `""`},
			"score":      {"0", "-0", "1.5", "1e2", "1E+2", "9007199254740992", "-9007199254740992", "1e15", "5e-324", "0.1", "0e-400"},
			"vip":        {"true", "false", "null"},
			"born":       {`"2024-02-29"`, `"0001-01-01"`},
			"seen":       {`"2026-01-31T12:00:00Z"`, `"2026-01-31T12:00:00.123456789+14:00"`},
			"tags":       {"[]", `["a"]`, `["c","a"]`},
			"extra":      {"{}", "[]", nested(63), `{"a":{"A":1,"a ":2,"":3}}`, `[null,true,1e308,"\ud83d\ude00"]`, `{"__proto__":{"x":1},"constructor":1}`, ` { "b" : [ 1 , 2 ] , "a" : " x " } `},
		} {
			for _, v := range values {
				body := `{"` + field + `":` + v + `}`
				if field != "first_name" {
					body = `{"first_name":"Ada","` + field + `":` + v + `}`
				}
				made := sam.Post(contact, body)
				if made.Status != 201 {
					t.Errorf("%s %.60s: %d %.200s", field, v, made.Status, made.Body)
					continue
				}
				again := sam.Get(contact+"/"+made.ID()).Want(200, "")
				// PostgreSQL stores the value of JSON, not its text.
				if !reflect.DeepEqual(again.Record(), made.Record()) {
					t.Errorf("%s %.60s: created as %.300s, read as %.300s", field, v, made.Body, again.Body)
				}
				var sent any
				if err := json.Unmarshal([]byte(v), &sent); err != nil {
					t.Fatal(err)
				}
				if got := again.Record()[field]; !reflect.DeepEqual(got, sent) {
					t.Errorf("%s: sent %.60s, read %.60v", field, v, got)
				}
			}
		}
	})
}

// TestWrongValues: the error has the name of the field and what was expected.
func TestWrongValues(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		for field, values := range map[string][]string{
			"first_name": {"null", "1", "true", "{}", `["Ada"]`},
			"email":      {"1", "[]"},
			"score":      {`"1"`, `""`, "true", "[1]", "{}", "9007199254740993", "-9007199254740993", "1e16", "9007199254740992.5e1", "1e308"},
			"vip":        {`"true"`, "1", "0", "[]"},
			"born":       {`""`, `"2023-02-29"`, `"2023-13-01"`, `"2023-1-1"`, `"2023-01-01T00:00:00Z"`, `"20230101"`, "2023", `" 2023-01-01"`},
			"seen":       {`"2026-01-31"`, `"2026-01-31T12:00:00"`, `"2026-01-31 12:00:00Z"`, `"2026-01-31T25:00:00Z"`, `"now"`, "0"},
			"stage":      {`"New"`, `""`, `"open"`, "1", `["new"]`},
			"tags":       {`"a"`, `["d"]`, `["a","a"]`, `[1]`, `[null]`, "{}", `["A"]`},
			"account":    {`""`, `"x"`, "1", `"01890000-0000-7000-8000-000000000000"`, "{}", `"` + strings.Repeat("x", 10000) + `"`},
			"extra":      {`"text"`, "1", "true"},
		} {
			for _, v := range values {
				failing(t, sam.Patch(one, `{"`+field+`":`+v+`}`), field)
				if field != "first_name" {
					failing(t, sam.Post(contact, `{"first_name":"Ada","`+field+`":`+v+`}`), field)
				}
			}
		}
	})
}

func TestContentType(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		const body = `{"first_name":"Ada"}`
		one := contact + "/" + sam.Post(contact, body).Want(201, "").ID()
		for _, kind := range []string{
			"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", `application/json; charset="utf-8"`, "Application/JSON",
			"application/json; profile=x",
		} {
			sam.With("Content-Type", kind).Post(contact, body).Want(201, "")
			sam.With("Content-Type", kind).Patch(one, body).Want(200, "")
		}
		for _, kind := range []string{
			"text/plain", "text/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "application/octet-stream",
			"application/merge-patch+json", "application/vnd.api+json", "application/jsonx", "application", "json", "*/*", ";", "application/json, text/plain",
			"application/json; charset=latin1", "application/json; charset=iso-8859-1", "application/json; charset=utf-16", "application/json; charset=",
		} {
			sam.With("Content-Type", kind).Post(contact, body).Want(415, "UNSUPPORTED_MEDIA_TYPE")
			sam.With("Content-Type", kind).Patch(one, body).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		}
		sam.With("Content-Type", "application/json").With("Content-Type", "application/json").Post(contact, body).Want(415, "UNSUPPORTED_MEDIA_TYPE")
		for _, encoding := range []string{"gzip", "deflate", "br", "gzip, identity", "x"} {
			for _, kind := range []string{"application/json", "application/json; charset=utf-8"} {
				encoded := sam.With("Content-Type", kind).With("Content-Encoding", encoding)
				encoded.Post(contact, "\x1f\x8b\x08").Want(415, "UNSUPPORTED_MEDIA_TYPE")
				encoded.Patch(one, body).Want(415, "UNSUPPORTED_MEDIA_TYPE")
			}
		}
		sam.With("Content-Encoding", "identity").Patch(one, body).Want(200, "")
		sam.Post(contact, "").Want(415, "UNSUPPORTED_MEDIA_TYPE") // no body has no type
	})
}

// TestGetAndDeleteDoNotReadABody.
func TestGetAndDeleteDoNotReadABody(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(acme)
		sam := w.Key("sam@acme.example")
		one := contact + "/" + sam.Post(contact, `{"first_name":"Ada"}`).Want(201, "").ID()
		for _, body := range []string{`{"first_name":"Eve"}`, `{`, strings.Repeat("x", 2<<20)} {
			for _, path := range []string{"/public/v1/me", contact, one} {
				sam.With("Content-Type", "text/plain").Do("GET", path, body).Want(200, "")
			}
		}
		if got := sam.Get(one).Record()["first_name"]; got != "Ada" {
			t.Errorf("first_name %v", got)
		}
		sam.Do("DELETE", one, `{"id":"another"}`).Want(200, "")
		sam.Get(one).Want(404, "NOT_FOUND")
	})
}
