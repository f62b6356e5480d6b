package records_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/db/dbtest"
	"gatehouse/internal/fault"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
)

// values lists what each type of field accepts and refuses (contract V1, V2).
// An accepted value is shown unchanged unless a second text is given.
var values = []struct {
	kind      schema.Type
	good, bad []string
}{
	{
		schema.Text,
		[]string{`"a"`, `""`, `"Ünïcode 🙂"`, `"a\n\"b\"\\ \u0001"`, `"\u00e9"`, `"` + strings.Repeat("long ", 2000) + `"`},
		[]string{`5`, `true`, `["a"]`, `{}`},
	},
	{
		schema.Number,
		[]string{
			`1`, `1.0 1`, `1e2 100`, `-0 0`, `0.1`, `-7.25`, `1e-7`, `1.5e-300`, `5e-324`, `123456789.123456789`,
			`9007199254740992`, `-9007199254740992`, `0.30000000000000004`,
		},
		[]string{`9007199254740993`, `-9007199254740993`, `9007199254740993.0`, `9007199254740993e0`, `9.007199254740993e15`, `1e-20000`, `1e16`, `1e300`, `1e400`, `"1"`, `true`, `[1]`},
	},
	{schema.Boolean, []string{`true`, `false`}, []string{`"true"`, `0`, `1`, `[]`}},
	{
		schema.Date,
		[]string{`"2026-01-31"`, `"2024-02-29"`, `"0001-01-01"`},
		[]string{`"2026-02-29"`, `"2026-1-31"`, `"2026-01-31T00:00:00Z"`, `"31.01.2026"`, `""`, `20260131`, `" 2026-01-31"`},
	},
	{
		schema.Datetime,
		[]string{`"2026-01-31T12:00:00Z"`, `"2026-01-31T12:00:00.123456+02:00"`, `"2024-02-29T23:59:59-00:30"`},
		[]string{
			`"2026-01-31 12:00:00Z"`, `"2026-01-31T12:00:00"`, `"2026-01-31T24:00:00Z"`, `"2026-01-31T23:59:60Z"`,
			`"2026-01-31T12:00:00,5Z"`, `"2026-01-31T1:00:00Z"`, `"2026-01-31T12:00:00+24:00"`, `"2026-01-31T12:00:00+01:60"`, `"2026-01-31t12:00:00z"`, `"2026-01-31"`, `0`,
		},
	},
	{schema.Select, []string{`"new"`, `"lost"`}, []string{`"New"`, `""`, `"other"`, `["new"]`, `0`}},
	{
		schema.Multiselect,
		[]string{`["won","new"]`, `[]`, `["lost"]`},
		[]string{`["won","won"]`, `["other"]`, `"won"`, `[1]`, `[null]`, `{}`, `["new",["won"]]`},
	},
	{
		schema.JSON,
		[]string{`{}`, `[]`, `{"a":[1,{"b":null}],"c d":"e, f: {"}`, `[1.50,true,"x"]`, `[" [ ",{"\"":1e2}]`, `[9007199254740992,-9007199254740992.0]`, `{"a":[1e21,1e300,-6.02214076e23]}`},
		[]string{
			`5`, `"x"`, `true`, `[9007199254740993]`, `{"a":[{"b":-9007199254740993.0}]}`, `[9007199254740994]`, `{"a":9.007199254740993e15}`,
			`[1e16]`, `[12345678901234567890]`, `[1000000000000000000001]`, `[1e400]`, `[1e-400]`,
		},
	},
}

func TestEachTypeOfFieldTakesItsValues(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		for _, c := range values {
			name := "with_" + string(c.kind)
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
				return schema.PutEntity(ctx, tx, entity(name, "f "+string(c.kind), "must "+string(c.kind)+" required"))
			})
			ada := h.as("ada")
			for _, text := range c.good {
				given, shows, other := strings.Cut(text, " ")
				if c.kind != schema.Number || !other {
					given, shows = text, text
				}
				made := h.create(ada, name, fmt.Sprintf(`{"f": %s, "must": %s}`, given, given))
				read := h.get(ada, name, id(made))
				if !sameJSON(t, made["f"], shows) || !reflect.DeepEqual(made, read) {
					t.Errorf("%s %.80s: created %.200v, read %.200v, want %.80s", c.kind, given, made, read, shows)
				}
				// Writing the value again changes nothing; null clears it.
				if again := h.update(ada, name, id(made), fmt.Sprintf(`{"f": %s}`, given)); !reflect.DeepEqual(again["f"], made["f"]) {
					t.Errorf("%s %.80s: again %.200v", c.kind, given, again)
				}
				if cleared := h.update(ada, name, id(made), `{"f": null}`); cleared["f"] != nil || !reflect.DeepEqual(cleared["must"], made["must"]) {
					t.Errorf("%s %.80s: cleared to %.200v", c.kind, given, cleared)
				}
			}
			kept := id(h.create(ada, name, fmt.Sprintf(`{"must": %s}`, c.good[0])))
			for _, bad := range c.bad {
				_, err := ada.Create(t.Context(), name, body(t, fmt.Sprintf(`{"f": %s}`, bad)))
				want(t, err, fault.Validation, "f", "must")
				_, err = ada.Update(t.Context(), name, kept, body(t, fmt.Sprintf(`{"f": %s, "must": null}`, bad)))
				want(t, err, fault.Validation, "f", "must")
			}
		}
	})
}

// digestOf returns the index key of a long text.
func digestOf(text string) string {
	return fmt.Sprintf("%s…%x", text[:330], sha256.Sum256([]byte(text)))
}

