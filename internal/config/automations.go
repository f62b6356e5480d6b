package config

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
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
	parts  flowParts
	def    *automation.Definition // the part that is right, or nil
	places map[string]Place       // of the automation's paths, like nodes[2].fields.email
}

var automationTable = table[automationDecl]{
	text("name", func(a *automationDecl) *string { return &a.Name }).when(inExport).needed("snake_case"),
	{
		key: "trigger", kind: ChoiceMember, values: []string{trigger}, required: true, doc: "what starts it", show: inExport,
		read: func(d *decoder, _ *automationDecl, v *Value) { d.oneOf(v, trigger) },
		tell: func(*automationDecl, func(string) string) *Value { return str(trigger) },
	},
	declared("input_schema", func(a *automationDecl) *[]inputs.Declaration { return &a.parts.InputSchema }).says("what it takes"),
	declared("outputs", func(a *automationDecl) *[]inputs.Declaration { return &a.parts.Outputs }).says("what it returns"),
	choice("on_skip", func(a *automationDecl) *string { return &a.parts.OnSkip }, automation.OnSkip...).when(sparse).
		says("what happens when a node cannot read what it needs: it is skipped, or the run fails"),
	contextOf(func(a *automationDecl) *custom.Context { return &a.Context }),
	{
		key: "nodes", kind: JSONMember, required: true, doc: "the flow",
		read: func(d *decoder, a *automationDecl, v *Value) { a.parts.Nodes = d.json(v, "nodes", a.places) },
		tell: func(a *automationDecl, _ func(string) string) *Value {
			return &Value{Kind: JSON, JSON: slices.Clone(a.parts.Nodes)}
		},
	},
}

func newAutomation() *automationDecl {
	return &automationDecl{
		Automation: custom.Automation{Context: custom.Context{Kind: custom.Caller}}, places: map[string]Place{},
		parts: flowParts{InputSchema: []inputs.Declaration{}, Outputs: []inputs.Declaration{}},
	}
}

func (d *decoder) automations(m *Spec, key string, n *Value) {
	d.list(n, "a list of automations", func(_ int, item *Value) {
		a := newAutomation()
		a.places[""] = item.Place
		before := len(d.List)
		given := automationTable.read(d, item, "an automation", a)
		if !d.named(item, "an automation", given, a.Name) || !d.identified(m, item, subject{key, a.Name, "automation"}) {
			return
		}
		if context := given["execution_context"]; context != nil {
			m.mark(context, key, a.Name, "execution_context")
		}
		if given["trigger"] == nil {
			d.fail(item, "automation %s needs trigger: %s", a.Name, trigger)
		}
		if given["nodes"] == nil {
			d.fail(item, "automation %s needs nodes", a.Name)
		}
		var wrong []string
		for _, key := range []string{"input_schema", "outputs", "nodes"} {
			if n := given[key]; n != nil && slices.ContainsFunc(d.List[before:], func(one Problem) bool { return leads(one.Path, n.Place) }) {
				wrong = append(wrong, key)
			}
		}
		if given["nodes"] != nil && !slices.Contains(wrong, "nodes") {
			a.decode(d.Problems, wrong)
		}
		m.automations = append(m.automations, a)
	})
}

// flowParts is a flow's definition, member by member.
type flowParts struct {
	Name        string               `json:"name"`
	InputSchema []inputs.Declaration `json:"input_schema"`
	Outputs     []inputs.Declaration `json:"outputs"`
	OnSkip      string               `json:"on_skip,omitempty"`
	Nodes       jsontext.Value       `json:"nodes"`
}

