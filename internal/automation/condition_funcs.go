package automation

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// element is the value of # inside a predicate.
type element struct {
	value any
	index int
}

func (c *conditions) pointer(n *ast.PointerNode) expression {
	switch {
	case c.predicates == 0:
		return c.problem("# exists only inside filter, all, any and their like")
	case n.Name == "":
		return func(r *run) (any, error) { return r.elements[len(r.elements)-1].value, nil }
	case n.Name == "index":
		return func(r *run) (any, error) { return float64(r.elements[len(r.elements)-1].index), nil }
	}
	return c.problem("#%s is not available in a condition", n.Name)
}

func (c *conditions) builtin(n *ast.BuiltinNode) expression {
	if loop, known := loops[n.Name]; known {
		return c.loop(n, loop)
	}
	fn, known := functions[n.Name]
	if !known {
		return c.problem("the function %s is not available in a condition", n.Name)
	}
	return c.apply(n.Name, fn, n.Arguments)
}

// call compiles a call of a function that the library does not know.
func (c *conditions) call(n *ast.CallNode) expression {
	name := n.Callee.String()
	fn, known := functions[name]
	if !known {
		return c.problem("there is no function %s", show(name))
	}
	return c.apply(name, fn, n.Arguments)
}

func (c *conditions) apply(name string, fn function, given []ast.Node) expression {
	if len(given) != 1 && !(len(given) > 1 && (name == "min" || name == "max")) {
		return c.problem("%s expects one argument, found %d", name, len(given))
	}
	var argument expression
	if len(given) == 1 {
		argument = c.node(given[0])
	} else {
		argument = c.array(&ast.ArrayNode{Nodes: given})
	}
	return func(r *run) (any, error) {
		if err := r.step(1); err != nil {
			return nil, err
		}
		v, err := argument.opened(r)
		if err != nil {
			return nil, err
		}
		return fn.call(r, v)
	}
}

// loop iterates over a list. start returns the accumulator for an empty list. turn
// returns the next accumulator; body is the predicate's value for the element. The
// loop ends early when done is true. end converts the last accumulator to the value
// of the loop.
type loop struct {
	start func() any
	turn  func(acc any, e element, body any) (_ any, done bool, err error)
	end   func(acc any) any // nil stands for acc itself
	plain bool              // the predicate may be omitted, and is # then
	gives string
}

var loops = map[string]loop{
	"all":  {start: constantly(true), turn: decide(false, false)},
	"none": {start: constantly(true), turn: decide(true, false)},
	"any":  {start: constantly(false), turn: decide(true, true)},
	"one": {start: constantly(0.0), end: func(n any) any { return n == 1.0 }, turn: func(acc any, _ element, body any) (any, bool, error) {
		yes, err := truth(body)
		n := acc.(float64) + bit(yes)
		return n, n > 1, err
	}},
	"count": {start: constantly(0.0), plain: true, gives: aNumber, turn: func(acc any, _ element, body any) (any, bool, error) {
		yes, err := truth(body)
		return acc.(float64) + bit(yes), false, err
	}},
	"sum": {start: constantly(0.0), plain: true, gives: aNumber, turn: func(acc any, _ element, body any) (any, bool, error) {
		sum, err := add(nil, acc, body)
		return sum, false, err
	}},
	"filter": {start: func() any { return []any{} }, gives: aList, turn: func(acc any, e element, body any) (any, bool, error) {
		yes, err := truth(body)
		if yes {
			acc = append(acc.([]any), e.value)
		}
		return acc, false, err
	}},
	"map": {start: func() any { return []any{} }, gives: aList, turn: func(acc any, _ element, body any) (any, bool, error) {
		return append(acc.([]any), body), false, nil
	}},
	"find": {start: constantly(nil), turn: func(acc any, e element, body any) (any, bool, error) {
		yes, err := truth(body)
		if yes {
			return e.value, true, err
		}
		return acc, false, err
	}},
	"findIndex": {start: constantly(-1.0), turn: func(acc any, e element, body any) (any, bool, error) {
		yes, err := truth(body)
		if yes {
			return float64(e.index), true, err
		}
		return acc, false, err
	}},
}

func constantly(v any) func() any { return func() any { return v } }

// decide returns a turn that ends the loop with result when a predicate is when.
func decide(when, result bool) func(any, element, any) (any, bool, error) {
	return func(acc any, _ element, body any) (any, bool, error) {
		yes, err := truth(body)
		if yes == when {
			return result, true, err
		}
		return acc, false, err
	}
}

