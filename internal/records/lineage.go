package records

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

// Records of an entity type that is controlled by a parent have no ways of
// their own: what reaches the parent reaches them (contract A21). Nothing about
// the parent is stored with a record but the reference to it. So a change of
// the parent, its shares or its place takes effect at once, and costs the same
// however many records are below it.
//
// A point read asks the parent, in the same statement (statement.parent). A list
// walks down from the ancestors that the viewer reaches (armWriter.descend),
// through the index rows of the lineage (access.Lineage): without these, it
// would visit each ancestor that has no descendants at all.

func init() {
	w := &ways[access.ByParent]
	w.condition = func(s *statement, w *access.Way) { s.parent(w.Parent) }
	w.ranges = func(a *armWriter, w *access.Way) { a.descend(w.Parent, "", nil) }
	w.why = func(_ *Why, r *Reason) string { return r.Parent.text() }
}

// parentReach returns the reaches of the index rows of a record by its parent;
// v is the value that refers to it.
func parentReach(v jsontext.Value) []string {
	if id := refersTo(v); id != "" {
		return []string{ways[access.ByParent].reach(id)}
	}
	return nil
}

// refersTo returns the id that a reference holds, or "".
func refersTo(v jsontext.Value) string {
	if v == nil || v.Kind() != '"' {
		return ""
	}
	return schema.Unquote(v)
}

// memberOf returns the id that a member of stored data holds, or "".
func memberOf(data jsontext.Value, member string) string {
	e := (&schema.Entity{Fields: []*schema.Field{{Name: member, Type: schema.Reference}}}).Index()
	return refersTo(stored(e, data)[0])
}

// parentID returns the id of a record's parent, or "".
func parentID(e *schema.Entity, data jsontext.Value) string {
	f := e.Controller()
	if f == nil {
		return ""
	}
	return refersTo(stored(e, data)[f.Index])
}

// familyEntries returns the index rows that say of which lineages the record
// has descendants.
func (st *standing) familyEntries() (list []entry) {
	for _, family := range st.families {
		list = append(list, entry{family.Name, "", everybody, false})
		list = appendEntries(list, family.Name, "", st.familyReaches(family))
	}
	return list
}

// familyReaches returns the reaches of the rows of a lineage: those of the
// record itself under the configuration of the lineage.
func (st *standing) familyReaches(family access.Place) []string {
	if family.Root() {
		return st.own()
	}
	if id := memberOf(st.data, family.Links[family.At+1].Member); id != "" {
		return []string{ways[access.ByParent].reach(id)}
	}
	return nil
}

// parent writes whether the parent of the statement's record is in a scope. It
// is a scalar subquery: PostgreSQL would turn EXISTS into a join.
func (s *statement) parent(p *access.Parent) {
	child := s.record
	s.depth++
	s.record = "p" + strconv.Itoa(s.depth)
	s.WriteString("(SELECT 1 FROM records " + s.record + " WHERE " + s.record + ".tenant_id = $1 AND " + s.record + ".entity = ")
	s.arg(p.Entity.StoredAs())
	s.WriteString(" AND " + s.record + ".record_id = (" + child + ".data ->> CAST(")
	s.arg(p.Field.MemberName())
	s.WriteString(" AS TEXT)) AND ")
	s.reached(p.Scope)
	s.WriteString(") = 1")
	s.record = child
	s.depth--
}

// parented writes whether the statement's record has all its ancestors. It is
// what remains of the predicate for a viewer who reaches every record: those
// that are being deleted together with an ancestor are no longer there for
// anybody. Nearly always there are none, which one look-up finds.
func (s *statement) parented(w *access.Way) {
	s.WriteString("(NOT EXISTS (SELECT 1 FROM leftovers l WHERE l.tenant_id = $1 AND l.kind = '" + access.LeftChildren + "' AND l.entity IN ")
	var list []string
	for p := w.Parent; p != nil; p = p.Scope.ByParent() {
		list = append(list, p.Of.StoredAs())
	}
	s.list(list)
	s.WriteString(") OR ")
	s.parent(w.Parent)
	s.WriteByte(')')
}

// descend writes the created_at of the newest records of a window that are
// reached by their parents. It reads the ancestors in reach that have
// descendants of the type, level by level, and then the newest records of each
// parent. So the cost depends on how many parents with records the viewer
// reaches, not on anything else. given are the conditions of filters on the
// index row s.
func (a *armWriter) descend(p *access.Parent, given string, filters []filter) {
	var up []*access.Parent // from the root down
	for at := p; at != nil; at = at.Scope.ByParent() {
		up = append([]*access.Parent{at}, up...)
	}
	d := &descent{a, up, p.Of.Lineage, given, len(filters) > 0}
	a.begin("SELECT at FROM (")
	if a.lateral {
		d.lateral()
	} else {
		d.joined()
	}
	a.end("")
}

// descent writes one descend.
type descent struct {
	*armWriter
	up       []*access.Parent
	name     string // of the lineage
	given    string
	filtered bool
}

// roots writes the conditions on f0: the rows of the lineage of roots in reach.
func (d *descent) roots(at func()) {
	d.WriteString("f.tenant_id = $1 AND f.entity = ")
	d.statement.arg(d.up[0].Entity.StoredAs())
	d.rows("f")
	d.WriteString(" AND f.reach ")
	at()
}

