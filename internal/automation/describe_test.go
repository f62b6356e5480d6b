package automation_test

import (
	"strings"
	"testing"

	"gatehouse/internal/automation"
)

// TestDescribeHasEveryMember of every type of node, with its kind and what it is for,
// and requires what Decode requires.
func TestDescribeHasEveryMember(t *testing.T) {
	for _, d := range automation.Describe() {
		if d.Doc == "" || d.Readable != (d.Result != "") {
			t.Errorf("%s: %+v", d.Type, d)
		}
		_, found := problems(t, "- {type: "+d.Type+"}")
		for _, m := range d.Members {
			if m.Kind == "" || m.Doc == "" || m.Name == "" {
				t.Errorf("%s: %+v", d.Type, m)
			}
			needs := d.Type + " needs " + m.Name + ":"
			if d.Type == "if" && m.Name == "then" { // one of then and else
				continue
			}
			if strings.Contains(found.Error(), needs) != m.Required {
				t.Errorf("%s: %s: required %v; Decode says %s", d.Type, m.Name, m.Required, found.Error())
			}
		}
	}
}
