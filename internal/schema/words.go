package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Bounds of the words of a value and of a search (contract P15). The index has what
// Words returned when a record was written: a change of Words, or of these, must build
// the rows of all searchable fields anew.
const (
	// MaxWords is how many different words of a value are found.
	MaxWords = 200
	// maxSearched is how many characters of a value are read for its words.
	maxSearched = 20_000
	// maxWord is how many characters of a word count.
	maxWord = 64
	// MaxSearchable is how many fields of an entity type may be searchable.
	MaxSearchable = 5

	maxTerms  = 8
	maxSearch = 200 // characters
	minPrefix = 2   // characters
)

// Words returns the different words of a text, in the order in which they first occur.
// A word is a run of letters, digits and their marks, in a form that is the same for
// capital and small letters, with and without accents, and for compatible characters
// (NFKC). Each character of a script that is written without spaces between words (Han,
// Hiragana, Katakana) is a word of its own.
func Words(text string) []string {
	var list []string
	seen := map[string]bool{}
	eachWord(text, func(word string) bool {
		if !seen[word] {
			seen[word] = true
			list = append(list, word)
		}
		return len(list) < MaxWords
	})
	return list
}

// Words returns those of a value, if the field is searchable.
func (f *Field) Words(v jsontext.Value) []string {
	if !f.Searchable || IsNull(v) || v.Kind() != '"' {
		return nil
	}
	return Words(Unquote(v))
}

// eachWord calls each for the words of a text, the same ones as often as they occur,
// until it returns false.
func eachWord(text string, each func(word string) bool) {
	from, read := -1, 0 // from is where a run begins
	for at, r := range text {
		if read++; read > maxSearched {
			text = text[:at]
			break
		}
		switch {
		case !inWord(r):
			if from >= 0 && !eachFolded(text[from:at], each) {
				return
			}
			from = -1
		case from < 0:
			from = at
		}
	}
	if from >= 0 {
		eachFolded(text[from:], each)
	}
}

// inWord reports whether a character of a text belongs to a word. What follows from its
// compatible form is decided once it is folded.
func inWord(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// eachFolded calls each for the words of a run of characters, mostly one.
func eachFolded(run string, each func(word string) bool) bool {
	if !strings.ContainsFunc(run, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return each(strings.ToLower(run[:min(len(run), maxWord)]))
	}
	for run = fold(run); len(run) > 0; {
		size := lengthOfWord(run)
		if size == 0 { // no word begins here
			_, skip := utf8.DecodeRuneInString(run)
			run = run[skip:]
			continue
		}
		if !each(cut(run[:size])) {
			return false
		}
		run = run[size:]
	}
	return true
}

// lengthOfWord returns the length in bytes of the word that a folded text begins with.
func lengthOfWord(text string) int {
	single := alone(first(text))
	for at, r := range text {
		switch {
		case unicode.IsMark(r):
		case !unicode.IsLetter(r) && !unicode.IsDigit(r), at > 0 && (single || alone(r)):
			return at
		}
	}
	return len(text)
}

func first(text string) rune {
	r, _ := utf8.DecodeRuneInString(text)
	return r
}

// cut returns the characters of a word that count.
func cut(word string) string {
	n := 0
	for at := range word {
		if n++; n > maxWord {
			return word[:at]
		}
	}
	return word
}

// alone reports whether a character is a word of its own.
func alone(r rune) bool {
	return r >= firstAlone && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// firstAlone is less than every character that is a word of its own.
const firstAlone = 0x2E80

// fold returns the form in which words are compared. The letter ı, which folding
// keeps apart, is i: it has no dot to be removed.
func fold(text string) string {
	table := plainFolds()
	var b strings.Builder
	for _, r := range text {
		if r >= rune(len(table)) || unicode.Is(unicode.M, r) {
			return foldAny(text)
		}
		b.WriteString(table[r])
	}
	return b.String()
}

// plainFolds returns the folded forms of the characters of Latin, Greek and Cyrillic.
// None of them joins with a neighbour.
var plainFolds = sync.OnceValue(func() *[0x530]string {
	var table [0x530]string
	for r := range table {
		table[r] = foldAny(string(rune(r)))
	}
	return &table
})

func foldAny(text string) string {
	text = norm.NFKD.String(cases.Fold().String(norm.NFKD.String(text)))
	return norm.NFC.String(strings.Map(func(r rune) rune {
		switch {
		case r == 'ı':
			return 'i'
		case unicode.Is(unicode.Cherokee, r): // Fold makes capital letters small, and small ones capital
			return unicode.ToUpper(r)
		case unicode.Is(unicode.Mn, r) && unicode.In(r, unicode.Inherited, unicode.Hebrew, unicode.Arabic) && r != voiced && r != halfVoiced:
			return -1
		}
		return r
	}, text))
}

// Marks that make other letters of Hiragana and Katakana.
const (
	voiced     = '\u3099'
	halfVoiced = '\u309A'
)

// Term is a word that a search asks for, or with Prefix the beginning of one.
type Term struct {
	Word   string
	Prefix bool
}

// Search is what a search asks for: every term.
type Search []Term

// ParseSearch reads a search: words, of which those with "*" behind them are beginnings.
// It returns the reason why a text is none, "" if it is one.
func ParseSearch(text string) (s Search, reason string) {
	if utf8.RuneCountInString(text) > maxSearch {
		return nil, fmt.Sprintf("expected at most %d characters", maxSearch)
	}
	parts := strings.Split(text, "*")
	for i, part := range parts {
		var terms Search
		eachWord(part, func(word string) bool { terms = append(terms, Term{Word: word}); return true })
		if last, _ := utf8.DecodeLastRuneInString(part); len(terms) > 0 && i < len(parts)-1 && inWord(last) {
			begun := &terms[len(terms)-1]
			if begun.Prefix = !alone(first(begun.Word)); begun.Prefix && utf8.RuneCountInString(begun.Word) < minPrefix {
				return nil, fmt.Sprintf("expected at least %d letters or digits before *", minPrefix)
			}
		}
		for _, t := range terms {
			if !slices.Contains(s, t) {
				s = append(s, t)
			}
		}
	}
	switch {
	case len(s) == 0:
		return nil, fmt.Sprintf("expected 1 to %d words of letters or digits, each with or without * behind it", maxTerms)
	case len(s) > maxTerms:
		return nil, fmt.Sprintf("expected at most %d words", maxTerms)
	}
	return s, ""
}

// Span returns the range of the words that a term means.
func (t Term) Span() Span {
	if t.Prefix {
		return Span{t.Word, after(t.Word)}
	}
	return Span{t.Word, t.Word + least}
}

// matches reports whether a word is what the term asks for.
func (t Term) matches(word string) bool {
	return word == t.Word || t.Prefix && strings.HasPrefix(word, t.Word)
}

// Holds reports whether each term is in the value of one of the fields; values are
// those of a record by Field.Index.
func (s Search) Holds(fields []*Field, values []jsontext.Value) bool {
	open := slices.Clone(s)
	for _, f := range fields {
		for _, word := range f.Words(values[f.Index]) {
			if open = slices.DeleteFunc(open, func(t Term) bool { return t.matches(word) }); len(open) == 0 {
				return true
			}
		}
	}
	return len(open) == 0
}

// WordsAs returns the name of the rows that the index has for the words of a field
// whose other rows have a name. No field's name has such a character.
func WordsAs(name string) string { return name + "~" }

// Stored reports whether the index has rows for the field.
func (f *Field) Stored() bool { return f.Keyed() || f.Searchable }
