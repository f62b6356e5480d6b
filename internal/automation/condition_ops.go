package automation

import (
	"fmt"
	"math"
	"strings"

	"github.com/expr-lang/expr/ast"

	"gatehouse/internal/inputs"
)

// mistake is an error of a run whose text is for the flow's author.
type mistake string

func (m mistake) Error() string { return string(m) }

func mistakef(format string, args ...any) error { return mistake(fmt.Sprintf(format, args...)) }

// truth returns the value of a condition: null counts as false (contract F6). Any
// value but true, false and null is a mistake.
func truth(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, mistakef("expected true or false, found %s", kindOf(v))
}

func (e expression) truth(r *run) (bool, error) {
	v, err := e(r)
	if err != nil {
		return false, err
	}
	return truth(v)
}

func (c *conditions) unary(n *ast.UnaryNode) expression {
	of := c.node(n.Node)
	if n.Operator == "not" || n.Operator == "!" {
		return func(r *run) (any, error) {
			v, err := of.truth(r)
			return !v, err
		}
	}
	sign := 1.0
	if n.Operator == "-" {
		sign = -1
	}
	return func(r *run) (any, error) {
		v, err := of(r)
		if err != nil {
			return nil, err
		}
		f, ok := double(v)
		if !ok {
			return nil, mistakef("%s: expected a number, found %s", n.Operator, kindOf(v))
		}
		return sign * f, nil
	}
}

func (c *conditions) choice(n *ast.ConditionalNode) expression {
	when, then, otherwise := c.node(n.Cond), c.node(n.Exp1), c.node(n.Exp2)
	return func(r *run) (any, error) {
		yes, err := when.truth(r)
		switch {
		case err != nil:
			return nil, err
		case yes:
			return then(r)
		}
		return otherwise(r)
	}
}

func (c *conditions) array(n *ast.ArrayNode) expression {
	parts := make([]expression, len(n.Nodes))
	for i := range n.Nodes {
		parts[i] = c.node(n.Nodes[i])
	}
	return func(r *run) (any, error) {
		if err := r.spend(valueSize * len(parts)); err != nil {
			return nil, err
		}
		list := make([]any, len(parts))
		for i := range parts {
			v, err := parts[i](r)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, r.step(len(parts))
	}
}

// step compiles a member whose name or index is computed, or one of a computed value.
func (c *conditions) step(n *ast.MemberNode) expression {
	of, by := c.node(n.Node), c.node(n.Property)
	source := &ref{text: n.String()}
	return func(r *run) (any, error) {
		if err := r.step(1); err != nil {
			return nil, err
		}
		v, err := of.opened(r)
		if err != nil {
			return nil, err
		}
		key, err := by(r)
		if err != nil {
			return nil, err
		}
		found := new(any)
		switch v := v.(type) {
		case *object:
			name, err := appendText(nil, key, r.work)
			if err != nil {
				return nil, err
			}
			if place := v.get(string(name)); place != nil {
				found = place
			}
		case []any:
			if i, ok := double(key); ok && i == math.Trunc(i) && i >= 0 && i < float64(len(v)) {
				found = &v[int(i)]
			}
		case nil:
			if !n.Optional {
				return nil, &skipped{ref: source, kind: kindOf(v)}
			}
		default:
			return nil, &skipped{ref: source, kind: kindOf(v)}
		}
		err = r.open(found)
		return *found, err
	}
}

func (c *conditions) binary(n *ast.BinaryNode) expression {
	switch n.Operator {
	case "and", "&&", "or", "||":
		return c.logic(n, n.Operator == "or" || n.Operator == "||")
	case "??":
		left, right := c.node(n.Left), c.node(n.Right)
		return func(r *run) (any, error) {
			if v, err := left(r); v != nil || err != nil {
				return v, err
			}
			return right(r)
		}
	case "matches":
		return c.matches(n)
	}
	op, known := operators[n.Operator]
	if !known {
		return c.problem("%s is not available in a condition", n.Operator)
	}
	left, right := c.node(n.Left), c.node(n.Right)
	return func(r *run) (any, error) {
		if err := r.step(1); err != nil {
			return nil, err
		}
		a, err := left(r)
		if err != nil {
			return nil, err
		}
		b, err := right(r)
		if err != nil {
			return nil, err
		}
		return op.call(r, a, b)
	}
}

func (c *conditions) logic(n *ast.BinaryNode, decided bool) expression {
	left, right := c.node(n.Left), c.node(n.Right)
	return func(r *run) (any, error) {
		if v, err := left.truth(r); err != nil || v == decided {
			return v, err
		}
		return right.truth(r)
	}
}

// matches accepts only literal patterns: they are compiled once, and their cost for
// each byte of text is known.
func (c *conditions) matches(n *ast.BinaryNode) expression {
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return c.problem("matches expects a literal pattern, like inputs.sku matches \"^A-[0-9]+$\"")
	}
	compiled := inputs.PatternOf(pattern.Value)
	if err := compiled.Err(); err != nil {
		return c.problem("%v", err)
	}
	of := c.node(n.Left)
	return func(r *run) (any, error) {
		v, err := of(r)
		if err != nil || v == nil {
			return false, err
		}
		s, ok := v.(string)
		if !ok {
			return nil, mistakef("matches: expected text, found %s", kindOf(v))
		}
		if len(s) > compiled.Longest() {
			return nil, mistakef("matches: the text is too long for this pattern: expected at most %d bytes", compiled.Longest())
		}
		if err := r.step(1 + len(s)*compiled.Cost()/8); err != nil {
			return nil, err
		}
		return compiled.Matches(s), nil
	}
}

