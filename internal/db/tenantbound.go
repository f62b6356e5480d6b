package db

import (
	"fmt"
	"slices"
)

// TenantProblem returns the reason why a tenant's handle rejects a statement, or
// "" if it does not. It is for the test that reads the statements of all packages.
func TenantProblem(sql string) string { return tenantProblem(scan(sql)) }

// tenantProblem returns the reason why a statement is not bound to its tenant, or
// "" if it is.
//
// Each table after FROM, JOIN, a comma of FROM, USING or UPDATE needs tenant_id
// = $1 among the conditions that must hold (WHERE or ON, not under OR, NOT,
// CASE or a function) of the same SELECT, UPDATE or DELETE, with its alias if
// there are several tables. INSERT needs tenant_id as its first column and $1
// as its first value. Names of WITH, derived tables and table functions do not
// count as tables.
//
// It catches mistakes and is not a full parser: a statement can be written to
// deceive it.
func tenantProblem(tokens []token) string {
	s := tenantScan{tokens: tokens, ctes: cteNames(tokens)}
	s.frames = []*frame{{query: true}}
	for i := range tokens {
		s.step(i)
		if s.problem != "" {
			return s.problem
		}
	}
	for len(s.frames) > 0 {
		s.pop()
	}
	if s.problem == "" && !slices.ContainsFunc(tokens, func(t token) bool { return t.kind == param && t.number == 1 }) {
		return "it never names $1"
	}
	return s.problem
}

// frame is the text between two parentheses, or the whole text.
type frame struct {
	query    bool     // a statement of its own, not an expression
	grouping bool     // plain parentheses around a condition
	function string   // the name before the parenthesis
	from     bool     // in a list of tables
	cond     bool     // in WHERE or ON
	or       bool     // this condition has an OR
	expect   bool     // a table comes next
	tables   []string // their names or aliases
	segment  []string // qualifiers bound in this condition
	bound    []string // qualifiers bound for certain
}

type tenantScan struct {
	tokens  []token
	ctes    []string
	frames  []*frame
	problem string
}

func (s *tenantScan) top() *frame { return s.frames[len(s.frames)-1] }

func (s *tenantScan) at(i int) token {
	if i < 0 || i >= len(s.tokens) {
		return token{}
	}
	return s.tokens[i]
}

func (s *tenantScan) step(i int) {
	t, f := s.tokens[i], s.top()
	switch {
	case t.op("("):
		s.push(i)
	case t.op(")"):
		if len(s.frames) > 1 {
			s.pop()
		}
	case f.expect && t.name() != "" && !t.is("ONLY") && !t.is("LATERAL"):
		f.expect = false
		s.table(i)
	case t.op(",") && f.from:
		f.endCondition()
		f.expect = true
	case t.kind == quoted && t.text == "tenant_id", t.is("TENANT_ID"):
		s.condition(i)
	case t.kind == word:
		s.keyword(i)
	}
}

func (s *tenantScan) keyword(i int) {
	t, f, prev := s.tokens[i], s.top(), s.at(i-1)
	switch t.text {
	case "FROM":
		distinctFrom := prev.is("DISTINCT") && (s.at(i-2).is("IS") || s.at(i-2).is("NOT"))
		if distinctFrom || slices.Contains([]string{"EXTRACT", "TRIM", "SUBSTRING", "OVERLAY"}, f.function) {
			return
		}
		f.clause(true, false)
		f.expect = true
	case "JOIN":
		f.clause(true, false)
		f.expect = true
	case "USING":
		f.expect = f.from && !s.at(i+1).op("(")
	case "UPDATE":
		if !prev.is("FOR") && !prev.is("DO") && !prev.is("KEY") {
			f.expect = true
		}
	case "INTO":
		s.insert(i)
	case "WHERE":
		f.clause(false, true)
	case "ON":
		f.clause(f.from, f.from)
	case "OR":
		f.or = true
	case "SELECT", "SET", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "RETURNING", "WINDOW", "VALUES", "FETCH", "FOR":
		f.clause(false, false)
	case "UNION", "INTERSECT", "EXCEPT":
		f.clause(false, false)
		s.judge(f)
		f.tables, f.bound = nil, nil
	}
}

// clause begins the next clause of the frame's query.
func (f *frame) clause(from, cond bool) {
	f.endCondition()
	f.from, f.cond = from, cond
}

// endCondition keeps what a condition bound, unless the condition has an OR.
func (f *frame) endCondition() {
	if !f.or {
		f.bound = append(f.bound, f.segment...)
	}
	f.segment, f.or = nil, false
}

func (s *tenantScan) push(i int) {
	f, prev, next := s.top(), s.at(i-1), s.at(i+1)
	child := &frame{}
	switch {
	case next.is("SELECT"), next.is("WITH"), next.is("VALUES"), next.is("INSERT"), next.is("UPDATE"), next.is("DELETE"):
		child.query = true
	case f.expect: // FROM (a JOIN b ON …)
		child.from, child.expect = true, true
	case prev.is("WHERE"), prev.is("ON"), prev.is("AND"), prev.is("OR"), prev.op("("):
		child.grouping, child.cond = true, f.cond
	case prev.kind == word:
		child.function = prev.text
	}
	f.expect = false
	s.frames = append(s.frames, child)
}

