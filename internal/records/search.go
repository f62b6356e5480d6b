package records

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"gatehouse/internal/schema"
)

// A search is answered by the index of words: each word of a searchable field has a
// row for each way in which its record is reached (standing.entries). The longest whole
// word drives the list like a filter on each of the fields that are searched, and the
// other words are asked of the records that it leaves. Where there are beginnings of
// words alone, the longest of them is a span. A field that the viewer may not read is
// not searched.

// search checks a search and returns the conditions that it is: the word that drives,
// and all others.
func (m *planner) search(text string) []rowCondition {
	if text == "" {
		return nil
	}
	var among []*schema.Field
	for _, f := range m.r.Entity.Fields {
		if f.Searchable && m.r.ReadField[f.Index] {
			among = append(among, f)
		}
	}
	terms, reason := schema.ParseSearch(text)
	switch {
	case len(among) == 0:
		m.bad["search"] = "expected none: " + m.r.Entity.Name + " has no searchable fields"
		return nil
	case reason != "":
		m.bad["search"] = reason
		return nil
	}
	slices.SortStableFunc(terms, func(a, b schema.Term) int {
		return cmp.Or(cmp.Compare(rankOf(b), rankOf(a)), cmp.Compare(utf8.RuneCountInString(b.Word), utf8.RuneCountInString(a.Word)))
	})
	list := []rowCondition{{name: "search", search: terms[:1:1], among: among, indexed: true}}
	if len(terms) > 1 {
		list = append(list, rowCondition{name: "search", search: terms[1:], among: among})
	}
	return list
}

// rankOf is greater for what fewer records are likely to have.
func rankOf(t schema.Term) int {
	if t.Prefix {
		return 0
	}
	return 1
}

// wordNames returns the names of the index rows of the words of what is searched.
func (c *rowCondition) wordNames() (names []string) {
	for _, f := range c.among {
		names = append(names, schema.WordsAs(f.StoredAs()))
	}
	return names
}

// looksUp returns the filter that answers the condition, if it is on a whole word and
// drives.
func (c *rowCondition) looksUp() (lookup, bool) {
	if !c.indexed || c.search[0].Prefix {
		return lookup{}, false
	}
	names := c.wordNames()
	return lookup{filter{field: names[0], keys: []string{c.search[0].Word}, or: names[1:]}, *c}, true
}

// begins makes the beginning of a word the span of the plan, if it drives.
func (p *plan) begins(c *rowCondition) {
	if c.indexed {
		p.begun = &fieldSpan{nil, c.wordNames(), c.search[0].Span()}
	}
}
