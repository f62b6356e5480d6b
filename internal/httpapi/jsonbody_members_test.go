package httpapi

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gatehouse/internal/fault"
)

// manyMembers returns an object of n members with distinct names.
func manyMembers(n int) string {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%x":1`, i)
	}
	b.WriteByte('}')
	return b.String()
}

func TestLimitOfMembersInNestedObjects(t *testing.T) {
	half := manyMembers(maxOpenMembers/2 - 1)
	closed := strings.TrimSuffix(half, "}")
	for what, c := range map[string]struct {
		body string
		ok   bool
	}{
		"as many as there may be":    {manyMembers(maxOpenMembers), true},
		"one more":                   {manyMembers(maxOpenMembers + 1), false},
		"one more, in a list":        {`{"a":[` + manyMembers(maxOpenMembers) + `]}`, false},
		"objects after each other":   {`{"a":[` + half + "," + half + "," + half + "," + half + `]}`, true},
		"members after each other":   {`{"a":` + half + `,"b":` + half + `,"c":` + half + `}`, true},
		"objects in each other":      {closed + `,"x":` + closed + `,"y":` + manyMembers(2) + `}}`, false},
		"a million below 70 lists":   {`{"a":` + strings.Repeat("[", 70) + manyMembers(1_000_000) + strings.Repeat("]", 70) + `}`, false},
		"colons and braces in texts": {`{"a":"` + strings.Repeat(`{:[\"`, 50_000) + `"}`, true},
	} {
		_, err := ParseObject([]byte(c.body))
		if ok := err == nil; ok != c.ok {
			t.Errorf("%s: %v", what, err)
		}
		if err != nil && (fault.CodeOf(err) != fault.Validation || !strings.Contains(err.Error(), "20,000") && !strings.Contains(err.Error(), "64 levels")) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, broken := range []string{strings.Repeat("}", 200_000), `{"a":"` + strings.Repeat("x", 200_000), `{"a":"` + strings.Repeat(`\`, 199_999), `{` + strings.Repeat("[", 200_000)} {
		if _, err := ParseObject([]byte(broken)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%.10s…: %v", broken, err)
		}
	}
}

// TestManyMembersTakeNoMemory: a body with too many is refused before anything is
// built. (Without the limit a body of 10 MiB took 600 MB.)
func TestManyMembersTakeNoMemory(t *testing.T) {
	deep := `{"a":` + strings.Repeat("[", 70) + manyMembers(900_000) + strings.Repeat("]", 70) + `}`
	for about, text := range map[string]string{"as many as may be": manyMembers(maxOpenMembers), "too many": manyMembers(900_000), "too many, too deep": deep} {
		body := []byte(text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = ParseObject(body)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
			t.Errorf("%s: %d KiB took %d KiB", about, len(body)>>10, took>>10)
		}
	}
}
