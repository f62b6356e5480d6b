package config

// section is one part of a configuration: its top-level keys and how they are
// decoded, merged, checked and exported.
type section struct {
	keys   []string
	decode func(d *decoder, m *Spec, key string, n *Value)
	// merge puts what the Spec has into p.after; check runs once every section has
	// merged. Both add problems.
	merge, check func(p *plan)
	export       func(s *state) []pair
}

// sections lists them in the order in which they are merged and exported: a section
// comes after those whose objects it names.
var sections = []section{
	{settingsTable.keys(), (*decoder).settings, mergeSettings, checkSettings, exportSettings},
	{[]string{"entities", "user_fields"}, (*decoder).entities, mergeEntities, checkEntities, exportEntities},
	{[]string{"roles"}, (*decoder).roles, mergeRoles, checkRoles, exportRoles},
	{[]string{"permission_sets"}, (*decoder).sets, mergeSets, checkSets, setKind.export},
	{[]string{"sharing_rules"}, (*decoder).rules, mergeRules, checkRules, exportRules},
	{[]string{"users"}, (*decoder).users, mergeUsers, checkUsers, exportUsers},
	{[]string{"modules"}, (*decoder).modules, mergeModules, func(*plan) {}, moduleKind.export},
	{[]string{"logic_components"}, (*decoder).components, mergeComponents, checkComponents, componentKind.export},
	{[]string{"automations"}, (*decoder).automations, mergeAutomations, checkAutomations, automationKind.export},
	{[]string{"custom_endpoints"}, (*decoder).endpoints, mergeEndpoints, checkEndpoints, endpointKind.export},
	{[]string{"email_templates"}, (*decoder).templates, mergeTemplates, checkTemplates, exportTemplates},
}

// kind is a kind of object: how its objects are found in a state, shown and written.
type kind struct {
	name string // in the change history
	// section is the top-level key of a list of such objects; "" for the tenant.
	section string
	id      string // the member that names an object; "" where none does
	keys    func(s *state) []string
	title   func(s *state, key string) string // how messages name an object; nil is by its key
	// view returns an object as the change history keeps it, nil when there is
	// none; prev is the state before, or nil.
	view func(s, prev *state, key string) any
	// secrets is what is stored of an object's secrets; nil where a kind has none.
	secrets func(s *state, key string) []string
	tell    func(s *state, key string) *Value // as Export has it
	write   func(w *writer, c change) error
	// changing are the system permissions one of which a change of such an object
	// needs, reading those one of which lets read it.
	changing, reading []string
}

// kinds lists them in the order in which changes are written and listed: an object
// is written after those that it names. E-mail templates are part of the tenant.
var kinds = []kind{
	tenantKind, entityKind, userFieldsKind, roleKind, setKind, ruleKind, userKind, moduleKind, componentKind, automationKind, endpointKind,
}

func (k kind) titled(s *state, key string) string {
	if k.title == nil {
		return key
	}
	return k.title(s, key)
}

// export returns all objects of the kind, by key.
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
