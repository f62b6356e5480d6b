package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/number"
)

// Operator is what a condition asks of a field's value (contract P7).
type Operator string

// The operators. All but OpIsNull have operands of the field's type; OpContains
// has a part of a text, or an element of a list.
const (
	OpEq       Operator = "eq"
	OpNe       Operator = "ne"
	OpLt       Operator = "lt"
	OpLte      Operator = "lte"
	OpGt       Operator = "gt"
	OpGte      Operator = "gte"
	OpIn       Operator = "in"
	OpNin      Operator = "nin"
	OpPrefix   Operator = "prefix"
	OpContains Operator = "contains"
	OpIsNull   Operator = "is_null"
)

// TakesList reports whether the operator has several operands.
func (op Operator) TakesList() bool { return op == OpIn || op == OpNin }

// Operators returns the operators that fit the field's type.
func (f *Field) Operators() []Operator {
	kind, fit := f.kind(), []Operator(nil)
	if !kind.list {
		fit = append(fit, OpEq, OpNe, OpIn, OpNin)
	}
	if kind.order != nil {
		fit = append(fit, OpLt, OpLte, OpGt, OpGte)
	}
	if f.Type == Text {
		fit = append(fit, OpPrefix)
	}
	if f.Type == Text || kind.list && f.Type != JSON {
		fit = append(fit, OpContains)
	}
	return append(fit, OpIsNull)
}

// CheckOperator returns the reason why an operator does not fit the field's type, ""
// if it does.
func (f *Field) CheckOperator(op Operator) (reason string) {
	if fit := f.Operators(); !slices.Contains(fit, op) {
		return fmt.Sprintf("%.20q is no operator for a field of type %s: expected %s", string(op), f.Type, joined(fit))
	}
	return ""
}

// Condition is an operator with its operands, as they fit a field.
type Condition struct {
	Op Operator
	// Keys are those of the operands of OpEq, OpNe, OpIn and OpNin, each once (see
	// Field.IndexKey).
	Keys []string
	// Operand is that of the other operators: of an instant in UTC, with nanoseconds.
	Operand string

	field *Field
}

// Condition checks operands in their text form (ParseText). It returns the
// reason why the operator or an operand does not fit, "" if they do.
func (f *Field) Condition(op Operator, operands ...string) (c *Condition, reason string) {
	if reason := f.CheckOperator(op); reason != "" {
		return nil, reason
	}
	c = &Condition{Op: op, field: f}
	switch op {
	case OpEq, OpNe, OpIn, OpNin:
		for _, text := range operands {
			v, reason := f.ParseText(text)
			if reason != "" {
				return nil, reason
			}
			if key, ok := f.IndexKey(v); ok && !slices.Contains(c.Keys, key) {
				c.Keys = append(c.Keys, key)
			}
		}
	case OpIsNull:
		if c.Operand = operands[0]; c.Operand != "true" && c.Operand != "false" {
			return nil, "expected true or false"
		}
	case OpPrefix:
		_, reason = f.ParseText(operands[0])
		c.Operand = operands[0]
		return c, reason
	case OpContains:
		reason = c.contains(operands[0])
		return c, reason
	default:
		v, reason := f.ParseText(operands[0])
		if reason != "" {
			return nil, reason
		}
		c.Operand, _ = f.comparand(v)
	}
	return c, ""
}

// contains sets the operand of OpContains.
func (c *Condition) contains(text string) (reason string) {
	c.Operand = text
	if c.field.kind().options && !slices.Contains(c.field.Options, text) {
		return "expected one of " + strings.Join(c.field.Options, ", ")
	}
	if c.field.Type == Text {
		_, reason = c.field.ParseText(text)
	}
	return reason
}

// Holds reports whether the condition holds for a stored value of the field. A
// value that is not set equals nothing and is neither less nor greater than
// anything: of the operators with operands, only OpNe and OpNin hold for it.
func (c *Condition) Holds(v jsontext.Value) bool {
	switch c.Op {
	case OpIsNull:
		return IsNull(v) == (c.Operand == "true")
	case OpEq, OpIn:
		return c.equals(v)
	case OpNe, OpNin:
		return !c.equals(v)
	}
	if IsNull(v) {
		return false
	}
	if c.field.kind().list {
		return slices.ContainsFunc(c.field.Elements(v), func(e jsontext.Value) bool { return Unquote(e) == c.Operand })
	}
	text, ok := c.field.comparand(v)
	if !ok {
		return false
	}
	switch c.Op {
	case OpPrefix:
		return strings.HasPrefix(text, c.Operand)
	case OpContains:
		return strings.Contains(text, c.Operand)
	}
	order, ok := c.field.kind().order(text, c.Operand)
	if !ok {
		return false
	}
	switch c.Op {
	case OpLt:
		return order < 0
	case OpLte:
		return order <= 0
	case OpGt:
		return order > 0
	default: // OpGte
		return order >= 0
	}
}

func (c *Condition) equals(v jsontext.Value) bool {
	key, ok := c.field.IndexKey(v)
	return ok && slices.Contains(c.Keys, key)
}

// comparand returns the text that values are ordered and searched by: Key's, of
// any length.
func (f *Field) comparand(v jsontext.Value) (text string, ok bool) {
	text = Unquote(v)
	if form := f.kind().key; form != nil {
		return form(text)
	}
	return text, true
}

// byBytes orders texts by their bytes, which is the order of their code points.
func byBytes(a, b string) (order int, ok bool) { return strings.Compare(a, b), true }

// byNumber orders numbers in their JSON form. A value of the field's earlier type may
// be none.
func byNumber(a, b string) (order int, ok bool) {
	x, okX := number.Parse([]byte(a))
	y, okY := number.Parse([]byte(b))
	return cmp.Compare(x, y), okX && okY
}

// joined lists operators for a message: "eq, ne or is_null".
func joined(list []Operator) string {
	var b strings.Builder
	for i, op := range list {
		switch {
		case i > 0 && i == len(list)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(op))
	}
	return b.String()
}
