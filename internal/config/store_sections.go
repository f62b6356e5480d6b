package config

import (
	"gatehouse/internal/access"
	"gatehouse/internal/clock"
	"gatehouse/internal/custom"
	"gatehouse/internal/records"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// section is one part of a manifest, from its top-level keys to its tables.
type section struct {
	keys   []string
	decode func(d *decoder, m *Spec, key string, n *Value)
	// merge makes p.after say what the manifest says; check finds what cannot
	// be, once every section has merged. Both note problems.
	merge, check func(p *plan)
	// write stores one change of the section's kinds.
	kinds  []string
	write  func(w *writer, c change) error
	export func(s *state) []pair
}

// sections lists them in the order in which they are merged, written and
// exported. Rules come after roles and entities, users after them, and what
// runs as users after those: what they name is merged and written by then.
var sections = []section{
	{settingsKeys, (*decoder).settings, mergeSettings, checkSettings, []string{kindTenant}, writeTenant, exportSettings},
	{
		[]string{"entities", "user_fields"}, (*decoder).entities, mergeEntities, checkEntities,
		[]string{kindEntity, kindUserFields}, writeEntity, exportEntities,
	},
	{[]string{"roles"}, (*decoder).roles, mergeRoles, checkRoles, []string{kindRole}, writeRole, exportRoles},
	{[]string{"permission_sets"}, (*decoder).sets, mergeSets, checkSets, []string{kindSet}, writeSet, exportSets},
	{[]string{"sharing_rules"}, (*decoder).rules, mergeRules, checkRules, []string{kindRule}, writeRule, exportRules},
	{[]string{"users"}, (*decoder).users, mergeUsers, checkUsers, []string{kindUser}, writeUser, exportUsers},
	{
		[]string{"logic_components"}, (*decoder).components, mergeComponents, checkComponents,
		[]string{kindComponent}, writeComponent, exportComponents,
	},
	{
		[]string{"automations"}, (*decoder).automations, mergeAutomations, checkAutomations,
		[]string{kindAutomation}, writeAutomation, exportAutomations,
	},
	{
		[]string{"custom_endpoints"}, (*decoder).endpoints, mergeEndpoints, checkEndpoints,
		[]string{kindEndpoint}, writeEndpoint, exportEndpoints,
	},
	// They are part of the tenant, which settings writes.
	{[]string{"email_templates"}, (*decoder).templates, mergeTemplates, func(*plan) {}, nil, nil, exportTemplates},
}

func writeTenant(w *writer, _ change) error {
	if w.fresh {
		return nil // claim made it
	}
	return w.putTenant()
}

func writeEntity(w *writer, c change) error {
	switch {
	case c.kind == kindUserFields:
		return schema.PutUserFields(w.ctx, w.tx, w.p.after.userFields)
	case c.after == nil:
		return schema.DeleteEntity(w.ctx, w.tx, c.key)
	}
	return schema.PutEntity(w.ctx, w.tx, w.p.after.entities[c.key])
}

func writeRole(w *writer, c change) error {
	if c.after == nil {
		return access.DeleteRole(w.ctx, w.tx, c.key)
	}
	return access.PutRole(w.ctx, w.tx, w.p.after.roles[c.key])
}

func writeSet(w *writer, c change) error {
	if c.after == nil {
		return access.DeletePermissionSet(w.ctx, w.tx, c.key)
	}
	return access.PutPermissionSet(w.ctx, w.tx, w.p.after.sets[c.key])
}

func writeRule(w *writer, c change) error {
	if c.after == nil {
		return access.DeleteRule(w.ctx, w.tx, c.key)
	}
	return access.PutRule(w.ctx, w.tx, w.p.after.rules[c.key])
}

func writeUser(w *writer, c change) error {
	is, was := w.p.after.users[c.key], w.p.before.users[c.key]
	if was == nil {
		tick, err := tenant.Tick(w.ctx, w.tx, w.now)
		if err != nil {
			return err
		}
		is.ID, is.CreatedAt, is.UpdatedAt = clock.NewID(clock.FromMicros(tick)), tick, tick
		return w.located(user.Insert(w.ctx, w.tx, is), "users", c.key)
	}
	is.UpdatedAt = max(w.now, was.UpdatedAt)
	if err := user.Update(w.ctx, w.tx, is); err != nil {
		return w.located(err, "users", c.key)
	}
	if is.Role == was.Role {
		return nil
	}
	w.roles = append(w.roles, records.RoleChange{User: is.ID, From: was.Role, To: is.Role})
	return nil
}

func writeComponent(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteComponent(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.components[c.key]
	is.Context.UserID = w.idOf(is.Context.UserID)
	return custom.PutComponent(w.ctx, w.tx, &is)
}

func writeAutomation(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteAutomation(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.automations[c.key]
	is.Context.UserID = w.idOf(is.Context.UserID)
	return custom.PutAutomation(w.ctx, w.tx, &is)
}

func writeEndpoint(w *writer, c change) error {
	if c.after == nil {
		return custom.DeleteEndpoint(w.ctx, w.tx, c.key)
	}
	is := *w.p.after.endpoints[c.key]
	is.RunAs, is.DefinedBy = w.idOf(is.RunAs), w.idOf(is.DefinedBy)
	return custom.PutEndpoint(w.ctx, w.tx, &is)
}
