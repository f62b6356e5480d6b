package config

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gatehouse/internal/component"
	"gatehouse/internal/custom"
)

// A change of a source, of what a component is given, or of a module builds what it
// concerns: it compiles the component, or parses the module, with the modules as they
// are after the change. Building takes long. So the transaction asks for it with
// errUnbuilt, and is tried again: what it then finds built is exactly what it writes,
// whatever was changed meanwhile.

// built is the result of a build.
type built struct {
	imports []string
	wrong   *component.SourceError // nil for a source that is right
}

// build is a component to be compiled or, where module is not "", a module to be parsed.
type build struct {
	o      subject
	module string
	source component.Source
}

// errUnbuilt asks for builds.
type errUnbuilt []build

func (errUnbuilt) Error() string { return "config: sources have to be compiled" }

// digest identifies the build by all that it depends on.
func (b *build) digest() custom.Digest {
	texts := []string{b.module, b.source.Text, string(b.source.Config)}
	for _, given := range []map[string]string{b.source.Secrets, b.source.Modules} {
		texts = append(texts, "")
		for _, name := range sortedKeys(given) {
			texts = append(texts, name, given[name])
		}
	}
	return custom.DigestOf(texts...)
}

// build gives what the plan changes its imports, and finds sources that are wrong. It
// returns errUnbuilt for what has not been built yet.
func (p *plan) build() error {
	builds, err := p.builds()
	if err != nil {
		return err
	}
	var missing errUnbuilt
	for _, b := range builds {
		done, known := p.built[b.digest()]
		switch {
		case !known:
			missing = append(missing, b)
		case done.wrong != nil:
			p.wrongBuild(b, done.wrong)
		case b.module != "":
			m := *p.after.modules[b.module]
			m.Imports = done.imports
			p.after.modules[b.module] = &m
		default:
			c := *p.after.components[b.o.name]
			c.Imports = done.imports
			p.after.components[b.o.name] = &c
		}
	}
	if len(missing) > 0 {
		return missing
	}
	return nil
}

// builds lists what the plan changes, itself or a module that it imports.
func (p *plan) builds() (list []build, err error) {
	if p.unbuildable {
		return nil, nil
	}
	modules := p.after.moduleSources()
	changed := map[string]bool{}
	for name := range p.before.modules {
		changed[name] = p.after.modules[name] == nil
	}
	for name, m := range p.after.modules {
		was := p.before.modules[name]
		changed[name] = was == nil || was.Source != m.Source
	}
	concerned := func(imports []string) bool {
		return slices.ContainsFunc(imports, func(name string) bool { return changed[name] })
	}
	bad := p.m.badSources()
	for _, name := range sortedKeys(p.after.modules) {
		if o := (subject{"modules", name, "module"}); !bad[o] && (changed[name] || concerned(p.after.modules[name].Imports)) {
			list = append(list, build{o: o, module: name, source: component.Source{Modules: modules}})
		}
	}
	for _, name := range sortedKeys(p.after.components) {
		o, c, was := subject{"logic_components", name, "logic component"}, p.after.components[name], p.before.components[name]
		if bad[o] || was != nil && was.Source == c.Source && string(was.Config) == string(c.Config) && encoded(was.Secrets) == encoded(c.Secrets) && !concerned(c.Imports) {
			continue
		}
		secrets, err := p.open(c)
		if err != nil {
			return nil, err
		}
		list = append(list, build{o: o, source: component.Source{Text: c.Source, Modules: modules, Config: c.Config, Secrets: secrets}})
	}
	return list, nil
}

// badSources are the components and modules of the Spec without a source that could
// be compiled.
func (m *Spec) badSources() map[subject]bool {
	bad := map[subject]bool{}
	for _, one := range m.modules {
		if one.bad {
			bad[subject{"modules", one.Name, "module"}] = true
		}
	}
	for _, c := range m.components {
		if c.bad {
			bad[subject{"logic_components", c.Name, "logic component"}] = true
		}
	}
	return bad
}

// open returns the secrets of a component.
func (p *plan) open(c *custom.Component) (map[string]string, error) {
	if len(c.Secrets) > 0 && p.keyring == nil {
		return nil, errors.New("config: Options.Keyring is needed to open the secrets of logic component " + c.Name)
	}
	return custom.OpenSecrets(p.keyring, c)
}

// compile makes builds, outside of any transaction.
func (a *application) compile(ctx context.Context, builds errUnbuilt) error {
	for _, b := range builds {
		if a.opts.Compile == nil {
			return errors.New("config: Options.Compile is needed for " + b.o.what + " " + b.o.name + " of tenant " + string(a.m.tenant))
		}
		imports, err := a.opts.Compile(ctx, a.m.tenant, b.module, b.source)
		var wrong *component.SourceError
		if err != nil && !errors.As(err, &wrong) {
			return err
		}
		a.built[b.digest()] = built{imports, wrong}
	}
	return nil
}

// wrongBuild notes what is wrong with a build, in the source that is wrong where the
// Spec has it.
func (p *plan) wrongBuild(b build, err *component.SourceError) {
	at := b.o
	if err.Module != "" {
		at = subject{"modules", err.Module, "module"}
	}
	by := ""
	if at != b.o {
		by = b.o.what + " " + b.o.name
	}
	if p.m.badSources()[subject{"modules", err.Import, "module"}] {
		return // which is said of the module
	}
	if decl := p.m.sourceOf(at); decl != nil {
		decl.wrongSource(p.Problems, at.what+" "+at.name, by, err)
		return
	}
	what := at.what + " " + at.name
	if err.Import != "" && p.before.modules[err.Import] != nil && p.after.modules[err.Import] == nil {
		p.add(p.m.place("modules"), "module %s cannot be removed: %s imports it", err.Import, what)
		return
	}
	place := p.m.place("modules", err.Import)
	if p.m.names(b.o.section, b.o.name) {
		place = p.m.place(b.o.section, b.o.name)
	}
	wrong := *err
	wrong.Module = ""
	p.add(place, "%s: %s", strings.Join(slices.DeleteFunc([]string{by, what}, func(s string) bool { return s == "" }), ": "), printable(wrong.Error()))
}

// sourceOf returns where the Spec has a source, or nil.
func (m *Spec) sourceOf(o subject) *sourceDecl {
	for _, one := range m.modules {
		if o.section == "modules" && one.Name == o.name {
			return &one.sourceDecl
		}
	}
	for _, c := range m.components {
		if o.section == "logic_components" && c.Name == o.name {
			return &c.sourceDecl
		}
	}
	return nil
}
