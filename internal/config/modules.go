package config

import (
	"gatehouse/internal/access"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
)

// moduleDecl is a module as the file has it.
type moduleDecl struct {
	custom.Module
	sourceDecl
	imports []pair // as componentDecl.imports
}

var moduleTable = table[moduleDecl]{
	text("name", func(m *moduleDecl) *string { return &m.Name }).when(inExport).needed(`snake_case: what import {…} from "NAME" says`),
	sourceMember(func(m *moduleDecl) string { return m.Source }),
	sourceFileMember[moduleDecl](),
	{key: "imports", past: func(m, _ *moduleDecl) *Value { return block(m.imports...) }, show: inHistory},
}

func (d *decoder) modules(m *Spec, key string, n *Value) {
	d.list(n, "a list of modules", func(_ int, item *Value) {
		one := &moduleDecl{}
		given := moduleTable.read(d, item, "a module", one)
		if !d.named(item, "a module", given, one.Name) || !d.identified(m, item, subject{key, one.Name, "module"}) {
			return
		}
		d.sources(&one.sourceDecl, item, subject{key, one.Name, "module"}, given, &one.Source,
			"expected JavaScript that exports something, as export function total(lines) { … }")
		m.modules = append(m.modules, one)
	})
}

func mergeModules(p *plan) {
	for _, decl := range p.m.modules {
		m := decl.Module
		if prev := p.before.modules[m.Name]; prev != nil {
			m.Imports = prev.Imports
		}
		p.after.modules[m.Name] = &m
	}
	drop(p, "modules", p.before.modules, p.after.modules)
	if n, size := p.after.modulesSize(); n > component.MaxModules || size > component.MaxModuleBytes {
		p.add(p.m.place("modules"), "modules: %d with %d KiB of source together: expected at most %d with %d KiB",
			n, size>>10, component.MaxModules, component.MaxModuleBytes>>10)
		p.unbuildable = true
	}
}

// modulesSize returns how many modules there are, and the bytes of their sources.
func (s *state) modulesSize() (n, size int) {
	for _, m := range s.modules {
		size += len(m.Source)
	}
	return len(s.modules), size
}

// moduleSources returns the sources of all modules, by name.
func (s *state) moduleSources() map[string]string {
	sources := make(map[string]string, len(s.modules))
	for name, m := range s.modules {
		sources[name] = m.Source
	}
	return sources
}

// digests returns modules with a digest of the source of each, so that what imports
// one changes with it.
func (s *state) digests(imports []string) (list []pair) {
	for _, name := range imports {
		if m := s.modules[name]; m != nil {
			list = append(list, pair{name, digestOf(m.Source)})
		}
	}
	return list
}

var moduleKind = kind{
	name: kindModule, section: "modules", id: "name",
	changing: []string{access.ManageEndpoints}, reading: []string{access.ManageEndpoints},
	keys: keysOf(func(s *state) map[string]*custom.Module { return s.modules }),
	view: func(s, _ *state, key string) any {
		m := s.modules[key]
		if m == nil {
			return nil
		}
		return moduleTable.view(&moduleDecl{Module: *m, imports: s.digests(m.Imports)}, nil)
	},
	tell: func(s *state, key string) *Value {
		return block(moduleTable.export(&moduleDecl{Module: *s.modules[key]}, asIs)...)
	},
	write: func(w *writer, c change) error {
		if c.after == nil {
			return custom.DeleteModule(w.ctx, w.tx, c.key)
		}
		return custom.PutModule(w.ctx, w.tx, w.p.after.modules[c.key])
	},
}
