package records

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/fault"
	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// A record has, for each field that lists are filtered and sorted by, one index row
// for viewers who see all records, and one for each way in which it can be reached.
// A filtered or sorted list is then a union of index ranges like any other, and
// reads no hidden record. The column reach names the way (way.reach).

// everybody is the reach of the row that every keyed value has.
const everybody = ""

// ranged reports whether records have a row for each way, and one where they have no
// value (schema.Unset). A field that is unique alone is only looked up: a value
// has at most one match, whose visibility is checked as a condition.
func ranged(f *schema.Field) bool { return f.Indexed }

// spread reports whether records have rows of the field for each way: by its value, or
// by its words.
func spread(f *schema.Field) bool { return ranged(f) || f.Searchable }

func hasSpread(e *schema.Entity) bool { return slices.ContainsFunc(e.Fields, spread) }

// standing is everything that the index rows of a record are derived from. The
// zero standing represents a record that does not exist.
type standing struct {
	id        string
	values    []jsontext.Value // by schema.Field.Index
	data      jsontext.Value   // all of it, including fields that were removed
	owner     user.ID
	ownerRole string
	shares    []string // the principals it is shared with
	rules     []string // the names under which sharing rules by field value match
	// families are the lineages of which the record has descendants.
	families []access.Place
}

// entry is one index row of a record; field is the stored name.
type entry struct {
	field, value, reach string
	unique              bool
}

// maxEntries bounds the index rows of a record, and those that a batch or a run adds and
// removes (contract V4): while they are written, SQLite writes nothing else. Tests change it.
var maxEntries = 50_000

var (
	errEntries = fault.New(fault.Conflict, "the record would have more than %d entries in the indexes: one for each indexed field, and for each word of a searchable one, "+
		"times the ways in which the record is reached (owner, roles, shares, rules); shorten its texts, or share it with a role instead", maxEntries)
	errIndexed = fault.New(fault.ExecutionError,
		"a run may change at most %d entries of the indexes (each indexed field and each word of a searchable one, for each way in which a record is reached)", maxEntries)
)

// indexing counts the index rows that the changes of a transaction add and remove. nil
// counts nothing.
type indexing struct {
	rows    int
	bounded bool
}

// add returns errIndexed beyond maxEntries, if that bounds it.
func (x *indexing) add(rows int) error {
	if x == nil {
		return nil
	}
	if x.rows += rows; x.bounded && x.rows > maxEntries {
		return errIndexed
	}
	return nil
}

// entries returns all index rows of a record. It is the only place that derives
// them.
func (st *standing) entries(e *schema.Entity) []entry {
	if st.values == nil {
		return nil
	}
	var list []entry
	var at []string
	for i, f := range e.Fields {
		if at == nil && spread(f) {
			at = st.reaches(e)
		}
		list = appendRows(list, f, f.StoredAs(), st.values[i], at)
	}
	return append(list, st.familyEntries()...)
}

// appendRows appends the index rows of a field's value under a name: those of
// everybody, and of the reaches. The one that may be unique is the first.
func appendRows(dst []entry, f *schema.Field, name string, v jsontext.Value, reaches []string) []entry {
	if key, ok := indexKey(f, v); ok {
		dst = append(dst, entry{name, key, everybody, f.Unique && key != schema.Unset})
		if ranged(f) {
			dst = appendEntries(dst, name, key, reaches)
		}
	}
	for _, word := range f.Words(v) {
		dst = append(dst, entry{schema.WordsAs(name), word, everybody, false})
		dst = appendEntries(dst, schema.WordsAs(name), word, reaches)
	}
	return dst
}

// appendReached appends those of the reaches alone.
func appendReached(dst []entry, f *schema.Field, name string, v jsontext.Value, reaches []string) []entry {
	if ranged(f) {
		if key, ok := indexKey(f, v); ok {
			dst = appendEntries(dst, name, key, reaches)
		}
	}
	for _, word := range f.Words(v) {
		dst = appendEntries(dst, schema.WordsAs(name), word, reaches)
	}
	return dst
}

func appendEntries(dst []entry, name, key string, reaches []string) []entry {
	for _, reach := range reaches {
		dst = append(dst, entry{name, key, reach, false})
	}
	return dst
}

// entriesOf returns the index rows of a record for one name of a way: those in
// use, and those of the shape that is being prepared.
//
// families are those of the record (see standing).
func entriesOf(c *access.Config, e *schema.Entity, data jsontext.Value, families []access.Place, kind access.Kind, name string) []entry {
	reaches := []string{ways[kind].reach(name)}
	list := wayEntries(e, stored(e, data), reaches, nil)
	if shape := c.Shape(e.StoredAs()); shape != nil {
		list = append(list, shapeWays(shape, data, reaches)...)
	}
	for _, family := range families {
		if family.Root() {
			list = appendEntries(list, family.Name, "", reaches)
		}
	}
	return list
}

// wayEntries returns the index rows of some reaches only, for a change that
// affects no others: none if the records are reached by their parent alone.
// filter, if not nil, selects the fields.
func wayEntries(e *schema.Entity, values []jsontext.Value, reaches []string, filter func(*schema.Field) bool) []entry {
	var list []entry
	if e.ControlledBy != "" {
		return nil
	}
	for i, f := range e.Fields {
		if filter == nil || filter(f) {
			list = appendReached(list, f, f.StoredAs(), values[i], reaches)
		}
	}
	return list
}

// minus returns what is in list and not in other.
func minus(list, other []entry) []entry {
	if len(list) == 0 || len(other) == 0 {
		return list
	}
	has := make(map[entry]bool, len(other))
	for _, en := range other {
		has[en] = true
	}
	var rest []entry
	for _, en := range list {
		if !has[en] {
			rest = append(rest, en)
		}
	}
	return rest
}

// missing returns what is in list and not in from.
func missing(from, list []string) (rest []string) {
	for _, name := range list {
		if !slices.Contains(from, name) {
			rest = append(rest, name)
		}
	}
	return rest
}

// holding returns the names under which rules match a record's id and values.
func holding(e *schema.Entity, rules []*access.SharingRule, id string, values []jsontext.Value) []string {
	var ids []string
	for _, rule := range rules {
		if name, ok := matching(e, rule, id, values); ok {
			ids = append(ids, name)
		}
	}
	return ids
}
