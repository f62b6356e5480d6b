package automation

import (
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// recordCheck checks what a record node says of its entity type, as far as it does not
// depend on the run: a value that contains {{…}} is not known.
type recordCheck struct {
	*compiler
	entity string
	known  bool // there is such an entity type
	create bool
}

// fields compiles the fields that a node sets.
func (k recordCheck) fields(given *object, path string) objectOf {
	made := k.namedTemplates(given, path, func(at, name string) {
		if k.known && k.names.Field != nil && !k.names.Field(k.entity, name) {
			k.problems.add(at, "%s has no field %s that can be set", k.entity, show(name))
		}
	})
	k.complete(given, path)
	if !k.known || k.names.Value == nil {
		return made
	}
	for _, m := range given.members {
		if v, fixed := fixedJSON(m.value); fixed && (k.names.Field == nil || k.names.Field(k.entity, m.name)) {
			k.refuse(member(path, m.name), k.names.Value(k.entity, m.name, v), v)
		}
	}
	return made
}

// complete adds a problem for each field without which the record cannot be created.
func (k recordCheck) complete(given *object, path string) {
	if !k.create || !k.known || k.names.Required == nil {
		return
	}
	for _, name := range k.names.Required(k.entity) {
		if given.get(name) == nil {
			k.problems.add(path, "expected a value of %s, which %s requires", show(name), k.entity)
		}
	}
}

// order checks the order of a list, and search its words.
func (k recordCheck) order(text, at string) {
	if k.known && k.names.Sort != nil && !reads(text) {
		k.refuse(at, k.names.Sort(k.entity, text), nil)
	}
}

func (k recordCheck) search(text, at string) {
	if reads(text) {
		text = ""
	}
	if k.known && k.names.Search != nil {
		k.refuse(at, k.names.Search(k.entity, text), nil)
	}
}

// refuse adds a problem if there is a reason; found is the value that it is about, or nil.
func (c *compiler) refuse(at, reason string, found jsontext.Value) {
	switch {
	case reason == "":
	case found == nil:
		c.problems.add(at, "%s", reason)
	default:
		c.problems.add(at, "%s, found %s", reason, brief(found))
	}
}

// brief returns the beginning of a value for a message.
func brief(v jsontext.Value) string {
	if len(v) <= 80 {
		return string(v)
	}
	return strings.ToValidUTF8(string(v[:77]), "") + "…"
}

// where compiles the conditions of a list.
func (k recordCheck) where(given *object, path string) objectOf {
	usable := map[string]bool{}
	made := k.namedTemplates(given, path, func(at, name string) {
		usable[name] = k.known && (k.names.Filter == nil || k.names.Filter(k.entity, name))
		if k.known && !usable[name] {
			k.problems.add(at, "%s has no indexed or unique field %s", k.entity, show(name))
		}
	})
	for _, m := range given.members {
		if usable[m.name] && !k.stored {
			k.condition(member(path, m.name), m.name, m.value)
		}
	}
	return made
}

const expectedOperand = "expected text, a number, true or false"

// condition checks what is asked of a field.
func (k recordCheck) condition(at, field string, given any) {
	switch given := given.(type) {
	case *object:
		if len(given.members) == 0 {
			k.problems.add(at, expectedOperand+", or an object of operators like {gte: 1, lt: 10}, found an empty object")
		}
		for i := range given.members {
			m := &given.members[i]
			k.operator(member(at, m.name), Condition{Field: field, Operator: m.name}, m.value)
		}
	case []any:
		k.problems.add(at, expectedOperand+", or an object of operators like {in: [a, b]}, found a list")
	case nil: // it finds nothing
	default:
		if v, fixed := fixedJSON(given); fixed {
			k.refuse(at, k.asks(Condition{field, "eq", []jsontext.Value{v}, true}), v)
		}
	}
}

// operator checks an operator and its operands, which c does not have yet.
func (k recordCheck) operator(at string, c Condition, given any) {
	if k.names.TakesList == nil {
		return
	}
	if reason := k.asks(c); reason != "" {
		k.problems.add(at, "%s", reason)
		return
	}
	takesList := k.names.TakesList(c.Operator)
	list, isList := given.([]any)
	switch {
	case !takesList && isList:
		k.problems.add(at, expectedOperand+", found a list")
		return
	case !takesList:
		list = []any{given}
	case !isList:
		if _, fixed := fixedJSON(given); fixed {
			k.problems.add(at, "expected a list of values, found %s", kindOf(given))
		}
		return
	}
	for _, v := range list {
		operand, fixed := fixedJSON(v)
		switch v.(type) {
		case nil, []any, *object:
			k.problems.add(at, expectedOperand+", found %s", kindOf(v))
			return
		}
		if fixed {
			c.Operands = append(c.Operands, operand)
		}
	}
	if c.Known = len(c.Operands) > 0 || len(list) == 0; c.Known {
		found, _ := appendJSON(nil, given, math.MaxInt) // Decode has checked its depth
		k.refuse(at, k.asks(c), found)
	}
}

func (k recordCheck) asks(c Condition) (reason string) {
	if k.names.Where == nil {
		return ""
	}
	return k.names.Where(k.entity, c)
}

// fixedJSON returns a value as JSON. fixed is false for one that depends on the run.
func fixedJSON(v any) (text jsontext.Value, fixed bool) {
	if reads(v) {
		return nil, false
	}
	text, _ = appendJSON(nil, v, math.MaxInt) // Decode has checked its depth
	return text, true
}

// reads reports whether a value has a text with {{…}} in it.
func reads(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, "{{")
	case []any:
		return slices.ContainsFunc(v, reads)
	case *object:
		return slices.ContainsFunc(v.members, func(e entry) bool { return reads(e.value) })
	}
	return false
}
