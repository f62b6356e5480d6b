package records_test

import (
	"testing"

	"gatehouse/internal/fault"
	"gatehouse/internal/records"
)

var cursorKey = []byte("0123456789abcdef0123456789abcdef")

func TestACursorSaysWhatWasWritten(t *testing.T) {
	text := records.EncodeCursor(cursorKey, "acme\x00contact", 7, "b", 5, 9)
	before, id, after, top, err := records.DecodeCursor(cursorKey, "acme\x00contact", text)
	if err != nil || before != 7 || id != "b" || after != 5 || top != 9 {
		t.Fatalf("read %d %q %d %d, %v", before, id, after, top, err)
	}
	_, _, _, _, err = records.DecodeCursor(cursorKey, "acme\x00account", text)
	want(t, err, fault.Validation, "cursor")
	_, _, _, _, err = records.DecodeCursor(append([]byte("another"), cursorKey...), "acme\x00contact", text)
	want(t, err, fault.Validation, "cursor")
}

// FuzzCursor checks that decoding never panics and accepts only what encode
// wrote.
func FuzzCursor(f *testing.F) {
	const scope = "acme\x00contact"
	whole := records.EncodeCursor(cursorKey, scope, 1_795_000_000_000_000, "019b76da-a048-7000-9a2e-0e8b3818d56b", 0, 1_795_000_000_000_900)
	for _, text := range []string{"", "A", whole, whole + "\n", whole[:8] + "\r\n" + whole[8:], whole + "=", whole[:22], whole[1:],
		records.EncodeCursor(cursorKey, "other", 0, "", 0, 0), "////", "____", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, id, after, top, err := records.DecodeCursor(cursorKey, scope, text)
		if err != nil {
			want(t, err, fault.Validation, "cursor")
			return
		}
		if again := records.EncodeCursor(cursorKey, scope, before, id, after, top); again != text {
			t.Fatalf("accepted %q, which encode writes as %q", text, again)
		}
	})
}
