package automation

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// expression is a compiled part of a condition. The error is a mistake, a *skipped,
// errLong, errDeep, or one of checkpoint.
type expression func(r *run) (any, error)

// opened evaluates an expression, and decodes an object or list.
func (e expression) opened(r *run) (any, error) {
	v, err := e(r)
	if err == nil {
		err = r.open(&v)
	}
	return v, err
}

// when compiles a condition (contract F6), which the library parses. It adds a problem
// for everything in the language that it does not know, so that everything that
// runs is counted.
func (c *compiler) when(source any, path string) expression {
	if fixed, ok := source.(bool); ok {
		return func(*run) (any, error) { return fixed, nil }
	}
	text, _ := source.(string)
	tree, problem := parseCondition(text)
	if problem != "" {
		c.problems.add(path, "%s", problem)
		return nil
	}
	if kind := fixedKind(tree); kind != "" && kind != "true or false" {
		c.problems.add(path, "expected a condition that is true or false, found %s", kind)
		return nil
	}
	return c.tree(tree, path)
}

// expression compiles what is between {{ and }}. It adds a problem for each mistake, and
// returns nil for a text that cannot be parsed.
func (c *compiler) expression(text, path string) expression {
	if c.room -= len(text); c.room < 0 && !c.stored {
		if c.room+len(text) >= 0 { // said once
			c.problems.add(path, "the expressions in {{…}} are too long together: expected at most %d KiB in an automation", MaxExpressions>>10)
		}
		return nil
	}
	tree, problem := parseCondition(text)
	if problem != "" {
		c.problems.add(path, "%s", problem)
		return nil
	}
	return c.tree(tree, path)
}

func (c *compiler) tree(tree ast.Node, path string) expression {
	cc := &conditions{compiler: c}
	made := cc.node(tree)
	for _, problem := range cc.found {
		c.problems.add(path, "%s", problem)
	}
	return made
}

func parseCondition(text string) (_ ast.Node, problem string) {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "{{"); ok && strings.HasSuffix(inner, "}}") && !strings.Contains(inner, "{{") {
		text = inner[:len(inner)-2] // braces around the whole condition are allowed
	}
	if len(text) > MaxCondition {
		return nil, fmt.Sprintf("the expression is %d bytes long: expected at most %d", len(text), MaxCondition)
	}
	if strings.Contains(text, "{{") {
		return nil, "a condition names what it reads without braces, like inputs.score > 50"
	}
	config := conf.CreateNew()
	config.MaxNodes = maxConditionNodes
	tree, err := parser.ParseWithConfig(dotIndexes(text), config)
	if err != nil {
		return nil, "expected an expression like inputs.score > 50: " + oneLine(err)
	}
	if depth(tree.Node) > maxConditionDepth {
		return nil, fmt.Sprintf("the expression is nested too deeply: expected at most %d levels", maxConditionDepth)
	}
	return tree.Node, ""
}

// oneLine returns the library's message without the excerpt of the source.
func oneLine(err error) string {
	var f *file.Error
	if errors.As(err, &f) {
		return fmt.Sprintf("%s (at character %d)", f.Message, f.Column+1)
	}
	message, _, _ := strings.Cut(err.Error(), "\n")
	return message
}

// dotIndexes rewrites the list indexes of paths for the library: tags.0 becomes
// tags[0]. It does not change numbers such as 1.5, nor texts.
func dotIndexes(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		c := s[i]
		end := i + 1
		switch {
		case c == '"' || c == '\'' || c == '`':
			for end < len(s) && s[end] != c {
				if s[end] == '\\' && c != '`' {
					end++
				}
				end++
			}
			end = min(end+1, len(s))
		case isNameByte(c) || c == ']':
			for c != ']' && end < len(s) && isNameByte(s[end]) {
				end++
			}
			out.WriteString(s[i:end])
			i = end
			if c >= '0' && c <= '9' { // skip the rest of a number
				for end < len(s) && (s[end] == '.' || isNameByte(s[end])) {
					end++
				}
				break
			}
			for end = digitsAfterDot(s, i); end > i; end = digitsAfterDot(s, i) {
				out.WriteString("[" + s[i+1:end] + "]")
				i = end
			}
			continue
		}
		out.WriteString(s[i:end])
		i = end
	}
	return out.String()
}

