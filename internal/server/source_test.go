//go:build !race

package server_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// parsedFile is a source file of the product with its syntax tree.
type parsedFile struct {
	goFile
	tree *ast.File
	fset *token.FileSet
	// texts are the string constants of the file's package, by name.
	texts map[string]string
}

var parsed struct {
	sync.Once
	files []parsedFile
}

// product parses the source files of the product, without tests and their helpers.
func product(t *testing.T) []parsedFile {
	t.Helper()
	parsed.Do(func() {
		texts := map[string]map[string]string{}
		for _, f := range sources(t) {
			if f.isTest() || slices.Contains(helpers, f.folder) {
				continue
			}
			fset := token.NewFileSet()
			tree, err := parser.ParseFile(fset, f.path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if texts[f.folder] == nil {
				texts[f.folder] = map[string]string{}
			}
			parsed.files = append(parsed.files, parsedFile{f, tree, fset, texts[f.folder]})
		}
		for range 2 { // a constant may be made of another
			for _, f := range parsed.files {
				f.constants()
			}
		}
	})
	return parsed.files
}

// constants records the file's string constants, including those of functions: a
// name that denotes two texts in one package makes the tests stricter, not laxer,
// because each text is read where it is written.
func (f parsedFile) constants() {
	ast.Inspect(f.tree, func(n ast.Node) bool {
		decl, ok := n.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			return true
		}
		for _, spec := range decl.Specs {
			if spec, ok := spec.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					if text, ok := f.folded(spec.Values[i]); ok {
						f.texts[name.Name] = text
					}
				}
			}
		}
		return true
	})
}

// hole replaces the parts of a text that are inserted at run time. To SQL it is a comment.
const hole = "/*?*/"

// folded returns a string literal, a constant, or several of them put together with +.
func (f parsedFile) folded(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.folded(e.X)
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok = f.texts[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok1 := f.folded(e.X)
		right, ok2 := f.folded(e.Y)
		if e.Op != token.ADD || !ok1 && !ok2 {
			return "", false
		}
		if !ok1 {
			left = " " + hole + " "
		}
		if !ok2 {
			right = " " + hole + " "
		}
		return left + right, true
	}
	return "", false
}

// node is a syntax node of a source file and the function that contains it.
type node struct {
	ast.Node
	file     parsedFile
	function string // folder.Name, folder.Type.Name for a method
	// params are the types of the parameters of the function and of the function
	// literals around the node, as they are written.
	params map[string]bool
}

func (n node) pos() string { return n.file.fset.Position(n.Pos()).String() }

// walk calls visit for each node of the product; visit returns whether to go deeper.
func walk(t *testing.T, visit func(node) bool) {
	t.Helper()
	for _, f := range product(t) {
		for _, decl := range f.tree.Decls {
			at := node{file: f, function: f.folder + ".", params: map[string]bool{}}
			fn, ok := decl.(*ast.FuncDecl)
			if ok {
				at.function += receiver(fn) + fn.Name.Name
				at.walk(decl, visit)
				continue
			}
			for _, spec := range decl.(*ast.GenDecl).Specs {
				at := at
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					at.function += spec.Name.Name
				case *ast.ValueSpec:
					at.function += spec.Names[0].Name
				}
				at.walk(spec, visit)
			}
		}
	}
}

func (n node) walk(root ast.Node, visit func(node) bool) {
	ast.Inspect(root, func(x ast.Node) bool {
		if x == nil {
			return false
		}
		at := n
		at.Node = x
		if !visit(at) {
			return false
		}
		var typ *ast.FuncType
		var body *ast.BlockStmt
		switch fn := x.(type) {
		case *ast.FuncDecl:
			typ, body = fn.Type, fn.Body
		case *ast.FuncLit:
			typ, body = fn.Type, fn.Body
		}
		if typ == nil || body == nil {
			return true
		}
		at.params = maps.Clone(n.params)
		for _, p := range typ.Params.List {
			at.params[typeName(p.Type)] = true
		}
		at.walk(typ, visit)
		at.walk(body, visit)
		return false
	})
}

// receiver returns the type that a method belongs to and a dot, "" for a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return typeName(fn.Recv.List[0].Type) + "."
}

// typeName returns a type as it is written, without a star.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return typeName(e.X)
	}
	return "?"
}

// allowed compares the places where something is done with those that may do it,
// each with its reason.
type allowed struct {
	what string
	list map[string]string
	used map[string]bool
}

func allow(what string, list map[string]string) *allowed {
	return &allowed{what, list, map[string]bool{}}
}

// at records that it is done at n, and fails the test unless n's function may do it.
func (a *allowed) at(t *testing.T, n node) {
	t.Helper()
	if a.list[n.function] == "" {
		t.Errorf("%s: %s: %s is not on the list of those that may, which gives the reason for each", n.pos(), n.function, a.what)
	}
	a.used[n.function] = true
}

// end fails the test for each function on the list that no longer does it.
func (a *allowed) end(t *testing.T) {
	t.Helper()
	for f := range a.list {
		if !a.used[f] {
			t.Errorf("%s: %s is on the list and does not do it", a.what, f)
		}
	}
}
