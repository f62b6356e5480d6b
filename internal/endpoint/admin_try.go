package endpoint

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/schema"
	"gatehouse/internal/tenant"
	"gatehouse/internal/user"
)

// AdminTry asks for a run of a component or an automation that keeps nothing.
type AdminTry struct {
	Target AdminTarget `json:"target"`
	// Draft is what is run in the place of what is stored, as the configuration has
	// it (docs/manifest.md), without its name; null for what is stored.
	Draft json.RawMessage `json:"draft"`
	// Input is the object of the inputs.
	Input json.RawMessage `json:"input"`
	// As is the id or e-mail address of the user it runs as; null for oneself.
	As *string `json:"as"`
	// Event is what the run sees as its webhook event; null for none.
	Event *AdminTryEvent `json:"event"`
}

// AdminTryEvent is the event of a try.
type AdminTryEvent struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
}

// AdminOutcome is the result of a try. Nothing of it was kept.
type AdminOutcome struct {
	// Status is succeeded, failed, or invalid for a draft that could not be saved:
	// then problems say why, and nothing ran.
	Status   string           `json:"status"`
	Problems []AdminProblem   `json:"problems"`
	Result   json.RawMessage  `json:"result"` // null unless succeeded
	Meta     json.RawMessage  `json:"meta"`   // of an automation
	Error    *AdminError      `json:"error"`
	Trace    []AdminStep      `json:"trace"` // null for a component
	Console  []component.Line `json:"console"`
	Used     []AdminMeasure   `json:"used"`
	TookUS   int64            `json:"tookUs"`
	CPUUS    int64            `json:"cpuUs"`
	User     *AdminPerson     `json:"user"` // whom it ran as
}

// invalid is the status of a draft that could not be saved.
const invalid = "invalid"

// targetOf checks the target of a try.
func targetOf(t AdminTarget) (custom.Target, error) {
	target := custom.Target{Kind: custom.TargetKind(t.Kind), Name: t.Name}
	wrong := map[string]string{}
	if target.Kind != custom.ToComponent && target.Kind != custom.ToAutomation {
		wrong["target.kind"] = "expected component or automation"
	}
	if !custom.ValidName(target.Name) {
		wrong["target.name"] = "expected snake_case of at most 63 characters"
	}
	if len(wrong) > 0 {
		return target, fault.Fields("the target cannot be run", wrong)
	}
	return target, nil
}

// adminTry runs a stored target or a draft, and keeps nothing (contract X9).
func (s *Service) adminTry(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	given, err := httpapi.Decode[AdminTry](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	target, err := targetOf(given.Target)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.tries.take("run/"+string(c.Config.Tenant.ID)+"/"+string(c.Session.UserID), triesPerMinute); err != nil {
		return httpapi.Reply{}, err
	}
	t := trial{viewer: c.Viewer, as: c.Viewer, target: target, draft: orAbsent(given.Draft), input: orAbsent(given.Input), requestID: c.RequestID, holder: c}
	if t.input == nil {
		t.input = []byte("{}")
	}
	if given.As != nil {
		if t.as, err = s.runner(ctx, c.Viewer, *given.As); err != nil {
			return httpapi.Reply{}, err
		}
	}
	if given.Event != nil {
		t.event = &event{ID: given.Event.ID, ProviderID: given.Event.ID, Kind: given.Event.Kind}
	}
	out, problems, err := s.try(ctx, t)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if len(problems) > 0 {
		return reply(c, AdminOutcome{Status: invalid, Problems: problems, Console: []component.Line{}, Used: []AdminMeasure{}})
	}
	answer, err := s.outcome(ctx, c.Config.Tenant.ID, target, out)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, answer)
}

// orAbsent returns nil for a member that was not sent or is null.
func orAbsent(text json.RawMessage) []byte {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	return text
}

// outcome returns what a run did.
func (s *Service) outcome(ctx context.Context, tenantID tenant.ID, target custom.Target, out *Outcome) (*AdminOutcome, error) {
	people, err := s.store.people(ctx, tenantID, map[user.ID]bool{out.UserID: true})
	if err != nil {
		return nil, err
	}
	a := &AdminOutcome{
		Status: Succeeded, Problems: []AdminProblem{}, Result: out.Data, Meta: out.Meta, Console: out.Console, TookUS: out.Wall.Microseconds(),
		CPUUS: out.CPU.Microseconds(), Used: out.Used.measures(target.Kind, out.Wall.Microseconds()), User: person(people[out.UserID]),
	}
	if a.Console == nil {
		a.Console = []component.Line{}
	}
	if a.Trace, err = stepsOf(out.Trace); err != nil {
		return nil, err
	}
	if out.Err != nil {
		a.Status = Failed
		a.Error = errorOf(Describe(out.Err))
		a.Error.Status, a.Error.Details = statusOf(out.Err)
	}
	return a, nil
}

