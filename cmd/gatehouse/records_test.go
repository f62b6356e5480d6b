package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gatehouse/internal/db"
	"gatehouse/internal/gatetest/program"
)

// stock is a tenant with entity types that have the same fields of every type.
const (
	stock = `
tenant: stock
display_name: Stock
hosts: [stock.localhost]
entities:
  - {name: maker, label: Maker, fields: [{name: name, type: text}]}
  - {name: item, label: Item, fields: [` + stockFields + `]}
  - {name: twin, label: Twin, fields: [` + stockFields + `]}
  - {name: triplet, label: Triplet, fields: [` + stockFields + `]}
  - {name: quadruplet, label: Quadruplet, fields: [` + stockFields + `]}
` + stockUsers

	stockFields = `{name: name, type: text, required: true}, {name: code, type: text, unique: true}, {name: note, type: text, searchable: true},
      {name: price, type: number}, {name: sold, type: boolean}, {name: made_on, type: date}, {name: seen_at, type: datetime},
      {name: size, type: select, options: [small, "=large", "-"]}, {name: colours, type: multiselect, options: [red, "green, blue"]},
      {name: maker, type: reference, entity: maker}, {name: parts, type: json}`

	stockUsers = `
permission_sets:
  - {name: clerk, entities: {item: {create: true, read: true, update: true, fields: {price: {read: true, edit: false}, note: {read: false, edit: false}}}}}
users:
  - {email: olga@stock.example, name: Olga, owner: true}
  - {email: carl@stock.example, name: Carl, permission_sets: [clerk]}
  - {email: dora@stock.example, name: Dora}
`
)

// eachStock runs a test on both engines with the tenant stock.
func eachStock(t *testing.T, fn func(x *cli)) {
	each(t, func(x *cli) {
		x.stdin = stock
		x.ok("apply", "-f", "-")
		fn(x)
	})
}

// recordsOf returns a command on records of the tenant stock.
func recordsOf(verb, entity string, more ...string) []string {
	return append([]string{"records", verb, "--tenant", "stock", "--entity", entity}, more...)
}

// imports imports a text that must succeed, and returns what the command says last.
func (x *cli) imports(text, entity string, more ...string) string {
	x.t.Helper()
	x.stdin = text
	_, words := x.ok(recordsOf("import", entity, append(more, "-")...)...)
	return lastLine(words)
}

func lastLine(words string) string {
	list := strings.Split(strings.TrimSpace(words), "\n")
	return list[len(list)-1]
}

