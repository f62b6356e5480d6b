package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Change is one object that an apply created, updated or deleted. Before and
// After are what the change history keeps: never a secret.
type Change struct {
	Action string `json:"action"` // create, update or delete
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

func (c change) public() Change {
	action := "update"
	if c.before == nil {
		action = "create"
	} else if c.after == nil {
		action = "delete"
	}
	return Change{action, c.kind, c.name, c.before, c.after}
}

// Difference is one thing that an update changes in an object. Before and After
// are nil where there is nothing; where a member is added, removed or reordered
// as a whole, Text says so.
type Difference struct {
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
	Text   string `json:"text"`
}

// Differences lists what an update changes, by path; nil for any other change.
func (c Change) Differences() []Difference {
	if c.Action != "update" {
		return nil
	}
	return differences("", generic(c.Before), generic(c.After))
}

// Line describes the change in one line:
// `update user sam@acme.example: role sales → support`.
func (c Change) Line() string {
	line := c.Action + " " + strings.ReplaceAll(c.Kind, "_", " ")
	if c.Kind != kindUserFields {
		line += " " + printable(c.Name)
	}
	if c.Action != "update" {
		return line
	}
	var texts []string
	for _, d := range c.Differences() {
		texts = append(texts, d.Text)
	}
	return line + ": " + strings.Join(texts, ", ")
}

// generic is a view as JSON has it.
func generic(v any) any {
	var g any
	if err := json.Unmarshal([]byte(encoded(v)), &g); err != nil {
		panic("config: a view cannot be decoded: " + err.Error())
	}
	return g
}

// differences lists what differs between two JSON values, by path.
func differences(path string, before, after any) []Difference {
	if encoded(before) == encoded(after) {
		return nil
	}
	b, isObject := members(before)
	a, areObjects := members(after)
	if !isObject || !areObjects {
		return []Difference{difference(path, before, after)}
	}
	var list []Difference
	for _, key := range union(b, a) {
		was, had := b[key]
		is, has := a[key]
		at := strings.TrimPrefix(path+"."+key, ".")
		whole := func(what string) { list = append(list, Difference{at, was, is, at + what}) }
		_, deep := members(cmpOr(is, was))
		switch {
		case had && has:
			list = append(list, differences(at, was, is)...)
		case deep && has && renamedFrom(is) != "":
			list = append(list, Difference{at, renamedFrom(is), key, at + " renamed from " + renamedFrom(is)})
			list = append(list, differences(at, withoutName(b[renamedFrom(is)]), withoutName(is))...)
		case deep && has:
			whole(" added")
		case deep && had && renamedAway(a, key):
		case deep && had:
			whole(" removed")
		default:
			list = append(list, difference(at, was, is))
		}
	}
	if len(list) == 0 {
		list = append(list, Difference{path, before, after, path + " reordered"})
	}
	return list
}

// renamedFrom is the name that a member of a view had before; "" for none.
func renamedFrom(v any) string {
	m, _ := v.(map[string]any)
	name, _ := m["renamed_from"].(string)
	return name
}

// renamedAway reports whether one of the members had another name before.
func renamedAway(members map[string]any, name string) bool {
	for _, v := range members {
		if renamedFrom(v) == name {
			return true
		}
	}
	return false
}

// withoutName is a member of a view without what a rename changes.
func withoutName(v any) any {
	m, _ := v.(map[string]any)
	m = maps.Clone(m)
	delete(m, "name")
	delete(m, "renamed_from")
	return m
}

func difference(path string, before, after any) Difference {
	text := fmt.Sprintf("%s %s → %s", path, worded(before), worded(after))
	switch {
	case path == "renamed_from":
		text = "renamed from " + worded(after)
	case path == "password", path == "webhook_secret", path == "previous_webhook_secret", strings.HasPrefix(path, "secrets."):
		text = path + " " + strings.Trim(strings.ReplaceAll(worded(after), "none", "removed"), "()")
	case path == "nodes", strings.HasPrefix(path, "email_templates."): // the change history has them in full
		text = path + " changed"
	}
	return Difference{path, before, after, text}
}

// members sees a value as an object: a list of named objects counts as one, by name.
func members(v any) (map[string]any, bool) {
	if m, ok := v.(map[string]any); ok {
		return m, true
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return map[string]any{}, false
	}
	m := make(map[string]any, len(list))
	for _, item := range list {
		o, ok := item.(map[string]any)
		name, named := o["name"].(string)
		if !ok || !named {
			return nil, false
		}
		m[name] = o
	}
	return m, true
}

func union(a, b map[string]any) []string {
	keys := sortedKeys(a)
	for _, key := range sortedKeys(b) {
		if _, had := a[key]; !had {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func cmpOr(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

// worded returns a JSON value as a text that fits on one line.
func worded(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		if v == "" {
			return "none"
		}
		return printable(v)
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			parts[i] = worded(item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return encoded(v)
}

// printable keeps a text on its line: what cannot be printed is escaped.
func printable(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Sprintf("%q", s)
	}
	return s
}
