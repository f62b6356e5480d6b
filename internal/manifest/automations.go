package manifest

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"gatehouse/internal/automation"
	"gatehouse/internal/custom"
	"gatehouse/internal/inputs"
	"gatehouse/internal/schema"
)

// trigger is the only one there is.
const trigger = "http.request"

// automationDecl is an automation as the file has it.
type automationDecl struct {
	custom.Automation
	def   *automation.Definition // nil when it is not right
	lines map[string]int         // of the automation's paths, like nodes[2].fields.email
}

func (d *decoder) automations(m *manifest, key string, n *yaml.Node) {
	d.list(n, "a list of automations", func(_ int, item *yaml.Node) {
		a := &automationDecl{Automation: custom.Automation{Context: custom.Context{Kind: custom.Caller}}, lines: map[string]int{"": item.Line}}
		var context, nodes *yaml.Node
		parts, before := flowParts{InputSchema: []inputs.Declaration{}, Outputs: []inputs.Declaration{}}, len(d.List)
		given := d.object(item, "an automation",
			member{"name", d.to(&a.Name)},
			member{"trigger", func(v *yaml.Node) { d.oneOf(v, trigger) }},
			member{"input_schema", func(v *yaml.Node) { parts.InputSchema = d.declarations(v) }},
			member{"outputs", func(v *yaml.Node) { parts.Outputs = d.declarations(v) }},
			member{"execution_context", func(v *yaml.Node) { context, a.Context = v, d.context(v) }},
			member{"nodes", func(v *yaml.Node) { nodes = v; parts.Nodes = d.json(v, "nodes", a.lines) }})
		if !d.named(item, "an automation", given, a.Name) || !d.identified(m, item, "automation", key, a.Name) {
			return
		}
		if context != nil {
			m.mark(context, key, a.Name, "execution_context")
		}
		if !given["trigger"] {
			d.fail(item, "automation %s needs trigger: %s", a.Name, trigger)
		}
		if nodes == nil {
			d.fail(item, "automation %s needs nodes", a.Name)
		}
		if len(d.List) == before {
			a.decode(d.Problems, parts)
		}
		m.automations = append(m.automations, a)
	})
}

// flowParts is a flow's definition, member by member.
type flowParts struct {
	Name        string               `json:"name"`
	InputSchema []inputs.Declaration `json:"input_schema"`
	Outputs     []inputs.Declaration `json:"outputs"`
	Nodes       jsontext.Value       `json:"nodes"`
}

// decode makes the flow of its parts.
func (a *automationDecl) decode(p *Problems, parts flowParts) {
	parts.Name = a.Name
	text, err := json.Marshal(parts, json.OmitZeroStructFields(true)) // required: false is as good as left out
	if err != nil {
		p.add(a.lines["nodes"], "automation %s: nodes: %s", a.Name, err)
		return
	}
	def, problems := automation.Decode(jsontext.Value(text))
	if def == nil {
		a.note(p, problems)
		return
	}
	a.def, a.Flow = def, def.JSON()
}

// note passes problems on, each at the line of the nearest thing on its path.
func (a *automationDecl) note(p *Problems, problems automation.Problems) {
	for _, one := range problems {
		at := one.Path
		for a.lines[at] == 0 {
			at = at[:max(strings.LastIndexAny(at, ".["), 0)]
		}
		where := ""
		if one.Path != "" {
			where = printable(one.Path) + ": "
		}
		p.add(a.lines[at], "automation %s: %s%s", a.Name, where, one.Text)
	}
}

func mergeAutomations(p *plan) {
	for _, a := range p.m.automations {
		p.after.automations[a.Name] = &a.Automation
	}
	if p.prunes("automations") {
		for name := range p.before.automations {
			if !p.m.names("automations", name) {
				delete(p.after.automations, name)
			}
		}
	}
}

func checkAutomations(p *plan) {
	names := p.after.names(p.schema)
	for _, a := range p.m.automations {
		p.checkContext("automation", "automations", a.Name, a.Context)
		if a.def != nil {
			_, problems := automation.Compile(a.def, names)
			a.note(p.Problems, problems)
		}
	}
	if !p.m.has("entities") && !p.m.has("user_fields") && !p.m.has("logic_components") {
		return
	}
	before := p.before.names(p.before.schema())
	for _, name := range sortedKeys(p.after.automations) {
		if !p.m.names("automations", name) {
			p.checkStoredFlow(p.after.automations[name], before, names)
		}
	}
}