func sameJSON(t *testing.T, got any, text string) bool {
	t.Helper()
	var want any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return reflect.DeepEqual(got, want)
}

// Two values are equal when they mean the same; unique fields and filters
// compare by meaning. Index rows follow the value, on both engines.
func TestUniqueAndFiltersGoByMeaning(t *testing.T) {
	for kind, groups := range map[schema.Type][][]string{
		schema.Text:     {{`"a"`}, {`"A"`}, {`" a"`}, {`""`}, {`"` + strings.Repeat("x", 3000) + `"`}, {`"` + digestOf(strings.Repeat("x", 3000)) + `"`}, {`"` + strings.Repeat("x", 3001) + `"`}},
		schema.Number:   {{`1`, `1.0`, `10e-1`}, {`1e-7`, `0.0000001`}, {`5e-324`}, {`1.5e-300`, `0.15e-299`}, {`0`, `-0`, `0.0`}, {`9007199254740992`}},
		schema.Boolean:  {{`true`}, {`false`}},
		schema.Date:     {{`"2026-01-31"`}, {`"2026-02-01"`}},
		schema.Datetime: {{`"2026-01-31T12:00:00Z"`, `"2026-01-31T14:00:00+02:00"`, `"2026-01-31T12:00:00.000Z"`}, {`"2026-01-31T12:00:00.000001Z"`}},
		schema.Select:   {{`"new"`}, {`"won"`}},
	} {
		dbtest.Each(t, func(t *testing.T, d *db.DB) {
			h := acme(t, d)
			h.configure(func(ctx context.Context, tx tenant.ConfigTx) error {
				return schema.PutEntity(ctx, tx, entity("thing", "f "+string(kind)+" unique", "n number"))
			})
			ada := h.as("ada")
			for _, group := range groups {
				first := id(h.create(ada, "thing", `{"f": `+group[0]+`}`))
				for _, value := range group {
					_, err := ada.Create(t.Context(), "thing", body(t, `{"f": `+value+`}`))
					want(t, err, fault.Conflict, "f")
					found := h.list(ada, "thing", records.Filter{Field: "f", Value: strings.Trim(value, `"`)})
					if len(found) != 1 || id(found[0]) != first {
						t.Errorf("%s %.60s: found %.200v", kind, value, found)
					}
				}
			}
			if n := h.keys("thing", "f"); n != int64(len(groups)) {
				t.Errorf("%s: %d index rows for %d values", kind, n, len(groups))
			}
			for _, r := range h.list(ada, "thing") { // an unrelated change, the same value again, another value, the old one in other records
				h.update(ada, "thing", id(r), `{"n": 1}`)
				text, err := json.Marshal(r["f"])
				if err != nil {
					t.Fatal(err)
				}
				h.update(ada, "thing", id(r), `{"f": `+string(text)+`}`)
				h.update(ada, "thing", id(r), `{"f": null}`)
				h.delete(ada, "thing", id(h.create(ada, "thing", `{"f": `+string(text)+`}`)))
			}
			if n := h.keys("thing", "f"); n != 0 {
				t.Errorf("%s: %d index rows of values that are gone", kind, n)
			}
		})
	}
}

// A reference accepts the id of an existing record that the viewer may see. A
// record that they may not see is refused like one that does not exist.
func TestAReferenceIsToARecordTheViewerMaySee(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := acme(t, d)
		sam, sue := h.as("sam"), h.as("sue")
		mine := id(h.create(sam, "account", `{"name": "mine"}`))
		hers := id(h.create(sue, "account", `{"name": "hers"}`))
		contact := h.create(sam, "contact", `{"account": "`+mine+`"}`)
		if contact["account"] != mine {
			t.Errorf("refers to %v", contact["account"])
		}
		var messages []string
		for _, target := range []string{hers, "019b76da-a048-7000-9a2e-0e8b3818d56b", "nonsense", id(contact)} {
			_, err := sam.Create(t.Context(), "contact", body(t, `{"account": "`+target+`"}`))
			want(t, err, fault.Validation, "account")
			messages = append(messages, describe(err))
			_, err = sam.Update(t.Context(), "contact", id(contact), body(t, `{"account": "`+target+`"}`))
			want(t, err, fault.Validation, "account")
			messages = append(messages, describe(err))
		}
		for _, m := range messages {
			if m != messages[0] {
				t.Errorf("%q tells more than %q", m, messages[0])
			}
		}
		for _, bad := range []string{`""`, `5`, `["` + mine + `"]`, `{}`} {
			_, err := sam.Create(t.Context(), "contact", body(t, `{"account": `+bad+`}`))
			want(t, err, fault.Validation, "account")
		}
		// An existing reference may remain, even if the viewer can no longer
		// see its target.
		theirs := id(h.create(h.as("ada"), "contact", `{"account": "`+hers+`", "owner_id": "`+h.ids["sam"]+`"}`))
		if r := h.update(sam, "contact", theirs, `{"account": "`+hers+`", "name": "n"}`); r["account"] != hers {
			t.Errorf("refers to %v", r["account"])
		}
		// Deleting the target clears the reference, whichever viewers can see
		// it.
		h.delete(sue, "account", hers)
		h.delete(sam, "account", mine)
		for _, name := range []string{theirs, id(contact)} {
			if r := h.get(sam, "contact", name); r["account"] != nil {
				t.Errorf("still refers to %v", r["account"])
			}
		}
		if n := h.keys("contact", "account"); n != 0 {
			t.Errorf("%d index rows of references that are gone", n)
		}
	})
}