// exported returns the records of an entity type, the oldest first.
func (x *cli) exported(entity string, more ...string) (list []map[string]any) {
	x.t.Helper()
	out, _ := x.ok(recordsOf("export", entity, append(more, "--format", "ndjson", "--sort", "created_at")...)...)
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		d.UseNumber() // its digits are compared
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			x.t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

// hostile are values of a text that a file format may lose.
var hostile = []string{
	"", " ", "plain", "a,b", `say "hi"`, `"`, `""`, "two\nlines", "two\r\nlines", "ends\r", "ends\n", "\r", "\n", "\t", " padded ", "=1+2", "-2", "+x", "@x", "'tis", "'=1", "''",
	"null", "NULL", `\N`, "true", "0012", "1e5", "{}", "[1]", "\ufeffmark", "日本語 🙂", "a\x01b\x7f", "\u2028", "a;b", `\"`, "#", strings.Repeat("long ", 3000),
}

// hostileLines returns hostile values of every type as NDJSON, in the order in which
// they are imported. maker is the id of one.
func hostileLines(maker string) string {
	var b bytes.Buffer
	line := func(m map[string]any) {
		text, err := json.Marshal(m)
		if err != nil {
			panic(err)
		}
		b.Write(append(text, '\n'))
	}
	for i, text := range hostile {
		line(map[string]any{"name": text, "code": fmt.Sprint("h", i), "note": text, "parts": map[string]any{"t": text, "l": []any{text, nil, 1.5}}})
	}
	for i, number := range []string{"0", "-0", "0.1", "-0.5e-9", "5e-324", "9007199254740991", "-9007199254740992", "-12.50", "123456789.123456789"} {
		b.WriteString(fmt.Sprintf(`{"name": "n", "code": "n%d", "price": %s, "parts": [%s]}`+"\n", i, number, number))
	}
	for i, at := range []string{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456789+05:30", "0001-01-01T00:00:00-23:59"} {
		line(map[string]any{"name": "d", "code": fmt.Sprint("d", i), "seen_at": at, "made_on": at[:10], "sold": i%2 == 0})
	}
	for i, size := range []string{"small", "=large", "-"} {
		line(map[string]any{"name": "s", "code": fmt.Sprint("s", i), "size": size, "colours": []string{"green, blue", "red"}[:i], "maker": maker})
	}
	line(map[string]any{"name": "nothing"})
	return b.String()
}

// What is exported in either format is imported as it is, and gives equal records.
func TestRecordsGoOutAndIn(t *testing.T) {
	eachStock(t, func(x *cli) {
		x.imports(`{"name": "Acme"}`, "maker", "--format", "ndjson", "--owned-by", "olga@stock.example")
		maker := x.exported("maker")[0]["id"].(string)
		text := hostileLines(maker)
		if got, want := x.imports(text, "item", "--format", "ndjson", "--owned-by", "olga@stock.example"), strings.Count(text, "\n"); got != fmt.Sprintf("%d created, 0 updated, 0 unchanged, 0 failed.", want) {
			x.t.Fatal(got)
		}
		own := func(list []map[string]any) []map[string]any {
			for _, m := range list {
				for _, name := range []string{"id", "created_at", "updated_at"} {
					delete(m, name)
				}
			}
			return list
		}
		want := own(x.exported("item"))
		for twin, form := range map[string][]string{"twin": {"--format", "csv"}, "triplet": {"--format", "csv", "--spreadsheet"}, "quadruplet": {"--format", "ndjson"}} {
			out, _ := x.ok(recordsOf("export", "item", append(form, "--sort", "created_at")...)...)
			x.imports(out, twin, form...)
			got := own(x.exported(twin))
			for i := range want {
				if a, b := fmt.Sprint(want[i]), fmt.Sprint(got[i]); a != b {
					x.t.Errorf("%v: %.300s\ncame back as %.300s", form, a, b)
				}
			}
			if len(got) != len(want) {
				x.t.Errorf("%v: %d of %d records", form, len(got), len(want))
			}
			if form[len(form)-1] == "--spreadsheet" {
				x.noFormulas(out)
			}
			if again := x.imports(out, "item", append(form, "--by", "id")...); !strings.Contains(again, fmt.Sprintf("0 created, 0 updated, %d unchanged", len(want))) {
				x.t.Errorf("%v, by id: %s", form, again)
			}
		}
	})
}

// noFormulas checks that a spreadsheet takes no cell for a formula but numbers.
func (x *cli) noFormulas(out string) {
	x.t.Helper()
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		x.t.Fatal(err)
	}
	guarded := 0
	for _, row := range rows[1:] {
		for i, c := range row {
			if rows[0][i] != "price" && c != "" && strings.ContainsRune("=+-@\t\r", rune(c[0])) {
				x.t.Errorf("%s: %q", rows[0][i], c)
			}
			if strings.HasPrefix(c, "'") {
				guarded++
			}
		}
	}
	if guarded == 0 {
		x.t.Error("nothing is guarded")
	}
}

