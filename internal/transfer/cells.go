package transfer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
)

// column is a column of a CSV that is imported.
type column struct {
	name  string
	field *schema.Field // nil for id and owner_id
	skip  bool
}

// alike reports whether two columns take the same cells for the same field.
func alike(a, b column) bool {
	if a.name != b.name || a.skip != b.skip || a.field == nil || b.field == nil {
		return a.name == b.name && a.skip == b.skip && a.field == b.field
	}
	return a.field.Type == b.field.Type && a.field.StoredAs() == b.field.StoredAs()
}

// value returns the JSON value of a cell; nil means that the record has no such member. Of
// a cell that has no value it returns one that its field refuses, so that one attempt names
// all that is wrong with the record, and in words what to say of the cell where the field's
// own reason does not do.
func (c *column) value(from cell, guarded bool) (v jsontext.Value, words string) {
	switch {
	case c.field == nil && len(from.text) == 0:
		return nil, ""
	case c.field == nil:
		return quoted(from.text)
	case from.null(), len(from.text) == 0 && c.field.Type != schema.Text:
		return schema.Null, ""
	}
	switch c.field.Type {
	case schema.JSON, schema.Multiselect, schema.Multireference:
		return c.structured(from.text)
	case schema.Number, schema.Boolean:
		text := jsontext.Value(bytes.ToLower(from.text)) // a spreadsheet writes TRUE, and 1E5
		if k := text.Kind(); k != 't' && k != 'f' && k != '0' || !text.IsValid() || bytes.ContainsAny(text, " \t\r\n") {
			return noValue, ""
		}
		return text, ""
	}
	if guarded {
		return quoted(unguard(from.text))
	}
	return quoted(from.text)
}

// Numbers, booleans, lists and objects are not the one, and texts, dates and ids not the other.
var noValue, noText = jsontext.Value(`"?"`), jsontext.Value("true")

func quoted(text []byte) (v jsontext.Value, words string) {
	v, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return noText, "expected text in UTF-8"
	}
	return v, ""
}

// structured reads a list or an object, as strictly as a body of a request.
func (c *column) structured(text []byte) (v jsontext.Value, words string) {
	const around = `{"v":`
	o, err := httpapi.ParseObject(slices.Concat([]byte(around), text, []byte("}")))
	switch bad := err != nil || len(o.Members) != 1; {
	case bad && c.field.Type == schema.Multiselect:
		first, _ := quoted([]byte(c.field.Options[0]))
		return noValue, fmt.Sprintf("expected a list of distinct options out of %s, as JSON: [%s]", strings.Join(c.field.Options, ", "), first)
	case bad:
		return noValue, `expected JSON, each name in an object once, as in ["a","b"] or {"a":1}`
	}
	return o.Members[0].Value, ""
}

// header reads the names of the columns. r are the rights on the entity type that is
// imported. It returns VALIDATION for names that are not its fields, or stand there twice,
// and for a required field that is missing where all records are new.
func (im *Import) header(r *access.EntityRights, cells []cell) (list []column, err error) {
	if wrong := noHeader(cells); wrong != "" {
		return nil, invalid("the header: %s", wrong)
	}
	seen, bad, noted := map[string]bool{}, map[string]string{}, []string{}
	for i, c := range cells {
		name := string(c.text)
		at := column{name: name, field: r.Entity.Field(name)}
		if at.field != nil && !r.ReadField[at.field.Index] {
			at.field = nil
		}
		switch {
		case name == "":
			bad[fmt.Sprintf("column %d", i+1)] = "has no name"
		case seen[name]:
			bad[shown(name)] = "stands there twice"
		case im.ignored[name]:
			at.skip = true
		case name == idMember && im.By == idMember, name == ownerMember, at.field != nil:
		case isSystem(name):
			at.skip = true
			noted = append(noted, name)
		default:
			bad[shown(name)] = "unknown field"
		}
		seen[name] = true
		list = append(list, at)
	}
	if im.By != "" && !seen[im.By] {
		bad[im.By] = "is not there, and records are found by it"
	}
	for _, f := range r.Entity.Fields {
		if f.Required && im.By == "" && !seen[f.Name] {
			bad[f.Name] = "required"
		}
	}
	if im.By != idMember && im.Viewer.UserID() == "" && !seen[ownerMember] {
		bad[ownerMember] = noOwner
	}
	if len(bad) > 0 {
		return nil, invalid("the header: %s", reason(fault.Fields("", bad)))
	}
	im.skips(noted...)
	return list, nil
}

// noHeader says what else a file may be whose first line is no header of a CSV, as
// programs write one; "" where it may be one.
func noHeader(cells []cell) string {
	for _, c := range cells {
		if !utf8.Valid(c.text) || bytes.IndexByte(c.text, 0) >= 0 {
			return "expected text in UTF-8: a spreadsheet program writes it as \"CSV UTF-8\""
		}
	}
	if len(cells) != 1 || cells[0].quoted {
		return ""
	}
	for _, by := range []string{";", "\t"} {
		if bytes.Contains(cells[0].text, []byte(by)) {
			return fmt.Sprintf("expected commas between the columns, found %q", by)
		}
	}
	return ""
}

