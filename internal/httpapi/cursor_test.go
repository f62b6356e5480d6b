package httpapi

import (
	"strings"
	"testing"

	"gatehouse/internal/fault"
)

func TestCursorsAreOfOneListAndKey(t *testing.T) {
	c := NewCursors([]byte("key"))
	for _, position := range []string{"x", "01a20847-72b1-774b-88ac-7b9c4fea3049!", strings.Repeat("é\x00", 50)} {
		cursor := c.Seal("keys acme", position)
		if got, err := c.Open("keys acme", cursor); err != nil || got != position {
			t.Errorf("%q %v", got, err)
		}
		wrong := []struct{ scope, cursor string }{
			{"keys umbrella", cursor}, {"keys acme", cursor + "A"}, {"keys acme", cursor[1:]}, {"keys acme", "A" + cursor[1:]},
			{"keys acme", cursor + "\n"}, {"keys acme", "-"}, {"keys acme", NewCursors([]byte("other")).Seal("keys acme", position)},
		}
		for _, w := range wrong {
			if w.cursor == cursor && w.scope == "keys acme" {
				continue // the first character was A already
			}
			if got, err := c.Open(w.scope, w.cursor); fault.CodeOf(err) != fault.Validation {
				t.Errorf("%q as %s: %q %v", w.cursor, w.scope, got, err)
			}
		}
	}
	if got, err := c.Open("keys acme", ""); got != "" || err != nil {
		t.Errorf("no cursor: %q %v", got, err)
	}
}