// AdminDraft is a draft that is to be checked; see AdminTry.
type AdminDraft struct {
	Target AdminTarget     `json:"target"`
	Draft  json.RawMessage `json:"draft"`
}

// AdminCheck has the problems of a draft, none for one that can be saved.
type AdminCheck struct {
	Problems []AdminProblem `json:"problems"`
}

// adminCheck checks a draft: what does not compile, with line and column, and what
// is wrong in a flow, with the node.
func (s *Service) adminCheck(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	given, err := httpapi.Decode[AdminDraft](c.Call)
	if err != nil {
		return httpapi.Reply{}, err
	}
	target, err := targetOf(given.Target)
	if err != nil {
		return httpapi.Reply{}, err
	}
	if err := s.tries.take("check/"+string(c.Config.Tenant.ID)+"/"+string(c.Session.UserID), checksPerMinute); err != nil {
		return httpapi.Reply{}, err
	}
	leave, err := s.tries.enter(ctx, string(c.Config.Tenant.ID))
	if err != nil {
		return httpapi.Reply{}, err
	}
	defer leave()
	_, problems, err := s.check(ctx, c.Viewer, target, given.Draft)
	if err != nil {
		return httpapi.Reply{}, err
	}
	return reply(c, AdminCheck{Problems: append([]AdminProblem{}, problems...)})
}

// AdminNames has what a draft may name.
type AdminNames struct {
	Entities   []AdminEntity                `json:"entities"`
	Components []AdminComponent             `json:"components"`
	Nodes      []automation.NodeDescription `json:"nodes"`
}

// AdminEntity is an entity type and its fields.
type AdminEntity struct {
	Name   string       `json:"name"`
	Fields []AdminField `json:"fields"`
}

// AdminField is a field of an entity type.
type AdminField struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Required bool     `json:"required"`
	Unique   bool     `json:"unique"`
	Indexed  bool     `json:"indexed"` // where may name it
	Options  []string `json:"options"`
	Target   string   `json:"target"` // the entity type of a reference
}

// AdminComponent is a logic component by its name, with what it declares.
type AdminComponent struct {
	Name    string               `json:"name"`
	Inputs  []inputs.Declaration `json:"inputs"`
	Outputs []inputs.Declaration `json:"outputs"`
}

// adminNames lists what a draft may name: entity types with their fields, logic
// components, and the types of nodes with their members.
func (s *Service) adminNames(ctx context.Context, c *httpapi.Authed) (httpapi.Reply, error) {
	catalog, err := s.catalog(ctx, c.Config)
	if err != nil {
		return httpapi.Reply{}, err
	}
	names := AdminNames{Entities: []AdminEntity{entityOf(c.Config.Schema.User)}, Components: []AdminComponent{}, Nodes: automation.Describe()}
	for _, e := range c.Config.Schema.Entities {
		names.Entities = append(names.Entities, entityOf(e))
	}
	for _, name := range slices.Sorted(maps.Keys(catalog.Components)) {
		declared := catalog.Components[name]
		names.Components = append(names.Components, AdminComponent{
			name, append([]inputs.Declaration{}, declared.Inputs...), append([]inputs.Declaration{}, declared.Outputs...),
		})
	}
	return reply(c, names)
}

func entityOf(e *schema.Entity) AdminEntity {
	made := AdminEntity{Name: e.Name, Fields: []AdminField{}}
	if e.Name == schema.UserEntity { // what a flow may name of users besides custom fields
		made.Fields = append(made.Fields, AdminField{Name: "name", Type: "text", Options: []string{}}, AdminField{Name: "locale", Type: "text", Options: []string{}})
	}
	for _, f := range e.Fields {
		made.Fields = append(made.Fields, AdminField{
			Name: f.Name, Type: string(f.Type), Required: f.Required, Unique: f.Unique, Indexed: f.Filterable() && f.Scalar(),
			Options: append([]string{}, f.Options...), Target: f.Target,
		})
	}
	return made
}
