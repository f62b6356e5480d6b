package component

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Source is what a Program is compiled from.
type Source struct {
	// Text is the component: an ES module whose default export is the handler.
	Text string
	// Modules are the sources that it and they may import, by name.
	Modules map[string]string
	// Config is a JSON object, the global config; empty means {}. Secrets is the
	// global secrets. What a run says of a secret is redacted, see Redacted.
	Config  []byte
	Secrets map[string]string
}

// check returns a *SourceError for a source over the limits, or nil.
func (s *Source) check() error {
	if len(s.Text) > MaxSource {
		return &SourceError{Message: fmt.Sprintf("the source is larger than %d KiB", MaxSource>>10)}
	}
	total := 0
	for _, text := range s.Modules {
		total += len(text)
	}
	if len(s.Modules) > MaxModules || total > MaxModuleBytes {
		return &SourceError{Message: fmt.Sprintf("there are %d modules of %d bytes together: expected at most %d of %d KiB", len(s.Modules), total, MaxModules, MaxModuleBytes>>10)}
	}
	return nil
}

// The folder in which stack traces show modules: modules/pricing.js.
const moduleFolder = "modules/"

func moduleFile(name string) string { return moduleFolder + name + ".js" }

// moduleOf returns the name of the module in a file; "" is the component's own source.
func moduleOf(file string) string {
	if file == sourceFile {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(file, moduleFolder), ".js")
}

// linked is a module that fails. Where it is imported first, nothing of the author runs:
// every source has been parsed, and every import found, before that.
const (
	linked       = "gatehouse/linked"
	linkedSource = "throw '" + linked + "'"
)

// linker resolves the imports of one compilation.
type linker struct {
	source  *Source
	imports map[string][]string // the names that each module imports; "" is the component
	wrong   *SourceError        // the first import that cannot be resolved
	only    bool                // nothing is run, see linked
}

// text returns the source of a module; "" is the component.
func (l *linker) text(module string) string {
	if module == "" {
		return l.source.Text
	}
	return l.source.Modules[module]
}

// follow notes that a module imports another. It returns false, with l.wrong set, when
// there is no such module or it imports the one that imports it.
func (l *linker) follow(from, name string) bool {
	problem := ""
	switch _, known := l.source.Modules[name]; {
	case !known:
		problem = fmt.Sprintf("there is no module %q", name)
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".js") {
			problem += `: a module is imported by its name, as in import {total} from "pricing"`
		}
	default:
		l.imports[from] = append(l.imports[from], name)
		if way := l.way(name, from, map[string]bool{}); way != nil {
			problem = "modules import each other: " + strings.Join(append([]string{from}, way...), " → ")
		}
	}
	if problem == "" {
		return true
	}
	if l.wrong == nil {
		line, column := importPlace(l.text(from), importedName{module: name})
		l.wrong = &SourceError{Message: problem, Module: from, Line: line, Column: column, Import: name}
	}
	return false
}