// An export is the list: its filters, order and members, and the records on all pages.
func TestExportIsTheList(t *testing.T) {
	eachStock(t, func(x *cli) {
		x.imports(numbered(450), "item", "--user", "olga@stock.example")
		out, words := x.ok(recordsOf("export", "item", "--fields", "code,price")...)
		rows := strings.Split(strings.TrimSpace(out), "\n")
		if len(rows) != 451 || rows[0] != "id,code,price" || !strings.HasSuffix(rows[1], ",c449,449") || !strings.HasSuffix(rows[450], ",c0,0") || words != "450 records.\n" {
			x.t.Errorf("%d rows, %q, %q … %q; %q", len(rows), rows[0], rows[1], rows[len(rows)-1], words)
		}
		seen := map[string]bool{}
		for _, row := range rows[1:] {
			seen[row] = true
		}
		if len(seen) != 450 {
			x.t.Errorf("%d different records", len(seen))
		}
		list := x.exported("item", "--filter", "code[in]=c7,c8,c9", "--filter", "price[gte]=8")
		if len(list) != 2 || list[0]["code"] != "c8" || list[1]["code"] != "c9" {
			x.t.Errorf("%v", list)
		}
		if out, _ := x.ok(recordsOf("export", "twin")...); out != "id,owner_id,created_at,updated_at,name,code,note,price,sold,made_on,seen_at,size,colours,maker,parts\n" {
			x.t.Errorf("of no record: %q", out)
		}
		x.fails(1, "there is no entity", recordsOf("export", "items")...)
		x.fails(1, "there is no tenant", "records", "export", "--tenant", "none", "--entity", "item")
		x.fails(1, "gatehouse user list", recordsOf("export", "user")...)
		x.fails(1, "there is no user", recordsOf("export", "item", "--user", "x@y.example")...)
		x.fails(1, "fields", recordsOf("export", "item", "--fields", "colour")...)
		x.fails(1, "colour", recordsOf("export", "item", "--filter", "colour=red")...)
		x.fails(2, "FIELD=VALUE", recordsOf("export", "item", "--filter", "colour")...)
		x.fails(2, "csv or ndjson", recordsOf("export", "item", "--format", "xml")...)
		x.fails(2, "--entity is required", "records", "export", "--tenant", "stock")
	})
}

// numbered returns a CSV of n items with the codes c0 and so on.
func numbered(n int) string {
	var b strings.Builder
	b.WriteString("name,code,price\n")
	for i := range n {
		fmt.Fprintf(&b, "Item %d,c%d,%d\n", i, i, i)
	}
	return b.String()
}

