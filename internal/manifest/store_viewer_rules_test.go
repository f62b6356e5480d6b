package manifest_test

import (
	"strings"
	"testing"

	"gatehouse/internal/manifest"
)

// portals has rules that match the viewer, and users with managed fields.
const portals = `tenant: portals
hosts: [portals.localhost]
entities:
  - {name: firm, fields: [{name: name, type: text}]}
  - name: order
    fields:
      - {name: firm, type: reference, entity: firm}
      - {name: region, type: text, indexed: true}
      - {name: mail, type: text, unique: true}
      - {name: agent, type: reference, entity: user}
user_fields:
  - {name: nick, type: text}
  - {name: region, type: select, options: [north, south], managed: true}
  - {name: firms, type: multireference, entity: firm, managed: true}
roles: [{name: sales}]
permission_sets: [{name: shop, entities: {order: {create: true, read: true, assign_owner: true}}}]
sharing_rules:
  - {entity: order, where: {firm: "{{user.firms}}", region: "{{user.region}}"}, share_with: external, access: read}
  - {entity: order, where: {mail: "{{user.email}}"}, share_with: everyone, access: edit}
  - {entity: order, where: {agent: "{{user.id}}", region: north}, share_with_role: sales, access: read}
users:
  - {email: olivia@x.example, owner: true}
  - {email: eva@x.example, type: external, managed: {region: north}}
`

// TestRulesThatMatchTheViewerInAManifest: what export writes is what was applied, and
// what would break a rule is refused.
func TestRulesThatMatchTheViewerInAManifest(t *testing.T) {
	each(t, func(p *place) {
		p.apply(portals)
		exported := p.export("portals")
		for _, line := range []string{
			`{entity: order, where: {mail: "{{user.email}}"}, share_with: everyone, access: edit}`,
			`{entity: order, where: {firm: "{{user.firms}}", region: "{{user.region}}"}, share_with: external, access: read}`,
			`{entity: order, where: {agent: "{{user.id}}", region: north}, share_with_role: sales, access: read}`,
			`{name: firms, type: multireference, entity: firm, managed: true}`,
			`assign_owner: true`, `managed: {region: north}`,
		} {
			if !strings.Contains(exported, line) {
				t.Errorf("the export lacks %s:\n%s", line, exported)
			}
		}
		p.printed(p.apply(exported))
		for change, told := range map[string]string{
			`{name: region, type: select, options: [north, south], managed: true}`: "field region of user_fields cannot be removed: sharing rule order where firm={{user.firms}}, region={{user.region}} → external users needs it",
			`, options: [north, south], managed: true`:                             "is not managed",
			`region, type: text, indexed: true`:                                    "field region must be a reference, indexed or unique",
			`region, type: text,`:                                                  "they cannot be equal",
			`agent, type: reference, entity: user`:                                 "{{user.id}} is compared with a reference to user",
			`mail, type: text`:                                                     "{{user.email}} is compared with text",
			`[{name: sales}]`:                                                      "role sales cannot be removed: sharing rule order where agent={{user.id}}, region=north → sales needs it",
		} {
			to := map[string]string{
				`, options: [north, south], managed: true`: `, options: [north, south]`, `region, type: text, indexed: true`: `region, type: text`, `region, type: text,`: `region, type: number,`,
				`agent, type: reference, entity: user`: `agent, type: reference, entity: firm`, `mail, type: text`: `mail, type: number`, `[{name: sales}]`: `[]`,
			}[change]
			src := strings.Replace(portals, change, to, 1)
			head, rest, _ := strings.Cut(src, "sharing_rules:\n")
			_, rest, _ = strings.Cut(rest, "users:\n")
			src = head + "users:\n" + rest // the stored rules stay
			src = strings.Replace(src, ", managed: {region: north}", "", 1)
			_, err := p.try(src, manifest.Options{Prune: true})
			if err == nil || !strings.Contains(err.Error(), told) {
				t.Errorf("%s → %q: %v", change, to, err)
			}
		}
		if is := p.export("portals"); is != exported {
			t.Errorf("a refused change changed something: %s", is)
		}

		// Renames: the rules are written with the new names, and take the places of the
		// old ones.
		renamed := strings.NewReplacer(
			"{name: region, type: text", "{name: place, renamed_from: region, type: text", "{name: region, type: select", "{name: zone, renamed_from: region, type: select",
			`region: "{{user.region}}"`, `place: "{{user.zone}}"`, "region: north}, share", "place: north}, share", "managed: {region: north}", "managed: {zone: south}",
		).Replace(portals)
		p.apply(renamed)
		if is := p.export("portals"); strings.Count(is, "{entity: order, ") != 3 || !strings.Contains(is, "managed: {zone: south}") || strings.Contains(is, "user.region") {
			t.Errorf("after renames: %s", is)
		}
		p.apply("tenant: portals\nusers: [{email: eva@x.example, type: external, managed: {zone: null}}]\n")
		if is := p.export("portals"); strings.Contains(is, "zone: south") {
			t.Errorf("null clears nothing: %s", is)
		}

		// activation_mode none lets anybody have any address.
		res, err := p.try("tenant: portals\nexternal_identity: {enabled: true, activation_mode: none}\n", manifest.Options{DryRun: true})
		if err != nil || len(res.Warnings) == 0 || !strings.Contains(strings.Join(res.Warnings, " "), "may give any e-mail address") {
			t.Errorf("%v, warned %v", err, res)
		}
	})
}