func (s *tenantScan) pop() {
	f := s.top()
	s.frames = s.frames[:len(s.frames)-1]
	isFrom := f.from
	f.endCondition()
	switch {
	case f.query:
		s.judge(f)
	case isFrom:
		parent := s.top()
		parent.tables = append(parent.tables, f.tables...)
		parent.bound = append(parent.bound, f.bound...)
	case f.grouping:
		s.top().segment = append(s.top().segment, f.bound...)
	}
}

// judge compares the tables of one query with those that its conditions bind.
func (s *tenantScan) judge(f *frame) {
	for _, table := range f.tables {
		alone := len(f.tables) == 1 && slices.Contains(f.bound, "")
		if !alone && !slices.Contains(f.bound, table) && s.problem == "" {
			s.problem = fmt.Sprintf("table %q is not bound by tenant_id = $1", table)
		}
	}
}

// table adds the name at i to the tables of the frame's query.
func (s *tenantScan) table(i int) {
	name := s.tokens[i].name()
	if s.at(i + 1).op(".") {
		i += 2
		name = s.at(i).name()
	} else if slices.Contains(s.ctes, name) {
		return
	}
	next := s.at(i + 1)
	switch {
	case next.op("("): // a table function
		return
	case next.is("AS"):
		name = s.at(i + 2).name()
	case next.kind == quoted, next.kind == word && !slices.Contains(afterTable, next.text):
		name = next.name()
	}
	s.top().tables = append(s.top().tables, name)
}

// afterTable are the keywords that may follow a table without an alias.
var afterTable = []string{
	"SET", "WHERE", "ON", "JOIN", "LEFT", "RIGHT", "INNER", "OUTER", "CROSS", "FULL", "NATURAL", "USING", "GROUP",
	"ORDER", "LIMIT", "HAVING", "UNION", "EXCEPT", "INTERSECT", "RETURNING", "FOR", "OFFSET", "WINDOW", "FETCH",
	"VALUES", "SELECT", "DEFAULT", "INDEXED", "NOT", "TABLESAMPLE", "DO",
}

// condition records tenant_id = $1 where it must hold.
func (s *tenantScan) condition(i int) {
	f := s.top()
	if !f.cond || !s.at(i+1).op("=") || s.at(i+2).kind != param || s.at(i+2).number != 1 {
		return
	}
	if next := s.at(i + 3); next.kind == punct && !next.op(")") && !next.op(",") && !next.op(";") ||
		next.is("IS") || next.is("COLLATE") || next.is("BETWEEN") || next.is("IN") || next.is("LIKE") {
		return
	}
	qualifier, before := "", s.at(i-1)
	if before.op(".") {
		qualifier, before = s.at(i-2).name(), s.at(i-3)
	}
	if before.is("WHERE") || before.is("ON") || before.is("AND") || before.op("(") {
		f.segment = append(f.segment, qualifier)
	}
}

// insert checks INSERT INTO name (tenant_id, …) and its values or SELECT.
func (s *tenantScan) insert(i int) {
	table := s.at(i + 1).name()
	for i++; i < len(s.tokens) && !s.tokens[i].op("("); i++ {
		if s.tokens[i].is("VALUES") || s.tokens[i].is("SELECT") {
			break
		}
	}
	if s.at(i+1).name() != "tenant_id" {
		s.problem = fmt.Sprintf("the first column inserted into %q is not tenant_id", table)
		return
	}
	i = s.after(i)
	switch {
	case s.at(i).is("VALUES"):
		for i++; s.at(i).op("("); i++ {
			if !s.isTenant(i + 1) {
				s.problem = fmt.Sprintf("the first value inserted into %q is not $1", table)
				return
			}
			if i = s.after(i); !s.at(i).op(",") {
				return
			}
		}
	case s.at(i).is("SELECT") && s.isTenant(i+1), s.at(i).is("SELECT") && s.at(i+1).is("DISTINCT") && s.isTenant(i+2):
	default:
		s.problem = fmt.Sprintf("what is inserted into %q does not begin with $1", table)
	}
}

// isTenant reports whether the expression at i is $1 and nothing else.
func (s *tenantScan) isTenant(i int) bool {
	next := s.at(i + 1)
	return s.at(i).kind == param && s.at(i).number == 1 &&
		(next.kind == 0 || next.op(",") || next.op(")") || next.is("AS") || next.is("FROM") || next.is("WHERE"))
}

// after returns the index after the parenthesis that closes the one at i.
func (s *tenantScan) after(i int) int {
	for depth := 0; i < len(s.tokens); i++ {
		if s.tokens[i].op("(") {
			depth++
		} else if s.tokens[i].op(")") {
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// cteNames returns the names that WITH declares: name [(columns)] AS [[NOT]
// MATERIALIZED] (.
func cteNames(tokens []token) []string {
	var names []string
	s := tenantScan{tokens: tokens}
	for i, t := range tokens {
		if !t.is("WITH") && !t.is("RECURSIVE") && !t.op(",") {
			continue
		}
		name := s.at(i + 1).name()
		j := i + 2
		if s.at(j).op("(") {
			j = s.after(j)
		}
		if name == "" || !s.at(j).is("AS") {
			continue
		}
		for j++; s.at(j).is("NOT") || s.at(j).is("MATERIALIZED"); j++ {
		}
		if s.at(j).op("(") {
			names = append(names, name)
		}
	}
	return names
}
