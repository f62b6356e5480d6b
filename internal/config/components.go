package config

import (
	"gatehouse/internal/access"
	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
)

// componentDecl is a logic component as the file has it. secrets is nil where the
// stored ones are kept; in it, a secret is nil that keeps its text.
type componentDecl struct {
	custom.Component
	sourceDecl
	secrets map[string]*string
	imports []pair // of a view: what it imports, with a digest of each source
}

var componentTable = table[componentDecl]{
	text("name", func(c *componentDecl) *string { return &c.Name }).when(inExport).needed("snake_case"),
	declared("inputs", func(c *componentDecl) *[]inputs.Declaration { return &c.Inputs }).says("what it takes"),
	declared("outputs", func(c *componentDecl) *[]inputs.Declaration { return &c.Outputs }).says("what it returns; for its readers"),
	contextOf(func(c *componentDecl) *custom.Context { return &c.Context }),
	between("timeout_ms", func(c *componentDecl) *int { return &c.TimeoutMS }, 1, custom.MaxTimeoutMS).says("how long a run may take"),
	{
		key: "config", kind: JSONMember, doc: "a JSON object: the global config", show: sparse,
		read: func(d *decoder, c *componentDecl, v *Value) { c.Config = d.configOf(v) },
		tell: func(c *componentDecl, _ func(string) string) *Value { return jsonOrNull(c.Config) },
	},
	{
		key: "secrets", kind: SecretsMember, doc: "texts by name: the global secrets; kept when absent, and one that is null keeps its text", show: sparse,
		read:   func(d *decoder, c *componentDecl, v *Value) { c.secrets = d.secrets(v) },
		tell:   func(c *componentDecl, _ func(string) string) *Value { return secretNames(c.Secrets) },
		past:   func(c, prev *componentDecl) *Value { return secretStates(c.Secrets, prev) },
		secret: func(c *componentDecl) string { return encoded(c.Secrets) },
	},
	sourceMember(func(c *componentDecl) string { return c.Source }),
	sourceFileMember[componentDecl](),
	{key: "imports", past: func(c, _ *componentDecl) *Value { return block(c.imports...) }, show: inHistory},
}

func newComponent() *componentDecl {
	return &componentDecl{Component: custom.Component{
		Context: custom.Context{Kind: custom.Caller}, TimeoutMS: custom.DefaultTimeoutMS,
		Inputs: []inputs.Declaration{}, Outputs: []inputs.Declaration{},
	}}
}

func (d *decoder) components(m *Spec, key string, n *Value) {
	d.list(n, "a list of logic components", func(_ int, item *Value) {
		c := newComponent()
		given := componentTable.read(d, item, "a logic component", c)
		if !d.named(item, "a logic component", given, c.Name) || !d.identified(m, item, subject{key, c.Name, "logic component"}) {
			return
		}
		if context := given["execution_context"]; context != nil {
			m.mark(context, key, c.Name, "execution_context")
		}
		if secrets := given["secrets"]; secrets != nil {
			m.mark(secrets, key, c.Name, "secrets")
		}
		d.sources(&c.sourceDecl, item, subject{key, c.Name, "logic component"}, given, &c.Source, handlerExpected)
		m.components = append(m.components, c)
	})
}

const handlerExpected = "expected JavaScript with export default function handler(inputs, ctx)"

func mergeComponents(p *plan) {
	for _, decl := range p.m.components {
		c, prev := decl.Component, p.before.components[decl.Name]
		if prev != nil {
			c.Imports = prev.Imports
		}
		c.Secrets = p.sealAll(decl, prev)
		p.after.components[c.Name] = &c
	}
	drop(p, "logic_components", p.before.components, p.after.components)
}

func checkComponents(p *plan) {
	for _, c := range p.m.components {
		was := p.before.components[c.Name]
		if was == nil {
			was = &custom.Component{}
		}
		p.checkContext(subject{"logic_components", c.Name, "logic component"}, c.Context, was.Context)
	}
}

var componentKind = kind{
	name: kindComponent, section: "logic_components", id: "name",
	changing: []string{access.ManageEndpoints}, reading: []string{access.ManageEndpoints},
	keys: keysOf(func(s *state) map[string]*custom.Component { return s.components }),
	view: func(s, prev *state, key string) any {
		c := s.components[key]
		if c == nil {
			return nil
		}
		var was *componentDecl
		if prev != nil && prev.components[key] != nil {
			was = &componentDecl{Component: *prev.components[key]}
		}
		return componentTable.view(&componentDecl{Component: *c, imports: s.digests(c.Imports)}, was)
	},
	secrets: func(s *state, key string) []string {
		return componentTable.secrets(&componentDecl{Component: *s.components[key]})
	},
	tell: func(s *state, key string) *Value {
		return block(componentTable.export(&componentDecl{Component: *s.components[key]}, s.email)...)
	},
	write: writeComponent,
}

func writeComponent(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteComponent(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.components[c.key]
	is.Context.UserID = w.idOf(is.Context.UserID)
	return custom.PutComponent(w.ctx, w.tx, &is)
}
