package records

import (
	"slices"
	"strings"

	"gatehouse/internal/access"
	"gatehouse/internal/schema"
)

// way is what a kind of way to reach records (access.Kind) means for stored
// records. From ways come the visibility predicate (statement.reached), the
// index ranges of lists (statement.arms), the index rows of filtered lists
// (standing.entries), and the checks of a record in memory
// (standing.reachedBy).
type way struct {
	// prefix begins the reach of the index rows of this way (way.reach).
	prefix string
	source source
	// names appends the names under which a record is reached in this way.
	names func(dst []string, st standing) []string
	// condition writes whether w reaches the record of the statement
	// (statement.column).
	condition func(s *statement, w *access.Way)
	// ranges writes the index ranges of the records that w reaches.
	ranges func(a *armWriter, w *access.Way)
	// why returns a text that says why the records of a source of this way are
	// reached.
	why func(why *Why, r *Reason) string
}

// source is the data that decides whether a record is reached in a way.
type source uint8

const (
	ofRow    source = iota // columns of the record, known from the row alone
	ofValues               // the values of its fields, under the configuration
	ofOthers               // rows of other tables: known only from the condition in SQL
)

// ways has an entry for each kind of way.
var ways = [...]way{
	access.ByOwner: {
		prefix: "o:",
		source: ofRow,
		names:  func(dst []string, st standing) []string { return append(dst, string(st.owner)) },
		condition: func(s *statement, w *access.Way) {
			s.column("owner_id")
			s.WriteString(" = ")
			s.arg(w.Names[0])
		},
		ranges: func(a *armWriter, w *access.Way) {
			a.write("records", "s.created_at", "s.entity = $2 AND s.owner_id", w.Names, nil)
		},
		why: func(*Why, *Reason) string { return "the user owns it" },
	},
	access.ByOwnerRole: {
		prefix: "r:",
		source: ofRow,
		names: func(dst []string, st standing) []string {
			if st.ownerRole == "" {
				return dst
			}
			return append(dst, st.ownerRole)
		},
		condition: func(s *statement, w *access.Way) {
			s.column("owner_role")
			s.WriteString(" IN ")
			s.list(w.Names)
		},
		ranges: func(a *armWriter, w *access.Way) {
			a.write("records", "s.created_at", "s.entity = $2 AND s.owner_role", w.Names, nil)
		},
		why: func(why *Why, r *Reason) string {
			if r.Cause == access.Hierarchy {
				return "its owner has role " + r.Role + why.above(r.Role)
			}
			return "a rule shares records owned by role " + r.Rule.OwnedByRole + why.ruled(r)
		},
	},
	access.ByShare: {
		prefix: "s:",
		source: ofOthers,
		names:  func(dst []string, st standing) []string { return append(dst, st.shares...) },
		condition: func(s *statement, w *access.Way) {
			s.WriteString(`EXISTS (SELECT 1 FROM shares s WHERE s.tenant_id = $1 AND s.entity = `)
			s.column("entity")
			s.WriteString(" AND s.record_id = ")
			s.column("record_id")
			s.WriteString(" AND s.principal IN ")
			s.list(w.Names)
			s.level(w)
			s.WriteByte(')')
		},
		ranges: func(a *armWriter, w *access.Way) {
			a.write("shares", "s.record_created_at", "s.entity = $2 AND s.principal", w.Names, func() { a.level(w) })
		},
		why: func(why *Why, r *Reason) string {
			with := "shared with the user"
			if r.Cause == access.ShareWithRole {
				with = "shared with role " + r.Role
			}
			level := access.ReadOnly
			if r.Opens(access.Update) {
				level = access.Edit
			}
			return with + " (" + string(level) + ")" + why.above(r.Role)
		},
	},
	access.ByRule: {
		prefix: "m:",
		source: ofValues,
		names:  func(dst []string, st standing) []string { return append(dst, st.rules...) },
		condition: func(s *statement, w *access.Way) {
			s.WriteString(`EXISTS (SELECT 1 FROM rule_matches m WHERE m.tenant_id = $1 AND m.record_created_at = `)
			s.column("created_at")
			s.WriteString(" AND m.rule_id IN ")
			s.list(w.Names)
			s.WriteByte(')')
		},
		ranges: func(a *armWriter, w *access.Way) {
			a.write("rule_matches", "s.record_created_at", "s.rule_id", w.Names, nil)
		},
		why: func(why *Why, r *Reason) string {
			var where []string
			for _, c := range r.Rule.Where {
				where = append(where, conditionWords(c))
			}
			return "a rule shares records where " + strings.Join(where, " and ") + why.ruled(r)
		},
	},
	access.ByParent: {
		prefix: parentPrefix,
		source: ofOthers,
		names:  func(dst []string, _ standing) []string { return dst }, // see standing.reaches
	}, // init sets the rest, which refers to ways
}

