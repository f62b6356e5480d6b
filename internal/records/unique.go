package records

import (
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/schema"
)

// uniqueValues are the values of unique fields that a unit's records have in
// the unit, so that one look-up finds whether a value is taken there. A
// reference to a deleted record may remain among them, because no record can
// refer to it any longer.
type uniqueValues struct {
	owner map[uniqueValue]string // the id of the record that has it
	// stale are the stored records that the unit changed or deleted, by
	// created_at: their stored values no longer count.
	stale map[int64]bool
}

type uniqueValue struct{ entity, field, key string }

// taken is the stored record that has a unique value; id is "" if there is none.
type taken struct {
	id        string
	createdAt int64
}

func newUniqueValues() uniqueValues {
	return uniqueValues{owner: map[uniqueValue]string{}, stale: map[int64]bool{}}
}

// replace replaces the values of was, the unit's previous version of a record,
// with those of is; was is nil if there is none.
func (v *uniqueValues) replace(e *schema.Entity, was, is *row) {
	v.remove(e, was, is)
	eachUnique(e, is, func(u uniqueValue) { v.owner[u] = is.id })
}

// remove removes the values of was, the previous version of the record in the
// unit.
func (v *uniqueValues) remove(e *schema.Entity, was, is *row) {
	eachUnique(e, was, func(u uniqueValue) {
		if v.owner[u] == is.id {
			delete(v.owner, u)
		}
	})
	if is.version != 0 {
		v.stale[is.createdAt] = true
	}
}

// eachUnique calls fn with each value of a unique field that a record has.
func eachUnique(e *schema.Entity, rec *row, fn func(uniqueValue)) {
	if rec == nil {
		return
	}
	var values []jsontext.Value
	for i, f := range e.Fields {
		if !f.Unique {
			continue
		}
		if values == nil {
			values = stored(e, rec.data)
		}
		if key, ok := uniqueKey(f, values[i]); ok {
			fn(uniqueValue{e.Name, f.Name, key})
		}
	}
}
