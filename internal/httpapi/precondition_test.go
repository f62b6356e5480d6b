package httpapi

import (
	"net/http"
	"testing"

	"gatehouse/internal/fault"
)

func TestTags(t *testing.T) {
	for _, x := range []struct {
		header       []string
		strong, weak bool
	}{
		{[]string{`"a"`}, true, true},
		{[]string{` "b" ,, "a"`}, true, true},
		{[]string{`"b"`, `"a"`}, true, true},
		{[]string{`W/"a"`}, false, true},
		{[]string{`*`}, true, true},
		{[]string{` * `}, true, true},
		{[]string{`"b"`}, false, false},
		{[]string{`"a,b"`}, false, false},
		{[]string{`"A"`}, false, false},
		{[]string{``}, false, false},
	} {
		tags, err := ParseTags(http.Header{"If-Match": x.header}, "If-Match")
		if err != nil {
			t.Errorf("%q: %v", x.header, err)
		} else if tags.Match(`"a"`) != x.strong || tags.MatchWeakly(`"a"`) != x.weak {
			t.Errorf("%q: %v, %v", x.header, tags.Match(`"a"`), tags.MatchWeakly(`"a"`))
		}
	}
	for _, header := range []string{`a`, `"a`, `a"`, `"a" x`, `"a""b"`, `"a b"`, `w/"a"`, `*, "a"`, `"a", *`, `W/`, "\"a\x7f\""} {
		if _, err := ParseTags(http.Header{"If-Match": {header}}, "If-Match"); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%q: %v", header, err)
		}
	}
	if tags, err := ParseTags(http.Header{}, "If-Match"); tags != nil || err != nil {
		t.Errorf("%v, %v", tags, err)
	}
}
