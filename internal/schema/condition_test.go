package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// Each line is a type, an operator, operands separated by commas, and the values for
// which the condition holds; of all it is asked for all of the values of the type.
var conditions = []struct{ kind, op, operands, holds string }{
	{"number", "eq", "2", "2"},
	{"number", "ne", "2", "null -1 10 1.5"},
	{"number", "in", "2,10,2", "2 10"},
	{"number", "nin", "2,10", "null -1 1.5"},
	{"number", "lt", "2", "-1 1.5"},
	{"number", "lte", "2.0", "-1 2 1.5"},
	{"number", "gt", "2", "10"},
	{"number", "gte", "1.5", "2 10 1.5"},
	{"number", "is_null", "true", "null"},
	{"number", "is_null", "false", "-1 2 10 1.5"},
	{"text", "eq", "Ann", `"Ann"`},
	{"text", "lt", "B", `"Ann"`},
	{"text", "gte", "a", `"a" "annex" "é"`},
	{"text", "prefix", "an", `"annex"`},
	{"text", "contains", "nn", `"Ann" "annex"`},
	{"text", "contains", "%", ""},
	{"text", "ne", "a", `null "Ann" "annex" "é"`},
	{"date", "gt", "2026-01-31", `"2026-02-01" "2027-01-01"`},
	{"date", "lte", "2026-01-31", `"2026-01-31"`},
	{"datetime", "eq", "2026-01-31T13:00:00+01:00", `"2026-01-31T12:00:00Z"`},
	{"datetime", "gt", "2026-01-31T13:00:00+02:00", `"2026-01-31T12:00:00Z" "2026-01-31T12:00:00.5Z"`},
	{"datetime", "lt", "2026-01-31T12:00:00.1Z", `"2026-01-31T12:00:00Z"`},
	{"boolean", "eq", "true", "true"},
	{"boolean", "ne", "true", "null false"},
	{"select", "in", "new,won", `"new" "won"`},
	{"reference", "is_null", "true", "null"},
	{"multiselect", "contains", "won", `["won"] ["new","won"]`},
	{"json", "is_null", "false", `{"a":1}`},
}

var conditionValues = map[string]string{
	"number": "null -1 2 10 1.5", "text": `null "Ann" "a" "annex" "é"`, "date": `null "2026-01-31" "2026-02-01" "2027-01-01"`,
	"datetime": `null "2026-01-31T12:00:00Z" "2026-01-31T12:00:00.5Z"`, "boolean": "null true false", "select": `null "new" "won" "lost"`,
	"reference": `null "r1"`, "multiselect": `null ["won"] ["new","won"] ["new"]`, "json": `null {"a":1}`,
}

func TestConditions(t *testing.T) {
	for _, x := range conditions {
		f := &Field{Name: "f", Type: Type(x.kind), Options: []string{"new", "won", "lost"}, Target: "contact"}
		c, reason := f.Condition(Operator(x.op), strings.Split(x.operands, ",")...)
		if reason != "" {
			t.Errorf("%s %s %s: %s", x.kind, x.op, x.operands, reason)
			continue
		}
		var holds []string
		for v := range strings.FieldsSeq(conditionValues[x.kind]) {
			if c.Holds(jsontext.Value(v)) {
				holds = append(holds, v)
			}
		}
		if got := strings.Join(holds, " "); got != x.holds {
			t.Errorf("%s %s %s holds for %s, want %s", x.kind, x.op, x.operands, got, x.holds)
		}
		if absent := c.Holds(nil); absent != slices.Contains(holds, "null") {
			t.Errorf("%s %s %s: %v for an absent value", x.kind, x.op, x.operands, absent)
		}
	}
}

// A value of the type that the field had before is in no range.
func TestConditionsOnValuesOfAnEarlierType(t *testing.T) {
	for _, op := range []Operator{OpLt, OpLte, OpGt, OpGte} {
		for kind, operand := range map[Type]string{Number: "1", Datetime: "2026-01-31T12:00:00Z"} {
			c, reason := (&Field{Type: kind}).Condition(op, operand)
			if reason != "" || c.Holds(jsontext.Value(`"NaN"`)) || c.Holds(jsontext.Value(`"x"`)) {
				t.Errorf("%s %s: %q", kind, op, reason)
			}
		}
	}
}

func TestOperatorsThatDoNotFit(t *testing.T) {
	for _, x := range []struct{ kind, op, operand, reason string }{
		{"number", "prefix", "1", `"prefix" is no operator for a field of type number: expected eq, ne, in, nin, lt, lte, gt, gte or is_null`},
		{"boolean", "lt", "true", `"lt" is no operator for a field of type boolean: expected eq, ne, in, nin or is_null`},
		{"json", "eq", "{}", `"eq" is no operator for a field of type json: expected is_null`},
		{"text", "like", "x", `"like" is no operator for a field of type text: expected eq, ne, in, nin, lt, lte, gt, gte, prefix, contains or is_null`},
		{"multiselect", "contains", "gone", "expected one of new, won, lost"},
		{"number", "lt", "x", "expected a number"},
		{"number", "in", "x", "expected a number"},
		{"date", "gt", "2026-02-30", "expected a date like 2026-01-31"},
		{"text", "is_null", "1", "expected true or false"},
	} {
		f := &Field{Name: "f", Type: Type(x.kind), Options: []string{"new", "won", "lost"}}
		if _, reason := f.Condition(Operator(x.op), x.operand); reason != x.reason {
			t.Errorf("%s %s: %q", x.kind, x.op, reason)
		}
	}
}