// Lines that are wrong are named with their numbers and reasons, and stop no others.
func TestImportNamesEachBadLine(t *testing.T) {
	eachStock(t, func(x *cli) {
		for _, c := range []struct {
			entity, format, header string
			bad                    []string // lines, each with a part of the reason behind ⇒
		}{
			{"twin", "csv", "name,code,price,sold,made_on,size,colours,maker,parts,owner_id", []string{
				`a,,x,,,,,,,⇒price: expected a number`,
				`a,,1 2,,,,,,,⇒price: expected a number`,
				`a,,9007199254740993,,,,,,,⇒price: expected an integer`,
				`a,,,yes,,,,,,⇒sold: expected true or false`,
				`a,,x,yes,,,,,,⇒price: expected a number; sold: expected true or false`,
				`a,,x,maybe,2026,huge,red,xx,"{""a""",⇒` +
					`colours: expected a list of distinct options out of red, green, blue, as JSON: ["red"]; made_on: expected a date like 2026-01-31; ` +
					`maker: there is no such record of maker; parts: expected JSON, each name in an object once, as in ["a","b"] or {"a":1}; ` +
					`price: expected a number; size: expected one of`,
				",,,maybe,,\xff,,,,⇒name: required; size: expected text in UTF-8; sold: expected true or false",
				",,,,,,,,,\xff⇒name: required; owner_id: expected text in UTF-8",
				`a,,,,2026-02-30,,,,,⇒made_on: expected a date`,
				`a,,,,,huge,,,,⇒size: expected one of`,
				`a,,,,,,red,,,⇒colours: expected a list of distinct options out of red, green, blue, as JSON: ["red"]`,
				`a,,,,,,"[""red"",""red""]",,,⇒colours: expected a list of distinct`,
				`a,,,,,,,nobody,,⇒maker: there is no such record of maker`,
				`a,,,,,,,,"{""a"":1,""a"":2}",⇒parts: expected JSON, each name`,
				`a,,,,,,,,"{""a"":1}}",⇒parts: expected JSON`,
				`a,,,,,,,,"1,""b"":2",⇒parts: expected JSON`,
				`,,,,,,,,,⇒name: required`,
				`a,c1,,,,,,,,⇒code: the value is taken`,
				`a,,,,,,,,,nobody⇒owner_id: there is no such user`,
				`a,,⇒expected 10 cells, as the header has, found 3`,
				`a,,,,,,,,,,⇒expected 10 cells, as the header has, found 11`,
				"a\x00b,,,,,,,,,⇒name: expected text without U+0000",
				"\xff,,,,,,,,,⇒name: expected text in UTF-8",
				`a"b,,,,,,,,,⇒a quotation mark stands in a cell`,
				`"a"b,,,,,,,,,⇒text follows the quotation mark`,
			}},
			{"triplet", "ndjson", "", []string{
				`{"name": "a", "name": "b"}⇒occurs twice`,
				`{"name": "a", "parts": {"x": 1, "x": 2}}⇒occurs twice`,
				`[1]⇒is not a JSON object`,
				`{"name": "a"⇒ends too early`,
				`{"name": "a"} {}⇒more data follows`,
				"{\"name\": \"\xff\"}⇒invalid UTF-8",
				`{"name": "a\u0000"}⇒U+0000`,
				`{"name": "\ud800"}⇒surrogate`,
				`{"name": 1}⇒name: expected text`,
				`{"Name": "a"}⇒Name: unknown field`,
				`{"code": "a"}⇒name: required`,
				`{"name": "` + strings.Repeat("x", 2<<20) + `"}⇒longer than 2 MiB`,
				`{"name": "` + strings.Repeat("x", 1<<20) + `"}⇒name: makes the record too large`,
			}},
		} {
			var text, want strings.Builder
			if c.header != "" {
				text.WriteString(c.header + "\n")
			}
			good := func(code string) {
				if c.format == "csv" {
					fmt.Fprintf(&text, "good,%s%s\n", code, strings.Repeat(",", 8))
				} else {
					fmt.Fprintf(&text, `{"name": "good", "code": %q}`+"\n", code)
				}
			}
			good("c1")
			var reasons []string
			for i, bad := range c.bad {
				line, reason, _ := strings.Cut(bad, "⇒")
				reasons = append(reasons, reason)
				fmt.Fprintf(&want, "line %d: \n", strings.Count(text.String(), "\n")+1)
				text.WriteString(line + "\n")
				good(fmt.Sprint("g", i))
			}
			x.stdin = text.String()
			_, words, code := x.raw(append(recordsOf("import", c.entity, "--format", c.format, "--user", "olga@stock.example", "-"), x.place...)...)
			var lines, got []string
			for line := range strings.Lines(words) {
				if strings.HasPrefix(line, "line ") {
					lines = append(lines, line)
					n, _, _ := strings.Cut(line, ": ")
					got = append(got, n+": ")
				}
			}
			if code != 1 || strings.Join(got, "\n")+"\n" != want.String() ||
				!strings.Contains(words, fmt.Sprintf("\n%d created, 0 updated, 0 unchanged, %d failed.\n", len(c.bad)+1, len(c.bad))) ||
				lastLine(words) != fmt.Sprintf("gatehouse: %d of %d records failed", len(c.bad), 2*len(c.bad)+1) {
				x.t.Fatalf("%s: status %d\n%.4000s", c.format, code, words)
			}
			for i, reason := range reasons {
				if !strings.Contains(lines[i], reason) {
					x.t.Errorf("%s: %.60q: %q, want %q", c.format, c.bad[i], lines[i], reason)
				}
			}
			if n := len(x.exported(c.entity)); n != len(c.bad)+1 {
				x.t.Errorf("%s: %d records", c.format, n)
			}
		}
	})
}

