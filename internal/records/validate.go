package records

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// input is a body checked against an entity type and its viewer's rights.
type input struct {
	// values holds the canonical value of each field in the body, by
	// schema.Field.Index: nil where the body does not have it, schema.Null to
	// clear it.
	values []jsontext.Value
	owner  user.ID // "" when the body has none
	// given are the system members that a PATCH may repeat unchanged.
	given     map[string]string
	forbidden map[string]string // per field that may be read but not edited
	reasons   map[string]string // per failing field
	empty     bool              // the body has no members
}

// again returns the input to be checked once more, against another state of the record.
func (in *input) again() *input {
	copied := *in
	copied.reasons = maps.Clone(in.reasons)
	return &copied
}

func (in *input) fail(name, reason string) {
	if in.reasons == nil {
		in.reasons = map[string]string{}
	}
	in.reasons[name] = reason
}

// err returns a VALIDATION that names every failing field at once (contract
// R8).
func (in *input) err() error {
	if len(in.reasons) == 0 {
		return nil
	}
	return fault.Fields("some fields are not valid", in.reasons)
}

// check checks a body. Fields that the viewer may read but not edit make it
// FORBIDDEN, naming each (contract R9); everything else that is wrong is
// collected in reasons. A field that the viewer may not read is unknown to them
// (contract A6).
func check(r *access.EntityRights, members []Member) (*input, error) {
	in := checkFields(r, members)
	if len(in.forbidden) > 0 {
		return nil, errForbidden(in.forbidden)
	}
	return in, nil
}

func errForbidden(fields map[string]string) error {
	return fault.New(fault.Forbidden, "you may not edit some of these fields").With("fields", fields)
}

// checkFields is check without the FORBIDDEN: it leaves in.forbidden to the
// caller.
func checkFields(r *access.EntityRights, members []Member) *input {
	in := &input{values: make([]jsontext.Value, len(r.Entity.Fields)), forbidden: map[string]string{}, empty: len(members) == 0}
	for _, m := range members {
		switch m.Name {
		case "id", "created_at", "updated_at":
			if in.given == nil {
				in.given = map[string]string{}
			}
			in.given[m.Name] = schema.Unquote(m.Value)
			continue
		case "owner_id":
			if m.Value.Kind() != '"' {
				in.fail("owner_id", "expected the id of a user")
				continue
			}
			in.owner = user.ID(schema.Unquote(m.Value))
			if in.owner == "" {
				in.fail("owner_id", "expected the id of a user")
			}
			continue
		}
		f := r.Entity.Field(m.Name)
		switch {
		case f == nil || !r.ReadField[f.Index]:
			in.fail(m.Name, "unknown field")
		case !r.EditField[f.Index]:
			in.forbidden[m.Name] = "you may not edit this field"
		default:
			v, reason := f.Canonical(m.Value)
			if reason != "" {
				in.fail(m.Name, reason)
			} else if f.Required && schema.IsNull(v) {
				in.fail(m.Name, "required")
			} else {
				in.values[f.Index] = v
			}
		}
	}
	return in
}

// checkUpdate is checkFields for an update of a record: a large body takes milliseconds,
// which others would wait for in a transaction. It returns nil for the type user, where a
// body is checked against the user.
func checkUpdate(r *access.EntityRights, members []Member) *input {
	if r.Entity.Name == schema.UserEntity {
		return nil
	}
	return checkFields(r, members)
}

// checkCreate is check for a new record: it refuses system members, and
// required fields must be there. A required field that the viewer may not edit
// makes the create FORBIDDEN (contract R13).
func checkCreate(r *access.EntityRights, members []Member) (*input, error) {
	locked := map[string]string{}
	for i, f := range r.Entity.Fields {
		if f.Required && !r.EditField[i] {
			if r.ReadField[i] {
				locked[f.Name] = "required, and you may not edit it"
			} else {
				return nil, fault.New(fault.Forbidden, "you may not create records of %s: a required field is closed to you", r.Entity.Name)
			}
		}
	}
	if len(locked) > 0 {
		return nil, fault.New(fault.Forbidden, "you may not create records of %s: a required field is closed to you", r.Entity.Name).
			With("fields", locked)
	}
	in, err := check(r, members)
	if err != nil {
		return nil, err
	}
	for name := range in.given {
		in.fail(name, "is set by the service")
	}
	for i, f := range r.Entity.Fields {
		if f.Required && in.values[i] == nil && in.reasons[f.Name] == "" {
			in.fail(f.Name, "required")
		}
	}
	in.weigh(r.Entity, nil, in.values, nil)
	return in, nil
}

// checkGiven refuses system members of a PATCH that do not have exactly the
// stored value (contract R6).
func (in *input) checkGiven(rec *row) {
	stored := map[string]string{
		"id":         rec.id,
		"created_at": string(clock.AppendRFC3339Micro(nil, rec.createdAt)),
		"updated_at": string(clock.AppendRFC3339Micro(nil, rec.updatedAt)),
	}
	for name, v := range in.given {
		if v != stored[name] {
			in.fail(name, "is set by the service and cannot be changed")
		}
	}
}

