package access

import (
	"slices"

	"gatehouse/internal/schema"
)

// Lineage is an entity type that is controlled by a parent, and its ancestors.
// A record of an ancestor type that has descendants of the type has index rows
// that say so, under the lineage's name: one for each way in which it is
// reached itself. A list of the type is a walk down from the ancestors that the
// viewer reaches, through those that have such rows.
type Lineage struct {
	Entity string        `json:"entity"` // stored name of the type
	Name   string        `json:"name,omitempty"`
	Links  []schema.Link `json:"links"` // from the type to its root
}

// Place is the place of an entity type among the ancestors of a lineage.
type Place struct {
	*Lineage
	At int // the type is that of Links[At]
}

// Root reports whether the ancestor is not controlled itself.
func (p Place) Root() bool { return p.At == len(p.Links)-1 }

// lineages is what Config derives from its schema and build.
type lineages struct {
	list  []*Lineage
	above map[string][]Place // by stored entity type
}

var derivedLineages Derived[Cache[*lineages]]

func (c *Config) lineages() *lineages {
	kept := derivedLineages.Of(c)
	if l, ok := kept.Get(""); ok {
		return l
	}
	l := &lineages{above: map[string][]Place{}}
	for _, e := range c.Schema.Entities {
		if e.ControlledBy != "" && e.Lineage != "" {
			l.list = append(l.list, &Lineage{Entity: e.StoredAs(), Name: e.Lineage, Links: c.Schema.Chain(e)})
		}
	}
	if c.Build != nil {
		l.list = append(l.list, c.Build.Work.Lineages...)
	}
	for _, line := range l.list {
		for i, link := range line.Links {
			l.above[link.Entity] = append(l.above[link.Entity], Place{line, i})
		}
	}
	kept.Put("", l)
	return l
}

// Lineages returns the lineages of an entity type, which is named as its records
// are stored: the one in use, and the one that is being prepared.
func (c *Config) Lineages(entity string) []*Lineage {
	all := c.lineages().list
	i := slices.IndexFunc(all, func(l *Lineage) bool { return l.Entity == entity })
	if i < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(l *Lineage) bool { return l.Entity != entity })
}

// Above returns the places of an entity type, which is named as its records are
// stored, among the ancestors of all lineages.
func (c *Config) Above(entity string) []Place { return c.lineages().above[entity] }