func bit(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (c *conditions) loop(n *ast.BuiltinNode, l loop) expression {
	if len(n.Arguments) == 0 || len(n.Arguments) > 2 || len(n.Arguments) == 1 && !l.plain {
		return c.problem("%s expects a list and a condition on #", n.Name)
	}
	over := c.node(n.Arguments[0])
	body := expression(func(r *run) (any, error) { return r.elements[len(r.elements)-1].value, nil })
	if len(n.Arguments) == 2 {
		predicate, ok := n.Arguments[1].(*ast.PredicateNode)
		if !ok {
			return c.problem("%s expects a list and a condition on #", n.Name)
		}
		c.predicates++
		body = c.node(predicate.Node)
		c.predicates--
	}
	name := n.Name
	return func(r *run) (any, error) {
		v, err := over.opened(r)
		if err != nil {
			return nil, err
		}
		list, ok := v.([]any)
		if !ok {
			return nil, mistakef("%s: expected a list, found %s", name, kindOf(v))
		}
		result, err := r.iterate(list, l, body)
		if err == nil && l.end != nil {
			result = l.end(result)
		}
		return result, err
	}
}

// iterate runs a loop over a list. The errors are those of expression.
func (r *run) iterate(list []any, l loop, body expression) (any, error) {
	acc := l.start()
	at := len(r.elements)
	r.elements = append(r.elements, element{})
	defer func() { r.elements = r.elements[:at] }()
	for i := range list {
		if err := r.step(2); err != nil {
			return nil, err
		}
		if err := r.spend(valueSize / 2); err != nil { // filter and map make a list
			return nil, err
		}
		if err := r.open(&list[i]); err != nil {
			return nil, err
		}
		r.elements[at] = element{list[i], i}
		v, err := body(r)
		if err != nil {
			return nil, err
		}
		var done bool
		if acc, done, err = l.turn(acc, r.elements[at], v); done || err != nil {
			return acc, err
		}
	}
	return acc, nil
}

// function takes one value. min and max may have several arguments, which call gets
// as a list.
type function struct {
	gives string
	call  func(r *run, v any) (any, error)
}

var functions = map[string]function{
	"len":    {aNumber, length},
	"lower":  {aText, textFunction("lower", strings.ToLower)},
	"upper":  {aText, textFunction("upper", strings.ToUpper)},
	"trim":   {aText, textFunction("trim", strings.TrimSpace)},
	"string": {aText, stringOf},
	"abs":    {aNumber, numberFunction("abs", math.Abs)},
	"ceil":   {aNumber, numberFunction("ceil", math.Ceil)},
	"floor":  {aNumber, numberFunction("floor", math.Floor)},
	"round":  {aNumber, numberFunction("round", math.Round)},
	"int":    {aNumber, numberFunction("int", math.Trunc)},
	"float":  {aNumber, numberFunction("float", func(f float64) float64 { return f })},
	"keys":   {aList, partsOf("keys", func(e entry) any { return e.name })},
	"values": {aList, partsOf("values", func(e entry) any { return e.value })},
	"type":   {"", func(_ *run, v any) (any, error) { return typeName(v), nil }},
	"first":  {"", elementAt("first", 0)},
	"last":   {"", elementAt("last", -1)},
	"min":    {"", extreme("min", -1)},
	"max":    {"", extreme("max", 1)},

	"number":   {aNumber, toNumber},
	"text":     {aText, toText},
	"date":     {aText, toTime("date", func(at time.Time) string { return at.Format(time.DateOnly) })},
	"datetime": {aText, toTime("datetime", func(at time.Time) string { return at.Format(time.RFC3339Nano) })},
}

func length(r *run, v any) (any, error) {
	switch v := v.(type) {
	case string:
		return float64(utf8.RuneCountInString(v)), r.step(len(v) / 64)
	case []any:
		return float64(len(v)), nil
	case *object:
		return float64(len(v.members)), nil
	}
	return nil, mistakef("len: expected text, a list or an object, found %s", kindOf(v))
}

func textFunction(name string, make func(string) string) func(*run, any) (any, error) {
	return func(r *run, v any) (any, error) {
		s, ok := v.(string)
		if !ok {
			return nil, mistakef("%s: expected text, found %s", name, kindOf(v))
		}
		if err := r.spend(len(s)); err != nil {
			return nil, err
		}
		return make(s), r.step(len(s) / 16)
	}
}

// numberFunction returns a function of a number; int and float also accept a text that
// is one.
func numberFunction(name string, make func(float64) float64) func(*run, any) (any, error) {
	return func(_ *run, v any) (any, error) {
		f, ok := double(v)
		if s, isText := v.(string); isText && (name == "int" || name == "float") {
			parsed, isNumber := numberIn(s)
			f, _ = double(parsed)
			ok = isNumber
		}
		if !ok {
			return nil, mistakef("%s: expected a number, found %s", name, kindOf(v))
		}
		return make(f), nil
	}
}

func stringOf(r *run, v any) (any, error) {
	b, err := appendText(nil, v, r.work)
	if err != nil {
		return nil, err
	}
	r.work -= len(b)
	return string(b), r.step(len(b) / 16)
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "bool"
	case float64, number:
		return "float"
	case string:
		return "string"
	case *object:
		return "map"
	}
	return "array"
}

// elementAt returns a function that returns an element of a list, the last for -1, or
// null for an empty list.
func elementAt(name string, i int) func(*run, any) (any, error) {
	return func(_ *run, v any) (any, error) {
		list, ok := v.([]any)
		if !ok {
			return nil, mistakef("%s: expected a list, found %s", name, kindOf(v))
		}
		if len(list) == 0 {
			return nil, nil
		}
		return list[(i+len(list))%len(list)], nil
	}
}

// partsOf returns a function that lists a part of each member of an object.
func partsOf(name string, part func(entry) any) func(*run, any) (any, error) {
	return func(r *run, v any) (any, error) {
		o, ok := v.(*object)
		if !ok {
			return nil, mistakef("%s: expected an object, found %s", name, kindOf(v))
		}
		if err := r.spend(valueSize * len(o.members)); err != nil {
			return nil, err
		}
		list := make([]any, len(o.members))
		for i := range o.members {
			list[i] = part(o.members[i])
		}
		return list, r.step(len(list))
	}
}

// extreme returns a function that returns the least (sign -1) or greatest of a list of
// numbers.
func extreme(name string, sign float64) func(*run, any) (any, error) {
	return func(r *run, v any) (any, error) {
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return nil, mistakef("%s: expected numbers, found %s", name, kindOf(v))
		}
		best := math.Inf(-1)
		for i := range list {
			f, ok := double(list[i])
			if !ok {
				return nil, mistakef("%s: expected numbers, found %s", name, kindOf(list[i]))
			}
			best = max(best, sign*f)
		}
		return sign * best, r.step(len(list))
	}
}
