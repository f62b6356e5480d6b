//go:build !race

package server_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest"
	"gatehouse/internal/manifest"
	"gatehouse/internal/records"
)

// A number has one form on both engines (contract V3); a number that is not a
// double, or an integer that would change, is refused wherever it occurs
// (contract V2).
func TestNumbersAreDoublesInOneForm(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(scales)
		olivia := w.Key("olivia@acme.example")
		self := "/public/v1/data/user/" + w.UserID("acme", "olivia@acme.example")
		for sent, kept := range map[string]string{
			`[1e5,100000,100000.0,1E+5]`:        `[100000,100000,100000,100000]`,
			`[-0,-0.0,0e5,0.0e-99999]`:          `[0,0,0,0]`,
			`[1.50,0.1000000000000000055]`:      `[1.5,0.1]`,
			`[9007199254740992,1e22]`:           `[9007199254740992,10000000000000000000000]`,
			`[1e-7,-25e-3]`:                     `[0.0000001,-0.025]`,
			`{"bb":1,"c":{"z":1,"y":2},"a":[]}`: `{"a":[],"c":{"y":2,"z":1},"bb":1}`,
			`["\u00e9\/\u0041\u000a\u001F"]`:    `["é/A\n\u001f"]`,
			`[5e-324]`:                          `[0.` + strings.Repeat("0", 323) + `5]`,
		} {
			made := olivia.Post(thing, `{"extra":`+sent+`}`).Want(201, "")
			read := olivia.Get(thing+"/"+made.ID()).Want(200, "")
			patched := olivia.Patch(self, `{"extra":`+sent+`}`).Want(200, "")
			for _, a := range []*gatetest.Answer{made, read, patched} {
				if got := a.Member("extra"); got != kept {
					t.Errorf("%s: %s: %.200s, want %.200s", a.Call, sent, got, kept)
				}
			}
		}
		for _, bad := range []string{
			"1e-20000", "-1e-20000", "1e-400", "2e-324", "1e400", "1e20000", "9007199254740993", "-9007199254740993", "9007199254740993.0",
			"9007199254740993e0", "9.007199254740993e15", "90071992547409930e-1", "12345678901234567890",
			"9007199254740994", "-9007199254740994.0", "1.0e16", "1152921504606846976", "100000000000000000000",
		} {
			for _, x := range []struct {
				answer *gatetest.Answer
				field  string
			}{
				{olivia.Post(thing, `{"n":`+bad+`}`), "n"},
				{olivia.Post(thing, `{"extra":{"a":[`+bad+`]}}`), "extra"},
				{olivia.Patch(self, `{"extra":[`+bad+`]}`), "extra"},
				{olivia.Get(thing + "?filter[n]=" + bad), "n"},
			} {
				x.answer.Want(400, "VALIDATION")
				if said := string(x.answer.Body); !strings.Contains(said, "(in /"+x.field) && fmt.Sprint(x.answer.Fields()) != "["+x.field+"]" {
					t.Errorf("%s %s: no word of %s: %s", x.answer.Call, bad, x.field, said)
				}
			}
			for _, slug := range []string{"run", "flow"} {
				if a := olivia.Post("/public/v1/custom/"+slug, `{"extra":[`+bad+`]}`); strings.HasPrefix(bad, "1e") && a.Status != 400 || a.Status >= 500 {
					t.Errorf("%s %s: %d %s", slug, bad, a.Status, a.Body)
				}
			}
		}
		if n := olivia.Get(thing).Want(200, "").Meta().Count; n == 0 {
			t.Error("nothing was kept")
		}
		if _, err := w.TryApply(strings.Replace(scales, "title: flow", "title: flow, n: 1e-20000", 1), manifest.Options{}); err == nil {
			t.Error("a manifest may hold 1e-20000")
		}
	})
}

// numerals returns a list of n numbers that take 302 bytes each when stored.
func numerals(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("1e-300,", n), ",") + "]" }

// The size of a record is bounded however it is written (contract V4).
func TestAStoredDocumentIsBounded(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(scales)
		olivia := w.Key("olivia@acme.example")
		self := "/public/v1/data/user/" + w.UserID("acme", "olivia@acme.example")
		fits, half, over := numerals(3400), numerals(1800), numerals(3500) // 1.03, 0.54 and 1.06 MB
		tooLarge := func(a *gatetest.Answer, field string) {
			t.Helper()
			if a.Want(400, "VALIDATION"); !strings.Contains(string(a.Body), "too large") || fmt.Sprint(a.Fields()) != "["+field+"]" {
				t.Errorf("%s: %.300s", a.Call, a.Body)
			}
		}
		tooLarge(olivia.Post(thing, `{"title":"x","extra":`+over+`}`), "extra")
		tooLarge(olivia.Patch(self, `{"extra":`+over+`}`), "extra")
		for _, slug := range []string{"run", "flow"} {
			for _, body := range []string{`{"extra":` + over + `}`, `{"extra":` + half + `,"more":` + half + `}`} {
				if a := olivia.Post("/public/v1/custom/"+slug, body); a.Status != 422 {
					t.Errorf("%s: %d %.300s", slug, a.Status, a.Body)
				}
			}
		}
		if n := olivia.Get(thing).Want(200, "").Meta().Count; n != 0 {
			t.Fatalf("%d records were kept", n)
		}
		for _, path := range []string{thing + "/" + olivia.Post(thing, `{"extra":`+fits+`}`).Want(201, "").ID(), self} {
			olivia.Patch(path, `{"extra":`+half+`}`).Want(200, "")
			tooLarge(olivia.Patch(path, `{"more":`+half+`}`), "more") // a body of 12 KB
			olivia.Patch(path, `{"extra":null,"more":`+half+`}`).Want(200, "")
			if a := olivia.Get(path).Want(200, ""); len(a.Body) > records.MaxDocument || a.Member("extra") != "null" {
				t.Errorf("%s: %d bytes", path, len(a.Body))
			}
		}
	})
}

