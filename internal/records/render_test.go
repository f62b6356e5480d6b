package records

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/schema"
)

// TestStoredObjectsAreSplitAlike compares the fast path, which reads an object
// as this package writes it, with the general one: PostgreSQL stores members in
// its own order, with white space, and removed fields remain.
func TestStoredObjectsAreSplitAlike(t *testing.T) {
	e := schema.New([]*schema.Entity{{Name: "thing", Fields: []*schema.Field{
		{Name: "a", Type: schema.Text}, {Name: "ab", Type: schema.JSON}, {Name: "c", Type: schema.Number},
	}}}, nil).Entities[0]
	for _, c := range []struct {
		data    string
		want    [3]string
		inOrder bool
	}{
		{`{}`, [3]string{}, true},
		{`{"a":"x","ab":[1,{"c":2}],"c":3}`, [3]string{`"x"`, `[1,{"c":2}]`, `3`}, true},
		{`{"c":3}`, [3]string{"", "", `3`}, true},
		{`{"a":"}\",\"c\":1","c":3}`, [3]string{`"}\",\"c\":1"`, "", `3`}, true},
		{`{"a":null,"c":3}`, [3]string{"", "", `3`}, true},
		{`{"c":3,"a":"x"}`, [3]string{`"x"`, "", `3`}, false},
		{`{"a": "x"}`, [3]string{`"x"`, "", ""}, false},
		{`{"a": "x", "c": 3}`, [3]string{`"x"`, "", `3`}, false},
		{`{"a":"x","gone":{"c":9},"c":3}`, [3]string{`"x"`, "", `3`}, false},
		{`{"a":"x","gone":true}`, [3]string{`"x"`, "", ""}, false},
	} {
		if got := splitInOrder(e, []byte(c.data), make([]jsontext.Value, 3)); got != c.inOrder {
			t.Errorf("%s: in order %v", c.data, got)
		}
		values := []jsontext.Value{[]byte("1"), []byte("2"), []byte("3")} // of another record
		split(e, jsontext.Value(c.data), values)
		for i, v := range values {
			if string(v) != c.want[i] {
				t.Errorf("%s: field %d is %s, want %s", c.data, i, v, c.want[i])
			}
		}
	}
}