// operator is an operator on two values. gives is the kind of its result, see
// fixedKind.
type operator struct {
	gives string
	call  func(r *run, a, b any) (any, error)
}

var operators = map[string]operator{
	"==": {"", func(r *run, a, b any) (any, error) { return r.equal(a, b, 0) }},
	"!=": {"", func(r *run, a, b any) (any, error) {
		same, err := r.equal(a, b, 0)
		return !same, err
	}},
	"<":          {"", ordering("<", func(order int) bool { return order < 0 })},
	">":          {"", ordering(">", func(order int) bool { return order > 0 })},
	"<=":         {"", ordering("<=", func(order int) bool { return order <= 0 })},
	">=":         {"", ordering(">=", func(order int) bool { return order >= 0 })},
	"in":         {"", in},
	"contains":   {"", onTexts("contains", strings.Contains)},
	"startsWith": {"", onTexts("startsWith", strings.HasPrefix)},
	"endsWith":   {"", onTexts("endsWith", strings.HasSuffix)},
	"+":          {"", add},
	"-":          {aNumber, onNumbers("-", func(a, b float64) float64 { return a - b })},
	"*":          {aNumber, onNumbers("*", func(a, b float64) float64 { return a * b })},
	"/":          {aNumber, onNumbers("/", func(a, b float64) float64 { return a / b })},
	"%":          {aNumber, onNumbers("%", math.Mod)},
	"**":         {aNumber, onNumbers("**", math.Pow)},
	"^":          {aNumber, onNumbers("^", math.Pow)},
	"..":         {aList, span},
}

// ordering returns an operator that compares two numbers or two texts. With null it is
// false (contract F6).
func ordering(name string, holds func(int) bool) func(r *run, a, b any) (any, error) {
	return func(r *run, a, b any) (any, error) {
		if a == nil || b == nil {
			return false, nil
		}
		x, xNumber := double(a)
		y, yNumber := double(b)
		if xNumber && yNumber {
			switch {
			case x < y:
				return holds(-1), nil
			case x > y:
				return holds(1), nil
			}
			return holds(0), nil
		}
		s, sText := a.(string)
		t, tText := b.(string)
		if !sText || !tText {
			return nil, mistakef("%s: cannot compare %s with %s", name, kindOf(a), kindOf(b))
		}
		return holds(strings.Compare(s, t)), r.step(min(len(s), len(t)) / 64)
	}
}

// onTexts returns an operator on two texts. With null it is false, as in the library.
func onTexts(name string, holds func(s, part string) bool) func(r *run, a, b any) (any, error) {
	return func(r *run, a, b any) (any, error) {
		if a == nil || b == nil {
			return false, nil
		}
		s, sText := a.(string)
		t, tText := b.(string)
		if !sText || !tText {
			return nil, mistakef("%s: expected two texts, found %s and %s", name, kindOf(a), kindOf(b))
		}
		return holds(s, t), r.step((len(s) + len(t)) / 64)
	}
}

func onNumbers(name string, make func(a, b float64) float64) func(r *run, a, b any) (any, error) {
	return func(_ *run, a, b any) (any, error) {
		x, xNumber := double(a)
		y, yNumber := double(b)
		if !xNumber || !yNumber {
			return nil, mistakef("%s: expected two numbers, found %s and %s", name, kindOf(a), kindOf(b))
		}
		made := make(x, y)
		if math.IsNaN(made) || math.IsInf(made, 0) {
			return nil, mistakef("%s: the result is not a number", name)
		}
		return made, nil
	}
}

// add adds numbers and joins texts.
func add(r *run, a, b any) (any, error) {
	s, sText := a.(string)
	t, tText := b.(string)
	if !sText || !tText {
		return onNumbers("+", func(a, b float64) float64 { return a + b })(r, a, b)
	}
	if err := r.spend(len(s) + len(t)); err != nil {
		return nil, err
	}
	return s + t, r.step((len(s) + len(t)) / 64)
}

// in reports whether a value is in a list, or a name in an object.
func in(r *run, a, b any) (any, error) {
	switch b := b.(type) {
	case nil:
		return false, nil
	case []any:
		for i := range b {
			if same, err := r.equal(a, b[i], 0); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case *object:
		name, ok := a.(string)
		return ok && b.get(name) != nil, nil
	}
	return nil, mistakef("in: expected a list or an object, found %s", kindOf(b))
}

func span(r *run, a, b any) (any, error) {
	from, fromNumber := double(a)
	to, toNumber := double(b)
	if !fromNumber || !toNumber || from != math.Trunc(from) || to != math.Trunc(to) || math.Abs(from) > 1<<53 || math.Abs(to) > 1<<53 {
		return nil, mistakef("..: expected two whole numbers")
	}
	if to-from >= maxRange {
		return nil, mistakef("..: expected at most %d numbers", maxRange)
	}
	if err := r.spend(valueSize * int(max(to-from+1, 0))); err != nil {
		return nil, err
	}
	list := []any{}
	for f := from; f <= to; f++ {
		list = append(list, f)
	}
	return list, r.step(len(list))
}