// digitsAfterDot returns the end of the dot and digits at i, or i when there are
// none.
func digitsAfterDot(s string, i int) int {
	end := i
	for end < len(s) && (end == i && s[end] == '.' || end > i && s[end] >= '0' && s[end] <= '9') {
		end++
	}
	if end <= i+1 || end < len(s) && isNameByte(s[end]) {
		return i
	}
	return end
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// children returns the nodes inside a node; some may be nil.
func children(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.UnaryNode:
		return []ast.Node{n.Node}
	case *ast.BinaryNode:
		return []ast.Node{n.Left, n.Right}
	case *ast.ChainNode:
		return []ast.Node{n.Node}
	case *ast.MemberNode:
		return []ast.Node{n.Node, n.Property}
	case *ast.SliceNode:
		return []ast.Node{n.Node, n.From, n.To}
	case *ast.CallNode:
		return append([]ast.Node{n.Callee}, n.Arguments...)
	case *ast.BuiltinNode:
		return n.Arguments
	case *ast.PredicateNode:
		return []ast.Node{n.Node}
	case *ast.ConditionalNode:
		return []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.VariableDeclaratorNode:
		return []ast.Node{n.Value, n.Expr}
	case *ast.SequenceNode:
		return n.Nodes
	case *ast.ArrayNode:
		return n.Nodes
	case *ast.MapNode:
		return n.Pairs
	case *ast.PairNode:
		return []ast.Node{n.Key, n.Value}
	}
	return nil
}

func depth(n ast.Node) int {
	deepest := 0
	for _, child := range children(n) {
		deepest = max(deepest, depth(child))
	}
	return deepest + 1
}

// fixedKind returns the kind of a node's value, as kindOf names it, if it does not
// depend on what the run reads, and "" otherwise.
func fixedKind(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NilNode:
		return "null"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode:
		return aNumber
	case *ast.StringNode:
		return aText
	case *ast.ArrayNode:
		return aList
	case *ast.UnaryNode:
		if n.Operator == "-" || n.Operator == "+" {
			return aNumber
		}
	case *ast.BinaryNode:
		return operators[n.Operator].gives
	case *ast.BuiltinNode:
		return functions[n.Name].gives + loops[n.Name].gives
	case *ast.CallNode:
		return functions[n.Callee.String()].gives
	}
	return ""
}

// The kinds of results of operators and functions that are refused as conditions.
// Those that have no kind here must stay accepted: conditions with them are stored.
const (
	aNumber = "a number"
	aText   = "text"
	aList   = "a list"
)

// conditions compiles the nodes of one condition.
type conditions struct {
	*compiler
	found      []string
	predicates int // that enclose the node
}

func (c *conditions) problem(format string, args ...any) expression {
	c.found = append(c.found, fmt.Sprintf(format, args...))
	return literal(nil)
}

func literal(v any) expression { return func(*run) (any, error) { return v, nil } }

func (c *conditions) node(n ast.Node) expression {
	switch n := n.(type) {
	case *ast.NilNode:
		return literal(nil)
	case *ast.BoolNode:
		return literal(n.Value)
	case *ast.IntegerNode:
		return literal(float64(n.Value))
	case *ast.FloatNode:
		return literal(n.Value)
	case *ast.StringNode:
		return literal(n.Value)
	case *ast.IdentifierNode, *ast.MemberNode, *ast.PointerNode:
		return c.path(n)
	case *ast.ChainNode:
		return c.node(n.Node)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.choice(n)
	case *ast.ArrayNode:
		return c.array(n)
	case *ast.BuiltinNode:
		return c.builtin(n)
	case *ast.CallNode:
		return c.call(n)
	case *ast.VariableDeclaratorNode:
		return c.problem("let is not available in a condition: a set node before it gives a var its value")
	}
	return c.problem("%s is not available in a condition", show(n.String()))
}

// staticPath splits a path whose steps are all literal. root is nil when one of them
// is computed.
func staticPath(n ast.Node) (root ast.Node, steps []segment) {
	m, ok := n.(*ast.MemberNode)
	if !ok {
		if chain, ok := n.(*ast.ChainNode); ok {
			return staticPath(chain.Node)
		}
		return n, nil
	}
	root, steps = staticPath(m.Node)
	if root == nil {
		return nil, nil
	}
	var step segment
	switch p := m.Property.(type) {
	case *ast.StringNode:
		step = newSegment(p.Value)
	case *ast.IntegerNode:
		step = newSegment(strconv.Itoa(p.Value))
	default:
		return nil, nil
	}
	step.optional = m.Optional
	return root, append(steps, step)
}

func (c *conditions) path(n ast.Node) expression {
	if id, ok := n.(*ast.IdentifierNode); ok && id.Value == "null" {
		return literal(nil)
	}
	root, steps := staticPath(n)
	if id, ok := root.(*ast.IdentifierNode); ok {
		return c.named(n, id.Value, steps)
	}
	switch n := n.(type) {
	case *ast.PointerNode:
		return c.pointer(n)
	case *ast.MemberNode:
		return c.step(n)
	}
	return c.problem("unknown name %s", show(n.String()))
}

func (c *conditions) named(n ast.Node, root string, steps []segment) expression {
	found, problem := c.resolve(append([]segment{newSegment(root)}, steps...), n.String())
	if problem != "" {
		return c.problem("%s", problem)
	}
	return func(r *run) (any, error) {
		if err := r.step(1); err != nil {
			return nil, err
		}
		return r.readOpen(found)
	}
}
