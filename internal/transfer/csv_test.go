package transfer

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll returns the good records of a CSV, each cell as a text with a mark for null, and
// the positions behind them.
func readAll(t *testing.T, l *lines) (list [][]string, at []position) {
	t.Helper()
	r := &csvReader{lines: l}
	for before := l.line; ; before = l.line {
		from, cells, bad, err := r.next()
		if err != nil {
			return list, at
		}
		if from < before || r.line <= from {
			t.Fatalf("a record on line %d, behind line %d, before %d", from, before, r.line)
		}
		if bad != "" {
			continue
		}
		var texts []string
		for _, c := range cells {
			text := string(c.text)
			if c.null() {
				text = "null"
			} else {
				text = "=" + text
			}
			texts = append(texts, text)
		}
		list, at = append(list, texts), append(at, l.at())
	}
}

func linesOf(t *testing.T, in io.Reader) (*lines, string) {
	t.Helper()
	l, known, err := newLines(in)
	if err != nil {
		t.Fatal(err)
	}
	return l, known
}

// FuzzCSV: whatever is read ends, is written so that it is read again, and is read on from
// each place as before.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{
		"", "a,b\n", "a,,\"\"\r\n\r\n", "\"a\"\"b\",\"c\nd\"\n", "\"a\r\n\"\r\nx", "a\"b,c\n", "\"a\"b\n", "\"open\n\n", "\ufeffa\n\ufeffb\n", "a\rb\n\r\r\n", " a , b \n", ",\n,", "'=1,=1\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l, known := linesOf(t, bytes.NewReader(text))
		list, at := readAll(t, l)
		slow, same := linesOf(t, iotest.OneByteReader(bytes.NewReader(text)))
		if again, _ := readAll(t, slow); same != known || !slices.EqualFunc(again, list, slices.Equal) {
			t.Fatalf("byte by byte: %q, want %q", again, list)
		}
		written := []byte("head\n")
		for _, record := range list {
			for i, c := range record {
				if i > 0 {
					written = append(written, ',')
				}
				if c, set := strings.CutPrefix(c, "="); set {
					written = appendCell(written, []byte(c))
				}
			}
			written = append(written, '\n')
		}
		l, _ = linesOf(t, bytes.NewReader(written))
		if again, _ := readAll(t, l); !slices.EqualFunc(again[1:], list, slices.Equal) {
			t.Fatalf("%q\nwas read again as %q", list, again[1:])
		}
		for i := 0; i < len(at); i += 1 + len(at)/3 {
			l, _ = linesOf(t, bytes.NewReader(text))
			if err := l.resume(at[i]); err != nil {
				t.Fatal(err)
			}
			if rest, _ := readAll(t, l); !slices.EqualFunc(rest, list[i+1:], slices.Equal) {
				t.Fatalf("behind record %d: %q, want %q", i, rest, list[i+1:])
			}
		}
	})
}

// What is written is what others read, and an apostrophe before a formula is removed again.
func TestCellsAreThoseOfRFC4180(t *testing.T) {
	texts := []string{"", "a", "a,b", `"`, `a"b""c`, "two\nlines", " a", "a ", "=1", "-1", "'", "''", "'=", "'tis", "@", "\tx", "+"}
	var plain, guarded []byte
	for i, text := range texts {
		if i > 0 {
			plain, guarded = append(plain, ','), append(guarded, ',')
		}
		plain, guarded = appendText(plain, []byte(text), false), appendText(guarded, []byte(text), true)
	}
	got, err := csv.NewReader(bytes.NewReader(plain)).Read()
	if err != nil || !slices.Equal(got, texts) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err = csv.NewReader(bytes.NewReader(guarded)).Read(); err != nil {
		t.Fatal(err)
	}
	for i, text := range got {
		if strings.ContainsAny(text[:min(len(text), 1)], "=+-@\t\r") || string(unguard([]byte(text))) != texts[i] {
			t.Errorf("%q is guarded as %q", texts[i], text)
		}
	}
	if got := string(unguard([]byte("'tis"))); got != "'tis" {
		t.Errorf("%q: an apostrophe that guards nothing is part of the text", got)
	}
}

// An input is known by its first two lines, waits for no more, and is not resumed in
// another one.
func TestAnInputIsKnownByItsFirstLines(t *testing.T) {
	known := func(text string) string {
		_, known := linesOf(t, strings.NewReader(text))
		return known
	}
	if known("a\nb\nc\n") != known("a\nb\nd\n") || known("a\nb\n") == known("a\nc\n") || known("a") == known("b") {
		t.Error("two lines make no difference, or the third one does")
	}
	if long := strings.Repeat("x", beginning); known(long+"a") != known(long+"b") {
		t.Error("more than the beginning makes a difference")
	}
	stuck := errors.New("it was asked for more")
	if _, _, err := newLines(io.MultiReader(strings.NewReader("a\nb\n"), iotest.ErrReader(stuck))); err != nil {
		t.Error(err)
	}
	if _, _, err := newLines(io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(stuck))); !errors.Is(err, stuck) {
		t.Error(err)
	}
	l, _ := linesOf(t, strings.NewReader("a\nb\nc\nd\n"))
	for range 3 {
		if _, _, err := l.next(nil); err != nil {
			t.Fatal(err)
		}
	}
	at := l.at()
	for text, ok := range map[string]bool{"a\nb\nc\nd\n": true, "a\nb\nc\nother\n": true, "a\nb\nx\nd\n": false, "a\nb\n": false, "a\nb\ncc\n": false} {
		l, _ := linesOf(t, strings.NewReader(text))
		if err := l.resume(at); (err == nil) != ok || err != nil && !errors.Is(err, errOther) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