// spoil stores values that earlier versions accepted: on PostgreSQL n numbers,
// each of which takes 16,002 bytes as text.
func spoil(t *testing.T, w *gatetest.World, table, column, key, id string, n int) {
	t.Helper()
	err := w.DB().For("acme").Write(db.Patiently(t.Context(), "numbers of a gigabyte"), func(tx db.Tx) error {
		data := `'{"title":"old","note":"kept","n":5,"extra":[1e-16000,1e-20000,9007199254740993.0],"more":[1]}'`
		if tx.Dialect().Engine == db.Postgres {
			data = `jsonb_build_object('title', 'old', 'note', 'kept', 'n', 5, 'more', jsonb_build_array(1),
				'extra', (SELECT jsonb_agg(CAST('1e-16000' AS NUMERIC)) FROM generate_series(1, ` + strconv.Itoa(n) + `)))`
		}
		weight := ""
		if table == "records" {
			weight = ", data_bytes = 0"
		}
		_, err := tx.Exec(t.Context(), `UPDATE `+table+` SET `+column+` = `+data+weight+` WHERE tenant_id = $1 AND `+key+` = $2`, id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Old invalid data does no harm: the record can be read, listed, filtered,
// changed and deleted, and the tenant keeps working.
func TestOldBadDataCanBeDealtWith(t *testing.T) {
	gatetest.Each(t, func(t *testing.T, w *gatetest.World) {
		w.Apply(scales)
		olivia := w.Key("olivia@acme.example")
		owner := w.UserID("acme", "olivia@acme.example")
		var ids []string
		for _, n := range []int{70_000, 2000, 100} { // the first is more than a PostgreSQL text can hold
			ids = append(ids, olivia.Post(thing, `{"title":"old","n":5}`).Want(201, "").ID())
			spoil(t, w, "records", "data", "record_id", ids[len(ids)-1], n)
		}
		spoil(t, w, "users", "custom_data", "user_id", owner, 2000)
		sound := func(a *gatetest.Answer) {
			t.Helper()
			if a.Want(200, ""); len(a.Body) > 2*records.MaxDocument {
				t.Fatalf("%s: %d bytes", a.Call, len(a.Body))
			}
		}
		for _, path := range []string{thing, thing + "?filter[title]=old", thing + "?filter[n]=5", thing + "/" + ids[0], "/public/v1/me", "/public/v1/data/user"} {
			sound(olivia.Get(path))
		}
		if a := olivia.Get(thing + "/" + ids[0]); a.Member("title") != `"old"` || a.Member("more") != "[1]" {
			t.Errorf("what is sound was lost: %.300s", a.Body)
		}
		out, err := manifest.Export(context.Background(), w.DB(), "acme")
		if err != nil || len(out) > 1<<20 {
			t.Errorf("export: %d bytes, %v", len(out), err)
		}
		w.Apply(strings.Replace(scales, "{name: note, type: text}", "{name: note, type: text, indexed: true}", 1)) // visits every record
		sound(olivia.Get(thing + "?filter[note]=kept"))
		// Changed in another field, the field corrected, deleted.
		sound(olivia.Patch(thing+"/"+ids[0], `{"title":"new"}`))
		sound(olivia.Patch(thing+"/"+ids[2], `{"title":"new"}`)) // already over the limit, and does not grow
		sound(olivia.Patch(thing+"/"+ids[1], `{"extra":[1.50]}`))
		if got := olivia.Get(thing+"/"+ids[1]).Want(200, "").Member("extra"); got != "[1.5]" {
			t.Errorf("mended: %s", got)
		}
		sound(olivia.Patch("/public/v1/data/user/"+owner, `{"extra":[2]}`))
		for _, id := range ids {
			sound(olivia.Delete(thing + "/" + id))
			olivia.Get(thing+"/"+id).Want(404, "NOT_FOUND")
		}
		if n := olivia.Get(thing+"?filter[title]=old").Want(200, "").Meta().Count; n != 0 {
			t.Errorf("%d records are still found", n)
		}
	})
}
