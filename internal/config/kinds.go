package config

// section is one part of a configuration, from its top-level keys to the checks
// of what they say.
type section struct {
	keys   []string
	decode func(d *decoder, m *Spec, key string, n *Value)
	// merge makes p.after say what the Spec says; check finds what cannot be,
	// once every section has merged. Both note problems.
	merge, check func(p *plan)
	export       func(s *state) []pair
}

// sections lists them in the order in which they are merged and exported. Rules
// come after roles and entities, users after them, and what runs as users after
// those: what they name is merged by then.
var sections = []section{
	{settingsTable.keys(), (*decoder).settings, mergeSettings, checkSettings, exportSettings},
	{[]string{"entities", "user_fields"}, (*decoder).entities, mergeEntities, checkEntities, exportEntities},
	{[]string{"roles"}, (*decoder).roles, mergeRoles, checkRoles, exportRoles},
	{[]string{"permission_sets"}, (*decoder).sets, mergeSets, checkSets, setKind.export},
	{[]string{"sharing_rules"}, (*decoder).rules, mergeRules, checkRules, exportRules},
	{[]string{"users"}, (*decoder).users, mergeUsers, checkUsers, exportUsers},
	{[]string{"logic_components"}, (*decoder).components, mergeComponents, checkComponents, componentKind.export},
	{[]string{"automations"}, (*decoder).automations, mergeAutomations, checkAutomations, automationKind.export},
	{[]string{"custom_endpoints"}, (*decoder).endpoints, mergeEndpoints, checkEndpoints, endpointKind.export},
	{[]string{"email_templates"}, (*decoder).templates, mergeTemplates, func(*plan) {}, exportTemplates},
}

// kind is a kind of object: how to find its objects in a state, show them and
// write them.
type kind struct {
	name string // as the change history has it
	// section is the top-level key of a list of such objects; "" for the tenant.
	section string
	id      string // the member that names an object; "" where none does
	keys    func(s *state) []string
	title   func(s *state, key string) string // how messages name an object; nil is by its key
	// view is an object as the change history has it, nil when there is none;
	// prev is the state before, or nil.
	view func(s, prev *state, key string) any
	// secrets is what is stored of an object's secrets; nil where a kind has none.
	secrets func(s *state, key string) []string
	tell    func(s *state, key string) *Value // as Export has it
	write   func(w *writer, c change) error
}

// kinds lists them in the order in which changes are written and listed: what an
// object names is written before it. E-mail templates are part of the tenant.
var kinds = []kind{
	tenantKind, entityKind, userFieldsKind, roleKind, setKind, ruleKind, userKind, componentKind, automationKind, endpointKind,
}

func (k kind) titled(s *state, key string) string {
	if k.title == nil {
		return key
	}
	return k.title(s, key)
}

// export is a list of all objects of a kind, by key.
func (k kind) export(s *state) []pair {
	var list []*Value
	for _, key := range k.keys(s) {
		list = append(list, k.tell(s, key))
	}
	return []pair{{k.section, rows(list)}}
}

func keysOf[V any](of func(s *state) map[string]V) func(s *state) []string {
	return func(s *state) []string { return sortedKeys(of(s)) }
}