// TestWhoLosesByRulesThatMatchThem: a dry run names who may do less.
func TestWhoLosesByRulesThatMatchThem(t *testing.T) {
	each(t, func(p *place) {
		src := strings.Replace(portals, "create: true, read: true, assign_owner: true", "create: true, read: true", 1)
		src = strings.Replace(src, "managed: {region: north}}", "permission_sets: [shop], managed: {region: north}}\n  - {email: emil@x.example, type: external, permission_sets: [shop]}", 1)
		src = strings.Replace(src, `firm: "{{user.firms}}", region: "{{user.region}}"`, `region: "{{user.region}}"`, 1)
		src = strings.Replace(src, `  - {entity: order, where: {mail: "{{user.email}}"}, share_with: everyone, access: edit}`+"\n", "", 1)
		p.apply(src)
		rule := `  - {entity: order, where: {region: "{{user.region}}"}, share_with: external, access: read}` + "\n"
		for what, change := range map[string]string{
			"the rule":       strings.Replace(src, rule, "", 1),
			"the field":      strings.Replace(src, "managed: {region: north}", "managed: {region: south}", 1),
			"another reader": strings.Replace(src, rule, strings.Replace(rule, "external", "internal", 1), 1),
		} {
			res, err := p.try(change, manifest.Options{DryRun: true, Prune: true})
			if err != nil || res.Effect.Losing.Count != 1 || res.Effect.Losing.Names[0] != "eva@x.example" {
				t.Errorf("%s: %v, %+v", what, err, res)
			}
		}
	})
}