// way returns the modules from one to another by what they import, or nil. The component
// is imported by nobody. None of those that were tried leads there.
func (l *linker) way(from, to string, tried map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	if tried[from] {
		return nil
	}
	tried[from] = true
	for _, next := range l.imports[from] {
		if rest := l.way(next, to, tried); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

// used returns the names of all modules that were imported, sorted.
func (l *linker) used() []string {
	all := map[string]bool{}
	for _, names := range l.imports {
		for _, name := range names {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// maxImportName bounds what an import may name, in bytes.
const maxImportName = 1 << 10

// resolve is the engine's module normalizer: it returns the file of a module that a file
// imports, or 0 when it cannot be imported.
func (i *instance) resolve(base, name uint32) uint64 {
	from, to := i.readText(base, maxImportName), i.readText(name, maxImportName)
	l := i.run.links
	if l == nil { // import() of a run
		return i.refuseImport("import() is not available in a run: import modules at the top of the source")
	}
	from = moduleOf(from)
	switch {
	case l.only && from == "" && to == linked:
		return i.newCString(linked)
	case !l.follow(from, to):
		return i.refuseImport(l.wrong.Message)
	}
	return i.newCString(moduleFile(to))
}

// loadModule is the engine's module loader: it returns the source of a file, and stores
// its length.
func (i *instance) loadModule(file, length uint32) uint64 {
	l := i.run.links
	if l == nil {
		return 0
	}
	text := linkedSource
	if name := i.readText(file, maxImportName); name != linked {
		text = l.text(moduleOf(name))
	}
	i.run.turns += int64(len(text))
	at := i.newCString(text)
	i.store32(length, uint32(len(text)))
	return at
}

// newCString returns a copy of s that ends with a zero byte, which the engine frees.
func (i *instance) newCString(s string) uint64 {
	at := i.nested("wasm_malloc", uint64(len(s)+1))
	if at == 0 {
		i.nested("JS_ThrowOutOfMemory", i.machine.jsctx)
		return 0
	}
	i.writeText(uint32(at), s)
	return at
}

// refuseImport throws an error for an import; it returns 0.
func (i *instance) refuseImport(message string) uint64 {
	m := i.machine
	if text := i.newText([]byte(message)); text != thrownByHost {
		i.store64(m.scratch, text)
		i.nested("JS_Call", m.jsctx, m.enter[enterRefuse], jsUndefined, 1, uint64(m.scratch))
	}
	return 0
}

// importedName is what a source imports: a module or, where name is not "", that of a
// module.
type importedName struct{ module, name string }

// importKeyword begins what a source imports.
var importKeyword = regexp.MustCompile(`\b(?:import|export)\b`)

// importPlace returns the place in a source of an import: that of the name or, where it
// is not found, of the module; 0, 0 when none is found. It looks for the name between the
// module and what is imported before it, so no part of the source is read twice.
func importPlace(source string, imported importedName) (line, column int) {
	from := regexp.MustCompile(`(?:\bfrom|\bimport)\s*\(?\s*(["'])` + regexp.QuoteMeta(imported.module) + `["']`)
	name := regexp.MustCompile(`(?:^|[^\p{L}\p{N}_$])(` + regexp.QuoteMeta(imported.name) + `)(?:$|[^\p{L}\p{N}_$])`)
	place, before := -1, 0
	for _, m := range from.FindAllStringSubmatchIndex(source, -1) {
		if imported.name == "" {
			return lineColumn(source, m[2])
		}
		keywords := importKeyword.FindAllStringIndex(source[before:m[2]], -1)
		if len(keywords) > 0 {
			last := keywords[len(keywords)-1]
			begin, names := before+last[0], before+last[1]
			if named := name.FindStringSubmatchIndex(source[begin:m[2]]); named != nil {
				return lineColumn(source, begin+named[2])
			}
			if imported.name == "default" { // import total from "pricing"
				local := strings.TrimLeft(source[names:m[2]], " \t\r\n")
				return lineColumn(source, m[2]-len(local))
			}
			if place < 0 {
				place = m[2]
			}
		}
		before = m[1]
	}
	if place < 0 {
		return 0, 0
	}
	return lineColumn(source, place)
}

// lineColumn returns the line and column of an offset, from 1.
func lineColumn(source string, at int) (line, column int) {
	before := source[:at]
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
}

var noExport = regexp.MustCompile(`Could not find export '([^']+)' in module '` + moduleFolder + `([a-z][a-z0-9_]*)\.js'`)

// locate completes the error of an import that the engine names without its place.
func (l *linker) locate(e *SourceError) {
	m := noExport.FindStringSubmatch(e.Message)
	if m == nil {
		return
	}
	name, module := m[1], m[2]
	e.Message = fmt.Sprintf("module %s does not export %s", module, name)
	for _, from := range slices.Sorted(maps.Keys(l.imports)) {
		if !slices.Contains(l.imports[from], module) {
			continue
		}
		if line, column := importPlace(l.text(from), importedName{module, name}); line > 0 {
			e.Module, e.Line, e.Column, e.Import = from, line, column, module
			return
		}
	}
}