// names says which names flows may use in a state that has the schema.
func (s *state) names(sc *schema.Schema) automation.Names {
	field := func(entity, name string) *schema.Field {
		if entity == schema.UserEntity {
			return sc.User.Field(name)
		}
		return sc.Entity(entity).Field(name)
	}
	return automation.Names{
		Entity: func(entity string) bool { return entity == schema.UserEntity || sc.Entity(entity) != nil },
		Field: func(entity, name string) bool {
			if field(entity, name) != nil {
				return true
			}
			if entity == schema.UserEntity {
				return name == "name" || name == "locale"
			}
			return name == "owner_id"
		},
		Filter: func(entity, name string) bool {
			if entity == schema.UserEntity {
				return name == "email"
			}
			f := field(entity, name)
			return f != nil && f.Filterable() && f.Scalar()
		},
		Component: func(name string) bool { return s.components[name] != nil },
	}
}

// checkStoredFlow finds what a stored automation, which the manifest does not
// name, needs and would lose.
func (p *plan) checkStoredFlow(a *custom.Automation, before, after automation.Names) {
	def, problems := automation.Decode(a.Flow)
	if def == nil {
		p.add(1, "the stored automation %s cannot be read: %s: %s", a.Name, problems[0].Path, problems[0].Text)
		return
	}
	const needs = " %s: automation %s needs it"
	_, _ = automation.Compile(def, automation.Names{ // what it says was said when the automation was stored
		Entity: func(entity string) bool {
			lost := !after.Entity(entity)
			if lost && before.Entity(entity) {
				p.add(p.m.line("entities"), "entity %s"+needs, entity, p.cannotGo(entity, ""), a.Name)
			}
			return !lost
		},
		Field: func(entity, field string) bool {
			if before.Entity(entity) && before.Field(entity, field) && !after.Field(entity, field) {
				p.add(p.lineOfField(entity, ""), "field %s of %s"+needs, field, entity, p.cannotGo(entity, field), a.Name)
			}
			return true
		},
		Filter: func(entity, field string) bool {
			switch {
			case !before.Entity(entity) || !before.Filter(entity, field) || after.Filter(entity, field):
			case after.Field(entity, field):
				p.add(p.lineOfField(entity, field), "field %s of %s must stay indexed or unique: automation %s filters by it", field, entity, a.Name)
			default:
				p.add(p.lineOfField(entity, ""), "field %s of %s"+needs, field, entity, p.cannotGo(entity, field), a.Name)
			}
			return true
		},
		Component: func(name string) bool {
			if before.Component(name) && !after.Component(name) {
				p.add(p.m.line("logic_components"), "logic component %s"+needs, name, "cannot be removed", a.Name)
			}
			return true
		},
	})
}

// lineOfField is where the manifest says which fields an entity has.
func (p *plan) lineOfField(entity, field string) int {
	if entity == schema.UserEntity {
		return p.m.line("user_fields", "field", field)
	}
	return p.m.line("entities", entity, "field", field)
}

// automationView is an automation in the change history.
type automationView struct {
	InputSchema []inputs.Declaration `json:"input_schema"`
	Outputs     []inputs.Declaration `json:"outputs"`
	Context     any                  `json:"execution_context"`
	Nodes       jsontext.Value       `json:"nodes"`
}

func viewAutomation(a *custom.Automation) any {
	if a == nil {
		return nil
	}
	parts := partsOf(a.Flow)
	return automationView{parts.InputSchema, parts.Outputs, viewContext(a.Context), parts.Nodes}
}

// partsOf takes a stored flow apart. It was checked when it was stored; of a
// plan that ends in problems it may be nothing.
func partsOf(text jsontext.Value) flowParts {
	var parts flowParts
	if len(text) > 0 {
		if err := json.Unmarshal(text, &parts); err != nil {
			panic("manifest: a stored flow cannot be read: " + err.Error())
		}
	}
	parts.InputSchema = append([]inputs.Declaration{}, parts.InputSchema...)
	parts.Outputs = append([]inputs.Declaration{}, parts.Outputs...)
	if len(parts.Nodes) == 0 {
		parts.Nodes = jsontext.Value("[]")
	}
	return parts
}

func exportAutomations(s *state) []pair {
	var list []*yaml.Node
	for _, name := range sortedKeys(s.automations) {
		a := s.automations[name]
		parts := partsOf(a.Flow)
		list = append(list, block(
			pair{"name", str(name)},
			pair{"trigger", str(trigger)},
			pair{"input_schema", exportDeclarations(parts.InputSchema)},
			pair{"outputs", exportDeclarations(parts.Outputs)},
			pair{"execution_context", s.exportContext(a.Context)},
			pair{"nodes", fromJSON(slices.Clone(parts.Nodes))}))
	}
	return []pair{{"automations", rows(list)}}
}