// Inputs as programs write them are read, and what no program may mean is refused before
// anything is imported.
func TestFormsOfAnInput(t *testing.T) {
	eachStock(t, func(x *cli) {
		as := []string{"--user", "olga@stock.example"}
		for text, want := range map[string]string{
			"\ufeffname,code\r\n\"a\r\nb\",1\r\n\r\n\n,2\r\n": "failed", // required
			"\ufeffname,code\r\na,f1\r\n\r\n\nb,f2":           "2 created",
			"name\n":                                          "0 created",
			"name":                                            "0 created",
			"\"na\"\"me\",name\nx,y\n":                        "unknown field",
			"name,note\n\"\",\"\"\n":                          "1 created",
			"name,id,created_at\na,x,y\n":                     "1 created",
			"NAME\na\n":                                       "unknown field",
			"name,name\na,b\n":                                "stands there twice",
			"name,code,\na,b,\n":                              "column 3: has no name",
			"code\na\n":                                       "name: required",
			"name;code\na;b\n":                                `expected commas between the columns, found ";"`,
			"name\tcode\na\tb\n":                              `expected commas between the columns, found "\t"`,
			"\xff\xfen\x00a\x00m\x00e\x00\n\x00":              "expected text in UTF-8",
			"":                                                "the input is empty",
			"\n\n":                                            "the input is empty",
			"name\n\"a\nb\n":                                  "line 2: a quotation mark begins a cell that does not end before the end",
			"name\n" + strings.Repeat("x", 3<<20) + "\n":       "line 2 is longer than 2 MiB",
			"name\n\"" + strings.Repeat("x\n", 3<<19) + "\"\n": "line 2: a quotation mark begins a cell that does not end within 2 MiB",
		} {
			x.stdin = text
			_, words, code := x.raw(append(append(recordsOf("import", "twin", "-"), as...), x.place...)...)
			if !strings.Contains(words, want) || (code == 0) != strings.HasSuffix(want, "created") {
				x.t.Errorf("%.40q: status %d, %.300s; want %q", text, code, words, want)
			}
		}
		texts := map[any]bool{}
		for _, m := range x.exported("twin") {
			texts[m["name"]] = true
		}
		if want := []string{"", "a", "a\r\nb", "b"}; len(texts) != len(want) || !texts["a\r\nb"] || !texts[""] {
			x.t.Errorf("%v", texts)
		}
		if got := x.imports("\n\n", "twin", append(as, "--format", "ndjson")...); !strings.HasPrefix(got, "0 created") {
			x.t.Error(got)
		}
		x.stdin = "name\n"
		at := func(more ...string) []string { return recordsOf("import", "item", append(more, "-")...) }
		x.fails(1, "--owned-by", at()...)
		x.fails(1, "expected a unique field of item, or id", at("--by", "name")...)
		x.fails(1, "expected a unique field of item, or id", at("--by", "none")...)
		x.fails(1, "code: is not there", at("--by", "code", "--user", "olga@stock.example")...)
		x.fails(1, "there is no entity", recordsOf("import", "items", "-")...)
		x.fails(1, "gatehouse user list", recordsOf("import", "user", "-")...)
		x.fails(1, "nothing to resume", at("--resume", "--user", "olga@stock.example")...)
		x.fails(1, "no such file", recordsOf("import", "item", filepath.Join(x.t.TempDir(), "none.csv"))...)
		x.fails(2, "FILE is required", recordsOf("import", "item")...)
		x.fails(2, "1 to 200", at("--batch", "201")...)
		x.fails(2, "--resume goes with neither", at("--resume", "--dry-run")...)
		x.fails(2, "--spreadsheet goes with csv", at("--spreadsheet", "--format", "ndjson")...)
		x.fails(2, "one of --user and --owned-by", at("--user", "a@b", "--owned-by", "a@b")...)
	})
}

