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

// parentPrefix begins the reaches of the way ByParent.
const parentPrefix = "p:"

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
	if child == "p" { // the generations alternate, as each names the one below
		s.record = "q"
		s.WriteString("(SELECT 1 FROM records q WHERE q.tenant_id = $1 AND q.entity = ")
	} else {
		s.record = "p"
		s.WriteString("(SELECT 1 FROM records p WHERE p.tenant_id = $1 AND p.entity = ")
	}
	s.arg(p.Entity.StoredAs())
	s.WriteString(" AND ")
	s.column("record_id")
	s.WriteString(" = (" + child + ".data ->> CAST(")
	s.arg(p.Field.MemberName())
	s.WriteString(" AS TEXT)) AND ")
	s.reached(p.Scope)
	s.WriteString(") = 1")
	s.record = child
}

// parented writes whether the statement's record has all its ancestors. It is
// what remains of the predicate for a viewer who reaches every record: those
// that are being deleted together with an ancestor are no longer there for
// anybody. Nearly always there are none, which one look-up finds.
func (s *statement) parented(w *access.Way) {
	s.WriteString("(NOT " + access.ChildrenLeftIn)
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
		up = slices.Insert(up, 0, at)
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

// among writes the rest of the conditions on f, the rows of the lineage of one
// type of ancestors, up to their reach.
func (d *descent) among(of *access.Parent) {
	d.statement.arg(of.Entity.StoredAs())
	d.WriteString(" AND f.field = ")
	d.statement.arg(d.name)
	d.WriteString(" AND f.value = '' AND f.reach ")
}

// at writes the rest of the conditions on r, the record of a lineage's row at an
// instant.
func (d *descent) at(of *access.Parent, at string) {
	d.statement.arg(of.Entity.StoredAs())
	d.WriteString(" AND r.created_at = " + at)
}

// below writes the condition on f that its record is below u.
const below = "= '" + parentPrefix + "' || u.id"

// children writes the conditions on s, the index rows of records whose parent
// is u, but the lower end of the window.
func (d *descent) children() {
	if d.filtered {
		d.WriteString(d.given + " AND s.reach " + below)
	} else {
		d.WriteString(" AND s.field = ")
		d.statement.arg(d.up[len(d.up)-1].Field.StoredAs())
		d.WriteString(" AND s.reach = '' AND s.value = u.id")
	}
	d.WriteString(" AND s.record_created_at < $3 AND s.record_created_at ")
}

// joined writes nested loops in a fixed order, for SQLite. Of each parent it
// reads the newest records only: the scalar subquery finds where these end.
func (d *descent) joined() {
	d.WriteString("SELECT s.record_created_at AS at FROM ")
	for range d.up {
		d.WriteString("(SELECT r.record_id AS id FROM ")
	}
	for i, of := range d.up {
		at := "f.at"
		if i == 0 {
			d.WriteString("(SELECT DISTINCT f.record_created_at AS at FROM field_values f WHERE f.tenant_id = $1 AND f.entity = ")
			d.among(of)
			d.WriteString("IN ")
			d.list(reachesOf(of.Scope))
			d.WriteString(") f")
		} else {
			at = "f.record_created_at"
			d.WriteString(" u CROSS JOIN field_values f ON f.tenant_id = $1 AND f.entity = ")
			d.among(of)
			d.WriteString(below)
		}
		d.WriteString(" CROSS JOIN records r ON r.tenant_id = $1 AND r.entity = ")
		d.at(of, at)
		d.WriteByte(')')
	}
	d.WriteString(" u CROSS JOIN field_values s ON s.tenant_id = $1 AND s.entity = $2")
	d.children()
	d.WriteString(">= COALESCE((SELECT s.record_created_at FROM field_values s WHERE s.tenant_id = $1 AND s.entity = $2")
	d.children()
	d.WriteString("> $4 ORDER BY s.record_created_at DESC LIMIT 1 OFFSET " + strconv.Itoa(d.limit-1) + "), $4 + 1)")
	d.WriteString(" ORDER BY at DESC")
	d.statement.limit(d.limit)
}

// lateral writes a LATERAL for each level. Its LIMIT, which is never reached,
// keeps PostgreSQL from merge and hash joins, which read the hidden rows as
// well.
func (d *descent) lateral() {
	const all = 1 << 31
	d.WriteString("SELECT s.at FROM ")
	for range d.up {
		d.WriteString("(SELECT r.record_id AS id FROM ")
	}
	for i, of := range d.up {
		if i == 0 {
			d.WriteString("(SELECT DISTINCT l.at FROM (VALUES ")
			for i, v := range reachesOf(of.Scope) {
				if i > 0 {
					d.WriteByte(',')
				}
				d.list([]string{v})
			}
			d.WriteString(") w(v) CROSS JOIN LATERAL (SELECT f.record_created_at AS at FROM field_values f WHERE f.tenant_id = $1 AND f.entity = ")
			d.among(of)
			d.WriteString("= w.v")
			d.statement.limit(all)
			d.WriteString(") l) f")
		} else {
			d.WriteString(" u CROSS JOIN LATERAL (SELECT f.record_created_at AS at FROM field_values f WHERE f.tenant_id = $1 AND f.entity = ")
			d.among(of)
			d.WriteString(below)
			d.statement.limit(all)
			d.WriteString(") f")
		}
		d.WriteString(" CROSS JOIN LATERAL (SELECT r.record_id FROM records r WHERE r.tenant_id = $1 AND r.entity = ")
		d.at(of, "f.at")
		d.statement.limit(1)
		d.WriteString(") r)")
	}
	d.WriteString(" u CROSS JOIN LATERAL (SELECT s.record_created_at AS at FROM field_values s WHERE s.tenant_id = $1 AND s.entity = $2")
	d.children()
	d.WriteString("> $4 ORDER BY s.record_created_at DESC")
	d.statement.limit(d.limit)
	d.WriteString(") s ORDER BY at DESC")
	d.statement.limit(d.limit)
}
