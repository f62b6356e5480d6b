package records

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
)

// render appends a record as its viewer may read it: id, owner_id, created_at,
// updated_at, then each readable declared field, null when unset (contract R2).
func render(dst []byte, r *access.EntityRights, rec *row) []byte {
	dst = append(dst, `{"id":"`...)
	dst = append(dst, rec.id...)
	dst = append(dst, `","owner_id":"`...)
	dst = append(dst, rec.owner...)
	dst = append(dst, `","created_at":"`...)
	at := len(dst)
	dst = clock.AppendRFC3339Micro(dst, rec.createdAt)
	created := dst[at:]
	dst = append(dst, `","updated_at":"`...)
	if rec.updatedAt == rec.createdAt {
		dst = append(dst, created...)
	} else {
		dst = clock.AppendRFC3339Micro(dst, rec.updatedAt)
	}
	dst = append(dst, '"')
	dst = renderFields(dst, r.Entity, r.ReadField, rec.data)
	return append(dst, '}')
}

// selection is what a list shows of each record beside its id (contract P11).
type selection struct {
	owner, created, updated bool
	fields                  []bool // by schema.Field.Index
}

// selected returns the selection of names. It returns VALIDATION for a name that is
// no field that the viewer may read, or is given twice.
func selected(r *access.EntityRights, names []string) (*selection, error) {
	sel, seen, bad := &selection{fields: make([]bool, len(r.Entity.Fields))}, map[string]bool{}, map[string]string{}
	for _, name := range names {
		field := r.Entity.Field(name)
		switch {
		case seen[name]:
			bad[name] = "is named twice"
		case field != nil && r.ReadField[field.Index]:
			sel.fields[field.Index] = true
		case name == "id":
		case name == "owner_id":
			sel.owner = true
		case name == "created_at":
			sel.created = true
		case name == "updated_at":
			sel.updated = true
		default:
			bad[name] = "unknown field"
		}
		seen[name] = true
	}
	if len(bad) > 0 {
		return nil, fault.Fields("fields names what cannot be shown", bad)
	}
	return sel, nil
}

// render appends the selected part of a record, its members in the order of render.
func (sel *selection) render(dst []byte, e *schema.Entity, rec *row) []byte {
	dst = append(append(dst, `{"id":"`...), rec.id...)
	dst = append(dst, '"')
	if sel.owner {
		dst = append(append(append(dst, `,"owner_id":"`...), rec.owner...), '"')
	}
	if sel.created {
		dst = append(clock.AppendRFC3339Micro(append(dst, `,"created_at":"`...), rec.createdAt), '"')
	}
	if sel.updated {
		dst = append(clock.AppendRFC3339Micro(append(dst, `,"updated_at":"`...), rec.updatedAt), '"')
	}
	return append(renderFields(dst, e, sel.fields, rec.data), '}')
}

// renderFields appends those of the declared fields that it shows, each with a comma
// before it.
func renderFields(dst []byte, e *schema.Entity, shows []bool, data jsontext.Value) []byte {
	var fixed [32]jsontext.Value
	values := fixed[:]
	if n := len(e.Fields); n > len(values) {
		values = make([]jsontext.Value, n)
	}
	split(e, data, values)
	for i, f := range e.Fields {
		if !shows[i] {
			continue
		}
		dst = append(dst, ',')
		dst = append(dst, f.Label...)
		switch {
		case values[i] == nil:
			dst = append(dst, "null"...)
		case !f.Scalar():
			dst = appendCompact(dst, values[i])
		default:
			dst = append(dst, values[i]...)
		}
	}
	return dst
}

// renderID returns the record that a viewer gets who wrote it but may not read
// it (contract R12).
func renderID(id string) Record { return Record(`{"id":` + strconv.Quote(id) + `}`) }

// split sets values to the stored value of each declared field, by
// schema.Field.Index. It leaves out fields that are not stored, and stored
// members whose field was removed. data must be an object that this package
// stored: well-formed, with plain snake_case names.
func split(e *schema.Entity, data jsontext.Value, values []jsontext.Value) {
	clear(values[:len(e.Fields)]) // they may be those of another record
	if splitInOrder(e, data, values) {
		return
	}
	clear(values[:len(e.Fields)])
	eachMember(data, func(name, value []byte) {
		if f := e.OfMemberBytes(name); f != nil && !schema.IsNull(value) {
			values[f.Index] = value
		}
	})
}

// splitInOrder is split for an object as document writes it: the fields in
// declared order, without white space. It reports whether data was one.
func splitInOrder(e *schema.Entity, data []byte, values []jsontext.Value) bool {
	if len(data) < 2 || data[0] != '{' {
		return false
	}
	at := 1
	for i, f := range e.Fields {
		if !bytes.HasPrefix(data[at:], f.StoredLabel) {
			continue
		}
		if at += len(f.StoredLabel); data[at] == ' ' {
			return false
		}
		end := skipValue(data, at)
		if !schema.IsNull(data[at:end]) {
			values[i] = data[at:end]
		}
		if at = end; at < len(data) && data[at] == ',' {
			at++
		}
	}
	return at == len(data)-1 && data[at] == '}'
}

// eachMember calls each for the members of a stored object.
func eachMember(data []byte, each func(name, value []byte)) {
	i := bytes.IndexByte(data, '{') + 1
	for i > 0 && i < len(data) {
		if c := data[i]; c == ' ' || c == ',' {
			i++
			continue
		}
		if data[i] != '"' {
			return
		}
		n := bytes.IndexByte(data[i+1:], '"')
		if n < 0 {
			return
		}
		name := data[i+1 : i+1+n]
		i += n + 2
		for i < len(data) && (data[i] == ':' || data[i] == ' ') {
			i++
		}
		end := skipValue(data, i)
		each(name, data[i:end])
		i = end
	}
}

// skipValue returns the offset after the JSON value that starts at i.
func skipValue(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			i = skipString(data, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of the enclosing object
			}
			depth--
			if depth == 0 {
				return i + 1
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// skipString returns the offset after the JSON string that starts at i. It looks for quotation marks alone, since a text may
// be long: one is escaped by an odd number of backslashes before it.
func skipString(data []byte, i int) int {
	for from := i + 1; from < len(data); {
		n := bytes.IndexByte(data[from:], '"')
		if n < 0 {
			break
		}
		end := from + n
		slashes := 0
		for slashes < n && data[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		from = end + 1
	}
	return len(data)
}

// appendCompact appends a JSON value without the white space that PostgreSQL
// adds.
func appendCompact(dst, v []byte) []byte {
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			end := skipString(v, i)
			dst = append(dst, v[i:end]...)
			i = end - 1
		case ' ':
		default:
			dst = append(dst, v[i])
		}
	}
	return dst
}
