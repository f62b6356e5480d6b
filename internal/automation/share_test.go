package automation_test

import (
	"testing"

	"gatehouse/internal/fault"
)

func TestShareNodes(t *testing.T) {
	s := flow(t, `
- {id: shared, type: record.share, entity: contact, record_id: "7", user: "{{inputs.email}}", access: read}
- {type: record.unshare, entity: contact, record_id: "7", role: sales}
- {type: output, set: {a: "{{shared.user}}"}}`)
	s.gives(`{"email":"e@x"}`, `{"a":"u-1","b":null}`, 3)
	s.called(`share contact 7 {} {} 0 e@x  read`, `unshare contact 7 {} {} 0  sales `)
	s = flow(t, `
- {id: shared, type: record.share, entity: contact, record_id: "7", user: "{{inputs.note}}", access: edit}`)
	s.fails(`{"email":"e"}`, 422, fault.ExecutionError, "shared: expected the id or e-mail address of a user, found null")
}

func TestShareNodesAreChecked(t *testing.T) {
	for nodes, want := range map[string]string{
		`- {type: record.share, entity: contact, record_id: "7", access: read}`:                       "nodes[0]: record.share: expected one of user and role",
		`- {type: record.share, entity: contact, record_id: "7", user: a, role: b, access: read}`:     "nodes[0]: record.share: expected one of user and role",
		`- {type: record.share, entity: contact, record_id: "7", role: b}`:                            "nodes[0].access: record.share needs access: expected text",
		`- {type: record.share, entity: contact, record_id: "7", role: b, access: none}`:              `nodes[0].access: expected read or edit, found "none"`,
		`- {type: record.unshare, entity: contact, record_id: "7", role: b, access: read}`:            "nodes[0].access: unknown member of record.unshare: expected id, type, on_skip, entity, record_id, user or role",
		`- {type: record.share, entity: contact, record_id: "7", role: "{{inputs.x}}", access: read}`: `nodes[0].role: there is no input "x" in input_schema: expected email, score, vip, data or note`,
	} {
		if _, found := problems(t, nodes); found.Error() != want {
			t.Errorf("%s\n%v\nwant %s", nodes, found, want)
		}
	}
}