// With --by a record that is there is changed where a value differs, and another one is
// created; a dry run says the same and keeps nothing.
func TestImportFindsRecordsByAField(t *testing.T) {
	eachStock(t, func(x *cli) {
		x.imports(numbered(300), "item", "--user", "olga@stock.example")
		before := x.exported("item")
		text := strings.Replace(strings.Replace(numbered(303), "Item 7,", "Seven,", 1), ",c8,8\n", ",c8,\n", 1)
		const want = "3 created, 2 updated, 298 unchanged, 0 failed."
		x.stdin = text
		_, words := x.ok(recordsOf("import", "item", "--by", "code", "--user", "olga@stock.example", "--dry-run", "-")...)
		if words != want+"\ndry run: nothing was kept\n" {
			x.t.Errorf("dry: %s", words)
		}
		if after := x.exported("item"); fmt.Sprint(after) != fmt.Sprint(before) {
			x.t.Error("the dry run changed something")
		}
		if got := x.imports(text, "item", "--by", "code", "--user", "olga@stock.example"); got != want {
			x.t.Error(got)
		}
		for i, m := range x.exported("item") {
			switch {
			case i >= 300:
			case i == 7 && m["name"] == "Seven" && m["updated_at"] != before[i]["updated_at"]:
			case i == 8 && m["price"] == nil && m["updated_at"] != before[i]["updated_at"]:
			case i != 7 && i != 8 && m["updated_at"] == before[i]["updated_at"]:
			default:
				x.t.Errorf("%d: %v, was %v", i, m, before[i])
			}
		}
		if got := x.imports(text, "item", "--by", "code", "--user", "olga@stock.example"); got != "0 created, 0 updated, 303 unchanged, 0 failed." {
			x.t.Errorf("again: %s", got)
		}
		x.stdin = "id,name\n" + before[0]["id"].(string) + ",By id\nnobody,x\n,x\n"
		_, words, code := x.raw(append(recordsOf("import", "item", "--by", "id", "-"), x.place...)...)
		if code != 1 || !strings.Contains(words, "line 3: there is no such record\nline 4: id: required") || !strings.Contains(words, "0 created, 1 updated, 0 unchanged, 2 failed.") {
			x.t.Errorf("by id: %d %s", code, words)
		}
	})
}

// --user has the permissions of the user, and nobody else's.
func TestTransfersHaveTheRightsOfTheUser(t *testing.T) {
	eachStock(t, func(x *cli) {
		carl := []string{"--user", "carl@stock.example"}
		x.imports("name,code,note,price\nHers,h,secret,1\n", "item", "--user", "olga@stock.example")
		if got := x.imports("name,code\nHis,i\n", "item", carl...); got != "1 created, 0 updated, 0 unchanged, 0 failed." {
			x.t.Fatal(got)
		}
		list := x.exported("item", carl...)
		if _, shows := list[0]["note"]; len(list) != 1 || list[0]["name"] != "His" || shows {
			x.t.Errorf("%v", list)
		}
		out, _ := x.ok(recordsOf("export", "item", carl...)...)
		if strings.Contains(out, "note") || strings.Contains(out, "secret") || strings.Contains(out, "Hers") {
			x.t.Error(out)
		}
		olga := x.exported("item")[0]["owner_id"].(string)
		refuses := func(text, why string, more ...string) {
			x.t.Helper()
			x.stdin = text
			_, words, code := x.raw(append(append(recordsOf("import", "item", append(more, "-")...), carl...), x.place...)...)
			if code != 1 || !strings.Contains(words, why) {
				x.t.Errorf("%q: status %d, %s; want %q", text, code, words, why)
			}
		}
		refuses("name,note\na,b\n", "unknown field")
		refuses("name,price\na,1\n", "line 2: price: you may not edit this field")
		refuses("name,owner_id\na,"+olga+"\n", "line 2: owner_id: you may not set another owner")
		refuses("name,code\na,h\n", "line 2: code: the value is taken", "--by", "code") // he does not see it
		refuses("id,name\n"+x.exported("item")[0]["id"].(string)+",a\n", "line 2: there is no such record", "--by", "id")
		x.stdin = "name\na\n"
		x.fails(1, "you may not read records of item", recordsOf("export", "item", "--user", "dora@stock.example")...)
		x.fails(1, "you may not write records of item", recordsOf("import", "item", "--user", "dora@stock.example", "-")...)
		x.ok("user", "deactivate", "--tenant", "stock", "--email", "carl@stock.example")
		x.fails(1, "not active", recordsOf("import", "item", append(carl, "-")...)...)
		if n := len(x.exported("item")); n != 2 {
			x.t.Errorf("%d records", n)
		}
	})
}

