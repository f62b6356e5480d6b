package records

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"gatehouse/internal/schema"
)

// A search is answered by the index of words: each word of a searchable field has a
// row for each way in which its record is reached (standing.entries). The longest whole
// word drives the list like a filter on each of the fields that are searched. Where
// there are other terms, what has them all is looked for among the records of the first
// term that has few, else among those of the word that drives. A field that the viewer
// may not read is not searched.

// search checks a search and returns the condition that it is, nil for none. The terms
// are in the order in which they are tried.
func (m *planner) search(text string) *rowCondition {
	if text == "" {
		return nil
	}
	among, reason := m.searched()
	var terms schema.Search
	if reason == "" {
		terms, reason = schema.ParseSearch(text)
	}
	if reason != "" {
		m.bad["search"] = reason
		return nil
	}
	slices.SortStableFunc(terms, func(a, b schema.Term) int {
		return cmp.Or(cmp.Compare(rankOf(b), rankOf(a)), cmp.Compare(utf8.RuneCountInString(b.Word), utf8.RuneCountInString(a.Word)))
	})
	return &rowCondition{name: "search", search: terms, among: among}
}

// searched returns the fields that a search is about, or the reason why there can be none.
func (m *planner) searched() (among []*schema.Field, reason string) {
	for _, f := range m.r.Entity.Fields {
		if f.Searchable && m.r.ReadField[f.Index] {
			among = append(among, f)
		}
	}
	if among == nil {
		return nil, "expected none: " + m.r.Entity.Name + " has no searchable fields"
	}
	return among, ""
}

// rankOf is greater for what fewer records are likely to have.
func rankOf(t schema.Term) int {
	if t.Prefix {
		return 0
	}
	return 1
}

// searches divides a search between the index and the tests. It returns the filter on
// its longest whole word, if it has one.
func (p *plan) searches(c *rowCondition) []lookup {
	if c == nil {
		return nil
	}
	var names []string
	for _, f := range c.among {
		names = append(names, schema.WordsAs(f.StoredAs()))
	}
	first := c.search[0]
	if len(c.search) > 1 || first.Prefix {
		p.tests = append(p.tests, test{{*c}})
		for _, t := range c.search {
			p.terms = append(p.terms, &fieldSpan{nil, names, t.Span()})
		}
	}
	if first.Prefix {
		return nil
	}
	drives := *c
	drives.search = c.search[:1]
	return []lookup{{filter{field: names[0], keys: []string{first.Word}, or: names[1:], words: true}, drives}}
}
