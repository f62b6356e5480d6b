package access

import (
	json "github.com/go-json-experiment/json"
	"slices"
	"time"

	"gatehouse/internal/schema"
	"gatehouse/internal/user"
)

// Build is a change of configuration that would take one long transaction,
// while it is prepared in short ones. Once the build is stored, every writer of
// records maintains the new index rows in addition to those in use, and a walk
// adds the rows of existing records. Then one short transaction puts the change
// into force. Until it commits, readers see nothing of the change.
type Build struct {
	ID   string
	Work *Work
	// Walk and After are the progress: Walk is the number of the current walk, and
	// After is the created_at of the last record visited. Records created after Top
	// need no visit.
	Walk       int
	After, Top int64
	// Done and Total count records, for display of progress.
	Done, Total int64
	// Idle is how long the build has made no progress.
	Idle time.Duration
}

// Work is what must be done to records before a change takes effect.
type Work struct {
	Shapes []*Shape `json:"shapes,omitempty"`
	// Lineages are those of entity types that get other ancestors.
	Lineages []*Lineage `json:"lineages,omitempty"`
	Moves    []*Move    `json:"moves,omitempty"`
	// Entities are the stored names of the entity types whose records the moves
	// visit.
	Entities []string `json:"entities,omitempty"`
}

// Shape is the work on the records of one entity type.
type Shape struct {
	Entity *schema.Entity `json:"entity"` // as it will be
	Fields []*Index       `json:"fields,omitempty"`
	Rules  []*ShapeRule   `json:"rules,omitempty"` // by field value, as they will be
}

// ShapeRule is a sharing rule by field value, and whether it is new, so that
// its matches must be found.
type ShapeRule struct {
	Rule *SharingRule `json:"rule"`
	New  bool         `json:"new,omitempty"`
}

// Index is a field whose values are checked, or whose index rows are built.
type Index struct {
	Field string `json:"field"`
	// Name is the name under which its rows are stored.
	Name string `json:"name,omitempty"`
	// Check: stored values must satisfy requirements that they did not have to
	// satisfy before.
	Check bool `json:"check,omitempty"`
	// Rows: index rows are built.
	Rows bool `json:"rows,omitempty"`
	// Back: the field is new, and may have stored data from before its removal.
	Back bool `json:"back,omitempty"`
	// Needed: a record without a value does not fit, because its parent would
	// control it.
	Needed bool `json:"needed,omitempty"`
}

// Misfits returns a name whose rows are not an index: they mark the records
// whose value does not fit. No field's name contains such a character.
func (x *Index) Misfits() string { return x.Name + "!" }

// Doubles is like Misfits, for records whose value another record also has.
func (x *Index) Doubles() string { return x.Name + "=" }

// Move is users whose role changes. In their records, one after another, Token
// replaces the owner's role. Token is a further name of From until the change
// takes effect, and one of To from then on.
type Move struct {
	Token string    `json:"token,omitempty"`
	From  string    `json:"from"`
	To    string    `json:"to"`
	Users []user.ID `json:"users"` // ids, in order
}

// Empty reports whether there is no work.
func (w *Work) Empty() bool { return len(w.Shapes) == 0 && len(w.Lineages) == 0 && len(w.Moves) == 0 }

// Walks returns how many walks over records the work takes: one for each shape,
// one for each lineage, and one for each moving user and entity type.
func (w *Work) Walks() int {
	n := len(w.Shapes) + len(w.Lineages)
	for _, m := range w.Moves {
		n += len(m.Users) * len(w.Entities)
	}
	return n
}

// Key returns a description of the work without the names of rows: two changes with
// the same key need the same work.
func (w *Work) Key() string {
	var plain Work
	plain.Entities = w.Entities
	for _, s := range w.Shapes {
		copied := Shape{Entity: s.Entity}
		for _, x := range s.Fields {
			bare := *x
			bare.Name = ""
			copied.Fields = append(copied.Fields, &bare)
		}
		for _, r := range s.Rules {
			copied.Rules = append(copied.Rules, &ShapeRule{&SharingRule{Entity: r.Rule.ID()}, r.New})
		}
		plain.Shapes = append(plain.Shapes, &copied)
	}
	for _, l := range w.Lineages {
		plain.Lineages = append(plain.Lineages, &Lineage{Entity: l.Entity, Links: l.Links})
	}
	for _, m := range w.Moves {
		plain.Moves = append(plain.Moves, &Move{From: m.From, To: m.To, Users: m.Users})
	}
	b, err := json.Marshal(plain)
	if err != nil {
		panic("access: work cannot be encoded: " + err.Error())
	}
	return string(b)
}

// Ready reports whether every record was visited.
func (b *Build) Ready() bool { return b.Walk >= b.Work.Walks() }

// Shape returns the work that writers must maintain for an entity type, which
// is named as its records are stored, or nil for none.
func (c *Config) Shape(entity string) *Shape {
	if c.Build == nil {
		return nil
	}
	for _, s := range c.Build.Work.Shapes {
		if s.Entity.StoredAs() == entity {
			return s
		}
	}
	return nil
}

// Index returns the work on a field, or nil for none.
func (s *Shape) Index(field string) *Index {
	for _, x := range s.Fields {
		if x.Field == field {
			return x
		}
	}
	return nil
}

// OwnerRole returns the owner_role to store in a record whose owner has a role.
func (c *Config) OwnerRole(userID user.ID, role string) string {
	if c.Build == nil {
		return role
	}
	for _, m := range c.Build.Work.Moves {
		if _, moves := slices.BinarySearch(m.Users, userID); moves {
			return m.Token
		}
	}
	return role
}

func (c *Config) nameRole(role, name string) {
	if c.roleNames == nil {
		c.roleNames = map[string][]string{}
	}
	c.roleNames[role] = append(c.roleNames[role], name)
}
