package db

import (
	"strings"
	"sync"
	"sync/atomic"
)

// statement has the properties of one SQL text, computed once per process.
type statement struct {
	text string
	// sqlite is the text for SQLite: with ?n for $n, because SQLite takes $1 for a name and
	// numbers names by their first appearance, so it would swap the arguments of
	// "$2 … $1"; and with INSERT OR FAIL for INSERT, because a statement that failed breaks its
	// write in any case (txState), so that SQLite need not be able to undo it alone. Where
	// writes share a transaction, that takes a time by the square of the changed pages.
	sqlite string
	// reads reports whether nothing in the text writes.
	reads bool
	// problem is why the text does not bind the tenant, "" when it does.
	problem string
}

// maxStatements bounds the cache of texts: a program that keeps building new
// texts pays with scanning, not with memory.
const maxStatements = 8192

var statements struct {
	byText sync.Map // string → *statement
	count  atomic.Int64
}

// describe scans a text, or returns the result from the cache.
func describe(text string) *statement {
	if st, ok := statements.byText.Load(text); ok {
		return st.(*statement)
	}
	tokens := scan(text)
	st := &statement{text: text, reads: true, problem: tenantProblem(tokens)}
	var sqlite strings.Builder
	last := 0
	replace := func(t token, old, new string) {
		sqlite.WriteString(text[last:t.at])
		sqlite.WriteString(new)
		last = t.at + len(old)
	}
	for i, t := range tokens {
		switch {
		case t.is("UPDATE") && i > 0 && tokens[i-1].is("FOR"): // a row lock
		case t.kind == param:
			replace(t, "$", "?")
		case t.is("INSERT") && i+1 < len(tokens) && tokens[i+1].is("INTO"):
			st.reads = false
			replace(t, "INSERT", "INSERT OR FAIL")
		case t.is("INSERT"), t.is("UPDATE"), t.is("DELETE"), t.is("CREATE"), t.is("DROP"), t.is("ALTER"):
			st.reads = false
		}
	}
	sqlite.WriteString(text[last:])
	st.sqlite = sqlite.String()
	if statements.count.Add(1) > maxStatements {
		statements.byText.Clear()
		statements.count.Store(1)
	}
	statements.byText.Store(text, st)
	return st
}

type tokenKind byte

const (
	word   tokenKind = iota + 1 // a keyword or a plain name
	quoted                      // "name"
	text                        // 'text'
	number
	param // $n
	punct // an operator, or one of ( ) , ; .
)

// token is one lexical element of an SQL text; comments are not tokens.
type token struct {
	kind   tokenKind
	text   string // a word in upper case, a quoted name in lower case, otherwise as written
	number int    // of a param
	at     int
}

func (t token) is(upper string) bool { return t.kind == word && t.text == upper }
func (t token) op(s string) bool     { return t.kind == punct && t.text == s }

// name returns the name that a word or quoted name denotes, in lower case.
func (t token) name() string {
	if t.kind == word || t.kind == quoted {
		return strings.ToLower(t.text)
	}
	return ""
}

const operatorChars = "=<>!|-+*/%&~#@^?:"

// scan splits a text into tokens. It supports what both engines share: doubled
// quotes inside strings and quoted names, -- and /* */ comments, and strings with
// backslashes (E'…').
func scan(s string) []token {
	var tokens []token
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
			continue
		case strings.HasPrefix(s[i:], "--"):
			i = end(s, i, "\n")
			continue
		case strings.HasPrefix(s[i:], "/*"):
			i = end(s, i+2, "*/")
			continue
		case c == '\'':
			escapes := start > 0 && (s[start-1] == 'E' || s[start-1] == 'e') &&
				len(tokens) > 0 && tokens[len(tokens)-1].is("E")
			i = closing(s, i, '\'', escapes)
			tokens = append(tokens, token{kind: text, text: s[start:i], at: start})
		case c == '"':
			i = closing(s, i, '"', false)
			tokens = append(tokens, token{kind: quoted, text: strings.ToLower(strings.Trim(s[start:i], `"`)), at: start})
		case c == '$' && i+1 < len(s) && isDigit(s[i+1]):
			n := 0
			for i++; i < len(s) && isDigit(s[i]); i++ {
				n = n*10 + int(s[i]-'0')
			}
			tokens = append(tokens, token{kind: param, text: s[start:i], number: n, at: start})
		case isDigit(c):
			for i < len(s) && (isWordByte(s[i]) || s[i] == '.') {
				i++
			}
			tokens = append(tokens, token{kind: number, text: s[start:i], at: start})
		case isWordByte(c):
			for i < len(s) && isWordByte(s[i]) {
				i++
			}
			tokens = append(tokens, token{kind: word, text: strings.ToUpper(s[start:i]), at: start})
		case strings.IndexByte(operatorChars, c) >= 0:
			for i++; i < len(s) && strings.IndexByte(operatorChars, s[i]) >= 0; i++ {
				if strings.HasPrefix(s[i:], "--") || strings.HasPrefix(s[i:], "/*") {
					break
				}
			}
			tokens = append(tokens, token{kind: punct, text: s[start:i], at: start})
		default:
			i++
			tokens = append(tokens, token{kind: punct, text: s[start:i], at: start})
		}
	}
	return tokens
}

// end returns the index after the next mark, or the length of s.
func end(s string, from int, mark string) int {
	if n := strings.Index(s[from:], mark); n >= 0 {
		return from + n + len(mark)
	}
	return len(s)
}

// closing returns the index after the quote that closes the one at i; a doubled
// quote is an escaped one.
func closing(s string, i int, quote byte, escapes bool) int {
	for i++; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordByte(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}