// TestRulesOnTheRecordItself: id stands for the record, and is compared with fields of
// the viewer that refer to such records, and with nothing else.
func TestRulesOnTheRecordItself(t *testing.T) {
	each(t, func(p *place) {
		const rule = `{entity: firm, where: {id: "{{user.firms}}"}, share_with: external, access: read}`
		src := strings.Replace(portals, "sharing_rules:\n", "sharing_rules:\n  - "+rule+"\n", 1)
		p.apply(src)
		exported := p.export("portals")
		if !strings.Contains(exported, "  - "+rule+"\n") {
			t.Fatalf("the export lacks %s:\n%s", rule, exported)
		}
		p.printed(p.apply(exported))
		p.apply(strings.NewReplacer("{name: firm, fields", "{name: company, renamed_from: firm, fields", "entity: firm", "entity: company").Replace(src))
		if is := p.export("portals"); strings.Count(is, strings.Replace(rule, "firm,", "company,", 1)) != 1 || strings.Contains(is, rule) {
			t.Errorf("after the entity was renamed: %s", is)
		}
		for where, told := range map[string]string{
			`{id: "019a0000-0000-7000-8000-000000000000"}`:       "id is compared with the viewer alone",
			`{id: "{{user.id}}"}`:                                "field id is a reference to order: {{user.id}} is compared with a reference to user",
			`{id: "{{user.email}}"}`:                             "{{user.email}} is compared with text",
			`{id: "{{user.firms}}"}`:                             "field id is a reference to order, and {{user.firms}} a multireference to company: they cannot be equal",
			`{id: "{{user.nick}}"}`:                              "is not managed",
			`{owner_id: "{{user.id}}"}`:                          `entity order has no field "owner_id"`,
			`{id: "{{user.region}}", region: "{{user.region}}"}`: "they cannot be equal",
		} {
			_, err := p.try("tenant: portals\nsharing_rules:\n  - {entity: order, where: "+where+", share_with: external, access: read}\n", manifest.Options{})
			if err == nil || !strings.Contains(err.Error(), told) {
				t.Errorf("%s: %v", where, err)
			}
		}
		// What the rule needs cannot go.
		_, err := p.try("tenant: portals\nuser_fields: [{name: firms, type: multiselect, options: [a], managed: true}]\n", manifest.Options{})
		if err == nil || !strings.Contains(err.Error(), "they cannot be equal") {
			t.Errorf("a field of another type: %v", err)
		}
	})
}

// families has entities that parents control, to the greatest depth.
const families = `tenant: families
hosts: [families.localhost]
entities:
  - {name: l0, sharing: public_read, fields: [{name: name, type: text}]}
  - {name: l1, sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l0, required: true}]}
  - {name: l2, sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l1, required: true}, {name: name, type: text}]}
  - {name: l3, sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l2, required: true, indexed: true}]}
  - {name: l4, sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l3, required: true}]}
  - {name: l5, sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l4, required: true, unique: true}]}
sharing_rules:
  - {entity: l0, where: {name: open}, share_with: everyone, access: read}
users: [{email: olivia@x.example, owner: true}]
`

// TestControlledEntitiesInAManifest: what export writes is what was applied, to the
// greatest depth, a rename of the field included; and what would break it is
// refused.
func TestControlledEntitiesInAManifest(t *testing.T) {
	each(t, func(p *place) {
		p.apply(families)
		exported := p.export("families")
		if n := strings.Count(exported, "sharing: {controlled_by: up}"); n != 5 {
			t.Errorf("the export names %d controlled entities:\n%s", n, exported)
		}
		for _, src := range []string{families, exported} {
			p.printed(p.apply(src))
			if is := p.export("families"); is != exported {
				t.Errorf("exported, applied and exported: %s", is)
			}
		}
		for _, c := range []struct{ from, to, told string }{
			{"sharing: public_read,", "sharing: {controlled_by: top},", "there is no field \"top\""},
			{"entity: l2, required: true", "entity: l2", "field up is not required"},
			{"entity: l2, required: true", "entity: l5, required: true", "leads back to"},
			{"sharing: {controlled_by: up}, fields: [{name: up, type: reference, entity: l0", "sharing: {controlled_by: name}, fields: [{name: name, type: text}, {name: up, type: reference, entity: l0",
				"field name is a text: expected a reference to an entity"},
			{"{entity: l0, where", "{entity: l2, where", "records of l2 are reached as the record of field up may be: share that entity instead"},
		} {
			src := strings.Replace(families, c.from, c.to, 1)
			if _, err := p.try(src, manifest.Options{}); src == families || err == nil || !strings.Contains(err.Error(), c.told) {
				t.Errorf("%s: %v, want %q", c.to, err, c.told)
			}
		}
		renamed := strings.Replace(families, "{name: l3, sharing: {controlled_by: up}, fields: [{name: up,", "{name: l3, sharing: {controlled_by: above}, fields: [{name: above, renamed_from: up,", 1)
		p.apply(renamed)
		if is := p.export("families"); strings.Count(is, "{controlled_by: above}") != 1 || strings.Count(is, "{controlled_by: up}") != 4 {
			t.Errorf("after a rename: %s", is)
		}
		p.printed(p.apply(p.export("families")))
	})
}
