package endpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatehouse/internal/access"
	"gatehouse/internal/automation"
	"gatehouse/internal/component"
	"gatehouse/internal/config"
	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
	"gatehouse/internal/httpapi"
	"gatehouse/internal/inputs"
	"gatehouse/internal/user"
)

// draft is a component or an automation that is not saved, ready to run. One of
// component and flow is set.
type draft struct {
	component *custom.Component
	program   *component.Program
	flow      *flow
}

// over returns a catalog in which the draft stands in the place of what has its
// name.
func (d *draft) over(c *catalog) *catalog {
	made := &catalog{Definitions: &custom.Definitions{Modules: c.Modules, Components: c.Components, Automations: c.Automations, Endpoints: c.Endpoints}, flows: c.flows}
	if d.component != nil {
		made.Components = maps.Clone(c.Components)
		made.Components[d.component.Name] = d.component
		return made
	}
	made.flows = maps.Clone(c.flows)
	made.flows[d.flow.Name] = d.flow
	return made
}

// context returns the draft's execution context.
func (d *draft) context() custom.Context {
	if d.component != nil {
		return d.component.Context
	}
	return d.flow.Context
}

// AdminProblem is a mistake in a draft.
type AdminProblem struct {
	// Path is the place in the draft, like source, inputs[2].name or
	// nodes[1].then[0].when; "" for the whole.
	Path string `json:"path"`
	// Node is the path of the node that has the mistake, NodeID its id; "" for a
	// mistake outside of nodes.
	Node   string `json:"node"`
	NodeID string `json:"nodeId"`
	// Line and Column are the place in a component's source, from 1; 0 if unknown.
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// componentDraft is a component as the configuration has it (docs/manifest.md),
// without its name.
type componentDraft struct {
	Inputs    []inputs.Declaration `json:"inputs"`
	Outputs   []inputs.Declaration `json:"outputs"`
	Context   jsontext.Value       `json:"execution_context"`
	TimeoutMS *int                 `json:"timeout_ms"`
	Config    jsontext.Value       `json:"config"`
	Secrets   map[string]*string   `json:"secrets"`
	Source    string               `json:"source"`
}

// automationDraft is an automation as the configuration has it, without its name.
type automationDraft struct {
	Trigger     string               `json:"trigger"`
	InputSchema []inputs.Declaration `json:"input_schema"`
	Outputs     []inputs.Declaration `json:"outputs"`
	Context     jsontext.Value       `json:"execution_context"`
	OnSkip      jsontext.Value       `json:"on_skip"`
	Nodes       jsontext.Value       `json:"nodes"`
}

// drafter checks a draft for the tenant of a configuration.
type drafter struct {
	s        *Service
	cfg      *access.Config
	catalog  *catalog
	problems []AdminProblem
}

func (d *drafter) add(path, format string, args ...any) {
	d.problems = append(d.problems, AdminProblem{Path: path, Message: fmt.Sprintf(format, args...)})
}

// read returns a draft of the target's kind, ready to run, or the problems of one
// that could not be saved. The error is VALIDATION for a draft of the wrong form,
// OVERLOADED when it cannot be compiled now, or one of the database.
func (d *drafter) read(ctx context.Context, target custom.Target, text []byte) (*draft, error) {
	if target.Kind == custom.ToComponent {
		return d.component(ctx, target.Name, text)
	}
	return d.automation(ctx, target.Name, text)
}

func (d *drafter) component(ctx context.Context, name string, text []byte) (*draft, error) {
	given, err := decodeDraft[componentDraft](text)
	if err != nil {
		return nil, err
	}
	c := &custom.Component{Name: name, Inputs: given.Inputs, Outputs: given.Outputs, TimeoutMS: custom.DefaultTimeoutMS, Source: given.Source, Config: d.config(given.Config)}
	if given.TimeoutMS != nil {
		c.TimeoutMS = *given.TimeoutMS
	}
	if c.TimeoutMS < 1 || c.TimeoutMS > custom.MaxTimeoutMS {
		d.add("timeout_ms", "expected a whole number of 1 to %d", custom.MaxTimeoutMS)
	}
	d.declarations("inputs", c.Inputs)
	d.declarations("outputs", c.Outputs)
	if c.Context, err = d.context(ctx, given.Context); err != nil {
		return nil, err
	}
	secrets, err := d.secrets(c, given.Secrets)
	if err != nil {
		return nil, err
	}
	program, err := d.compile(ctx, c, secrets)
	if err != nil || len(d.problems) > 0 {
		return nil, err
	}
	return &draft{component: c, program: program}, nil
}

// config checks a draft's config.
func (d *drafter) config(text jsontext.Value) jsontext.Value {
	switch text.Kind() {
	case 0, 'n':
		return nil
	case '{':
		if len(text) <= component.MaxConfig {
			return text
		}
	}
	d.add("config", "expected a JSON object of at most %d KiB", component.MaxConfig>>10)
	return nil
}

// secrets returns the secrets of a draft, which names them and gives no texts: the
// request is in the audit log. The stored ones are for what is stored alone: another
// source, or one that is configured in another way, gets texts that stand for them.
func (d *drafter) secrets(c *custom.Component, given map[string]*string) (map[string]string, error) {
	stored := d.catalog.Components[c.Name]
	if stored == nil {
		stored = &custom.Component{}
	}
	plain := map[string]string{}
	if stored.Source == c.Source && string(stored.Config) == string(c.Config) {
		var err error
		if plain, err = custom.OpenSecrets(d.s.keyring, stored); err != nil {
			return nil, err
		}
	}
	names := slices.Collect(maps.Keys(given))
	if given == nil {
		names = slices.Collect(maps.Keys(stored.Secrets))
	}
	if len(names) > component.MaxSecrets {
		d.add("secrets", "expected at most %d secrets", component.MaxSecrets)
		return nil, nil
	}
	secrets := map[string]string{}
	for _, name := range names {
		switch text := given[name]; {
		case !custom.ValidSecretName(name):
			d.add("secrets", "expected names of at most 63 letters, digits and _, like PAYMENT_KEY")
		case text == nil:
			secrets[name] = cmp.Or(plain[name], "a text that stands for "+name)
		default:
			d.add("secrets."+name, "expected null: a draft gets no secret but the stored one")
		}
	}
	return secrets, nil
}

// compile compiles a source that is not kept. A mistake in the source is a problem.
func (d *drafter) compile(ctx context.Context, c *custom.Component, secrets map[string]string) (*component.Program, error) {
	source := c.Source
	switch {
	case source == "":
		d.add("source", "expected JavaScript with export default function handler(inputs, ctx)")
		return nil, nil //nolint:nilnil // the problem says why
	case strings.IndexByte(source, 0) >= 0:
		d.add("source", "expected text without the character U+0000")
		return nil, nil //nolint:nilnil // the problem says why
	}
	program, err := d.s.engine.CompileFor(ctx, string(d.cfg.Tenant.ID), component.Source{
		Text: source, Modules: d.catalog.ModuleSources(), Config: c.Config, Secrets: secrets,
	})
	var wrong *component.SourceError
	if errors.As(err, &wrong) {
		if wrong.Module != "" { // the place is in another source
			wrong = &component.SourceError{Message: wrong.Error()}
		}
		d.problems = append(d.problems, AdminProblem{Path: "source", Line: wrong.Line, Column: wrong.Column, Message: wrong.Message})
		return nil, nil //nolint:nilnil // the problem says why
	}
	return program, err
}

func (d *drafter) automation(ctx context.Context, name string, text []byte) (*draft, error) {
	given, err := decodeDraft[automationDraft](text)
	if err != nil {
		return nil, err
	}
	if given.Trigger != "" && given.Trigger != "http.request" {
		d.add("trigger", "expected http.request")
	}
	c, err := d.context(ctx, given.Context)
	if err != nil {
		return nil, err
	}
	if len(given.Nodes) == 0 {
		given.Nodes = jsontext.Value("[]")
	}
	whole, err := json.Marshal(struct {
		Name        string               `json:"name"`
		InputSchema []inputs.Declaration `json:"input_schema"`
		Outputs     []inputs.Declaration `json:"outputs"`
		OnSkip      jsontext.Value       `json:"on_skip,omitempty"`
		Nodes       jsontext.Value       `json:"nodes"`
	}{name, given.InputSchema, given.Outputs, given.OnSkip, given.Nodes}, json.OmitZeroStructFields(true))
	if err != nil {
		return nil, err
	}
	def, problems := automation.DecodePartly(jsontext.Value(whole))
	var compiled *automation.Flow
	if def != nil {
		var more automation.Problems
		compiled, more = automation.Compile(def, config.FlowNames(d.cfg.Schema, func(name string) *custom.Component { return d.catalog.Components[name] }))
		problems = append(problems, more...)
	}
	if len(problems) > 0 {
		d.flowProblems(given.Nodes, problems)
	}
	if len(d.problems) > 0 {
		return nil, nil //nolint:nilnil // the problems say why
	}
	f := &flow{Automation: &custom.Automation{Name: name, Context: c, Flow: def.JSON()}, schema: def.InputSchema, outputs: def.Outputs, compiled: compiled}
	f.once.Do(func() {}) // it is compiled
	return &draft{flow: f}, nil
}

// declarations checks what is declared (contract N1).
func (d *drafter) declarations(member string, decls []inputs.Declaration) {
	var mistakes inputs.Mistakes
	if !errors.As(inputs.Check(decls), &mistakes) {
		return
	}
	for _, one := range mistakes {
		path := member + "[" + strconv.Itoa(one.Index) + "]"
		if one.Member != "" {
			path += "." + one.Member
		}
		d.add(path, "%s", one.Text)
	}
}

// specificUser is the execution context of a user.
type specificUser struct {
	User string `json:"specific_user"`
}

// context reads an execution context: caller, system or {specific_user: EMAIL}.
func (d *drafter) context(ctx context.Context, text jsontext.Value) (custom.Context, error) {
	const path, expected = "execution_context", "expected caller, system or {specific_user: EMAIL}"
	switch text.Kind() {
	case 0, 'n':
		return custom.Context{Kind: custom.Caller}, nil
	case '"':
		word, err := jsontext.AppendUnquote(nil, text)
		if kind := custom.ContextKind(word); err == nil && (kind == custom.Caller || kind == custom.System) {
			return custom.Context{Kind: kind}, nil
		}
	case '{':
		if named, wrong := httpapi.DecodeStrict[specificUser](text); wrong == nil && named.User != "" {
			id, err := d.s.store.userByEmail(ctx, d.cfg.Tenant.ID, named.User)
			if err == nil && id == "" {
				d.add(path, "there is no user %q", named.User)
			}
			return custom.Context{Kind: custom.SpecificUser, UserID: string(id)}, err
		}
	}
	d.add(path, expected)
	return custom.Context{}, nil
}

// flowProblems adds the problems of a flow, each with the node that it is in.
func (d *drafter) flowProblems(nodes jsontext.Value, problems automation.Problems) {
	var tree any
	_ = json.Unmarshal(nodes, &tree) // it is JSON; what is no list has no nodes
	for _, one := range problems {
		node, id := nodeAt(map[string]any{"nodes": tree}, one.Path)
		d.problems = append(d.problems, AdminProblem{Path: one.Path, Node: node, NodeID: id, Message: one.Text})
	}
}

// nodeAt returns the path and the id of the innermost node on a path like
// nodes[1].then[0].fields.email.
func nodeAt(tree any, path string) (node, id string) {
	at := 0
	for at < len(path) {
		end := at + 1
		for end < len(path) && path[end] != '.' && path[end] != '[' {
			end++
		}
		step, inList := path[at:end], false
		if step[0] == '[' {
			n, err := strconv.Atoi(strings.Trim(step, "[]"))
			list, ok := tree.([]any)
			if err != nil || !ok || n < 0 || n >= len(list) {
				return node, id
			}
			tree, inList = list[n], true
		} else {
			o, ok := tree.(map[string]any)
			name := strings.TrimPrefix(step, ".")
			if !ok || node != "" && name != "then" && name != "else" && name != "do" {
				return node, id
			}
			tree = o[name]
		}
		if o, ok := tree.(map[string]any); ok && inList {
			node = path[:end]
			id, _ = o["id"].(string)
		}
		at = end
	}
	return node, id
}

// decodeDraft decodes a draft strictly. The error names members by their path in
// the request.
func decodeDraft[T any](text []byte) (T, error) {
	made, err := httpapi.DecodeStrict[T](text)
	var wrong *fault.Error
	if errors.As(err, &wrong) {
		if fields, ok := wrong.Details["fields"].(map[string]string); ok {
			moved := make(map[string]string, len(fields))
			for name, reason := range fields {
				moved["draft."+name] = reason
			}
			err = fault.Fields(wrong.Message, moved)
		}
	}
	return made, err
}

// mayRun checks whether viewer may try what has an execution context (contract
// A13): what they could not define, they cannot try. It returns FORBIDDEN.
func mayRun(viewer access.Viewer, c custom.Context) error {
	var others []user.ID
	if c.Kind == custom.SpecificUser {
		others = append(others, user.ID(c.UserID))
	}
	return MayDefine(viewer, others, c.Kind == custom.System)
}
