package config

import (
	"encoding/json"

	"gatehouse/internal/custom"
	"gatehouse/internal/fault"
)

// A program is a component, an automation or an endpoint. It calls others, and so what
// it does is done with the rights that they, and those who call it, run with.
type program struct{ kind, name string }

// judgeDefinitions finds programs that the author changes and that run, or call what
// runs, or are called by what runs, with rights that the author does not have: as
// another user, or with execution_context system (contract A13, D13).
func (p *plan) judgeDefinitions() {
	var calls, callers callGraph
	for _, c := range p.changes {
		if c.kind != kindComponent && c.kind != kindAutomation && c.kind != kindEndpoint || c.after == nil || p.harmless(c) {
			continue
		}
		if calls == nil {
			calls, callers = p.after.calls()
		}
		at := program{c.kind, c.key}
		for _, other := range append(calls.from(at), callers.from(at)...) {
			if p.refusesProgram(c, at, other) {
				break
			}
		}
	}
}

// refusesProgram judges a changed program by one that it is or that it is connected
// with, and reports whether it refused it.
func (p *plan) refusesProgram(c change, at, other program) bool {
	through := ""
	if other != at {
		through = " (" + words(other.kind) + " " + other.name + ")"
	}
	as, system := p.after.runsAs(other)
	switch {
	case as != "" && as != p.author.key && at == other && c.before == nil:
		p.deny(c, "only the tenant's owner may let something run as another user")
	case as != "" && as != p.author.key && at == other && p.before.runsAsOf(at) != as:
		p.deny(c, "only the tenant's owner may let something run as another user")
	case as != "" && as != p.author.key:
		p.deny(c, "it runs as %s%s, and only the tenant's owner may change what runs as another user", p.actorName(as), through)
	case system && !p.author.viewer.AllEntityAccess():
		p.deny(c, "it runs with execution_context system%s, and only a user with all_entity_access may define that", through)
	default:
		return false
	}
	return true
}

// harmless reports whether a change of an endpoint changes neither what it runs, nor as
// whom, nor who may call it with which credential, nor what they read of it.
func (p *plan) harmless(c change) bool {
	was, is := p.before.endpoints[c.key], p.after.endpoints[c.key]
	if c.kind != kindEndpoint || was == nil || is == nil {
		return false
	}
	same := *is
	same.LogRequests, same.RateLimitPerMinute, same.MaxBodyBytes = was.LogRequests, was.RateLimitPerMinute, was.MaxBodyBytes
	same.SealedSecret, same.SealedPrevious = was.SealedSecret, was.SealedPrevious
	return same == *was
}

// runsAsOf is the user of runsAs.
func (s *state) runsAsOf(at program) string {
	as, _ := s.runsAs(at)
	return as
}

// runsAs returns the e-mail key of the user as whom a program runs, "" for its caller,
// and whether it has the rights of the system.
func (s *state) runsAs(at program) (key string, system bool) {
	context := custom.Context{Kind: custom.Caller}
	switch at.kind {
	case kindEndpoint:
		if e := s.endpoints[at.name]; e != nil {
			return s.actor(e), false
		}
	case kindComponent:
		if c := s.components[at.name]; c != nil {
			context = c.Context
		}
	case kindAutomation:
		if a := s.automations[at.name]; a != nil {
			context = a.Context
		}
	}
	if context.Kind == custom.SpecificUser {
		key = context.UserID
	}
	return key, context.Kind == custom.System
}

// callGraph has the programs that each program calls, or that call it.
type callGraph map[program][]program

func (s *state) calls() (calls, callers callGraph) {
	calls, callers = callGraph{}, callGraph{}
	add := func(from, to program) {
		calls[from], callers[to] = append(calls[from], to), append(callers[to], from)
	}
	for _, slug := range sortedKeys(s.endpoints) {
		e, at := s.endpoints[slug], program{kindEndpoint, slug}
		if e.Target.Kind == custom.ToAutomation {
			add(at, program{kindAutomation, e.Target.Name})
		} else {
			add(at, program{kindComponent, e.Target.Name})
		}
		if e.Verifier != "" {
			add(at, program{kindComponent, e.Verifier})
		}
	}
	for _, name := range sortedKeys(s.automations) {
		var flow any
		if json.Unmarshal(s.automations[name].Flow, &flow) == nil {
			eachCall(flow, func(component string) { add(program{kindAutomation, name}, program{kindComponent, component}) })
		}
	}
	return calls, callers
}

// eachCall calls fn with the component of each node of a flow that runs one, at any
// depth. A value that only looks like such a node counts as one.
func eachCall(v any, fn func(component string)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			eachCall(item, fn)
		}
	case map[string]any:
		if name, ok := v["component"].(string); ok {
			fn(name)
		}
		for _, item := range v {
			eachCall(item, fn)
		}
	}
}

// from returns a program and all that follow it in the graph.
func (g callGraph) from(at program) []program {
	seen, known := []program{at}, map[program]bool{at: true}
	for i := 0; i < len(seen); i++ {
		for _, next := range g[seen[i]] {
			if !known[next] {
				known[next] = true
				seen = append(seen, next)
			}
		}
	}
	return seen
}

// mayName reports whether the author may name a user whom something runs as: who that
// is stays untold otherwise, and whether they exist (contract A13).
func (p *plan) mayName(key, before string) bool {
	return p.author.free || p.author.viewer.TenantOwner() || key == "" || key == p.author.key || key == before
}

// unnameable adds the problem of a user whom the author may not name.
func (p *plan) unnameable(at Place, what string) {
	const reason = "only the tenant's owner may let something run as another user"
	p.Note(Problem{Place: at, Text: what + ": " + reason, Reason: reason, Cause: fault.New(fault.Forbidden, "%s: %s", what, reason)})
}