// conditionWords returns a text that says what a condition of a rule asks for.
func conditionWords(c access.Condition) string {
	switch c.Viewer {
	case "":
		return c.Field + " = " + string(c.Value)
	case access.ViewerID:
		return c.Field + " is the user"
	case access.ViewerEmail:
		return c.Field + " is the user's e-mail address"
	}
	return c.Field + " is the user's " + c.Viewer
}

// level limits shares to the level edit if w is for that.
func (s *statement) level(w *access.Way) {
	if w.EditOnly {
		s.WriteString(" AND s.access = 'edit'")
	}
}

// reach returns the column reach of the index rows for a name of the way.
func (k *way) reach(name string) string { return k.prefix + name }

// reachesOf returns the reaches of the index rows of a scope's ways.
func reachesOf(scope *access.Scope) []string {
	list := make([]string, 0, armCount(scope))
	for i := range scope.Ways {
		w := &scope.Ways[i]
		for _, name := range w.Names {
			list = append(list, ways[w.Kind].reach(name))
		}
	}
	return list
}

// armCount returns the number of names of a scope's ways.
func armCount(scope *access.Scope) (n int) {
	for i := range scope.Ways {
		if p := scope.Ways[i].Parent; p != nil {
			n += armCount(p.Scope)
		}
		n += len(scope.Ways[i].Names)
	}
	return n
}

// reaches returns the reaches of the record's index rows.
func (st *standing) reaches(e *schema.Entity) []string {
	if f := e.Controller(); f != nil {
		return parentReach(st.values[f.Index])
	}
	return st.own()
}

// own returns the reaches of a record that no parent controls.
func (st *standing) own() []string {
	list := make([]string, 0, 2+len(st.shares)+len(st.rules))
	for i := range ways {
		n := len(list)
		list = ways[i].names(list, *st)
		for ; n < len(list); n++ {
			list[n] = ways[i].reach(list[n])
		}
	}
	return list
}

// waysOf returns the part of a scope that depends on a source.
func waysOf(scope *access.Scope, from source) *access.Scope {
	part := &access.Scope{}
	for _, w := range scope.Ways {
		if ways[w.Kind].source == from {
			part.Ways = append(part.Ways, w)
		}
	}
	return part
}

// reachedBy reports whether a scope reaches the record by the ways that depend
// on nothing beyond known, which is ofRow or ofValues. The standing must have
// what those depend on.
func (st standing) reachedBy(scope *access.Scope, known source) bool {
	return scope.All || slices.ContainsFunc(scope.Ways, func(w access.Way) bool {
		k := &ways[w.Kind]
		return k.source <= known && slices.ContainsFunc(k.names(nil, st), func(name string) bool { return slices.Contains(w.Names, name) })
	})
}

// byRow reports whether a scope reaches a record by its row alone, whatever it
// is shared with and whatever rules match it.
func byRow(scope *access.Scope, rec *row) bool {
	st := standing{owner: rec.owner, ownerRole: rec.ownerRole}
	return st.reachedBy(scope, ofRow)
}