const noOwner = "is not there: --owned-by names who owns records that name nobody"

func isSystem(name string) bool {
	return name == idMember || name == created || name == updated
}

// shown returns a name for a message.
func shown(name string) string { return fmt.Sprintf("%.60q", strings.ToValidUTF8(name, "\ufffd")) }

// skips tells once of each member that an export has and an import leaves out.
func (im *Import) skips(names ...string) {
	var news []string
	for _, name := range names {
		if !im.told[name] {
			news = append(news, name)
			im.told[name] = true
		}
	}
	if len(news) > 0 {
		im.Note(strings.Join(news, ", ") + ": left out, as the service sets them")
	}
}

// source reads the entries of an input. next returns io.EOF at the end, and an error where
// it cannot go on.
type source interface{ next() (*entry, error) }

// entry is one record of an input.
type entry struct {
	item  records.Item
	words map[string]string // what to say of members that are refused, instead of their field's reason
	line  int64             // where it begins
	end   position
	size  int64 // bytes
}

// csvSource is the records of a CSV with a header.
type csvSource struct {
	*csvReader
	im      *Import
	columns []column
}

// names returns the names of the columns as the header has them.
func (s *csvSource) names() (list []cell) {
	for _, c := range s.columns {
		list = append(list, cell{text: []byte(c.name), quoted: true})
	}
	return list
}

func (s *csvSource) next() (*entry, error) {
	before := s.offset
	from, cells, bad, err := s.csvReader.next()
	if err != nil {
		return nil, err
	}
	e := &entry{line: from, end: s.at(), size: s.offset - before}
	switch {
	case bad != "":
		e.item.Err = invalid("%s", bad)
	case len(cells) != len(s.columns):
		e.item.Err = invalid("expected %d cells, as the header has, found %d", len(s.columns), len(cells))
	default:
		e.item, e.words = s.item(cells)
	}
	return e, nil
}

// item returns what a record asks for, and what to say of cells that have no value.
func (s *csvSource) item(cells []cell) (item records.Item, words map[string]string) {
	var members []records.Member
	words = map[string]string{}
	for i := range s.columns {
		c := &s.columns[i]
		if c.skip {
			continue
		}
		v, instead := c.value(cells[i], s.im.Spreadsheet)
		if instead != "" {
			words[c.name] = instead
		}
		if v != nil {
			members = append(members, records.Member{Name: c.name, Value: v})
		}
	}
	return s.im.item(members), words
}

// jsonSource is the lines of an NDJSON.
type jsonSource struct {
	*lines
	im *Import
}

func (s *jsonSource) next() (*entry, error) {
	for {
		before, from := s.offset, s.line
		line, long, err := s.lines.next(nil) // the members refer to it
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 && !long {
			continue
		}
		e := &entry{line: from, end: s.at(), size: s.offset - before}
		if long {
			e.item.Err = invalid("%s", tooLong)
		} else {
			e.item = s.item(line)
		}
		return e, nil
	}
}

// item returns what a line asks for.
func (s *jsonSource) item(line []byte) records.Item {
	o, err := httpapi.ParseObject(line)
	if err != nil {
		public := httpapi.Public(err)
		return records.Item{Err: invalid("%s", strings.TrimPrefix(public.Message, "The body "))}
	}
	var members []records.Member
	for _, m := range o.Members {
		switch {
		case s.im.ignored[m.Name]:
		case isSystem(m.Name) && (m.Name != idMember || s.im.By != idMember):
			s.im.skips(m.Name)
		default:
			members = append(members, records.Member{Name: m.Name, Value: m.Value})
		}
	}
	return s.im.item(members)
}

// item returns what the members of a record ask for.
func (im *Import) item(members []records.Member) records.Item {
	owner := func(m records.Member) bool { return m.Name == ownerMember }
	if im.By != idMember && im.Viewer.UserID() == "" && !slices.ContainsFunc(members, owner) {
		return records.Item{Err: fault.Fields("some fields are not valid", map[string]string{ownerMember: noOwner})}
	}
	switch im.By {
	case "":
		return records.Item{Op: records.OpCreate, Fields: members}
	case idMember:
		return byID(members)
	}
	return records.Item{Op: records.OpUpsert, By: im.By, Fields: members}
}

// byID returns the update of the record that has the id among the members.
func byID(members []records.Member) records.Item {
	item := records.Item{Op: records.OpUpdate}
	for _, m := range members {
		if m.Name != idMember {
			item.Fields = append(item.Fields, m)
		} else if m.Value.Kind() == '"' {
			item.ID = schema.Unquote(m.Value)
		}
	}
	if item.ID == "" {
		return records.Item{Err: fault.Fields("some fields are not valid", map[string]string{idMember: "required: the record is found by it"})}
	}
	return item
}