// MaxDocument bounds the JSON of all fields of a record together, as it is
// stored and shown: texts with their escapes, numbers without exponents, and
// the kept values of removed fields (contract V4). The same limit applies to
// the custom fields of a user. No answer about one record is much longer.
const MaxDocument = 1 << 20

// weigh fails the largest field of the body if the body makes the record larger
// than MaxDocument. A record that was larger before there was a limit may be
// changed as long as it does not grow. before is nil for a new record; kept is
// its stored data, which may contain values of removed fields.
func (in *input) weigh(e *schema.Entity, before, after []jsontext.Value, kept jsontext.Value) {
	size := documentSize(e, after, kept)
	if size <= MaxDocument || before != nil && size <= documentSize(e, before, kept) {
		return
	}
	largest := -1
	for i, v := range in.values {
		if v != nil && (largest < 0 || len(v) > len(in.values[largest])) {
			largest = i
		}
	}
	if largest >= 0 {
		in.fail(e.Fields[largest].Name, fmt.Sprintf("makes the record too large: expected at most %d bytes of JSON in all its fields, numbers without exponents", MaxDocument))
	}
}

// documentSize returns the length of what document writes.
func documentSize(e *schema.Entity, values []jsontext.Value, before jsontext.Value) int {
	size, members := len("{}"), 0
	for i, f := range e.Fields {
		if values[i] != nil && !schema.IsNull(values[i]) {
			size += max(len(f.Label), len(f.StoredLabel)) + len(values[i])
			members++
		}
	}
	eachKept(e, before, func(name, value []byte) {
		size += len(`"":`) + len(name) + len(value)
		members++
	})
	return size + max(members-1, 0)
}

// document returns values as the object to store: the fields that are set, in
// declared order, then the values of removed fields in before.
func document(e *schema.Entity, values []jsontext.Value, before jsontext.Value) jsontext.Value {
	dst := make([]byte, 0, 256+len(before))
	dst = append(dst, '{')
	comma := func() {
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
	}
	for i, f := range e.Fields {
		if values[i] != nil && !schema.IsNull(values[i]) {
			comma()
			dst = append(dst, f.StoredLabel...)
			dst = append(dst, values[i]...)
		}
	}
	eachKept(e, before, func(name, value []byte) {
		comma()
		dst = append(dst, '"')
		dst = append(dst, name...)
		dst = append(dst, '"', ':')
		dst = append(dst, value...)
	})
	return append(dst, '}')
}

// eachKept calls each for the values of removed fields in stored data.
func eachKept(e *schema.Entity, data jsontext.Value, each func(name, value []byte)) {
	eachMember(data, func(name, value []byte) {
		if e.OfMemberBytes(name) == nil {
			each(name, appendCompact(nil, value))
		}
	})
}

// stored splits a record's data into canonical values by field index.
func stored(e *schema.Entity, data jsontext.Value) []jsontext.Value {
	values := make([]jsontext.Value, len(e.Fields))
	split(e, data, values)
	for i, f := range e.Fields {
		if values[i] != nil && !f.Scalar() {
			values[i] = appendCompact(nil, values[i])
		}
	}
	return values
}

// indexKey returns the key under which the index has a field's value, nil for none.
// It returns false if the index has nothing for it.
func indexKey(f *schema.Field, v jsontext.Value) (string, bool) {
	if !f.Keyed() {
		return "", false
	}
	if key, ok := f.IndexKey(v); ok {
		return key, true
	}
	return schema.Unset, ranged(f)
}

// uniqueKey returns the key of a value that no two records may have. It returns false
// for any other.
func uniqueKey(f *schema.Field, v jsontext.Value) (string, bool) {
	if !f.Unique {
		return "", false
	}
	return f.IndexKey(v)
}

// matching returns the name under which a sharing rule by field value matches a
// record's id and values: the rule's or, where the rule matches the viewer, that of
// its one member that they belong to. It returns false where it does not match.
func matching(e *schema.Entity, rule *access.SharingRule, id string, values []jsontext.Value) (name string, ok bool) {
	if values == nil || len(rule.Where) == 0 {
		return "", false
	}
	var keys []string
	for i := range rule.Where {
		c := &rule.Where[i]
		f := e.Comparand(c.Field)
		if f == nil {
			return "", false
		}
		have, set := id, id != ""
		if c.Field != schema.IDField {
			have, set = c.Key(f, values[f.Index])
		}
		if !set {
			return "", false
		}
		if c.Viewer != "" {
			keys = append(keys, have)
			continue
		}
		if want, ok := f.Key(c.Value); !ok || want != have {
			return "", false
		}
	}
	if keys == nil {
		return rule.StoredAs(), true
	}
	return access.Member(rule.StoredAs(), keys), true
}

// valueRules returns the sharing rules by field value of an entity type.
func valueRules(c *access.Config, entity string) []*access.SharingRule {
	var list []*access.SharingRule
	for _, r := range c.Rules {
		if r.Entity == entity && len(r.Where) > 0 {
			list = append(list, r)
		}
	}
	return list
}

func same(a, b jsontext.Value) bool {
	if schema.IsNull(a) || schema.IsNull(b) {
		return schema.IsNull(a) == schema.IsNull(b)
	}
	return bytes.Equal(a, b)
}