// Records that are too much for one batch together, by their size or by the words that
// they are found by, are imported in smaller ones.
func TestLargeRecordsAreImportedInParts(t *testing.T) {
	eachStock(t, func(x *cli) {
		var text strings.Builder
		text.WriteString("code,name\n")
		for i := range 12 {
			fmt.Fprintf(&text, "c%d,%s\n", i, strings.Repeat("x", 900<<10))
		}
		x.imports(text.String(), "item", "--user", "olga@stock.example")
		small := "code,name\n"
		for i := range 12 {
			small += fmt.Sprintf("c%d,small\n", i)
		}
		if got := x.imports(small, "item", "--user", "olga@stock.example", "--by", "code"); got != "0 created, 12 updated, 0 unchanged, 0 failed." {
			x.t.Error(got)
		}
		var words strings.Builder
		words.WriteString("name,note\n")
		for i := range 400 {
			words.WriteString("n,")
			for j := range 150 {
				fmt.Fprintf(&words, "w%dx%d ", i, j)
			}
			words.WriteByte('\n')
		}
		if got := x.imports(words.String(), "twin", "--user", "olga@stock.example"); got != "400 created, 0 updated, 0 unchanged, 0 failed." {
			x.t.Error(got)
		}
	})
}

// counted is an input that reports how far it was read.
type counted struct {
	text io.Reader
	read func(n int)
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.text.Read(p)
	c.read(n)
	return n, err
}

// An import holds a batch of its input in memory, whatever its length, and an export a
// page: what was read and has no effect yet is bounded.
func TestTransfersHoldABatch(t *testing.T) {
	eachStock(t, func(x *cli) {
		const lines, length = 1500, 20 << 10
		row := "name,note\n"
		long := strings.Repeat("y", length)
		parts := []io.Reader{strings.NewReader(row)}
		for range lines {
			parts = append(parts, strings.NewReader("x,"+long+"\n"))
		}
		d := x.open()
		read, ahead := 0, 0
		in := &counted{io.MultiReader(parts...), func(n int) {
			if read += n; read/length%10 == 0 {
				stored := 0
				if err := d.For("stock").Query(x.ctx(), `SELECT COUNT(*) FROM records WHERE tenant_id = $1`, func(r db.Row) error { stored = int(r.Int(0)); return nil }); err != nil {
					t.Error(err)
				}
				ahead = max(ahead, read-stored*length)
			}
		}}
		args := append(recordsOf("import", "item", "--user", "olga@stock.example", "-"), x.place...)
		var words bytes.Buffer
		if code := run(x.ctx(), args, func(name string) string { return x.env[name] }, in, io.Discard, &words); code != 0 {
			x.t.Fatal(words.String())
		}
		if bound := 3 << 20; ahead > bound || ahead == 0 || read < lines*length {
			x.t.Errorf("%d bytes of %d were read ahead of what is stored, want at most %d", ahead, read, bound)
		}
		most := &widest{}
		if code := run(x.ctx(), append(recordsOf("export", "item"), x.place...), func(name string) string { return x.env[name] }, strings.NewReader(""), most, &words); code != 0 {
			x.t.Fatal(words.String())
		}
		if most.all < lines*length || most.writes < lines*length>>20 {
			x.t.Errorf("%d bytes in %d writes", most.all, most.writes)
		}
	})
}