// rows writes that f is a row of the lineage.
func (d *descent) rows(f string) {
	d.WriteString(" AND " + f + ".field = ")
	d.statement.arg(d.name)
	d.WriteString(" AND " + f + ".value = ''")
}

// record writes the conditions on k, the record of a lineage's row at an instant.
func (d *descent) record(k, at string, of *access.Parent) {
	d.WriteString(k + ".tenant_id = $1 AND " + k + ".entity = ")
	d.statement.arg(of.Entity.StoredAs())
	d.WriteString(" AND " + k + ".created_at = " + at)
}

// children writes the conditions on s, the index rows of records whose parent
// is k.
func (d *descent) children(k string) {
	d.WriteString("s.tenant_id = $1 AND s.entity = $2")
	if d.filtered {
		d.WriteString(d.given + " AND s.reach = '" + ways[access.ByParent].prefix + "' || " + k + ".record_id")
	} else {
		d.WriteString(" AND s.field = ")
		d.statement.arg(d.up[len(d.up)-1].Field.StoredAs())
		d.WriteString(" AND s.reach = '' AND s.value = " + k + ".record_id")
	}
	d.WriteString(" AND s.record_created_at < $3")
}

// joined writes nested loops in a fixed order, for SQLite. Of each parent it
// reads the newest records only: the scalar subquery finds where these end.
func (d *descent) joined() {
	d.WriteString("SELECT s.record_created_at AS at FROM (SELECT DISTINCT f.record_created_at AS at FROM field_values f WHERE ")
	d.roots(func() {
		d.WriteString("IN ")
		d.list(reachesOf(d.up[0].Scope))
	})
	d.WriteString(") f0")
	last := ""
	for i, of := range d.up {
		k, at := "k"+strconv.Itoa(i), "f0.at"
		if i > 0 {
			f := "f" + strconv.Itoa(i)
			d.WriteString(" CROSS JOIN field_values " + f + " ON " + f + ".tenant_id = $1 AND " + f + ".entity = ")
			d.statement.arg(of.Entity.StoredAs())
			d.rows(f)
			d.WriteString(" AND " + f + ".reach = '" + ways[access.ByParent].prefix + "' || " + last + ".record_id")
			at = f + ".record_created_at"
		}
		d.WriteString(" CROSS JOIN records " + k + " ON ")
		d.record(k, at, of)
		last = k
	}
	d.WriteString(" CROSS JOIN field_values s ON ")
	d.children(last)
	d.WriteString(" AND s.record_created_at >= COALESCE((SELECT s.record_created_at FROM field_values s WHERE ")
	d.children(last)
	d.WriteString(" AND s.record_created_at > $4 ORDER BY s.record_created_at DESC LIMIT 1 OFFSET " + strconv.Itoa(d.limit-1) + "), $4 + 1)")
	d.WriteString(" ORDER BY at DESC")
	d.statement.limit(d.limit)
}

// lateral writes a LATERAL for each level. Its LIMIT, which is never reached,
// keeps PostgreSQL from merge and hash joins, which read the hidden rows as
// well.
func (d *descent) lateral() {
	const all = 1 << 31
	d.WriteString("SELECT s.at FROM (SELECT DISTINCT l.at FROM (VALUES ")
	for i, v := range reachesOf(d.up[0].Scope) {
		if i > 0 {
			d.WriteByte(',')
		}
		d.list([]string{v})
	}
	d.WriteString(") w(v) CROSS JOIN LATERAL (SELECT f.record_created_at AS at FROM field_values f WHERE ")
	d.roots(func() { d.WriteString("= w.v") })
	d.statement.limit(all)
	d.WriteString(") l) f0")
	last := ""
	for i, of := range d.up {
		k, f := "k"+strconv.Itoa(i), "f"+strconv.Itoa(i)
		if i > 0 {
			d.WriteString(" CROSS JOIN LATERAL (SELECT f.record_created_at AS at FROM field_values f WHERE f.tenant_id = $1 AND f.entity = ")
			d.statement.arg(of.Entity.StoredAs())
			d.rows("f")
			d.WriteString(" AND f.reach = '" + ways[access.ByParent].prefix + "' || " + last + ".record_id")
			d.statement.limit(all)
			d.WriteString(") " + f)
		}
		d.WriteString(" CROSS JOIN LATERAL (SELECT r.record_id FROM records r WHERE ")
		d.record("r", f+".at", of)
		d.statement.limit(1)
		d.WriteString(") " + k)
		last = k
	}
	d.WriteString(" CROSS JOIN LATERAL (SELECT s.record_created_at AS at FROM field_values s WHERE ")
	d.children(last)
	d.WriteString(" AND s.record_created_at > $4 ORDER BY s.record_created_at DESC")
	d.statement.limit(d.limit)
	d.WriteString(") s ORDER BY at DESC")
	d.statement.limit(d.limit)
}

// ancestors returns the stored names of the entity types above the records that
// a scope reaches.
func ancestors(scope *access.Scope) (list []string) {
	for p := scope.ByParent(); p != nil; p = p.Scope.ByParent() {
		list = append(list, p.Entity.StoredAs())
	}
	return slices.Clip(list)
}
