package records

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

// maxSort is how many keys an order has at most (contract P13).
const maxSort = 2

// order is what a list is sorted by. Records with equal keys, or without keys, are in
// the order of their creation.
type order struct {
	keys []orderKey
	desc bool // the newest first of those with equal keys
	// span is the part of the index of the first key in which everything that is selected lies.
	span schema.Span
}

// orderKey is a field, or the column updated_at.
type orderKey struct {
	field *schema.Field // nil for the column
	desc  bool
}

// place is where a record stands in an order.
type place struct {
	keys []string
	at   int64 // created_at
}

// order checks the order of a query. It returns nil for newest first.
func (m *planner) order(list []Sort) *order {
	o, ended := &order{span: schema.Span{To: schema.Unset + " "}}, false
	switch {
	case len(list) == 0:
		return nil
	case len(list) > maxSort:
		m.bad["sort"] = fmt.Sprintf("expected at most %d keys", maxSort)
		return nil
	}
	for i, by := range list {
		if slices.ContainsFunc(list[:i], func(s Sort) bool { return s.Field == by.Field }) {
			m.bad["sort"] = fmt.Sprintf("expected each key once: %.20q", by.Field)
			return nil
		}
		key, reason := m.orderKey(by)
		switch {
		case reason != "":
			m.bad["sort"] = reason
			return nil
		case ended: // no two records are created at the same time
		case key == nil:
			ended, o.desc = true, by.Desc
		default:
			o.keys, o.desc = append(o.keys, *key), by.Desc
		}
	}
	if len(o.keys) == 0 && o.desc {
		return nil
	}
	return o
}

// orderKey checks one key. It returns nil for created_at, and the reason why something
// is no key.
func (m *planner) orderKey(by Sort) (key *orderKey, reason string) {
	field := m.r.Entity.Field(by.Field)
	if field != nil && !m.r.ReadField[field.Index] {
		field = nil
	}
	switch {
	case field == nil && by.Field == "created_at":
		return nil, ""
	case field == nil && by.Field == "updated_at":
		return &orderKey{nil, by.Desc}, ""
	case field == nil:
		return nil, fmt.Sprintf("unknown field %.20q", by.Field)
	case !field.Sortable():
		return nil, fmt.Sprintf("%s has no order: a field of type %s is not sorted by", by.Field, field.Type)
	}
	return &orderKey{field, by.Desc}, ""
}

// byIndex reports whether the index has the records of a scope in the order of the
// first key.
func (o *order) byIndex(scope *access.Scope) bool {
	return (scope.All || scope.ByParent() == nil) && (len(o.keys) == 0 || o.keys[0].field != nil && ranged(o.keys[0].field))
}

// inIndex reports whether that is the whole order.
func (o *order) inIndex() bool {
	return len(o.keys) == 0 || len(o.keys) == 1 && o.keys[0].desc == o.desc
}

// place returns the place of a row; values are those of its fields.
func (o *order) place(rec *row, values []jsontext.Value) place {
	p := place{make([]string, len(o.keys)), rec.createdAt}
	for i, key := range o.keys {
		p.keys[i] = key.of(rec, values)
	}
	return p
}

// of returns the key of a row: texts are in the order of the keys.
func (k *orderKey) of(rec *row, values []jsontext.Value) string {
	if k.field == nil {
		return fmt.Sprintf("%019d", rec.updatedAt)
	}
	if key, ok := k.field.IndexKey(values[k.field.Index]); ok {
		return key
	}
	return schema.Unset
}

// compare orders places.
func (o *order) compare(a, b place) int {
	for i, key := range o.keys {
		if c := strings.Compare(a.keys[i], b.keys[i]); c != 0 {
			return directed(c, key.desc)
		}
	}
	return directed(cmp.Compare(a.at, b.at), o.desc)
}

func directed(c int, desc bool) int {
	if desc {
		return -c
	}
	return c
}

// behind returns the place that a window begins behind; ok is false for the beginning
// of the order.
func (o *order) behind(w *window) (p place, ok bool) {
	return place{w.behind, w.before}, w.before != 0 && len(w.behind) == len(o.keys)
}

// String names the keys for a message.
func (o *order) String() string {
	var names []string
	for _, key := range o.keys {
		name := "updated_at"
		if key.field != nil {
			name = key.field.Name
		}
		names = append(names, strconv.Quote(name))
	}
	return strings.Join(names, ", ")
}