// widest counts what is written.
type widest struct{ all, writes int }

func (w *widest) Write(p []byte) (int, error) {
	w.all += len(p)
	w.writes++
	return len(p), nil
}

// The number of lines that are named is bounded.
func TestImportNamesNotAllOfManyBadLines(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = stock
	x.ok("apply", "-f", "-")
	x.stdin = "name,price\n" + strings.Repeat("a,b\n", maxNamed+7)
	_, words, code := x.raw(append(recordsOf("import", "item", "--user", "olga@stock.example", "-"), x.place...)...)
	if code != 1 || strings.Count(words, "\nline ")+1 != maxNamed || !strings.Contains(words, "\n… and 7 lines more that failed\n") || !strings.Contains(words, "1,007 of 1,007 records failed") {
		t.Errorf("%d %.300s", code, words)
	}
}

// What an import leaves out is said once, and columns can be left out on demand.
func TestImportSaysWhatItLeavesOut(t *testing.T) {
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.stdin = stock
	x.ok("apply", "-f", "-")
	x.stdin = `{"id": "x", "name": "a", "shelf": 1}` + "\n" + `{"id": "y", "created_at": "z", "name": "b", "shelf": 2}`
	_, words := x.ok(recordsOf("import", "item", "--format", "ndjson", "--owned-by", "dora@stock.example", "--ignore", "shelf", "-")...)
	if words != "id: left out, as the service sets them\ncreated_at: left out, as the service sets them\n2 created, 0 updated, 0 unchanged, 0 failed.\n" {
		t.Error(words)
	}
	list := x.exported("item")
	if keys := slices.Sorted(maps.Keys(list[0])); len(list) != 2 || list[0]["owner_id"] == "" || slices.Contains(keys, "shelf") {
		t.Errorf("%v", list)
	}
}

// TestTheDocumentedImportWorks runs the lines of docs/records.md in a shell, unchanged, and
// compares what they print.
func TestTheDocumentedImportWorks(t *testing.T) {
	binary := program.Build(t)
	x := newCLI(t, db.Config{Dir: t.TempDir()})
	x.ok("apply", "-f", "../../examples/demo/manifest.yaml")
	src, err := os.ReadFile("../../docs/records.md")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(path, "gatehouse")); err != nil {
		t.Fatal(err)
	}
	folder, ran := t.TempDir(), 0
	parts := strings.Split(string(src), "```")
	for i := 1; i+2 < len(parts); i += 4 {
		lines, isShell := strings.CutPrefix(parts[i], "sh\n")
		if !isShell {
			t.Fatalf("not a shell's: %s", parts[i])
		}
		command := exec.CommandContext(t.Context(), "bash", "-c", lines)
		command.Dir = folder
		command.Env = []string{"PATH=" + path + ":" + os.Getenv("PATH"), "GATEHOUSE_DATA=" + x.config.Dir}
		out, _ := command.CombinedOutput() // the status is that of the first mistake that is documented
		if want := strings.TrimPrefix(parts[i+2], "\n"); !sameLines(string(out), want) {
			t.Errorf("%s prints\n%s, documented\n%s", lines, out, want)
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("%d examples ran", ran)
	}
}

// sameLines reports whether two outputs have the same lines: what standard error has among
// those of standard output may come sooner or later.
func sameLines(a, b string) bool {
	one, two := strings.Split(a, "\n"), strings.Split(b, "\n")
	slices.Sort(one)
	slices.Sort(two)
	return slices.Equal(one, two)
}
