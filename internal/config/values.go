package config

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/number"
	"gatehouse/internal/wtf8"
)

// json makes JSON of a value of the author's choice: texts, numbers, true and
// false, null, lists and objects stay what they are, in their order, and
// nothing is taken from the environment. It records the place of each path in
// places. An invalid value becomes null, with a problem.
func (d *decoder) json(n *Value, path string, places map[string]Place) jsontext.Value {
	if _, noted := places[path]; !noted {
		places[path] = n.Place
	}
	switch n.Kind {
	case List:
		out := jsontext.Value{'['}
		for i, item := range n.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, d.json(item, fmt.Sprintf("%s[%d]", path, i), places)...)
		}
		return append(out, ']')
	case Mapping:
		out := jsontext.Value{'{'}
		d.mapping(n, "an object", func(key, value *Value) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			d.storable(key, key.Text)
			at := path + "." + shortened(key.Text)
			places[at] = key.Place
			out = append(wtf8.AppendUTF8(out, key.Text), ':')
			out = append(out, d.json(value, at, places)...)
		})
		return append(out, '}')
	case JSON:
		return n.JSON
	}
	return d.jsonScalar(n)
}

// shortened is a member's name as automation writes it in the path of a problem.
func shortened(name string) string {
	if len(name) > 80 {
		name = strings.ToValidUTF8(name[:77], "") + "…"
	}
	return name
}

func (d *decoder) jsonScalar(n *Value) jsontext.Value {
	null := jsontext.Value("null")
	switch n.Kind {
	case Null:
		return null
	case Text:
		d.storable(n, n.Text)
		return wtf8.AppendUTF8(nil, n.Text)
	case Number:
		if v := jsontext.Value(n.Text); v.IsValid() && v.Kind() == '0' {
			if !number.Holds(v) {
				d.bad(n, "%s, found %s", number.OutOfRange, show(n.Text))
				return null
			}
			return v // 19.90 and 1e3 stay as they were written
		}
	}
	switch {
	case n.JSON != nil:
		return n.JSON
	case n.endless():
		d.bad(n, "expected a finite number, found %s", show(n.Text))
	default:
		d.bad(n, "expected text, a number, true or false, null, a list or an object, found %s", show(n.Text))
	}
	return null
}

// endless reports whether the value is a number that has no end, or none.
func (v *Value) endless() bool {
	return v.Kind == Number && v.JSON == nil && strings.HasPrefix(strings.TrimLeft(v.Text, "+-"), ".")
}