// leads reports whether a path is that of a value or leads into it.
func leads(path string, value Place) bool {
	rest, ok := strings.CutPrefix(path, value.Path)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// decode makes the flow of its parts, or as much of it as is right. wrong are the
// declarations whose problems are noted.
func (a *automationDecl) decode(p *Problems, wrong []string) {
	parts := a.parts
	parts.Name = a.Name
	if slices.Contains(wrong, "input_schema") {
		parts.InputSchema = nil
	}
	if slices.Contains(wrong, "outputs") {
		parts.Outputs = nil
	}
	text, err := json.Marshal(parts, json.OmitZeroStructFields(true)) // required: false is as good as left out
	if err != nil {
		p.add(a.places["nodes"], "automation %s: nodes: %s", a.Name, err)
		return
	}
	def, problems := automation.DecodePartly(jsontext.Value(text), wrong...)
	a.note(p, problems)
	if a.def = def; len(problems) == 0 && len(wrong) == 0 {
		a.Flow = def.JSON()
	}
}

// note passes problems on, each at the line of the nearest thing on its path.
func (a *automationDecl) note(p *Problems, problems automation.Problems) {
	for _, one := range problems {
		at := one.Path
		for a.places[at] == (Place{}) {
			at = at[:max(strings.LastIndexAny(at, ".["), 0)]
		}
		where := ""
		if one.Path != "" {
			where = printable(one.Path) + ": "
		}
		p.add(a.places[at], "automation %s: %s%s", a.Name, where, one.Text)
	}
}

func mergeAutomations(p *plan) {
	for _, a := range p.m.automations {
		p.after.automations[a.Name] = &a.Automation
	}
	drop(p, "automations", p.before.automations, p.after.automations)
}

func checkAutomations(p *plan) {
	names := p.after.names(p.schema)
	for _, a := range p.m.automations {
		was := p.before.automations[a.Name]
		if was == nil {
			was = &custom.Automation{}
		}
		p.checkContext(subject{"automations", a.Name, "automation"}, a.Context, was.Context)
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
	return FlowNames(sc, func(name string) *custom.Component { return s.components[name] })
}

// checkStoredFlow finds what a stored automation, which the manifest does not
// name, needs and would lose.
func (p *plan) checkStoredFlow(a *custom.Automation, before, after automation.Names) {
	def, problems := automation.Decode(a.Flow)
	if def == nil {
		p.add(Place{}, "the stored automation %s cannot be read: %s: %s", a.Name, problems[0].Path, problems[0].Text)
		return
	}
	const needs = " %s: automation %s needs it"
	// stays asks that a field goes on being what it was.
	stays := func(was, is func(entity, field string) bool, what, does string) func(entity, field string) bool {
		return func(entity, field string) bool {
			switch {
			case !before.Entity(entity) || !was(entity, field) || is(entity, field):
			case after.Field(entity, field):
				p.add(p.placeOfField(entity, field), "field %s of %s must stay %s: automation %s %s by it", field, entity, what, a.Name, does)
			default:
				p.add(p.placeOfField(entity, ""), "field %s of %s"+needs, field, entity, p.cannotGo(entity, field), a.Name)
			}
			return true
		}
	}
	_, _ = automation.Compile(def, automation.Names{ // what it says was said when the automation was stored
		Entity: func(entity string) bool {
			lost := !after.Entity(entity)
			if lost && before.Entity(entity) {
				p.add(p.m.place("entities"), "entity %s"+needs, entity, p.cannotGo(entity, ""), a.Name)
			}
			return !lost
		},
		Field: func(entity, field string) bool {
			if before.Entity(entity) && before.Field(entity, field) && !after.Field(entity, field) {
				p.add(p.placeOfField(entity, ""), "field %s of %s"+needs, field, entity, p.cannotGo(entity, field), a.Name)
			}
			return true
		},
		Member: func(entity, name string) (automation.Holds, bool) {
			if _, had := before.Member(entity, name); had {
				if _, has := after.Member(entity, name); !has {
					p.add(p.placeOfField(entity, ""), "field %s of %s"+needs, name, entity, p.cannotGo(entity, name), a.Name)
				}
			}
			return automation.HoldsAnything, true
		},
		Members: after.Members,
		Filter:  stays(before.Filter, after.Filter, "indexed or unique", "filters"),
		Unique:  stays(before.Unique, after.Unique, "unique", "upserts"),
		Component: func(name string) bool {
			if before.Component(name) && !after.Component(name) {
				p.add(p.m.place("logic_components"), "logic component %s"+needs, name, "cannot be removed", a.Name)
			}
			return true
		},
	})
}

// placeOfField is where the configuration says which fields an entity has.
func (p *plan) placeOfField(entity, field string) Place {
	if entity == schema.UserEntity {
		return p.m.place("user_fields", "field", field)
	}
	return p.m.place("entities", entity, "field", field)
}

// partsOf takes a stored flow apart. It was checked when it was stored; of a
// plan that ends in problems it may be nothing.
func partsOf(text jsontext.Value) flowParts {
	var parts flowParts
	if len(text) > 0 {
		if err := json.Unmarshal(text, &parts); err != nil {
			panic("config: a stored flow cannot be read: " + err.Error())
		}
	}
	parts.InputSchema = append([]inputs.Declaration{}, parts.InputSchema...)
	parts.Outputs = append([]inputs.Declaration{}, parts.Outputs...)
	if len(parts.Nodes) == 0 {
		parts.Nodes = jsontext.Value("[]")
	}
	return parts
}

var automationKind = kind{
	name: kindAutomation, section: "automations", id: "name",
	changing: []string{access.ManageEndpoints}, reading: []string{access.ManageEndpoints},
	keys: keysOf(func(s *state) map[string]*custom.Automation { return s.automations }),
	view: func(s, _ *state, key string) any {
		if a := s.automations[key]; a != nil {
			return automationTable.view(&automationDecl{Automation: *a, parts: partsOf(a.Flow)}, nil)
		}
		return nil
	},
	tell: func(s *state, key string) *Value {
		a := s.automations[key]
		return block(automationTable.export(&automationDecl{Automation: *a, parts: partsOf(a.Flow)}, s.email)...)
	},
	write: writeAutomation,
}

func writeAutomation(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteAutomation(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.automations[c.key]
	is.Context.UserID = w.idOf(is.Context.UserID)
	return custom.PutAutomation(w.ctx, w.tx, &is)
}
